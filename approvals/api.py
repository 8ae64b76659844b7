"""Exact actions over HTTP: what became of one, and a person's decision. Agents never decide."""

import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from access import rules
from access.api import afresh, known_for_awhile
from access.errors import Forbidden
from access.models import User
from access.rows import only
from access.rules import Actor
from approvals import asking, decisions, delivery, editing, execution, forms, gravity, outside, presenting, reasons
from approvals.forms import DAY, OPENED
from approvals.models import Decision, Grant, ProposedAction
from approvals.policy_api import group_as_json
from artifacts import vault
from artifacts.redaction import plain
from runs import hub
from runs.api import Cursor

router = Router(tags=["actions"])

Code = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class PeopleDecide(Forbidden):
    """Only a person who is signed in decides."""

    what_next = "Nothing was decided. Whoever proposes an action waits for the answer: GET /api/v1/actions/{id}?wait=30."


class PeopleSay(Forbidden):
    """Only a person who is signed in says what became of an action."""

    what_next = "Nothing was recorded. People who hold the right say it; the run goes on by itself then."


class ResolutionIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    outcome: Literal["happened", "did_not_happen", "look_again"]
    note: Annotated[str, StringConstraints(max_length=execution.MAX_NOTE)] = ""
    reference: Annotated[str, StringConstraints(max_length=execution.MAX_REFERENCE)] = ""


class SeenIn(BaseModel):
    """What the reviewer had looked at: for how long, and which folds of the card were opened."""

    model_config = ConfigDict(extra="forbid")

    seconds: Annotated[int, Field(ge=0, le=DAY)] | None = None
    opened: Annotated[list[Code], Field(max_length=OPENED)] = []


class EditIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    arguments: dict[str, Any]


class QuestionIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    question: Annotated[str, StringConstraints(max_length=asking.MAX_QUESTION)]


class DecisionIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    verdict: Literal["approved", "rejected"]
    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    reason: Annotated[str, StringConstraints(max_length=reasons.MAX_REASON)] = ""
    acks: Annotated[list[Code], Field(max_length=OPENED, description="the codes of the warnings that were ticked")] = []
    nth: Annotated[int, Field(ge=1, le=1000, description="the how manieth approval: `reviewers.approved` and one")] | None = None
    seen: SeenIn = SeenIn()


@router.get("/actions/{action_id}", response=Any, auth=known_for_awhile, summary="Ask what became of an action")
async def action(request: HttpRequest, action_id: str, wait: Annotated[int, Query(ge=0, le=30)] = 0, asked: Cursor = 0) -> dict[str, Any]:
    """State, decisions and grant. With `wait`, the answer is held back so many seconds while it is still waiting for a decision.

    Its agent is also told what was asked: a question ends the wait, unless it is one up to event `asked`, which the agent knows.
    """
    until = time.monotonic() + wait
    actor, found, told = await hub.in_thread(_asked)(request, action_id)
    while found.state == "waiting" and not _is_asked(told, asked) and time.monotonic() < until:
        # the run's log moves with every decision; what else moves it costs one more look
        await hub.grown(found.run_id, beyond=found.run.seq, actor=actor, seconds=until - time.monotonic())
        actor, found, told = await hub.in_thread(_asked)(request, action_id)
    return told


@router.post("/actions/{action_id}/decisions", response={200: Any, 201: Any}, summary="Decide on exactly this action")
def decide(request: HttpRequest, action_id: str, body: DecisionIn) -> Status:
    """`digest` names what was on the screen; a newer action is refused with its digest. The same decision again gives the first (200).

    Where several must approve, `nth` says what the approval was meant to do: if somebody else approved meanwhile it is refused (409), for
    it might let the action go. Without `nth` it counts whichever it is.
    """
    actor, found = _of_a_person(request, action_id, "approvals.decide", PeopleDecide)
    gravity.check(request, found, body.verdict)
    seen = forms.seen(presenting.sums(found), seconds=body.seen.seconds, opened=body.seen.opened, acks=body.acks)
    given = body.model_dump(include={"verdict", "digest", "reason", "acks", "nth"})
    decided = decisions.decide(found, reviewer=actor, seen=seen, **given)
    told = {"decision": _as_decision(decided.decision, actor.name), "action": {"id": decided.action.pk, "state": decided.action.state}}
    return Status(200 if decided.again else 201, told | {"again": decided.again})


@router.post("/actions/{action_id}/edits", response={200: Any, 201: Any}, summary="Put another version of this action up for decision")
def edit(request: HttpRequest, action_id: str, body: EditIn) -> Status:
    """A new action with these arguments takes the place of the one with this digest; another person decides on it. The same again: 200."""
    actor, found = _of_a_person(request, action_id, "approvals.decide", PeopleDecide)
    made = editing.edit(found, by=actor, arguments=body.arguments, digest=body.digest)
    return Status(200 if made.again else 201, {"action": _as_action(made.action), "again": made.again})


@router.post("/actions/{action_id}/questions", response={200: Any, 201: Any}, summary="Ask the agent about this action")
def ask(request: HttpRequest, action_id: str, body: QuestionIn) -> Status:
    """The answer comes as an event of the run. Deciding goes on meanwhile. The same question while it is open gives the first (200)."""
    actor, found = _of_a_person(request, action_id, "approvals.decide", PeopleDecide)
    asked = asking.ask(found, by=actor, question=body.question, digest=body.digest)
    told = {"id": asked.question, "seq": asked.seq, "again": asked.again}
    return Status(200 if asked.again else 201, {"question": told})


@router.post("/actions/{action_id}/resolution", response={200: Any, 201: Any}, summary="Say what became of an action with a lost answer")
def resolve(request: HttpRequest, action_id: str, body: ResolutionIn) -> Status:
    """Only while its outcome is unknown, and only by who had no part in it. The same said again gives the first (200)."""
    actor, found = _of_a_person(request, action_id, "runs.recover", PeopleSay)
    said = execution.resolve(found, by=actor, outcome=body.outcome, note=body.note, reference=body.reference)
    told = {"outcome": said.outcome, "seq": said.seq, "again": said.again}
    return Status(200 if said.again else 201, {"resolution": told, "action": _as_action(found)})


def _of_a_person(request: HttpRequest, action_id: str, capability: str, otherwise: type[Forbidden]) -> tuple[Actor, ProposedAction]:
    """Who asks, and the action, if that is a person who may do this to it. An agent is refused with `otherwise`."""
    actor: Actor = request.actor
    if actor.kind != "human":
        raise otherwise
    return actor, rules.get(actor, ProposedAction, action_id, capability)


def _asked(request: HttpRequest, action_id: str) -> tuple[Actor, ProposedAction, dict[str, Any]]:
    """The action, if whoever asks may see it now: people who see approvals, and the agent that proposed it."""
    actor = afresh(request)
    capability = "actions.propose" if actor.kind == "agent" else "approvals.view"
    found = rules.get(actor, ProposedAction, action_id, capability, related=("run__agent", "policy__group"))
    told = _as_action(found)
    return actor, found, told | outside.for_agent(found) if actor.kind == "agent" else told


def _is_asked(told: dict[str, Any], known: int) -> bool:
    return any(one["seq"] > known for one in told.get("questions", ()))


def _as_action(action: ProposedAction) -> dict[str, Any]:
    made = list(Decision.objects.filter(action=action).order_by("decided_at"))
    texts = vault.shown(pk for pk in (action.subject_id, action.reason_id, *(one.reason_id for one in made)) if pk)
    names = dict(User.objects.filter(pk__in=[one.reviewer_id for one in made]).values_list("pk", "name"))
    grant = only(Grant.objects.filter(action=action))
    return {
        "id": action.pk,
        "run": action.run_id,
        "tool": {"name": action.tool, "schema": action.tool_schema, "effect": action.effect},
        "executor": action.executor,
        "digest": action.digest,
        "subject": _words(texts, action.subject_id),
        "reason": _words(texts, action.reason_id),
        "state": action.state,
        "locked": action.locked,
        "proposed_at": action.proposed_at,
        "expires_at": action.expires_at,
        "settled_at": action.settled_at,
        "superseded_by": action.superseded_by_id,
        "reviewers": _as_asked(action, made),
        "decisions": [_as_decision(one, names[one.reviewer_id]) | {"reason": _words(texts, one.reason_id)} for one in made],
        "grant": _as_grant(grant) if grant else None,
    } | delivery.told(action, made, grant)


def _as_asked(action: ProposedAction, made: Sequence[Decision]) -> dict[str, Any]:
    """How many must approve, of which group if not of all who may decide, and how many have whose approval counts."""
    approved = [each for each in made if each.verdict == "approved" and each.round == action.round]
    if action.state == "waiting" and approved:
        given = [(each.reviewer_id, each.group_version) for each in approved]
        counted = len(decisions.counted(action, given, decisions.who_may(action)))
    else:
        counted = len(approved)
    return {"needed": action.policy.needs, "approved": counted, "group": group_as_json(action.policy.group)}


def _as_decision(decision: Decision, name: str) -> dict[str, Any]:
    return {
        "id": decision.pk,
        "verdict": decision.verdict,
        "digest": decision.digest,
        "by": {"id": decision.reviewer_id, "name": name},
        "at": decision.decided_at,
        "seq": decision.seq,
    }


def _as_grant(grant: Grant) -> dict[str, Any]:
    times = ("granted_at", "expires_at", "delivered_at", "redeemed_at", "executed_at", "verified_at", "unknown_at", "voided_at")
    return {"id": grant.pk, "digest": grant.digest, "outcome": grant.outcome} | {name: getattr(grant, name) for name in times}


def _words(texts: dict[UUID, vault.Shown], pk: UUID | None) -> str | None:
    return plain(texts[pk].text) if pk in texts else None
