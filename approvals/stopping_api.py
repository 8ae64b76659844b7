"""Stopping over HTTP: freezing and unfreezing, recalling an approval, withdrawing a proposal."""

from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints

from access import places, rules
from access.errors import Forbidden
from access.rules import Actor
from approvals import freezes, reasons, taking_back
from approvals.models import Freeze, ProposedAction

router = Router(tags=["stopping"])
Reason = Annotated[str, StringConstraints(max_length=reasons.MAX_REASON)]


class PeopleStop(Forbidden):
    """Only a person who is signed in freezes, unfreezes or recalls."""

    what_next = "Nothing was changed. An agent withdraws what it proposed: POST /api/v1/actions/{id}/withdrawal."


class AgentsWithdraw(Forbidden):
    """Only the agent that proposed it withdraws it."""

    what_next = "Nothing was withdrawn. Who may decide on it rejects it: POST /api/v1/actions/{id}/decisions."


class FreezeIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    what: Literal["agent", "tool", "workspace"]
    agent: UUID | None = None
    tool: Annotated[str, StringConstraints(max_length=60)] = ""
    reason: Annotated[str, StringConstraints(max_length=freezes.MAX_REASON)]
    until: AwareDatetime | None = None


class LiftingIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: Annotated[str, StringConstraints(max_length=freezes.MAX_REASON)]


class TakingBackIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: Reason


@router.get("/freezes", response=Any, summary="What is frozen, and was")
def all_freezes(request: HttpRequest) -> dict[str, Any]:
    """`standing` is frozen now; `past` the last that were."""
    rules.require(request.actor, "approvals.view")
    standing, past = freezes.history(request.actor)
    return {"standing": [freezes.as_json(each) for each in standing], "past": [freezes.as_json(each) for each in past]}


@router.post("/freezes", response={200: Any, 201: Any}, summary="Freeze an agent, a tool or the workspace")
def freeze(request: HttpRequest, body: FreezeIn) -> Status:
    """From the answer on nothing of it is granted or redeemed, until `until` or until somebody lifts it. The same again: 200."""
    _person(request)
    workspace_id = places.place(request, "approvals.freeze").id
    made = freezes.freeze(
        workspace_id, what=body.what, by=request.actor, reason=body.reason, agent_id=body.agent, tool=body.tool, until=body.until
    )
    return Status(200 if made.again else 201, {"freeze": freezes.as_json(made.freeze), "again": made.again})


@router.post("/freezes/{freeze_id}/lifting", response={200: Any, 201: Any}, summary="Unfreeze")
def lift(request: HttpRequest, freeze_id: str, body: LiftingIn) -> Status:
    """What waited for it goes on by itself, unless another freeze is in its way. The same again: 200."""
    found = rules.get(_person(request), Freeze, freeze_id, "approvals.freeze")
    lifted = freezes.lift(found, by=request.actor, reason=body.reason)
    return Status(200 if lifted.again else 201, {"freeze": freezes.as_json(lifted.freeze), "again": lifted.again})


@router.post("/actions/{action_id}/recall", response={200: Any, 201: Any}, summary="Recall an approval")
def recall(request: HttpRequest, action_id: str, body: TakingBackIn) -> Status:
    """While its policy's delay runs (`recall_until` of the action) and nobody redeemed it. It is closed then; its agent gets the reason."""
    found = rules.get(_person(request), ProposedAction, action_id, "approvals.decide")
    return _taken_back(taking_back.recall(found, by=request.actor, reason=body.reason))


@router.post("/actions/{action_id}/withdrawal", response={200: Any, 201: Any}, summary="Withdraw a proposal")
def withdraw(request: HttpRequest, action_id: str, body: TakingBackIn) -> Status:
    """The agent takes back what waits. What was decided before stands: 409 names it. The same again: 200."""
    actor: Actor = request.actor
    if actor.kind != "agent":
        rules.get(actor, ProposedAction, action_id, "approvals.view")  # who may not even see it is told nothing of it
        raise AgentsWithdraw
    found = rules.get(actor, ProposedAction, action_id, "actions.propose")
    return _taken_back(taking_back.withdraw(found, by=actor, reason=body.reason))


def _taken_back(done: taking_back.TakenBack) -> Status:
    told = {"action": {"id": done.action.pk, "state": done.action.state}, "seq": done.seq, "again": done.again}
    return Status(200 if done.again else 201, told)


def _person(request: HttpRequest) -> Actor:
    actor: Actor = request.actor
    if actor.kind != "human":
        raise PeopleStop
    return actor
