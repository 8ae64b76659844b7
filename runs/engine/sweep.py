"""Finds what a lost message left: queued runs nobody took, leases that ran out, timers that are due. Two sweeps at once do no harm."""

import logging
from datetime import timedelta
from uuid import UUID

from django.db.models import Q

from access.errors import DatabaseTrouble, Refusal
from config import clock
from runs import live, log, signals, steps, webhooks
from runs.engine.ledger import UNDO
from runs.lifecycle import UNDOING, State
from runs.models import Lease, Run
from runs.vocabulary import RunQueued

PATIENCE = timedelta(seconds=5)  # how long a called worker has to come
CHILD_AGAIN = timedelta(minutes=5)  # until a run is looked at again whose child goes on
BATCH = 200
logger = logging.getLogger(__name__)


def sweep() -> int:
    """One look. Gives how many runs a worker was called for."""
    called = [run_id for run_id in _left() if _take_call(run_id)]
    for run_id in called:
        live.call_worker(run_id)
    for run_id in _due():
        try:
            _wake(run_id)
        except (DatabaseTrouble, Refusal) as error:  # one run that can't be woken now must not keep the others asleep
            logger.warning("timer not set off", extra={"run": str(run_id), "error": type(error).__name__})
    for run in _orphans():
        try:
            signals.cancel_children(run, by=log.ENGINE)
        except (DatabaseTrouble, Refusal) as error:
            logger.warning("children not cancelled", extra={"run": str(run.pk), "error": type(error).__name__})
    steps.stall_due()
    webhooks.apply_due()
    return len(called)


def _orphans() -> list[Run]:
    """Runs that have ended, or are being cancelled or undone, and whose children were not told."""
    over = Q(parent__ended_at__isnull=False) | Q(parent__state__in=UNDOING)
    told = Q(state__in=UNDOING) | Q(state=State.PARKED)  # told, and on their way or somebody's to look after
    # what undoes a thing after its parent's end is nobody's orphan
    open_children = (
        Run.objects.filter(over, parent__isnull=False, ended_at=None).exclude(told).exclude(workflow=UNDO).select_related("parent")
    )
    return list({child.parent_id: child.parent for child in open_children[:BATCH]}.values())


def _due() -> list[UUID]:
    return list(Run.objects.filter(wake_at__lte=clock.now(), state=State.WAITING).order_by("wake_at").values_list("pk", flat=True)[:BATCH])


def _wake(run_id: UUID) -> None:
    with log.holding(run_id) as run:
        if run.row.state != State.WAITING or run.row.wake_at is None or run.row.wake_at > clock.now():
            return
        if run.row.waiting.get("on") != "child" or run.row.waiting.get("also"):
            run.move(State.QUEUED, RunQueued(reason="timer"))
        elif Run.objects.filter(pk=run.row.waiting["run"], ended_at__isnull=False).exists():
            run.move(State.QUEUED, RunQueued(reason="child"))
        else:
            run.change(wake_at=clock.now() + CHILD_AGAIN)


def _left() -> list[UUID]:
    """Runs that should have a worker and have none."""
    now = clock.now()
    free = Q(lease__until=None) | Q(lease__until__lt=now)
    patient = Q(lease__called_at=None) | Q(lease__called_at__lt=now - PATIENCE)
    queued = Q(state=State.QUEUED, state_since__lt=now - PATIENCE) & free
    lost = Q(state=State.RUNNING, lease__until__lt=now) | (Q(state=State.RUNNING, lease__until=None, state_since__lt=now - PATIENCE))
    cancelling = Q(state__in=UNDOING) & free & (Q(wake_at=None) | Q(wake_at__lte=now))
    return list(Run.objects.exclude(workflow="").filter(patient & (queued | lost | cancelling)).values_list("pk", flat=True)[:BATCH])


def _take_call(run_id: UUID) -> bool:
    """True for one of several sweeps that found the same run."""
    now = clock.now()
    return (
        Lease.objects.filter(Q(called_at=None) | Q(called_at__lt=now - PATIENCE) | Q(called_at__gt=now), run_id=run_id).update(
            called_at=now
        )
        == 1
    )
