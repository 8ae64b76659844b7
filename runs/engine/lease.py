"""Leases: one worker at a time writes to a run, and a late one is fenced out.

Claiming raises the token under the run's lock; every write of a worker names its token (`log.holding(token=…)`). A heartbeat on a
connection of its own keeps the lease, but only until the deadline of the step that is running: a hung call must not live for ever.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import orjson
from billiard.process import current_process
from django.conf import settings
from django.db import close_old_connections, connection
from django.db.models import F

from access.errors import DatabaseTrouble
from config import clock
from runs import log
from runs.lifecycle import UNDOING, State
from runs.log import Held, Text
from runs.models import Event, Lease
from runs.vocabulary import RunParked, RunResumed, RunStarted

CLAIMED = (State.QUEUED, State.RUNNING, *UNDOING)
BETWEEN_STEPS = 60.0  # seconds that workflow code may take from one step to the next
MOMENT = 0.05  # seconds: what is over by then is written down at once, beginning and end
HUNG = 60.0  # seconds after the lease was let go of, when a worker process that has not come back is given up with its call
MOST_LOST = 20  # workers in a row that may be lost before the run has come any further; crashing machines lose some too
NO_PROGRESS = ("run.resumed", "run.queued", "step.started", "tool.started", "tool.ended", "signal.received", "signal.applied", "run.paused")
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
    calls: dict[object, float] = field(default_factory=dict)  # those that are under way, and until when each may take
    slow: dict[str, tuple[float, Callable[[], None]]] = field(default_factory=dict)  # step → what to do if it goes on till then

    def goes_on(self) -> None:
        """The workflow has come to its next step."""
        self.beat_until = max(self.beat_until, time.monotonic() + BETWEEN_STEPS)

    @contextmanager
    def calling(self, seconds: float) -> Iterator[None]:
        """While the outside is asked the heartbeat goes on for so long and no longer: a hung call must not live for ever."""
        mine = object()
        self.calls[mine] = time.monotonic() + seconds
        self.beat_until = max(self.calls.values())
        try:
            yield
        finally:
            del self.calls[mine]  # of several branches that ask at once, the one that may take longest says how long
            self.beat_until = max([time.monotonic() + BETWEEN_STEPS, *self.calls.values()])

    @contextmanager
    def telling(self, step: str, tell: Callable[[], None]) -> Iterator[None]:
        """What is not over in a moment is told of meanwhile, by the heartbeat's thread."""
        self.slow[step] = time.monotonic() + MOMENT, tell
        try:
            yield
        finally:
            self.slow.pop(step, None)

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
        if run.row.state == State.RUNNING and _kills_its_workers(run):
            detail = f"{MOST_LOST} workers in a row were lost at the same place: its code hangs, or takes more memory than there is."
            run.move(State.PARKED, RunParked(reason="error"), texts={"detail": Text(detail)})
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
        elif run.row.waiting:  # what its undoing waited for
            run.change(waiting={})
    return Claim(run_id, token, worker, State.COMPENSATING if run.row.state == State.COMPENSATING else State.RUNNING)


def _kills_its_workers(run: Held) -> bool:
    """Whether so many workers in a row were lost with this run before it came any further."""
    latest = Event.objects.filter(run_month=run.row.month, run_id=run.row.pk).order_by("-seq").values_list("type", "body")
    lost = 0
    for type_, body in latest[: MOST_LOST * 10].iterator():
        if type_ not in NO_PROGRESS:
            return False
        lost += type_ == "run.resumed" and orjson.loads(body)["data"]["reason"] == "lease_expired"
        if lost >= MOST_LOST:
            return True
    return False


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
    alone = current_process().name.startswith("ForkPool")  # a process of the pool, with nothing but this to do
    beat = threading.Thread(target=_beat, args=(held, over, alone), name=f"heartbeat-{held.run_id}", daemon=True)
    beat.start()
    try:
        yield
    finally:
        over.set()
        beat.join(timeout=5)


def _beat(held: Claim, over: threading.Event, alone: bool) -> None:
    period = settings.HANDRAIL_LEASE_SECONDS / 4
    due = time.monotonic() + period
    try:
        while not over.wait(min(MOMENT, period)):
            _tell_slow(held)
            if time.monotonic() < due:
                continue
            due = time.monotonic() + period
            late = time.monotonic() - held.beat_until
            if late < 0 and not held.lost:
                _renew(held)
            elif late > HUNG and alone:
                _give_up_process(held)
    finally:
        connection.close()


def _tell_slow(held: Claim) -> None:
    """Whatever goes wrong in it the step's own thread will find out."""
    now = time.monotonic()
    for step, (at, tell) in list(held.slow.items()):
        if now >= at and held.slow.pop(step, None):
            try:
                tell()
            except BaseException as error:
                logger.info("a slow step was not told of", extra={"run": str(held.run_id), "step": step, "why": type(error).__name__})


def _give_up_process(held: Claim) -> None:
    """Whoever hangs has long lost the run; its place in the pool goes to a process that works."""
    logger.critical("worker hung and is given up", extra={"run": str(held.run_id), "token": held.token})
    os._exit(os.EX_SOFTWARE)


def _renew(held: Claim) -> None:
    until = clock.now() + timedelta(seconds=settings.HANDRAIL_LEASE_SECONDS)
    try:
        close_old_connections()
        # one that was given back stays so
        held.lost = Lease.objects.filter(run_id=held.run_id, token=held.token, until__isnull=False).update(until=until) == 0
    except DatabaseTrouble as error:
        logger.warning("heartbeat failed", extra={"run": str(held.run_id), "error": type(error).__name__})
