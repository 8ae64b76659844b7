"""Is the audit trail whole? Walks its seals from the first, and says where an entry was altered, removed or cut off."""

from dataclasses import dataclass
from uuid import UUID

from access import sealing
from access.audit_models import AuditSeal, Sealer
from access.models import AuditEntry

AT_ONCE = 1000  # seals read together with their entries


@dataclass(frozen=True)
class Whole:
    """Every entry from 1 to `head` is there and as it was sealed. `waiting`: entries that are not sealed yet."""

    head: int
    hash: str
    waiting: int


@dataclass(frozen=True)
class Broken:
    """The first number at which the trail is not as it was sealed."""

    number: int
    why: str


def verify(*, kept: tuple[int, str] | None = None) -> Whole | Broken:
    """Walk the whole chain once; it may grow meanwhile. `kept`: a number and its hash that were kept elsewhere, to compare."""
    head, last, prev = _head(), 0, sealing.START
    counted, counted_hash = head or (0, sealing.START)
    while seals := list(AuditSeal.objects.filter(number__gt=last).order_by("number")[:AT_ONCE]):
        entries = AuditEntry.objects.in_bulk([seal.entry for seal in seals])
        for seal in seals:
            if why := _wrong(seal, last + 1, prev, entries):
                return Broken(last + 1, why)
            last, prev = seal.number, seal.hash
            if kept and last == kept[0] and prev != kept[1]:
                return Broken(last, "The hash that was kept elsewhere is another one: the trail was written anew up to here, or before.")
            if last == counted and prev != counted_hash:
                return Broken(last, "The sealer counted to another hash: the trail was written anew up to here, or before.")
    if last and head is None:
        return Broken(last + 1, "What the sealer counted to was removed: nobody can say that the tail was not cut off.")
    if last < counted:
        return Broken(last + 1, f"The chain ends at #{last}, but the sealer counted to #{counted}: its tail was cut off.")
    if kept and last < kept[0]:
        return Broken(last + 1, f"The chain ends at #{last}, but #{kept[0]} was kept elsewhere: its tail was cut off.")
    return Whole(last, prev, sealing.waiting())


def _wrong(seal: AuditSeal, number: int, prev: str, entries: dict[UUID, AuditEntry]) -> str:
    if seal.number != number:
        return f"The seal #{number} was removed; the next one that is there is #{seal.number}."
    entry = entries.get(seal.entry)
    if entry is None:
        return f"The entry {seal.entry} was removed."
    if sealing.chained(prev, number, sealing.canonical(entry)) != seal.hash:
        return f"The entry {seal.entry} or its seal was altered."
    return ""


def _head() -> tuple[int, str] | None:
    """The number and the hash that the sealer counted to; None before it ever sealed."""
    return Sealer.objects.values_list("number", "hash").first()
