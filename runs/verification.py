"""Is a run's log whole? Recomputes the chain and every commitment, and says where it breaks."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from artifacts import vault
from artifacts.likeness import likeness
from artifacts.models import Artifact, Payload
from runs.lifecycle import ENDINGS, ended
from runs.log import chained
from runs.models import Event, JournalEntry, Run

START = bytes(32)
WITNESSED = ("action.", "artifact.")  # the types of events that other rows name


@dataclass(frozen=True)
class Whole:
    """Every event from 1 to `head` is there and as it was written."""

    head: int
    hash: str
    erased: int  # payloads that were erased; their commitments stand
    unsure: int = 0  # renditions of earlier rules that were not made anew yet: whether they are of these bytes can't be told


@dataclass(frozen=True)
class Broken:
    """The first place where the log is not as it was written."""

    seq: int
    why: str


@dataclass(frozen=True)
class Claim:
    """That an event tells of something which a row elsewhere holds. `seq` 0: any event; no `types`: of any type."""

    what: str
    seq: int = 0
    types: tuple[str, ...] = ()
    names: UUID | None = None  # what the event's data names


# what other rooms hold that the log must tell of; each adds its own at start-up
witnesses: list[Callable[[Run], Iterable[Claim]]] = []


@dataclass
class _Seen:
    """The events that claims are about: by seq, and by what they name."""

    last: int = 0
    types: dict[int, str] = field(default_factory=dict)
    named: dict[str, set[int]] = field(default_factory=dict)

    def add(self, row: "_Row") -> None:
        if row.type.startswith(WITNESSED):
            self.types[row.seq] = row.type
            for value in orjson.loads(row.body)["data"].values():
                if isinstance(value, str):
                    self.named.setdefault(value, set()).add(row.seq)

    def contradicts(self, claim: Claim) -> str:
        """What is wrong, if the log does not bear out the claim; else empty."""
        if claim.seq > self.last:
            return f"The log ends at #{self.last:,}, but {claim.what} stands at #{claim.seq:,}: the tail was cut."
        if claim.names is None:
            return ""
        tell = self.named.get(str(claim.names), set()) & ({claim.seq} if claim.seq else self.types.keys())
        if any(not claim.types or self.types[seq] in claim.types for seq in tell):
            return ""
        where = f"#{claim.seq:,} does not tell" if claim.seq else "No event tells"
        return f"{where} of {claim.what}, which is there: the tail was cut, or the log was written anew."


class _Row(NamedTuple):
    seq: int
    type: str
    body: str
    prev_hash: bytes
    hash: bytes
    payloads: Any
    sender: str | None
    artifact_id: UUID | None


class _Head(NamedTuple):
    seq: int
    head_hash: bytes
    state: str


def verify(run: Run, *, payloads: bool = True) -> Whole | Broken:
    """Walk the whole log once; it may grow meanwhile. `payloads=False` checks the chain alone, without opening the vault."""
    claims = [*_claims(run), *(claim for witness in witnesses for claim in witness(run))]  # first: the log only grows
    before, last, prev, erased, unsure, seen = _head(run), 0, START, 0, 0, _Seen()
    counted = START if before.seq == 0 else b""  # the hash of the event that the run's row had counted to
    rows = Event.objects.filter(run_month=run.month, run_id=run.pk).order_by("seq").values_list(*_Row._fields)
    kind = ""
    for row in map(_Row._make, rows.iterator(chunk_size=1000)):
        told = _told(row, last + 1, prev)
        if isinstance(told, Broken):
            return told
        if payloads:
            found = _check_payloads(row, told)
            if isinstance(found, Broken):
                return found
            erased, unsure = erased + found.count("erased"), unsure + found.count("unknown")
        seen.add(row)
        seen.last = last = row.seq
        prev, kind = bytes(row.hash), row.type
        counted = prev if last == before.seq else counted
    after = _head(run)
    if not before.seq <= last <= after.seq or counted != bytes(before.head_hash) or (last == after.seq and prev != bytes(after.head_hash)):
        why = f"The log ends at #{last:,}, but the run counted to #{after.seq:,}: the tail was cut or the head was changed."
        return Broken(min(last, after.seq) + 1, why)
    if last == after.seq and (kind in ENDINGS or ended(after.state)) and ENDINGS.get(kind) != after.state:
        return Broken(last, f"#{last:,} is {kind}, but the run's row says {after.state}: its state was changed.")
    for claim in claims:
        if why := seen.contradicts(claim):
            return Broken(claim.seq if 0 < claim.seq <= last else last + 1, why)
    return Whole(last, prev.hex(), erased, unsure)


def _claims(run: Run) -> Iterator[Claim]:
    """What the engine's journal and the artifacts say. Two queries."""
    for step, seq in JournalEntry.objects.filter(run_id=run.pk, seq__gt=0).values_list("step", "seq"):
        yield Claim(f"step {step[:60]}", seq)
    for pk in Artifact.objects.filter(run_id=run.pk).values_list("pk", flat=True):
        yield Claim(f"artifact {pk}", types=("artifact.created",), names=pk)


def _head(run: Run) -> _Head:
    return _Head._make(Run.objects.values_list(*_Head._fields).get(pk=run.pk))


def _told(row: _Row, expected: int, prev: bytes) -> Mapping[str, str] | Broken:
    """The commitments that an event was written with, or what is wrong with it."""
    if row.seq != expected:
        return Broken(expected, f"#{expected:,} is missing: the log goes on at #{row.seq:,}.")
    if bytes(row.prev_hash) != prev or chained(prev, row.seq, row.body) != bytes(row.hash):
        return Broken(row.seq, f"#{row.seq:,} is not what was written: its hash does not follow from the one before.")
    try:
        written, commitments = _repeated(row.body)
        filed = (row.type, row.sender, row.artifact_id and str(row.artifact_id), set(row.payloads))
    except (ValueError, TypeError, KeyError, AttributeError):  # only somebody who wrote the whole chain anew gets here
        return Broken(row.seq, f"#{row.seq:,} can't be read.")
    if filed != written:
        return Broken(row.seq, f"#{row.seq:,} is filed under another type, sender, artifact or payloads than it was written with.")
    return commitments


def _repeated(body: str) -> tuple[tuple[Any, ...], dict[str, str]]:
    """What columns repeat of a body (type, sender's id, artifact, names of payloads), and its commitments."""
    told = orjson.loads(body)
    artifact = told["data"]["artifact"] if told["type"] == "artifact.created" else None
    return (told["type"], told.get("sender", {}).get("id"), artifact, set(told["payloads"])), told["payloads"]


def _check_payloads(row: _Row, commitments: Mapping[str, str]) -> list[str] | Broken:
    """What is known of each of an event's payloads ("same", "erased", "unknown"), or what is wrong with one."""
    try:
        ids = {role: UUID(pk) for role, pk in row.payloads.items()}
    except (ValueError, TypeError, AttributeError):
        return Broken(row.seq, f"#{row.seq:,} names something that is no payload.")
    there = {payload.pk: payload for payload in Payload.objects.filter(pk__in=ids.values()).select_related("key")}
    known = []
    for role, pk in ids.items():
        payload = there.get(pk)
        if payload is None:
            return Broken(row.seq, f"#{row.seq:,}: its payload “{role}” was removed.")
        if payload.commitment != commitments[role]:
            return Broken(row.seq, f"#{row.seq:,}: its payload “{role}” was exchanged.")
        known.append("erased" if payload.erased_at is not None else _looked_at(payload))
        if known[-1] in WRONG:
            return Broken(row.seq, f"#{row.seq:,}: {WRONG[known[-1]].format(role)}")
    return known


WRONG = {
    "altered": "its payload “{}” is not what was committed to.",
    "forged": "what is shown of its payload “{}” is not what stands in it: its rendition was changed.",
}


def _looked_at(payload: Payload) -> str:
    try:
        if payload.size > vault.MAX_BYTES:
            return likeness(payload, None) if vault.is_whole(payload) else "altered"
        salt, content = vault.opening(payload)
    except Exception:  # a sealed box that does not open is a broken one, whatever the reason
        return "altered"
    return likeness(payload, content) if vault.commit(salt, content) == payload.commitment else "altered"
