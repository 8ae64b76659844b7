"""Who is asked while runs wait for a decision: all who may decide, or those of a group alone. Which, the gate knows."""

from uuid import UUID

from access import rules
from access.models import User
from access.rules import Actor
from runs.engine import gates
from runs.lifecycle import State
from runs.models import Run

ASKING = (State.WAITING.value, State.CANCELLING.value, State.COMPENSATING.value)  # it waits, or its undoing does


def decision(run: Run) -> bool:
    """Whether a decision is what it waits for."""
    return run.state in ASKING and run.waiting.get("on") == "decision"


def people(asking: list[Run]) -> dict[UUID, list[User]]:
    """By run, of runs that wait for a decision: who may make it. Their own people are among them, and never do."""
    places = {(run.workspace_id, run.team_id) for run in asking}
    able = {place: rules.holders(place[0], "approvals.decide", place[1]) for place in places}
    groups = gates.groups_of(_action(run) for run in asking)
    inside = {run.pk: groups.get(_action(run)) for run in asking}
    return {
        run.pk: [user for user in able[run.workspace_id, run.team_id] if (group := inside[run.pk]) is None or user.pk in group.people]
        for run in asking
    }


def of_others(waiting: list[Run], actor: Actor) -> set[UUID]:
    """Those of the runs that wait for a group which this person is not in."""
    groups = gates.groups_of(_action(run) for run in waiting if run.waiting.get("on") == "decision")
    return {run.pk for run in waiting if (group := groups.get(_action(run))) is not None and actor.user_id not in group.people}


def _action(run: Run) -> str:
    return str(run.waiting.get("action", ""))
