"""The access log as a file: CSV for people, JSON Lines for programs. It is streamed piece by piece, and is itself an entry."""

import csv
import io
import re
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC
from typing import Any
from uuid import UUID

import orjson
from channels.db import database_sync_to_async

from access import audit, telling, trail
from access.audit_models import AuditSeal
from access.rules import Actor
from access.telling import Told
from access.trail import Wanted

AT_ONCE = 500  # entries read together
FORMATS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
HEAD = ("number", "id", "at", "who", "actor_kind", "actor_id", "what", "verb", "refused", "label", "reason", "where")
HEAD += ("subject_kind", "subject_id", "data")
# what a spreadsheet takes for the beginning of a formula; in some languages also as wide as an ideograph, and behind a semicolon
RISKY = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n")
BEHIND = re.compile('([;\t\r\n])(?=[ "]*[=+@\uff1d\uff0b\uff0d\uff20-])')


def begin(workspace_id: UUID, asked: Wanted, *, form: str, by: Actor) -> None:
    """Write down that it leaves, before it does. What the filter says is kept as its names only: what was searched for may be a name."""
    told = {"form": form, "entries": trail.count(workspace_id, asked), "narrowed": sorted(asked.as_dict())}
    audit.record(by, "audit_exported", workspace_id=workspace_id, **told)


def pieces(workspace_id: UUID, asked: Wanted, *, form: str) -> Iterator[bytes]:
    """The file, the newest entry first. A page of entries is in memory at a time, and no query stays open between them."""
    written = WRITERS[form]
    if form == "csv":
        yield b"\xef\xbb\xbf" + _line(HEAD)
    before = ""
    while True:
        page = trail.page(workspace_id, asked, before=before, size=AT_ONCE)
        numbers = dict(AuditSeal.objects.filter(entry__in=[each.pk for each in page.entries]).values_list("entry", "number"))
        yield b"".join(written(each, numbers.get(each.entry.pk)) for each in telling.told(page.entries))
        if not page.older:
            return
        before = page.older


async def streamed(of: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The same for a server that serves asynchronously: each piece is made in a thread, and sent before the next is."""
    step = database_sync_to_async(lambda: next(of, None), thread_sensitive=False)
    while (piece := await step()) is not None:
        yield piece


def safe(text: str) -> str:
    """A cell that no spreadsheet runs, wherever it cuts it: a leading apostrophe says that it is text."""
    text = BEHIND.sub(r"\1'", text)
    return f"'{text}" if text.startswith(RISKY) else text


def _as_csv(each: Told, number: int | None) -> bytes:
    entry = each.entry
    cells = (number or "", entry.pk, _iso(each), each.who, entry.actor_kind, entry.actor_id, _what(each), entry.verb, each.refused)
    cells += (each.label, each.reason, each.where, entry.subject_kind, entry.subject_id, orjson.dumps(entry.data).decode())
    return _line(cells)


def _line(cells: tuple[Any, ...]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerow([safe(str(cell)) for cell in cells])
    return out.getvalue().encode()


def _as_json(each: Told, number: int | None) -> bytes:
    return orjson.dumps(as_dict(each, number)) + b"\n"


def as_dict(each: Told, number: int | None = None) -> dict[str, Any]:
    """An entry as the API tells it. `number`: of its seal, null while it waits for one."""
    entry = each.entry
    return {
        "id": str(entry.pk),
        "number": number,
        "at": _iso(each),
        "actor": {"kind": entry.actor_kind, "id": entry.actor_id, "name": each.who},
        "verb": entry.verb,
        "what": each.what,
        "refused": each.refused,
        "times": each.times,
        "label": each.label,
        "reason": each.reason,
        "where": each.where,
        "subject": {"kind": entry.subject_kind, "id": entry.subject_id},
        "break_glass": each.glass,
        "data": entry.data,
    }


def _what(each: Told) -> str:
    return f"Refused: {each.what}" if each.refused else each.what


def _iso(each: Told) -> str:
    return each.at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


WRITERS: dict[str, Callable[[Told, int | None], bytes]] = {"csv": _as_csv, "jsonl": _as_json}
