"""Forks of a run over HTTP: where one can begin, and making it."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import Field, StringConstraints

from access import rules
from artifacts.redaction import plain
from runs import places, query
from runs.api import Key, Note, Strict
from runs.engine import forking, replaying
from runs.models import Run
from runs.story import titles

router = Router(tags=["runs"])
RELATED = ("agent", "owner", "input__key")

StepName = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class ForkIn(Strict):
    """Where it begins: at a `step`, which is done anew, or after event `after`; with neither, after the last.

    `input` changes that of the step, or, with no place, that of the run, which begins anew then. What is not named stays as it is.
    """

    step: StepName | None = None
    after: Annotated[int, Field(ge=1, le=2**53 - 1)] | None = None
    input: dict[str, Any] = {}
    note: Note = ""


@router.get("/runs/{run_id}/forks", response=Any, summary="Where a run can be forked, and its forks")
def forks(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """The steps with which a fork can begin, each with the names of its input that can be changed."""
    run = rules.get(request.actor, Run, run_id, "runs.view", related=RELATED)
    kin, why = places.kin(run, request.actor), forking.why_not(run)
    return {
        "run": run.pk,
        "forked_from": {"run": kin.parent.pk, "ref": kin.parent.ref, "seq": run.forked_seq} if kin.parent else None,
        "forks": [{"run": each.pk, "ref": each.ref, "seq": each.forked_seq, "state": each.state} for each in kin.forks],
        "why_not": why or None,
        "steps": [
            {
                "step": place.step or None,
                "title": titles.plain(place.title),
                "input": [field.name for field in place.fields],
                "completed": not place.open,
            }
            for place in (places.places(run) if not why else ())
        ],
    }


@router.get("/runs/{run_id}/replay", response=Any, summary="Would its code do the same?")
def replayed(request: HttpRequest, run_id: str, version: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0) -> dict[str, Any]:
    """The workflow's code, or another `version` of it, run against what is recorded, without asking the outside for anything."""
    run = rules.get(request.actor, Run, run_id, "runs.events", related=RELATED)
    found = replaying.replay(run, version=version, most=replaying.LONGEST)
    return {"run": run.pk, "workflow": run.workflow} | {
        "version": found.version,
        "same": found.same,
        "asked": found.asked,
        "recorded": found.recorded,
        "end": found.end,
        "differences": [_difference(each) for each in found.differences],
    }


def _difference(found: replaying.Difference) -> dict[str, Any]:
    changes = [{"name": change.name, "before": plain(change.before), "after": plain(change.after)} for change in found.changes]
    return {"step": found.step, "what": found.what, "event": found.seq or None, "detail": found.detail or None, "changes": changes}


@router.post("/runs/{run_id}/forks", response={201: Any}, summary="Fork a run")
def fork(request: HttpRequest, run_id: str, body: ForkIn, idempotency_key: Key) -> Status:
    """Another run goes on from there; nothing that was completed before is done again, and no approval comes with it."""
    run = rules.get(request.actor, Run, run_id, "runs.start")
    rules.check_scope(request.actor, workflow=run.workflow)
    made = forking.fork(
        run, by=request.actor, key=idempotency_key, step=body.step or "", at=body.after or 0, edits=body.input, note=body.note
    )
    told = query.told([rules.get(request.actor, Run, made.pk, "runs.view", related=query.RELATED)])[0]
    return Status(201, told | {"forked_from": {"run": run.pk, "ref": run.ref, "seq": made.forked_seq}})
