"""What an agent outside tells of its work step by step, over HTTP, under a lease of the run; and the journal from which another goes on."""

import base64
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import Field, StringConstraints

from access import naming, rules
from artifacts import vault
from runs import signals, steps
from runs.api import Note, Strict, TextIn, _as_text
from runs.api import Token as AnyToken
from runs.models import AgentStep, Run, Signal
from runs.steps import LONGEST, PAGE, SHORTEST, USUAL, Taken, Told
from runs.vocabulary import Digest, Fit, Name, Trouble

router = Router(tags=["agents outside"])

Token = Annotated[int, Field(ge=1, le=2**53 - 1, description="the fencing token of the lease")]
Seconds = Annotated[int, Field(ge=SHORTEST, le=LONGEST, description="until the lease runs out, unless it is renewed")]
StepKey = Annotated[str, StringConstraints(min_length=1, max_length=188, pattern=f"^{steps.KEY.pattern}$"), Fit]


class ClaimIn(Strict):
    holder: Annotated[Name, Field(description="made up anew by each process, such as its host, its number and when it began")]
    seconds: Seconds = USUAL


class RenewIn(Strict):
    token: Token
    seconds: Seconds = USUAL


class StepIn(Strict):
    token: Token
    key: StepKey
    input: Annotated[Digest, Field(description="SHA-256 of what the step is given")]
    plan_step: Annotated[int, Field(ge=1, le=99)] | None = None


class StepOutcomeIn(Strict):
    token: Token
    key: StepKey
    outcome: Literal["completed", "failed"]
    result: TextIn | None = None
    error: Trouble = "error"
    detail: Note = ""


@router.post("/runs/{run_id}/lease", response={200: Any, 201: Any}, summary="Take a run, to work on it")
def claim(request: HttpRequest, run_id: str, body: ClaimIn) -> Status:
    """Gives the fencing token that goes with every write. The same holder again gets the same (200); anybody else 409 while it holds."""
    run = rules.get(request.actor, Run, run_id, "runs.write")
    taken = steps.claim(run, holder=body.holder, seconds=body.seconds)
    return Status(200 if taken.again else 201, {"lease": _as_lease(taken)})


@router.put("/runs/{run_id}/lease", response=Any, summary="Renew the lease of a run: a heartbeat")
def renew(request: HttpRequest, run_id: str, body: RenewIn) -> dict[str, Any]:
    """Three times as often as it would run out. `state` says when people cancelled or paused the run, or that it waits for them.

    `unread`: how many notes of theirs the agent has not read."""
    run = rules.get(request.actor, Run, run_id, "runs.write")
    until = steps.renew(run, token=body.token, seconds=body.seconds)
    return {"lease": {"token": body.token, "until": until}, "state": run.state, "unread": signals.all_unread(run.pk)}


@router.api_operation(
    ["DELETE"], "/runs/{run_id}/lease", response=Any, summary="Give a run back, so that another process may take it at once"
)
def give_back(request: HttpRequest, run_id: str, token: Annotated[int, Query(ge=1, le=2**53 - 1)]) -> dict[str, Any]:
    """What was begun and not ended is begun again by whoever takes it."""
    run = rules.get(request.actor, Run, run_id, "runs.write")
    steps.give_back(run, token=token)
    return {"lease": None}


@router.get("/runs/{run_id}/steps", response=Any, summary="Read the journal of a run")
def journal(
    request: HttpRequest,
    run_id: str,
    after: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE,
) -> dict[str, Any]:
    """Its steps in the order in which they were begun, with their results in full: for the agent alone. Go on from `next`."""
    run = rules.get(request.actor, Run, run_id, "runs.write")
    found, behind = steps.listed(run, after=after, limit=limit)
    return {"steps": [_as_step(row) for row in found], "next": behind}


@router.post("/runs/{run_id}/steps", response={200: Any, 201: Any}, summary="Begin a step, or get what it gave")
def begin(request: HttpRequest, run_id: str, body: StepIn) -> Status:
    """201: go on with it. 200 with state `done`: it was done, here is its result. 409 if it was begun with another input."""
    run = rules.get(request.actor, Run, run_id, "runs.write")
    told = steps.begin(run, by=request.actor, token=body.token, key=body.key, given=body.input, plan_step=body.plan_step)
    return Status(200 if told.again else 201, _as_told(told) | {"unread": signals.all_unread(run.pk)})


@router.post("/runs/{run_id}/steps/outcome", response={200: Any, 201: Any}, summary="Say what came of a step")
def end(request: HttpRequest, run_id: str, body: StepOutcomeIn) -> Status:
    """`completed` with its result, which whoever goes on with the run is given; or `failed`, and it may be begun again."""
    run = rules.get(request.actor, Run, run_id, "runs.write")
    result = _as_text("result", body.result) if body.result else None
    said = {"outcome": body.outcome, "result": result, "error": body.error, "detail": body.detail}
    told = steps.end(run, by=request.actor, token=body.token, key=body.key, **said)
    return Status(200 if told.again else 201, _as_told(told) | {"unread": signals.all_unread(run.pk)})


@router.post("/runs/{run_id}/notes", response=Any, summary="Read what people tell the agent")
def read(request: HttpRequest, run_id: str, handrail_token: AnyToken = None) -> dict[str, Any]:
    """What people added as context, and that they want the plan revised, oldest first and in full. From now on the agent has read it,
    which the log says; what it had read before comes along. For an agent outside alone."""
    run = rules.get(request.actor, Run, run_id, "runs.write")
    steps.check_outside(run)
    found = signals.read_outside(run, token=handrail_token)
    names = naming.people(each.actor_id for each in found if each.actor_kind == "human")
    return {"notes": [_as_note(each, names) for each in found]}


def _as_note(signal: Signal, names: Mapping[str, str]) -> dict[str, Any]:
    kept = vault.opened(signal.note) if signal.note else None
    by = {"id": signal.actor_id, "name": names.get(signal.actor_id, "")}
    told = {"id": signal.pk, "kind": signal.kind, "text": kept.decode() if kept is not None else None}
    return told | {"by": by, "at": signal.created_at, "read_at": signal.settled_at}


def _as_lease(taken: Taken) -> dict[str, Any]:
    told = {"token": taken.token, "holder": taken.holder, "until": taken.until}
    return told | {"again": taken.again, "held_before_by": taken.before or None}


def _as_told(told: Told) -> dict[str, Any]:
    return {"step": _as_step(told.row) | {"idempotency_key": told.idempotency_key}, "again": told.again}


def _as_step(row: AgentStep) -> dict[str, Any]:
    return {
        "key": row.step,
        "position": row.position,
        "state": row.state,
        "input": row.given,
        "plan_step": row.plan_step,
        "attempt": row.attempts,
        "holder": row.holder,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "seq": row.seq,
        "result": _result(row),
    }


def _result(row: AgentStep) -> dict[str, Any] | None:
    """As it was given, in base64 if it is no text. Without content where that was erased."""
    if row.result is None:
        return None
    kept = {"label": row.result.label, "media_type": row.result.media_type}
    content = vault.opened(row.result)
    if content is None:
        return kept | {"text": None}
    try:
        return kept | {"text": content.decode()}
    except UnicodeDecodeError:
        return kept | {"base64": base64.b64encode(content).decode()}
