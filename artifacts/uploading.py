"""A large file comes in parts: begun, appended to at an offset, finished with its digest. What breaks off goes on where it was.

Each part is a sealed file of its own until all of them are there; finishing reads them in order into the payload.
"""

import hashlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import ClassVar
from uuid import UUID, uuid4

from cryptography.exceptions import InvalidTag
from django.conf import settings
from django.db import IntegrityError, transaction

from access.errors import BadInput, Refusal
from access.models import Agent
from artifacts import keys, storing, vault
from artifacts.models import Label, Payload, Upload
from artifacts.sealing import new_key, seal, unseal
from artifacts.vault import PayloadTooLarge
from config import clock

LASTS = timedelta(hours=24)
MOST_OPEN = 20  # uploads of one agent that are begun and neither finished nor given up
PART_MIN, PART_MAX = 1024 * 1024, 12 * 1024 * 1024  # bytes of a part; only the last may be smaller


class WrongOffset(Refusal):
    """This does not go on where the upload is."""

    what_next: ClassVar[str] = "Send what comes from `offset` on."


class UploadOver(Refusal):
    """This upload is finished, or its time is over."""

    status = 410
    what_next: ClassVar[str] = "Begin another one, with another Idempotency-Key."


class OddPart(BadInput):
    """A part of this size is not taken."""


class NotComplete(Refusal):
    """Not all of it is there yet."""

    what_next: ClassVar[str] = "Send what comes from `offset` on, then finish it."


class OtherDigest(Refusal):
    """What arrived is not what was sent."""

    what_next: ClassVar[str] = "Nothing was kept. Begin another one, with another Idempotency-Key."


class UploadReused(Refusal):
    """This Idempotency-Key began an upload of something else."""


class TooManyUploads(Refusal):
    """This agent has very many uploads open."""

    what_next: ClassVar[str] = "Nothing was begun. Finish one of them or give it up (DELETE); after a day they go by themselves."


def begin(
    *,
    workspace_id: UUID,
    agent_id: UUID,
    run_id: UUID,
    sender: str,
    name: str,
    label: Label | str,
    media_type: str,
    size: int,
    outside: bool,
) -> Upload:
    """An upload, or the one that this key began already. PayloadTooLarge, UploadReused or TooManyUploads."""
    if size > settings.HANDRAIL_UPLOAD_MAX:
        raise PayloadTooLarge(f"{size:,} bytes; at most {settings.HANDRAIL_UPLOAD_MAX:,} are taken.", limit=settings.HANDRAIL_UPLOAD_MAX)
    key, made = keys.current(workspace_id), Upload(workspace_id=workspace_id, agent_id=agent_id, run_id=run_id, sender=sender)
    made.name, made.label, made.media_type, made.size, made.outside = name, str(label), media_type, size, outside
    made.key, made.wrapped, made.expires_at = key, seal(keys.unwrap(key), new_key(), made.pk.bytes), clock.now() + LASTS
    try:
        with transaction.atomic():
            Agent.objects.select_for_update(no_key=True).get(pk=agent_id)  # of two at once the second is counted with the first
            _check_room(agent_id, run_id, sender)
            made.save(force_insert=True)
    except IntegrityError:
        first = Upload.objects.get(run_id=run_id, sender=sender)
        if (first.name, first.label, first.media_type, first.size, first.outside) != (name, str(label), media_type, size, outside):
            raise UploadReused from None
        return first
    return made


def _check_room(agent_id: UUID, run_id: UUID, sender: str) -> None:
    open_now = Upload.objects.filter(agent_id=agent_id, finished_at=None, expires_at__gt=clock.now())
    if open_now.count() >= MOST_OPEN and not Upload.objects.filter(run_id=run_id, sender=sender).exists():
        raise TooManyUploads(f"{MOST_OPEN} at once is the most.", limit=MOST_OPEN)


def append(upload: Upload, offset: int, data: bytes) -> Upload:
    """Keep a part. WrongOffset, with the offset that is right, if it does not go on where the upload is; two at once: one is told so."""
    _check_open(upload)
    if offset != upload.offset:
        raise WrongOffset(f"It is at {upload.offset}, not at {offset}.", offset=upload.offset)
    _check_part(upload, len(data))
    name = storing.put(f"uploads/{upload.pk}/{offset}-{uuid4().hex[:8]}", _data_key(upload), [data], bound_to=_part(upload, offset))
    open_now = Upload.objects.filter(pk=upload.pk, offset=offset, finished_at=None, expires_at__gt=clock.now())
    if open_now.update(offset=offset + len(data), parts=[*upload.parts, [name, len(data)]]) != 1:
        storing.remove(name)
        upload.refresh_from_db()
        _check_open(upload)
        raise WrongOffset(f"It is at {upload.offset}, not at {offset}.", offset=upload.offset)
    upload.refresh_from_db()
    return upload


def finish(upload: Upload, sha256: str, *, keep: Callable[[Payload], None]) -> None:
    """Put the parts together into a payload, which `keep` stores with what names it. NotComplete or OtherDigest keep nothing, nor does
    UploadOver: also when somebody else finishes it meanwhile."""
    _check_open(upload)
    if upload.offset != upload.size:
        raise NotComplete(f"{upload.offset:,} of {upload.size:,} bytes are there.", offset=upload.offset)
    summed = hashlib.sha256()
    try:
        payload = vault.sealed_from(upload.workspace_id, _read(upload, summed), label=upload.label, media_type=upload.media_type)
    except (FileNotFoundError, InvalidTag):  # whoever finished it removed the parts
        upload.refresh_from_db()
        _check_open(upload)
        raise
    if summed.hexdigest() != sha256.lower():
        vault.discard(payload)
        raise OtherDigest(sha256=summed.hexdigest())
    keep(payload)
    close(upload)


def close(upload: Upload) -> None:
    """It is finished or not wanted any more: the key of its parts goes, then the parts."""
    Upload.objects.filter(pk=upload.pk, finished_at=None).update(finished_at=clock.now(), wrapped=None)
    for name, _ in upload.parts:
        storing.remove(name)


def forget_expired() -> int:
    """Delete the uploads whose time is over. Their parts are orphans from then on."""
    return Upload.objects.filter(expires_at__lt=clock.now()).delete()[0]


def in_flight() -> set[str]:
    """The uploads whose parts are needed still, by the directory in which they lie."""
    return {f"uploads/{pk}" for pk in Upload.objects.filter(finished_at=None).values_list("pk", flat=True)}


def _check_open(upload: Upload) -> None:
    if upload.finished_at is not None or upload.expires_at <= clock.now():
        raise UploadOver


def _check_part(upload: Upload, count: int) -> None:
    left = upload.size - upload.offset
    if not 0 < count <= min(PART_MAX, left):
        raise OddPart(f"{count:,} bytes; {min(PART_MAX, left):,} at most.", limit=min(PART_MAX, left), offset=upload.offset)
    if count < min(PART_MIN, left):
        raise OddPart(f"{count:,} bytes; {PART_MIN:,} at least, but for the last.", least=PART_MIN, offset=upload.offset)


def _read(upload: Upload, summed: "hashlib._Hash") -> Iterator[bytes]:
    at, key = 0, _data_key(upload)
    for name, size in upload.parts:
        for piece in storing.stretch(name, key, bound_to=_part(upload, at), size=size):
            summed.update(piece)
            yield piece
        at += size


def _data_key(upload: Upload) -> bytes:
    return unseal(keys.unwrap(upload.key), bytes(upload.wrapped), upload.pk.bytes)


def _part(upload: Upload, offset: int) -> bytes:
    return upload.pk.bytes + offset.to_bytes(8, "big")
