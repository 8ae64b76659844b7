"""Whom a notice asks something of, as it is now. Asked when it is spread, and again for each person just before it is sent."""

from collections.abc import Iterable
from uuid import UUID

from access import roles, rules, second_admin
from access.models import User
from approvals import decisions, execution
from approvals.models import Decision, Grant, ProposedAction
from approvals.notifications import delegation
from approvals.notifications.models import Notice
from config import clock
from runs.lifecycle import State
from runs.models import Run

OF_ACTION = ("action__policy__group", "action__run__agent", "run", "delegation__giver")


def people(notice: Notice) -> list[User]:
    """Nobody once it is settled, and nobody who may not act on it."""
    match notice.kind:
        case "waits" | "soon" | "escalated" | "answered":
            return _deciders(notice)
        case "delegated":
            return _deciders(notice) if notice.action else _delegate(notice)
        case "unknown":
            return _who_may_say(notice.action) if notice.action else []
        case "alarm":
            return rules.holders(notice.workspace_id, "runs.recover")
        case "stuck" | "handed":
            return _who_recovers(notice)
        case "glass":
            return _who_answers_for_access(notice.workspace_id)
        case "confirm":
            return _who_confirms(notice)
        case "asks" | "budget":
            return _who_steers(notice)
        case _:
            return _of_run(notice)


def _deciders(notice: Notice) -> list[User]:
    action = notice.action
    if action is None or action.state != "waiting" or action.expires_at <= clock.now():
        return []
    decided = set(Decision.objects.filter(action=action, round=action.round).values_list("reviewer_id", flat=True))
    may = [user for user in decisions.who_may(action) if user.pk not in decided]
    if notice.to_id:
        asked = _present(action.workspace_id, may) if notice.kind == "escalated" else may
        return [user for user in asked if user.pk == notice.to_id]
    claimed = action.claimed_by_id if action.claimed_until and action.claimed_until > clock.now() else None
    if notice.kind == "soon" and any(user.pk == claimed for user in may):
        return [user for user in may if user.pk == claimed]
    return _present(action.workspace_id, may)


def _present(workspace_id: UUID, people: list[User]) -> list[User]:
    """Without those who are away and for whom one of the others decides."""
    away = delegation.stand_ins(workspace_id, people)
    return [user for user in people if user.pk not in away]


def _delegate(notice: Notice) -> list[User]:
    given = notice.delegation
    if given is None or given.ended_at is not None or given.ends_at <= clock.now():
        return []
    return [user for user in rules.some_holders(notice.workspace_id, "approvals.decide") if user.pk == given.to_id]


def _who_may_say(action: ProposedAction) -> list[User]:
    unknown = Grant.objects.filter(action=action, outcome="unknown").exists()
    return execution.who_may_resolve(action) if unknown else []


def _who_answers_for_access(workspace_id: UUID) -> list[User]:
    """Admins and managers: whoever manages access or reads the audit trail."""
    found = {user.pk: user for right in ("access.manage", "audit.view") for user in rules.holders(workspace_id, right)}
    return sorted(found.values(), key=lambda user: user.name)


def _who_confirms(notice: Notice) -> list[User]:
    """All who could confirm a change that waits still; whoever asked for it can't."""
    change = second_admin.find(notice.change) if notice.change else None
    if change is None or roles.state(change) != "waiting":
        return []
    return roles.seconds(change.workspace_id, change.asked_by_id, second_admin.right_of(change))


def _who_recovers(notice: Notice) -> list[User]:
    """Of a stuck run: all who may recover it, until it is somebody's; then who has it."""
    run = notice.run
    if run is None or run.state not in (State.PARKED, State.STALLED) or run.handed_to_id != notice.to_id:
        return []
    holders = rules.holders(notice.workspace_id, "runs.recover", run.team_id)
    return [user for user in holders if notice.to_id in (None, user.pk)]


def _who_steers(notice: Notice) -> list[User]:
    """Of a run that waits for people: its own people, if one of them may steer it; else all who may."""
    run, on = notice.run, {"asks": "answer"}.get(notice.kind, notice.kind)
    if run is None or run.state != State.WAITING or run.waiting.get("on") != on:
        return []
    holders = rules.holders(notice.workspace_id, "runs.steer", run.team_id)
    return [user for user in holders if str(user.pk) in _own(run)] or holders


def _of_run(notice: Notice) -> list[User]:
    run = notice.run
    if run is None:
        return []
    return [user for user in rules.holders(notice.workspace_id, "runs.view", run.team_id) if str(user.pk) in _own(run)]


def _own(run: Run) -> set[str]:
    """The ids of whose run it is: its owner, and who started it."""
    return {str(run.owner_id), run.starter_id if run.starter_kind == "human" else ""}


def still(notices: Iterable[Notice], user_id: UUID) -> list[Notice]:
    """Those of them that ask something of this person still."""
    return [notice for notice in notices if any(user.pk == user_id for user in people(notice))]
