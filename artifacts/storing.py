"""Sealed files: what is too large for a row lies in Django's storage `payloads`, in chunks.

A file is `HRV1`, the size of its chunks (uint32), and the chunks. Each is sealed on its own (nonce ‖ ciphertext ‖ tag, AES-256-GCM); what
it belongs to, its number and whether it is the last are bound in as associated data: chunks can't be cut off, swapped or put in another
order, and a stretch of the file can be read without the rest.

A file is written before the row that names it is committed, and removed after the row is: a crash leaves an orphan, never a row without its
file. `artifacts.tidying` removes orphans.
"""

import io
import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from cryptography.exceptions import InvalidTag
from django.core.files import File
from django.core.files.storage import FileSystemStorage, Storage, storages

from artifacts.sealing import seal, unseal

MAGIC = b"HRV1"
CHUNK = 256 * 1024  # bytes of content in a chunk
_HEAD = len(MAGIC) + 4
_OVER = 28  # nonce and tag
_READ = 1024 * 1024


class Files(FileSystemStorage):
    """Files of this machine, or of a disk that all machines share. On the disk before anybody is told that they are kept."""

    def _save(self, name: str, content: File) -> str:  # type: ignore[override]
        kept = super()._save(name, content)
        at = Path(self.path(kept))
        for each in (at, at.parent, at.parent.parent):  # the file, and the directories that name it
            descriptor = os.open(each, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        return str(kept)


def storage() -> Storage:
    return storages["payloads"]


# writing ----------------------------------------------------------------------------------------------------------------------------


def put(name: str, key: bytes, pieces: Iterable[bytes], *, bound_to: bytes) -> str:
    """Seal what comes, piece by piece, into a file. Gives the name under which it is kept."""
    return str(storage().save(name, File(io.BufferedReader(_Pieces(_sealed(key, pieces, bound_to)), _READ), name)))


def remove(name: str) -> None:
    """There is no such file any more."""
    storage().delete(name)


def _sealed(key: bytes, pieces: Iterable[bytes], bound_to: bytes) -> Iterator[bytes]:
    yield MAGIC + CHUNK.to_bytes(4, "big")
    number, waiting = 0, b""
    for chunk in _chunks(pieces):
        if number:
            yield seal(key, waiting, _belongs(bound_to, number - 1, last=False))
        number, waiting = number + 1, chunk
    yield seal(key, waiting, _belongs(bound_to, max(number - 1, 0), last=True))


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in chunks of one size; the last may be smaller."""
    held = bytearray()
    for piece in pieces:
        held += piece
        at = 0
        while len(held) - at >= CHUNK:
            yield bytes(held[at : at + CHUNK])
            at += CHUNK
        del held[:at]
    if held:
        yield bytes(held)


def _belongs(bound_to: bytes, number: int, *, last: bool) -> bytes:
    return bound_to + number.to_bytes(8, "big") + bytes([last])


class _Pieces(io.RawIOBase):
    """What an iterator gives, as a file that is read once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._held = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, into: bytearray) -> int:  # type: ignore[override]
        while not self._held:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._held = memoryview(piece)
        count = min(len(into), len(self._held))
        into[:count] = self._held[:count]
        self._held = self._held[count:]
        return count


# reading ----------------------------------------------------------------------------------------------------------------------------


def stretch(name: str, key: bytes, *, bound_to: bytes, size: int, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The content from `start` up to `end`, of a file whose content has `size` bytes. InvalidTag if it is not what was sealed."""
    end = size if end is None else min(end, size)
    last = max(0, (size - 1) // CHUNK)
    first, upto = start // CHUNK, min(last, max(0, end - 1) // CHUNK)
    sealed = _fixed(_raw(name, _HEAD + first * (CHUNK + _OVER)), CHUNK + _OVER)
    if first == 0 and next(_raw(name, 0))[:_HEAD] != MAGIC + CHUNK.to_bytes(4, "big"):
        raise InvalidTag
    for number in range(first, upto + 1):
        content = unseal(key, next(sealed, b""), _belongs(bound_to, number, last=number == last))
        at = number * CHUNK
        if piece := content[max(0, start - at) : max(0, end - at)]:
            yield piece


def _fixed(pieces: Iterator[bytes], length: int) -> Iterator[bytes]:
    held = bytearray()
    for piece in pieces:
        held += piece
        while len(held) >= length:
            yield bytes(held[:length])
            del held[:length]
    if held:
        yield bytes(held)


def _raw(name: str, start: int) -> Iterator[bytes]:
    kept = storage()
    from_there = getattr(kept, "from_there", None)  # S3 reads from a place on; elsewhere a file is opened there
    if from_there is not None:
        yield from from_there(name, start)
        return
    with kept.open(name, "rb") as file:
        file.seek(start)
        while piece := file.read(CHUNK + _OVER):
            yield piece


# what there is ----------------------------------------------------------------------------------------------------------------------


def listed(under: str = "") -> Iterator[str]:
    """The names of all files, a directory at a time."""
    try:
        directories, files = storage().listdir(under)
    except FileNotFoundError:
        return
    yield from (f"{under}/{name}".lstrip("/") for name in sorted(files))
    for name in sorted(directories):
        yield from listed(f"{under}/{name}".lstrip("/"))


def written_at(name: str) -> datetime | None:
    """When a file was written, by the clock of who keeps it; None if it is gone."""
    try:
        return storage().get_modified_time(name)
    except FileNotFoundError:
        return None
