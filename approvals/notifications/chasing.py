"""What happens when nobody answers: a reminder before the time is over, and a chain of people to whom an action goes.

Sweeps by the one clock. Each step is guarded under the run's lock: two sweeps at once, or a decision at the same moment, do no harm.
"""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from access import audit, rules
from access.errors import BadInput, DatabaseTrouble, Refusal
from access.models import Workspace
from access.rows import only
from access.rules import Actor
from approvals import decisions, inbox
from approvals.models import Decision, ProposedAction
from approvals.notifications import delegation, outbox
from approvals.notifications.models import Chase, Escalation, EscalationStep, Notice
from config import clock
from runs import log
from runs.log import Held
from runs.vocabulary import ActionDelegated, ActionEscalated

REMIND_BEFORE = timedelta(minutes=30)  # where a workspace says nothing; never more than half of the time there is
LONGEST, MAX_STEPS, BATCH = timedelta(days=30), 5, 200
logger = logging.getLogger(__name__)


class OddChain(BadInput):
    """This can't be a step of the chain."""

    what_next: ClassVar[str] = "Nothing was saved. Mend what is said here, and save again."


def remind_due() -> int:
    """Remind of what runs out soon. Gives how many; safe to run twice at once."""
    told = Notice.objects.filter(action=OuterRef("pk"), kind="soon")
    before = {chase.workspace_id: chase.remind_before for chase in Chase.objects.all()}
    longest = max([REMIND_BEFORE, *before.values()])
    rows = _open().filter(~Exists(told), expires_at__lte=clock.now() + longest).order_by("expires_at")
    due = [row for row in rows.values_list("pk", "run_id", "workspace_id", "proposed_at", "expires_at")[: BATCH * 5]]
    now = clock.now()
    late = [(pk, run) for pk, run, where, since, until in due if until - now <= min(before.get(where, REMIND_BEFORE), (until - since) / 2)]
    return sum(_each(pk, run_id, outbox.remind) for pk, run_id in late[:BATCH])


def escalate_due() -> int:
    """Send on what waits too long. Gives how many; safe to run twice at once."""
    steps = EscalationStep.objects.select_related("to").order_by("workspace_id", "after")
    return sum(_escalate_by(step) for step in steps)


def steps(workspace_id: UUID) -> list[EscalationStep]:
    """The chain of a workspace, in order of time."""
    return list(EscalationStep.objects.filter(workspace_id=workspace_id).select_related("to").order_by("after", "to__name"))


def remind_before(workspace_id: UUID) -> timedelta:
    return only(Chase.objects.filter(pk=workspace_id).values_list("remind_before", flat=True)) or REMIND_BEFORE


def set_reminder(workspace_id: UUID, before: timedelta, *, by: Actor) -> None:
    """Remind so long before an action expires. OddChain if that is less than a minute or more than 30 days."""
    if not timedelta(minutes=1) <= before <= LONGEST:
        raise OddChain("Remind at least a minute before the end, and at most 30 days.")
    with transaction.atomic(durable=True):
        Chase.objects.update_or_create(workspace_id=workspace_id, defaults={"remind_before": before})
        audit.record(by, "reminder_set", workspace_id=workspace_id, minutes=int(before.total_seconds() // 60))


def add_step(workspace_id: UUID, *, after: timedelta, to: UUID | None, by: Actor) -> None:
    """One more person in the chain; named again, they keep their place at another time."""
    if to not in {user.pk for user in rules.some_holders(workspace_id, "approvals.decide")}:
        raise OddChain("Choose somebody who may decide here.")
    if not timedelta(minutes=1) <= after <= LONGEST:
        raise OddChain("Wait at least a minute, and at most 30 days.")
    with transaction.atomic(durable=True):
        Workspace.objects.select_for_update(no_key=True).get(pk=workspace_id)  # one at a time, so that they can be counted
        others = EscalationStep.objects.filter(workspace_id=workspace_id).exclude(to_id=to)
        if others.count() >= MAX_STEPS:
            raise OddChain(f"A chain has {MAX_STEPS} people at most.")
        EscalationStep.objects.update_or_create(workspace_id=workspace_id, to_id=to, defaults={"after": after})
        audit.record(by, "escalation_set", workspace_id=workspace_id, to=str(to), minutes=int(after.total_seconds() // 60))


def remove_step(step: EscalationStep, *, by: Actor) -> None:
    with transaction.atomic(durable=True):
        if EscalationStep.objects.filter(pk=step.pk).delete()[0]:
            audit.record(by, "escalation_removed", workspace_id=step.workspace_id, to=str(step.to_id))


def _open() -> QuerySet[ProposedAction]:
    return ProposedAction.objects.filter(state="waiting", expires_at__gt=clock.now())


def _escalate_by(step: EscalationStep) -> int:
    to = rules.person(step.to_id)
    if not rules.can_some(to, "approvals.decide", step.workspace_id):
        return 0  # they lost the right since; the others of the chain come in their time
    now = clock.now()
    went = Escalation.objects.filter(action=OuterRef("pk"), to=step.to_id)
    decided = Decision.objects.filter(action=OuterRef("pk"), round=OuterRef("round"), reviewer=step.to_id)
    unclaimed = Q(claimed_until=None) | Q(claimed_until__lte=now)
    theirs = inbox.asked_of(to) & rules.within(to, ProposedAction, "approvals.decide")
    rows = _open().filter(unclaimed, theirs, ~Exists(went), ~Exists(decided), workspace_id=step.workspace_id)
    due = list(rows.filter(proposed_at__lte=now - step.after).order_by("proposed_at").values_list("pk", "run_id")[:BATCH])
    return sum(_each(pk, run_id, lambda run, action: _escalate(run, action, step)) for pk, run_id in due)


def _each(pk: UUID, run_id: UUID, step: Callable[[Held, ProposedAction], bool]) -> bool:
    """Do it under the run's lock, if the action waits still."""
    try:
        with log.holding(run_id) as run:
            action = decisions.locked(pk)
            waits = action.state == "waiting" and action.expires_at > clock.now() and run.row.ended_at is None
            return waits and step(run, action)
    except (DatabaseTrouble, Refusal) as error:  # one run that can't be locked now must not keep the others
        logger.warning("not chased", extra={"action": str(pk), "error": type(error).__name__})
        return False


def _escalate(run: Held, action: ProposedAction, step: EscalationStep) -> bool:
    if action.claimed_until is not None and action.claimed_until > clock.now():
        return False  # somebody took it on since it was looked for; the action is locked, so nobody does now
    if Escalation.objects.filter(action=action, to_id=step.to_id).exists():
        return False
    may = {user.pk: user for user in decisions.who_may(action)}
    if step.to_id not in may:
        return False
    seq = run.append(ActionEscalated(action=action.pk, to=step.to_id), actor=log.ENGINE, caused_by=action.proposed_seq)
    away = delegation.stand_ins(action.workspace_id, may.values()).get(step.to_id)
    if away is not None:  # as they said before they went
        giver = Actor("human", str(step.to_id), step.to.name)
        run.append(ActionDelegated(action=action.pk, to=away.to_id), actor=giver, caused_by=seq)
    Escalation.objects.create(action=action, to_id=step.to_id, seq=seq, via=away)
    return True
