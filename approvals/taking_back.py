"""Taking back: a person recalls an approval before anything ran, or the agent withdraws what it proposed before anybody decided.

Each is one guarded change under the run's lock, so that of recall and redemption, or of withdrawal and decision, one stands; whoever came
second is told what does. Either way the action is closed for good, with the reason: the same can be proposed again.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from access import audit
from access.rows import only
from access.rules import Actor
from approvals import decisions, grants, reasons
from approvals.decisions import No
from approvals.errors import ActionClosed, AlreadyDecided, ReasonNeeded, TooLateToRecall, WithdrawnBefore
from approvals.models import Grant, ProposedAction
from artifacts import vault
from artifacts.models import Payload
from config import clock
from runs import log
from runs.log import Held
from runs.models import Event
from runs.vocabulary import ActionRecalled, ActionWithdrawn


@dataclass(frozen=True)
class TakenBack:
    """An action that was recalled or withdrawn. `again`: it was already, and this was a repeat of it."""

    action: ProposedAction
    seq: int  # the event that says so
    again: bool


def recall(action: ProposedAction, *, by: Actor, reason: str) -> TakenBack:
    """Take an approval back, while its policy's delay runs. TooLateToRecall once that is over or it was redeemed."""
    _check_reason(reason)
    with log.holding(action.run_id) as run:
        action = decisions.locked(action.pk)
        may = decisions.may_decide(action, by)
        if isinstance(may, No):
            raise may.refusal(may.why.replace("decide on it", "recall it"))
        if action.state == "recalled":
            return _same_again(action, by, "recalled")
        if not _voided(action):
            raise TooLateToRecall(_why_too_late(action), state=action.state)
        kept = vault.keep(action.workspace_id, reason.strip(), label="internal")
        seq = run.append(ActionRecalled(action=action.pk), actor=by, texts={"reason": kept}, caused_by=action.settled_seq)
        decisions.close(action, "recalled", seq, before=("approved",), why=kept)
        audit.record(by, "recalled", workspace_id=action.workspace_id, subject=("action", action.pk), why=str(kept.pk))
        decisions.wake(run, action, "decision")
    return TakenBack(action, seq, again=False)


def withdraw(action: ProposedAction, *, by: Actor, reason: str) -> TakenBack:
    """The agent takes back what it proposed and nobody has decided yet. AlreadyDecided names what stands."""
    _check_reason(reason)
    with log.holding(action.run_id) as run:
        action = decisions.locked(action.pk)
        if action.state == "withdrawn":
            return _same_again(action, by, "withdrawn")
        seq = withdraw_held(run, action, by=by, reason=reason)
        decisions.wake(run, action, "decision")
    return TakenBack(action, seq, again=False)


def withdraw_held(run: Held, action: ProposedAction, *, by: Actor, reason: str) -> int:
    """The same, of a locked action of a run that is held. Gives the event that says so."""
    if action.state in ("approved", "rejected"):
        raise AlreadyDecided(f"It was {action.state}.", **decisions.stands(action))
    if action.state != "waiting":
        raise ActionClosed(f"It was {action.state}.", state=action.state)
    kept = vault.keep(action.workspace_id, reason.strip(), label="internal")
    data = ActionWithdrawn(action=action.pk, reason="agent")
    seq = run.append(data, actor=by, texts={"reason": kept}, caused_by=action.proposed_seq)
    decisions.close(action, "withdrawn", seq, before=("waiting",), why=kept)
    return seq


def can_be_recalled(grant: Grant | None) -> bool:
    """Whether an approval can be recalled now. For the eye: `recall` guards."""
    open_ = grant is not None and grant.voided_at is None and grant.redeemed_at is None
    return bool(open_ and grant.held_until is not None and grant.held_until > clock.now())


def _voided(action: ProposedAction) -> bool:
    """The one conditional change that makes a recall stand: nobody redeemed it, and its time has not passed."""
    if action.state != "approved":
        return False
    now = clock.now()
    rows = Grant.objects.filter(grants.UNUSED, Q(held_until__gt=now), action=action)
    return rows.update(voided_at=now) == 1


def _why_too_late(action: ProposedAction) -> str:
    grant = only(Grant.objects.filter(action=action))
    if action.state != "approved" or grant is None:
        return f"It is {action.state}, so there is no approval to recall."
    if grant.redeemed_at is not None:
        return "It was redeemed already."
    return "Its policy lets nobody recall an approval." if grant.held_until is None else "The time to recall it is over."


def _same_again(action: ProposedAction, by: Actor, word: str) -> TakenBack:
    told: Any = only(Event.objects.filter(run_month=action.run.month, run_id=action.run_id, seq=action.settled_seq))
    if told is not None and f'"id":"{by.id}"' in told.body:
        return TakenBack(action, action.settled_seq, again=True)
    raise WithdrawnBefore(f"It was {word}.", state=action.state)


def _check_reason(reason: str) -> None:
    if why := reasons.trouble(reason):
        raise ReasonNeeded(why)


def reason_of(action: ProposedAction) -> str:
    """Why it was taken back, in full: for the agent, which must act on it."""
    kept = only(Payload.objects.select_related("key").filter(pk=action.closed_why_id))
    return (vault.opened(kept) or b"").decode() if kept else ""
