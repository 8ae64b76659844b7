"""Reading the log from a cursor. The stored body is spliced into the answer as it is, never parsed.

A line on the wire: `{"seq": 7, "hash": "…", "body": {…}, "texts": {"title": {"text": "…", "label": "internal"}}}`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

import orjson

from access.errors import NotFound
from access.rows import only
from artifacts import vault
from runs.errors import BadCursor, CursorAhead
from runs.lifecycle import ended
from runs.models import Event, Run

MAX_PAGE = 1000
MAX_TEXT = 2 * 1024 * 1024  # bytes of texts after which a page ends early: a thousand long notes are not read into memory at once
LONGEST, LEAST = 64 * 1024, 200  # what one text may take of that: renditions have an end, and each has its wrapping


CURSOR = re.compile(r"[0-9]{1,16}")


def cursor(given: str) -> int:
    """A cursor as somebody sends it: digits and nothing else. BadCursor if it is none."""
    if not CURSOR.fullmatch(given):
        raise BadCursor("A cursor is the seq of the last event you have: a whole number, 0 for none.")
    return int(given)


@dataclass(frozen=True)
class Page:
    """Some events after a cursor, as JSON lines, and where the log stood when they were read."""

    lines: list[bytes]
    seqs: list[int]
    head: int
    ended: bool

    @property
    def cursor(self) -> int:
        return self.seqs[-1] if self.seqs else self.head


def read(run_id: UUID, *, after: int = 0, limit: int = MAX_PAGE, types: Iterable[str] = ()) -> Page:
    """Events with seq > `after`, oldest first, at most `limit`, fewer if they are long. CursorAhead names the head."""
    month, head, state = _head(run_id)
    if after > head:
        raise CursorAhead(f"The log ends at {head}; the cursor was {after}.", head=head)
    # the month too, for the key begins with it: without it the whole table is read
    rows = Event.objects.filter(run_month=month, run_id=run_id, seq__gt=after, seq__lte=head).order_by("seq")
    if types := list(types):
        rows = rows.filter(type__in=types)
    found = list(rows.values_list("seq", "hash", "body", "payloads")[: max(1, min(limit, MAX_PAGE))])
    found = _fitting(found)
    return Page(_lines(found), [row[0] for row in found], head, ended(state))


def head_of(run_id: UUID) -> tuple[int, str]:
    """The last sequence number and the state."""
    return _head(run_id)[1:]


def _head(run_id: UUID) -> tuple[date, int, str]:
    row = only(Run.objects.filter(pk=run_id).values_list("month", "seq", "state"))
    if row is None:
        raise NotFound
    return row


Row = tuple[int, bytes, str, dict[str, str]]  # seq, hash, body, payload ids by role


def _fitting(found: list[Row]) -> list[Row]:
    """As many of them as fit on a page; at least one."""
    found = _up_to(found, MAX_TEXT // LEAST, lambda row: len(row[3]))
    ids = [UUID(pk) for row in found for pk in row[3].values()]
    if len(ids) * LONGEST <= MAX_TEXT:
        return found
    taken = {str(pk): min(size, LONGEST) + LEAST for pk, size in vault.sizes(ids).items()}
    return _up_to(found, MAX_TEXT, lambda row: sum(taken[pk] for pk in row[3].values()))


def _up_to(found: list[Row], most: int, taken: Callable[[Row], int]) -> list[Row]:
    total = 0
    for place, row in enumerate(found):
        total += taken(row)
        if total > most and place:
            return found[:place]
    return found


def _lines(found: list[Row]) -> list[bytes]:
    texts = vault.shown(UUID(pk) for row in found for pk in row[3].values())
    return [_line(row, texts) for row in found]


def _line(row: Row, texts: dict[UUID, vault.Shown]) -> bytes:
    seq, digest, body, payloads = row
    told = {role: as_json(texts[UUID(pk)]) for role, pk in payloads.items()}
    return orjson.dumps({"seq": seq, "hash": bytes(digest).hex(), "body": orjson.Fragment(body), "texts": told})


def as_json(shown: vault.Shown) -> dict[str, Any]:
    """A payload as anybody who may see the run sees it."""
    if shown.erased_at is not None:
        return {"erased_at": shown.erased_at, "erased_by": shown.erased_by}
    hidden = {"hidden": shown.hidden} if shown.hidden else {}
    return {"text": shown.text, "label": shown.label, "media_type": shown.media_type, "size": shown.size} | hidden
