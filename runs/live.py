"""Wake-ups. "Run R is at seq N", and nothing else: readers read the log from their own cursor.

A lost wake-up costs time, never an event: readers look again every few seconds, and the sweep finds runs that nobody called a worker for.
"""

import atexit
import logging
import os
import threading
import time
from functools import lru_cache
from uuid import UUID

import orjson
import redis
from django.conf import settings
from django.db import transaction

CHANNEL = "handrail.wake"
GAP = 0.02  # seconds
LAST = 1.0  # seconds that a process which ends waits for what it has to tell
logger = logging.getLogger(__name__)


def wake(run_id: UUID, workspace_id: UUID, seq: int) -> None:
    """Tell every process that follows this run, at once and by a thread of its own: who appends waits for no answer of Valkey's.

    A run that is appended to again within GAP is told of once for all of that. A dead Valkey is logged, never raised.
    """
    _teller().put(run_id, workspace_id, seq)


class _Teller:
    """Sends what is put into it."""

    def __init__(self) -> None:
        self.heads: dict[UUID, tuple[UUID, int]] = {}
        self.news, self.sent = threading.Event(), threading.Event()
        self.sent.set()
        threading.Thread(target=self._run, name="wake-ups", daemon=True).start()

    def put(self, run_id: UUID, workspace_id: UUID, seq: int) -> None:
        self.sent.clear()
        self.heads[run_id] = workspace_id, seq
        self.news.set()

    def _run(self) -> None:
        while self.news.wait():
            self.news.clear()
            while self.heads:
                run_id, (workspace_id, seq) = self.heads.popitem()
                _send(run_id, workspace_id, seq)
            self.sent.set()
            time.sleep(GAP)


def _send(run_id: UUID, workspace_id: UUID, seq: int) -> None:
    try:
        _valkey().publish(CHANNEL, orjson.dumps({"run": str(run_id), "workspace": str(workspace_id), "seq": seq}))
    except Exception as error:  # whatever it is, the next one may fare better
        logger.warning("wake-up not sent", extra={"run": str(run_id), "seq": seq, "error": type(error).__name__})


@lru_cache(maxsize=1)
def _teller() -> _Teller:
    teller = _Teller()
    atexit.register(teller.sent.wait, LAST)
    return teller


os.register_at_fork(after_in_child=lambda: _teller.cache_clear())  # a thread stays with its process


def rights_changed(**_: object) -> None:
    """Tell every process that somebody's rights may be others now, once that is committed."""
    transaction.on_commit(_tell_of_rights, robust=True)


def _tell_of_rights() -> None:
    try:
        _valkey().publish(CHANNEL, orjson.dumps({"rights": True}))
    except redis.RedisError as error:  # whoever reads is looked up again before long all the same
        logger.warning("change of rights not told", extra={"error": type(error).__name__})


def call_worker(run_id: UUID) -> None:
    """Ask for a worker for a run that was just queued. If the broker is away the sweep will find it."""
    from runs.tasks import execute

    try:
        execute.apply_async((str(run_id),), retry=False)
    except Exception as error:  # kombu raises what its transport raises; the sweep is the remedy for all of it
        logger.warning("worker not called", extra={"run": str(run_id), "error": type(error).__name__})


@lru_cache(maxsize=1)
def _valkey() -> redis.Redis:
    return redis.Redis.from_url(settings.VALKEY_URL, socket_timeout=1, socket_connect_timeout=1)
