"""Leases: one worker at a time writes to a run, and a late one is fenced out.

Claiming raises the token under the run's lock; every write of a worker names its token (`log.holding(token=…)`). A heartbeat on a
connection of its own keeps the lease, but only until the deadline of the step that is running: a hung call must not live for ever.
"""

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.db.models import F

from config import clock
from runs import log
from runs.lifecycle import State
from runs.models import Lease
from runs.vocabulary import RunResumed, RunStarted

CLAIMED = (State.QUEUED, State.RUNNING, State.CANCELLING, State.COMPENSATING)
BETWEEN_STEPS = 60.0  # seconds that workflow code may take from one step to the next
logger = logging.getLogger(__name__)


@dataclass
class Claim:
    """A lease that is held. `token` goes with every write; `works` is the state in which this worker does new things."""

    run_id: UUID
    token: int
    worker: str
    works: State = State.RUNNING
    beat_until: float = field(default_factory=lambda: time.monotonic() + BETWEEN_STEPS)
    lost: bool = False

    @contextmanager
    def calling(self, seconds: float) -> Iterator[None]:
        """While the outside is asked the heartbeat goes on for so long and no longer: a hung call must not live for ever."""
        self.beat_until = time.monotonic() + seconds
        try:
            yield
        finally:
            self.beat_until = time.monotonic() + BETWEEN_STEPS

    def is_mine(self) -> bool:
        """Whether nobody has taken over: asks the database."""
        return not self.lost and Lease.objects.filter(run_id=self.run_id, token=self.token).exists()


def claim(run_id: UUID) -> Claim | None:
    """Take the run if it is free: queued, or its holder's lease has run out. None if it is not; another worker was faster."""
    worker = f"w-{os.getpid()}"
    with log.holding(run_id) as run:
        lease = Lease.objects.get(run_id=run_id)
        now = clock.now()
        held = lease.until is not None and lease.until > now
        if held or run.row.state not in CLAIMED:
            return None
        token = lease.token + 1
        until = now + timedelta(seconds=settings.HANDRAIL_LEASE_SECONDS)
        free = Lease.objects.filter(run_id=run_id, token=lease.token)
        if free.update(token=token, worker=worker, pid=os.getpid(), until=until, called_at=None) != 1:
            return None
        if run.row.state == State.QUEUED:
            run.move(State.RUNNING, _taken_up(lease.token, worker, token))
        elif run.row.state == State.RUNNING:
            run.append(RunResumed(reason="lease_expired", worker=worker, token=token), actor=log.ENGINE)
    return Claim(run_id, token, worker, State.COMPENSATING if run.row.state == State.COMPENSATING else State.RUNNING)


def _taken_up(before: int, worker: str, token: int) -> RunStarted | RunResumed:
    return RunResumed(reason="claimed", worker=worker, token=token) if before else RunStarted(worker=worker, token=token)


def release(held: Claim) -> None:
    """Give the run back, if it is still ours."""
    Lease.objects.filter(run_id=held.run_id, token=held.token).update(until=None, pid=0)


def fence_out(run_id: UUID) -> None:
    """Make every token that was handed out stale. Inside `log.holding`."""
    Lease.objects.filter(run_id=run_id).update(token=F("token") + 1, until=None, pid=0)


@contextmanager
def heartbeat(held: Claim) -> Iterator[None]:
    """Renew the lease in the background until the block ends."""
    over = threading.Event()
    beat = threading.Thread(target=_beat, args=(held, over), name=f"heartbeat-{held.run_id}", daemon=True)
    beat.start()
    try:
        yield
    finally:
        over.set()
        beat.join(timeout=5)


def _beat(held: Claim, over: threading.Event) -> None:
    period = settings.HANDRAIL_LEASE_SECONDS / 4
    try:
        while not over.wait(period) and not held.lost:
            if time.monotonic() < held.beat_until:
                _renew(held)
    finally:
        connection.close()


def _renew(held: Claim) -> None:
    until = clock.now() + timedelta(seconds=settings.HANDRAIL_LEASE_SECONDS)
    try:
        close_old_connections()
        # one that was given back stays so
        held.lost = Lease.objects.filter(run_id=held.run_id, token=held.token, until__isnull=False).update(until=until) == 0
    except DatabaseError as error:
        logger.warning("heartbeat failed", extra={"run": str(held.run_id), "error": type(error).__name__})
