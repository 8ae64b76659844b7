"""Bytes in, bytes out. The only code that sees a data key.

A payload's bytes are sealed with AES-256-GCM under a data key of their own; salt and data key are sealed under the workspace's
key, which is sealed under the master key (`HANDRAIL_VAULT_KEY`). The row's id is bound in as associated data, so that no row's
content can be moved to another row. What is larger than `HANDRAIL_PAYLOAD_INLINE` lies in a file (`artifacts.storing`).
"""

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import orjson
from cryptography.exceptions import InvalidTag
from django.conf import settings
from django.db import transaction

from access import inserting
from access.errors import Refusal
from access.ids import uuid7
from access.inserting import Statement
from access.models import User
from access.rows import made
from artifacts import keys, redaction_policies, ruling, storing, traces
from artifacts.models import Label, Payload, WorkspaceKey
from artifacts.redaction import Rendition, redact
from artifacts.redaction_policies import About
from artifacts.rendition import PROMPT, SECRET, UNREADABLE, Hidden, Text, marked
from artifacts.sealing import new_key, seal, unseal
from config import clock

MAX_BYTES = 12 * 1024 * 1024  # in memory at once; an upload in parts may be larger
_SALT = 32
# content, label, media type, and what it belongs to if that is not said around it (`redaction_policies.about`)
Content = tuple[bytes | str, Label | str, str] | tuple[bytes | str, Label | str, str, About]


class PayloadTooLarge(Refusal):
    """This is larger than a payload may be."""

    status = 413


class Erased(Refusal):
    """These bytes were erased for good."""

    status = 410


@dataclass(frozen=True)
class Shown:
    """What may be shown of a payload: the redacted text, or that it was erased, by whom and when. `text` says either."""

    id: UUID
    text: str
    label: str
    media_type: str
    size: int
    hidden: dict[str, int]
    erased_at: datetime | None = None
    erased_by: str = ""
    erased_why: str = ""


def tombstone(at: datetime | None, by: str) -> str:
    """“Erased by Ada on 30 Nov 2026, 10:12 UTC”, in the place of an erased text; empty of what is there."""
    return f"Erased by {by or 'somebody'} on {at.day} {at:%b %Y, %H:%M} UTC" if at else ""


def saying(name: str) -> tuple[str, str, str]:
    """The columns of a payload that a row names, out of which `said` tells what it says."""
    return f"{name}__rendition", f"{name}__erased_at", f"{name}__erased_by__name"


def said(rendition: str | None, erased_at: datetime | None, erased_by: str | None) -> str:
    """The rendition, or the tombstone; empty where no payload is named."""
    return rendition or tombstone(erased_at, erased_by or "")


def keep(workspace_id: UUID, content: bytes | str, *, label: Label | str, media_type: str = "text/plain") -> Payload:
    """Seal `content` and make its redacted rendition, in the caller's transaction."""
    [payload] = sealed(workspace_id, [(content, label, media_type)])
    store([payload])
    return payload


def sealed(workspace_id: UUID, contents: Iterable[Content]) -> list[Payload]:
    """Payloads of these contents, sealed and redacted but not stored: all that takes time, before anything is locked."""
    key = keys.current(workspace_id)
    here = redaction_policies.now_about()
    return [_sealed(key, _bytes(each[0]), str(each[1]), each[2], each[3] if len(each) > 3 else here) for each in contents]


def store(payloads: list[Payload]) -> None:
    """Insert what `sealed` made, in the caller's transaction. One statement."""
    Payload.objects.bulk_create(payloads)


def insertion(payloads: Sequence[Payload]) -> Statement:
    """The same as a statement of PostgreSQL with its values, for whoever writes it together with others."""
    return inserting.insertion("artifacts_payload", _COLUMNS, [[_column(payload, name) for name in _COLUMNS] for payload in payloads])


def _column(payload: Payload, name: str) -> Any:
    value = getattr(payload, name)
    return orjson.dumps(value).decode() if name == "findings" else value


_COLUMNS = {
    "id": "uuid",
    "workspace_id": "uuid",
    "label": "text",
    "media_type": "text",
    "about": "text",
    "size": "bigint",
    "commitment": "text",
    "key_id": "bigint",
    "wrapped": "bytea",
    "content": "bytea",
    "stored": "text",
    "erased_why": "text",
    "rules": "bigint",
    "rendition": "text",
    "findings": "jsonb",
    "created_at": "timestamptz",
}


def _bytes(content: bytes | str) -> bytes:
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    if len(data) > MAX_BYTES:
        raise PayloadTooLarge(f"{len(data)} bytes; at most {MAX_BYTES} are kept.", limit=MAX_BYTES)
    return data


def _sealed(key: WorkspaceKey, data: bytes, label: str, media_type: str, of: About) -> Payload:
    return _seal(key, [data], label, media_type, stored=len(data) > settings.HANDRAIL_PAYLOAD_INLINE, of=of)


def sealed_from(workspace_id: UUID, pieces: Iterable[bytes], *, label: Label | str, media_type: str) -> Payload:
    """A payload of any size, out of pieces that need not fit into memory together. In a file; not stored, as with `sealed`."""
    return _seal(keys.current(workspace_id), pieces, str(label), media_type, stored=True, of=redaction_policies.now_about())


def _seal(key: WorkspaceKey, pieces: Iterable[bytes], label: str, media_type: str, *, stored: bool, of: About) -> Payload:
    pk, salt, data_key = uuid7(), secrets.token_bytes(_SALT), new_key()
    read = _Read(pieces, hashlib.sha256(salt))
    where = {"stored": storing.put(_file(pk), data_key, read, bound_to=pk.bytes)} if stored else {}
    where = where or {"content": seal(data_key, b"".join(read), pk.bytes)}
    rules, policy = ruling.rules(key.workspace_id)
    about = str(of)
    if read.size <= MAX_BYTES:
        rendition = redact(read.head, media_type=media_type, label=label, policy=policy, about=about)
    else:
        rendition = unseen(read.size, media_type, label)
    return made(
        Payload,
        {"key": key},
        id=pk,
        workspace_id=key.workspace_id,
        label=label,
        media_type=media_type,
        about=about,
        size=read.size,
        commitment=read.sum.hexdigest(),
        key_id=key.pk,
        wrapped=seal(keys.unwrap(key), salt + data_key, pk.bytes),
        rendition=rendition.text,
        findings=dict(rendition.findings),
        rules=rules,
        **where,
    )


def discard(payload: Payload) -> None:
    """A payload that was sealed is not to be stored after all."""
    if payload.stored:
        storing.remove(payload.stored)


def _file(pk: UUID) -> str:
    return f"{pk.hex[-2:]}/{pk}"


class _Read:
    """Pieces that are counted and summed while they are read; what they begin with is kept, if all of it can be looked through."""

    def __init__(self, pieces: Iterable[bytes], begun: Any) -> None:
        self.pieces, self.sum, self.size, self._kept = pieces, begun, 0, bytearray()

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            self.sum.update(piece)
            self.size += len(piece)
            if self.size <= MAX_BYTES:
                self._kept += piece
            yield piece

    @property
    def head(self) -> bytes:
        return bytes(self._kept)


def unseen(size: int, media_type: str, label: str) -> Rendition:
    """The rendition of what is too large to be looked through: nothing of it."""
    empty = redact(b"", media_type=media_type, label=label)
    if set(empty.findings) & {SECRET, PROMPT}:
        return empty
    said = marked([Hidden(UNREADABLE), Text(f" {size:,} bytes of {media_type[:100]}")])
    return Rendition(said, {UNREADABLE: 1}, masked_everything=True)


def commit(salt: bytes, data: bytes) -> str:
    """A payload's commitment: SHA-256(salt ‖ bytes) in hex. Says nothing about the bytes to who lacks the salt."""
    return hashlib.sha256(salt + data).hexdigest()


def open_bytes(payload: Payload) -> bytes:
    """The bytes themselves. For the engine, and for who decides on the action they belong to; never for a page otherwise.

    PayloadTooLarge for what is read as a stream alone.
    """
    return opening(payload)[1]


def opened(payload: Payload) -> bytes | None:
    """The bytes themselves, or None where they were erased, damaged or are too many at once: for what can do without them."""
    try:
        return open_bytes(payload)
    except (Erased, InvalidTag, PayloadTooLarge):
        return None


def opening(payload: Payload) -> tuple[bytes, bytes]:
    """Salt and bytes, with which anyone can check the commitment in the log."""
    secret = _opened_secret(payload)
    if payload.size > MAX_BYTES:
        raise PayloadTooLarge(f"{payload.size:,} bytes; {MAX_BYTES:,} are opened at once. Download it.", limit=MAX_BYTES)
    return secret[:_SALT], b"".join(_pieces(payload, secret[_SALT:], 0, None))


def stream(payload: Payload, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The bytes from `start` up to `end`, piece by piece, however many they are. Erased at once; InvalidTag when it comes to it."""
    return _pieces(payload, _opened_secret(payload)[_SALT:], start, end)


def is_whole(payload: Payload) -> bool:
    """Whether the bytes are those of the commitment. Erased if there are none any more."""
    secret = _opened_secret(payload)
    summed = hashlib.sha256(secret[:_SALT])
    for piece in _pieces(payload, secret[_SALT:], 0, None):
        summed.update(piece)
    return summed.hexdigest() == payload.commitment


def _opened_secret(payload: Payload) -> bytes:
    if payload.wrapped is None:
        raise Erased(f"{tombstone(payload.erased_at, payload.erased_by.name if payload.erased_by else '')}.")
    return _secret(payload)


def _pieces(payload: Payload, data_key: bytes, start: int, end: int | None) -> Iterator[bytes]:
    if payload.stored is None:
        yield unseal(data_key, bytes(payload.content), payload.pk.bytes)[start:end]
        return
    try:
        yield from storing.stretch(payload.stored, data_key, bound_to=payload.pk.bytes, size=payload.size, start=start, end=end)
    except FileNotFoundError:
        raise InvalidTag from None  # as damaged as it can be


def shown(ids: Iterable[UUID]) -> dict[UUID, Shown]:
    """The renditions of some payloads, by id. One query."""
    fields = ("id", "rendition", "label", "media_type", "size", "findings", "erased_at", "erased_by__name", "erased_why")
    rows = Payload.objects.filter(pk__in=set(ids)).values_list(*fields)
    return {row[0]: Shown(row[0], row[1] or tombstone(row[6], row[7]), *row[2:7], row[7] or "", row[8]) for row in rows}


def sizes(ids: Iterable[UUID]) -> dict[UUID, int]:
    """How many bytes each payload has, by id. One query."""
    return dict(Payload.objects.filter(pk__in=set(ids)).values_list("id", "size"))


def rewrapped(rows: Iterable[Payload], newest: WorkspaceKey) -> tuple[int, int]:
    """Wrap what opens these payloads under another key of their workspace. How many that were, and how many did not open.

    One transaction. What was erased meanwhile, or wrapped anew by somebody else, stays as it is.
    """
    moved = closed = 0
    with transaction.atomic():
        for row in rows:
            try:
                fresh = seal(keys.unwrap(newest), _secret(row), row.pk.bytes) if row.wrapped is not None else None
            except InvalidTag:
                closed += 1
                continue
            same = Payload.objects.filter(pk=row.pk, key_id=row.key_id, wrapped__isnull=fresh is None)
            moved += same.update(key=newest, wrapped=fresh)
        keys.needed_again({row.key_id for row in rows})
    return moved, closed


def rerendered(made: Iterable[tuple[Payload, Rendition]], rules: int) -> int:
    """Keep renditions that were made anew under later rules. How many changed by it.

    One transaction. What was erased meanwhile, or made anew by somebody else, stays as it is.
    """
    changed = 0
    with transaction.atomic():
        for row, rendition in made:
            same = Payload.objects.filter(pk=row.pk, erased_at=None, rules=row.rules)
            kept = same.update(rendition=rendition.text, findings=dict(rendition.findings), rules=rules)
            changed += kept and rendition.text != row.rendition
    return changed


def erase(payload: Payload, *, by: User, why: str = "") -> None:
    """Destroy salt, key, bytes and rendition. The log keeps its numbering and hashes."""
    if not erase_all([payload.pk], by=by, why=why):
        raise Erased


def erase_all(ids: Iterable[UUID], *, by: User, why: str) -> list[UUID]:
    """The same of several, in one transaction. Gives those that it erased: the rest had been erased before."""
    gone = {
        "wrapped": None,
        "content": None,
        "stored": None,
        "rendition": None,
        "findings": {},
        "erased_at": clock.now(),
        "erased_by": by,
        "erased_why": why,
    }
    with transaction.atomic():  # in order, as whoever wraps payloads anew goes about it
        transaction.on_commit(traces.remove, robust=True)
        return [pk for pk in sorted(set(ids)) if _erase(pk, gone)]


def _erase(pk: UUID, gone: dict[str, Any]) -> bool:
    rows = Payload.objects.filter(pk=pk, erased_at=None)
    stored = rows.values_list("stored", flat=True).first()
    if rows.update(**gone) != 1:
        return False
    if stored:  # the key is gone already; what a crash leaves of it is an orphan
        transaction.on_commit(partial(storing.remove, stored), robust=True)
    return True


def _secret(payload: Payload) -> bytes:
    """Salt ‖ data key."""
    return unseal(keys.unwrap(payload.key), bytes(payload.wrapped), payload.pk.bytes)
