"""The beginning of an attached file, as rows or text. What cannot be shown as text is named and can be downloaded."""

import csv
import io
from collections.abc import Mapping
from contextlib import suppress
from uuid import UUID

from cryptography.exceptions import InvalidTag

from approvals.cards import Preview
from approvals.models import ProposedAction
from artifacts import vault
from artifacts.models import Label, Payload

TEXTS = ("text/", "message/", "application/json", "application/xml", "application/x-ndjson")
READ = 256 * 1024  # bytes; a larger file is downloaded to be looked at
ROWS, CELLS, LINES, CHARS = 20, 12, 60, 6000


def of(action: ProposedAction, *, full: bool) -> Mapping[int, tuple[str, Preview | None]]:
    """Label and preview of each attachment by its index. `full`: from the bytes; else from the rendition. Two queries at most."""
    if not action.attachments:
        return {}
    ids = [UUID(pk) for pk in action.attachments]
    fields = ("id", "label", "media_type", "size", "rendition")
    rows = {row[0]: row[1:] for row in Payload.objects.filter(pk__in=ids).values_list(*fields)}
    opened = _opened([pk for pk in ids if pk in rows and full and _readable(*rows[pk][:3])])
    return {i: (rows[pk][0], _preview(pk, rows[pk], opened, full)) for i, pk in enumerate(ids) if pk in rows}


def beginning(media_type: str, text: str) -> Preview:
    """The first rows of CSV, the first lines of anything else."""
    if media_type.split(";")[0].strip() in ("text/csv", "text/tab-separated-values"):
        table = _table(text, "\t" if "tab" in media_type else ",")
        if table:
            return table
    lines = text[:CHARS].splitlines()
    shown = "\n".join(lines[:LINES])
    left = text.count("\n") + 1 - min(len(lines), LINES) if len(shown) < len(text.rstrip()) else 0
    more = f"{left:,} more lines." if left > 0 else "There is more." if len(shown) < len(text.rstrip()) else ""
    return Preview(text=shown, more=more)


def _readable(label: str, media_type: str, size: int) -> bool:
    return label != Label.SECRET and media_type.startswith(TEXTS) and size <= READ


def _opened(ids: list[UUID]) -> dict[UUID, str]:
    if not ids:
        return {}
    found = {}
    for payload in Payload.objects.select_related("key").filter(pk__in=ids, erased_at=None):
        with suppress(InvalidTag):
            found[payload.pk] = vault.open_bytes(payload).decode("utf-8", "replace")
    return found


def _preview(pk: UUID, row: tuple[str, str, int, str | None], opened: Mapping[UUID, str], full: bool) -> Preview:
    label, media_type, size, rendition = row
    if rendition is None:
        return Preview(withheld="Erased.")
    if label == Label.SECRET:
        return Preview(withheld="Secret: not shown here.")
    if not media_type.startswith(TEXTS):
        return Preview(withheld=f"No preview of {media_type}." + (" Download it to look at it." if full else ""))
    if size > READ:
        return Preview(withheld="Too large for a preview." + (" Download it to look at it." if full else ""))
    if full and pk not in opened:
        return Preview(withheld="Its stored bytes can’t be read. This can’t be approved.")
    return beginning(media_type, opened[pk] if full else rendition)


def _table(text: str, delimiter: str) -> Preview | None:
    try:
        rows = list(csv.reader(io.StringIO(text[: CHARS * 4]), delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    rows = [row for row in rows if row]
    if len(rows) < 2 or max(map(len, rows)) > CELLS:
        return None
    total = text.count("\n") + (not text.endswith("\n"))
    left = max(total - 1 - min(len(rows) - 1, ROWS), 0)
    more = f"{left:,} more row{'' if left == 1 else 's'}." if left else ""
    return Preview(head=tuple(rows[0]), rows=tuple(tuple(row) for row in rows[1 : ROWS + 1]), more=more)
