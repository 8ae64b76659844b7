"""Who is asked while runs wait for a decision: all who may decide, or those of a group alone. Which, the gate knows."""

from dataclasses import dataclass
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


@dataclass(frozen=True)
class Asked:
    """Who may make a decision yet: their own people are among them, and never do. `group`: they alone are asked."""

    people: tuple[User, ...]
    group: str = ""
    given: int = 0  # approvals so far
    needs: int = 0  # and how many it takes yet; 0 where the run itself says so


def people(asking: list[Run]) -> dict[UUID, Asked]:
    """By run, of runs that wait for a decision: who may make it."""
    places = {(run.workspace_id, run.team_id) for run in asking}
    able = {place: rules.holders(place[0], "approvals.decide", place[1]) for place in places}
    groups = gates.groups_of(_action(run) for run in asking)
    return {run.pk: _asked(able[run.workspace_id, run.team_id], groups.get(_action(run))) for run in asking}


def _asked(able: list[User], group: gates.Group | None) -> Asked:
    if group is None:
        return Asked(tuple(able))
    left = tuple(user for user in able if user.pk in group.people and user.pk not in group.approved)
    given = sum(user.pk in group.approved for user in able)
    return Asked(left, group.name, given, max(group.needs - given, 1))


def of_others(waiting: list[Run], actor: Actor) -> set[UUID]:
    """Those of the runs that wait for a group which this person is not in."""
    groups = gates.groups_of(_action(run) for run in waiting if run.waiting.get("on") == "decision")
    return {run.pk for run in waiting if (group := groups.get(_action(run))) is not None and actor.user_id not in group.people}


def _action(run: Run) -> str:
    return str(run.waiting.get("action", ""))
