"""Is a run's log whole? Recomputes the chain and every commitment, and says where it breaks."""

from dataclasses import dataclass
from uuid import UUID

import orjson

from artifacts import vault
from artifacts.models import Payload
from runs.log import chained
from runs.models import Event, Run


@dataclass(frozen=True)
class Whole:
    """Every event from 1 to `head` is there and as it was written."""

    head: int
    hash: str
    erased: int  # payloads that were erased; their commitments stand


@dataclass(frozen=True)
class Broken:
    """The first place where the log is not as it was written."""

    seq: int
    why: str


def verify(run: Run, *, payloads: bool = True) -> Whole | Broken:
    """Walk the whole log once. `payloads=False` checks the chain alone, without opening the vault."""
    prev, expected, erased = bytes(32), 1, 0
    rows = (
        Event.objects.filter(run_month=run.month, run_id=run.pk)
        .order_by("seq")
        .values_list("seq", "type", "body", "prev_hash", "hash", "payloads")
    )
    for seq, kind, body, prev_hash, digest, ids in rows.iterator(chunk_size=1000):
        if seq != expected:
            return Broken(expected, f"#{expected} is missing: the log goes on at #{seq}.")
        if bytes(prev_hash) != prev or chained(prev, seq, body) != bytes(digest):
            return Broken(seq, f"#{seq} is not what was written: its hash does not follow from the one before.")
        try:
            committed = orjson.loads(body)
        except orjson.JSONDecodeError:
            return Broken(seq, f"#{seq} can't be read.")
        if committed["type"] != kind or committed["payloads"].keys() != ids.keys():
            return Broken(seq, f"#{seq} is filed under another type or names other payloads than it was written with.")
        if payloads:
            gone = _check_payloads(seq, committed["payloads"], ids)
            if isinstance(gone, Broken):
                return gone
            erased += gone
        prev, expected = bytes(digest), seq + 1
    if run.seq != expected - 1 or bytes(run.head_hash) != prev:
        return Broken(
            expected, f"The log ends at #{expected - 1}, but the run counted to #{run.seq}: the tail was cut or the head was changed."
        )
    return Whole(run.seq, prev.hex(), erased)


def _check_payloads(seq: int, commitments: dict[str, str], ids: dict[str, str]) -> int | Broken:
    """How many of an event's payloads are erased, or what is wrong with one."""
    there = {payload.pk: payload for payload in Payload.objects.filter(pk__in=ids.values()).select_related("key")}
    erased = 0
    for role, pk in ids.items():
        payload = there.get(UUID(pk))
        if payload is None:
            return Broken(seq, f"#{seq}: its payload “{role}” was removed.")
        if payload.commitment != commitments[role]:
            return Broken(seq, f"#{seq}: its payload “{role}” was exchanged.")
        if payload.erased_at is not None:
            erased += 1
        elif not _opens(payload):
            return Broken(seq, f"#{seq}: its payload “{role}” is not what was committed to.")
    return erased


def _opens(payload: Payload) -> bool:
    try:
        salt, data = vault.opening(payload)
    except Exception:  # a sealed box that does not open is a broken one, whatever the reason
        return False
    return vault.commit(salt, data) == payload.commitment
