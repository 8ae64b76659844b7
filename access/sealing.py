"""The audit trail as a chain. Entries are written by whoever does something, side by side; one sealer gives each its number afterwards.

So nobody waits for anybody: an entry is a plain INSERT in the transaction of what it tells of. The sealer numbers what it finds committed
and not sealed yet. An entry's id is no cursor, for it is made before its transaction commits: what comes late is sealed late, never passed.

    hash(n) = SHA-256(hash(n-1) ‖ n as 8 bytes ‖ the entry), hash(0) = 32 zero bytes

The entry is JSON in ASCII with sorted keys and without spaces, as `canonical` writes it.
"""

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator
from datetime import UTC, timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet

from access.audit_models import AuditSeal, Sealer
from access.models import AuditEntry
from config import clock

BATCH = 500  # entries sealed in one transaction
LATE = timedelta(hours=1)  # what commits later than this after its id was made is found by the next look at everything
EVERYTHING = timedelta(hours=1)  # how often all entries are looked at, not only those of the last hour
LAGS = timedelta(minutes=2)  # an entry that waits so long for its seal is waiting for a sealer that does not come
START = "0" * 64

logger = logging.getLogger(__name__)


def seal() -> int:
    """Seal what is committed and has no seal yet. How many entries that were; safe to call from anywhere, as often as one likes."""
    sealed, failed = 0, False
    while _something_to_do():
        try:
            count = _batch()
        except IntegrityError:  # somebody who did not hold the row was faster; what he sealed is sealed
            if failed:
                logger.error("the audit trail can't be sealed: its numbers are taken. `verifyaudit` says where it is broken")
                break
            failed = True
            continue
        sealed += count
        if count < BATCH:
            break
    return sealed


def _something_to_do() -> bool:
    """Asked without a lock: on SQLite whoever holds one keeps everybody from writing."""
    head = Sealer.objects.first()
    return head is None or _everything_due(head) or _unsealed(head.floor).exists()


def _batch() -> int:
    """Seals and the head move in one transaction: a sealer that is killed has sealed the whole batch or none of it."""
    Sealer.objects.get_or_create(pk=1)
    with transaction.atomic():
        # skip_locked: a second sealer goes home. On SQLite the transaction itself lets one writer in
        head = Sealer.objects.select_for_update(skip_locked=True).filter(pk=1).first()
        if head is None:
            return 0
        everything = _everything_due(head)
        found = list(_unsealed(None if everything else head.floor).order_by("at", "id")[:BATCH])
        seals = list(_chained(head.number, head.hash, found))
        AuditSeal.objects.bulk_create(seals)
        if seals:
            Sealer.objects.filter(pk=1).update(number=seals[-1].number, hash=seals[-1].hash)
        if everything and len(found) < BATCH:
            Sealer.objects.filter(pk=1).update(looked_at=clock.now(), floor=_floor())
    return len(found)


def _everything_due(head: Sealer) -> bool:
    return head.looked_at is None or clock.now() - head.looked_at > EVERYTHING


def _unsealed(floor: UUID | None) -> QuerySet[AuditEntry]:
    entries = AuditEntry.objects.filter(~Exists(AuditSeal.objects.filter(entry=OuterRef("pk"))))
    return entries.filter(pk__gt=floor) if floor else entries


def _chained(number: int, prev: str, entries: Iterable[AuditEntry]) -> Iterator[AuditSeal]:
    for number, entry in enumerate(entries, number + 1):  # noqa: B020  it goes on from there
        prev = chained(prev, number, canonical(entry))
        yield AuditSeal(number=number, entry=entry.pk, hash=prev)


def _floor() -> UUID | None:
    """The smallest id that an entry made `LATE` before the newest could have: the first 48 bits of an id are milliseconds."""
    newest = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first()
    if newest is None:
        return None
    return UUID(int=max((newest.int >> 80) - int(LATE.total_seconds() * 1000), 0) << 80)


def chained(prev: str, number: int, entry: bytes) -> str:
    """The hash of a seal, in hexadecimal."""
    return hashlib.sha256(bytes.fromhex(prev) + number.to_bytes(8, "big") + entry).hexdigest()


def canonical(entry: AuditEntry) -> bytes:
    """The bytes of an entry that its seal covers: every column, so that nothing in it can be changed unseen."""
    told = {
        "id": str(entry.pk),
        "workspace": str(entry.workspace_id or ""),
        "at": entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "actor": [entry.actor_kind, entry.actor_id],
        "verb": entry.verb,
        "subject": [entry.subject_kind, entry.subject_id],
        "data": entry.data,
    }
    return json.dumps(told, sort_keys=True, separators=(",", ":")).encode("ascii")


def lags() -> bool:
    """Does an entry wait for its seal for too long? Two quick queries, for readiness."""
    floor = Sealer.objects.values_list("floor", flat=True).first()
    return _unsealed(floor).filter(at__lt=clock.now() - LAGS).exists()


def waiting() -> int:
    """How many entries have no seal yet."""
    return _unsealed(None).count()
