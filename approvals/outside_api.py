"""What an agent outside does about its actions, over HTTP: propose, answer, redeem, report. It waits by `GET actions/{id}?wait=30`."""

from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from access import rules
from approvals import outside
from approvals.api import _as_action
from approvals.models import ProposedAction
from approvals.outside import MAX_ANSWER, MAX_ATTACHMENTS, Redeemed
from runs.api import Key, Token
from runs.models import Run
from runs.vocabulary import Digest, Fit, Seq

router = Router(tags=["agents outside"])

ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,59}$"), Fit]
Holder = Annotated[
    str, StringConstraints(pattern=r"^[\x21-\x7e]{16,120}$"), Field(description="made up by who redeems, and told to nobody else: a UUID")
]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ActionIn(Strict):
    tool: ToolName
    tool_schema: Annotated[int, Field(ge=1, le=10_000, description="the tool's version for which the arguments are")]
    arguments: dict[str, Any]
    attachments: Annotated[list[Seq], Field(max_length=MAX_ATTACHMENTS, description="the events that made the artifacts")] = []
    reason: Annotated[str, StringConstraints(max_length=2000)] = ""


class RedemptionIn(Strict):
    digest: Annotated[Digest, Field(description="SHA-256 of the exact action that is about to be run")]
    holder: Holder


class OutcomeIn(Strict):
    holder: Holder
    outcome: Literal["executed", "failed"]
    facts: dict[str, Any] = {}
    detail: Annotated[str, StringConstraints(max_length=4000)] = ""


class AnswerIn(Strict):
    question: UUID
    answer: Annotated[str, StringConstraints(min_length=1, max_length=MAX_ANSWER)]
    cites: Annotated[list[Seq], Field(max_length=200)] = []


@router.post("/runs/{run_id}/actions", response={200: Any, 201: Any}, summary="Propose an exact action that you will run yourself")
def propose(request: HttpRequest, run_id: str, body: ActionIn, idempotency_key: Key, handrail_token: Token = None) -> Status:
    """The tool must be declared, and its policy judges. The digest is that of `exact`. The same key again gives the first (200)."""
    run = rules.get(request.actor, Run, run_id, "actions.propose")
    rules.check_scope(request.actor, tool=body.tool)
    put_up = outside.propose(
        run,
        by=request.actor,
        key=idempotency_key,
        tool=body.tool,
        version=body.tool_schema,
        arguments=body.arguments,
        attachments=body.attachments,
        reason=body.reason,
        lease=handrail_token,
    )
    return Status(200 if put_up.again else 201, {"action": _told(request, put_up.action.pk), "again": put_up.again})


@router.post("/actions/{action_id}/answers", response={200: Any, 201: Any}, summary="Answer what a reviewer asked about your action")
def answer(request: HttpRequest, action_id: str, body: AnswerIn) -> Status:
    """The open questions stand in `questions` of the action. The same answer again gives the first (200)."""
    found = rules.get(request.actor, ProposedAction, action_id, "actions.propose")
    said = outside.answer(found, by=request.actor, question=body.question, text=body.answer, cites=body.cites)
    return Status(200 if said.again else 201, {"answer": {"question": body.question, "seq": said.seq, "again": said.again}})


@router.post("/actions/{action_id}/redemption", response={200: Any, 201: Any}, summary="Take the one use of an approved action")
def redeem(request: HttpRequest, action_id: str, body: RedemptionIn, handrail_token: Token = None) -> Status:
    """Run exactly `exact`, once, and report until `report_by`. The same holder again is answered the same (200), anybody else 409."""
    found = rules.get(request.actor, ProposedAction, action_id, "actions.redeem")
    rules.check_scope(request.actor, tool=found.tool)
    taken = outside.redeem(found, by=request.actor, digest=body.digest, holder=body.holder, lease=handrail_token)
    return Status(200 if taken.again else 201, {"redemption": _as_redemption(taken)})


@router.post("/actions/{action_id}/outcome", response={200: Any, 201: Any}, summary="Report what became of what you redeemed")
def report(request: HttpRequest, action_id: str, body: OutcomeIn) -> Status:
    """`executed`: it happened. `failed`: it surely did not; where you can’t tell, stay silent, and a person finds out. Again: 200."""
    found = rules.get(request.actor, ProposedAction, action_id, "actions.redeem")
    said = outside.report(found, by=request.actor, holder=body.holder, outcome=body.outcome, facts=body.facts, detail=body.detail)
    return Status(200 if said.again else 201, {"outcome": said.outcome, "again": said.again, "action": _told(request, found.pk)})


def _told(request: HttpRequest, action_id: UUID) -> dict[str, Any]:
    found = rules.get(request.actor, ProposedAction, action_id, "actions.propose", related=("run",))
    return _as_action(found) | outside.for_agent(found)


def _as_redemption(taken: Redeemed) -> dict[str, Any]:
    return {
        "action": taken.action_id,
        "grant": taken.grant_id,
        "idempotency_key": taken.grant_id,
        "digest": taken.digest,
        "exact": taken.exact,
        "attachments": [{"name": name, "sha256": digest} for name, digest in taken.attachments],
        "redeemed_at": taken.redeemed_at,
        "report_by": taken.report_by,
        "again": taken.again,
    }
