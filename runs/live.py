"""Wake-ups. "Run R is at seq N", and nothing else: readers read the log from their own cursor.

A lost wake-up costs time, never an event: readers look again every few seconds, and the sweep finds runs that nobody called a worker for.
"""

import logging
from functools import lru_cache
from uuid import UUID

import orjson
import redis
from django.conf import settings
from django.db import transaction

CHANNEL = "handrail.wake"
log = logging.getLogger(__name__)


def wake(run_id: UUID, workspace_id: UUID, seq: int) -> None:
    """Tell every process that follows this run. A dead Valkey is logged, never raised."""
    try:
        _valkey().publish(CHANNEL, orjson.dumps({"run": str(run_id), "workspace": str(workspace_id), "seq": seq}))
    except redis.RedisError as error:
        log.warning("wake-up not sent", extra={"run": str(run_id), "seq": seq, "error": type(error).__name__})


def rights_changed(**_: object) -> None:
    """Tell every process that somebody's rights may be others now, once that is committed."""
    transaction.on_commit(_tell_of_rights, robust=True)


def _tell_of_rights() -> None:
    try:
        _valkey().publish(CHANNEL, orjson.dumps({"rights": True}))
    except redis.RedisError as error:  # whoever reads is looked up again before long all the same
        log.warning("change of rights not told", extra={"error": type(error).__name__})


def call_worker(run_id: UUID) -> None:
    """Ask for a worker for a run that was just queued. If the broker is away the sweep will find it."""
    from runs.tasks import execute

    try:
        execute.apply_async((str(run_id),), retry=False)
    except Exception as error:  # kombu raises what its transport raises; the sweep is the remedy for all of it
        log.warning("worker not called", extra={"run": str(run_id), "error": type(error).__name__})


@lru_cache(maxsize=1)
def _valkey() -> redis.Redis:
    return redis.Redis.from_url(settings.VALKEY_URL, socket_timeout=1, socket_connect_timeout=1)
