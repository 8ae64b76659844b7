"""What an attached file is and how it begins: rows, text, or a picture that is made when somebody looks. What is none of these is named
and can be downloaded.

Who may decide is told from the bytes what a file is, by what they are and not by what they are called, and sees it from them where nothing
in it is hidden. What holds something that is hidden, or is no text, opens by a recorded reveal; everybody else sees the rendition.
"""

import csv
import hashlib
import io
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest
from uuid import UUID

from approvals import sniffing
from approvals.cards import Preview
from approvals.models import ProposedAction
from artifacts import preview, vault
from artifacts.charsets import decode
from artifacts.models import Label, Payload
from artifacts.sheets import numbers

TEXTS = ("text/", "message/", "application/json", "application/xml", "application/x-ndjson")
READ = 1024 * 1024  # bytes of a text; a larger one is downloaded to be looked at
OPENED = 32 * 1024 * 1024  # bytes of all files that are opened for one card
ROWS, CELLS, LINES, CHARS = 20, 12, 60, 6000
Row = tuple[str, str, int, str | None, dict[str, int]]  # label, media type, size, rendition, what is hidden in it

KINDS: Mapping[str, str] = {
    "text": "text",
    "script": "a script",
    "empty": "nothing, it is empty",
    "unknown": "of a kind that Handrail does not know",
    "pdf": "PDF",
    **{kind: f"{kind.upper()} image" for kind in ("png", "jpeg", "gif", "webp", "bmp", "tiff")},
    **{kind: f"{kind} archive" for kind in ("rar", "7z", "gzip", "bzip2", "xz", "zstd", "cab", "tar")},
    "zip": "ZIP archive, or a document that is one",
    "old-office": "old Office document",
    "rtf": "RTF document",
    "windows-program": "Windows program",
    "unix-program": "Unix program",
    "mac-program": "Mac program",
    "java-program": "Java program",
    "web-program": "WebAssembly program",
    "windows-shortcut": "Windows shortcut",
    "windows-help": "Windows help file",
    "package": "package that installs programs",
    "disk-image": "disk image",
    "sqlite": "SQLite database",
    **dict.fromkeys(("mp4", "mp3", "ogg", "wav"), "sound or film"),
}


def of(action: ProposedAction, *, full: bool) -> Mapping[int, tuple[str, Preview | None]]:
    """Label and preview of each attachment by its index. `full`: from the bytes; else from the rendition. Two queries at most."""
    if not action.attachments:
        return {}
    ids = [UUID(pk) for pk in action.attachments]
    fields = ("id", "label", "media_type", "size", "rendition", "findings")
    rows: dict[UUID, Row] = {row[0]: row[1:] for row in Payload.objects.filter(pk__in=ids).values_list(*fields)}
    contents = _opened(_within_reach(ids, rows)) if full else {}
    return {i: (rows[pk][0], _preview(pk, rows[pk], contents) if full else _rendered(rows[pk])) for i, pk in enumerate(ids) if pk in rows}


def beginning(media_type: str, text: str) -> Preview:
    """The first rows of CSV, the first lines of anything else; JSON indented."""
    kind = media_type.split(";")[0].strip().lower()
    if kind in ("text/csv", "text/tab-separated-values"):
        table = _table(text, "\t" if "tab" in kind else _delimiter(text))
        if table:
            return table
    if kind == "application/json" or kind.endswith("+json"):
        return (
            _lines(indented(text), "Indented here; the file has it on other lines.") if _is_json(text) else _lines(text, "It is not JSON.")
        )
    return _lines(text)


# From the bytes


def _within_reach(ids: list[UUID], rows: Mapping[UUID, Row]) -> list[UUID]:
    """Which files are opened for the card: the first ones, up to OPENED. Nothing secret is."""
    reach, total = [], 0
    for pk in dict.fromkeys(ids):
        if pk in rows and rows[pk][0] != Label.SECRET and rows[pk][2] <= vault.MAX_BYTES and total + rows[pk][2] <= OPENED:
            reach.append(pk)
            total += rows[pk][2]
    return reach


def _opened(ids: list[UUID]) -> dict[UUID, bytes | None]:
    """The bytes; None of what can't be read any more."""
    if not ids:
        return {}
    return {payload.pk: vault.opened(payload) for payload in Payload.objects.select_related("key").filter(pk__in=ids, erased_at=None)}


def _preview(pk: UUID, row: Row, contents: Mapping[UUID, bytes | None]) -> Preview:
    label, media_type, size, rendition, findings = row
    if rendition is None:
        return Preview(withheld="Erased.")
    if label == Label.SECRET:
        return Preview(withheld="Secret: not shown here.")
    if pk not in contents:
        return Preview(withheld="Too large, with the others, to be looked into here. Download it to look at it.")
    content = contents[pk]
    if content is None:
        return Preview(withheld="Its stored bytes can’t be read. This can’t be approved.")
    return _looked_into(row, content, hides=bool(findings))


def _looked_into(row: Row, content: bytes, *, hides: bool) -> Preview:
    _, media_type, size, *_ = row
    kind = sniffing.sniff(content).kind
    told = {"kind": KINDS.get(kind, kind), "sha256": hashlib.sha256(content).hexdigest()}
    if kind in preview.KINDS:
        opens = (
            "Open it to see it as a picture." if hides else "No preview: it is called something else than it is. Download it to look at it."
        )
        return Preview(withheld=opens, **told)
    if kind not in ("text", "script", "empty"):
        return Preview(withheld="No preview: by its content it is no text, image or PDF.", **told)
    if hides:
        return replace(_rendered(row), **told)
    if size > READ:
        return Preview(withheld="Too large for a preview. Download it to look at it.", **told)
    charset = re.search(r"charset=[\"']?([\w.:-]{1,40})", media_type, re.IGNORECASE)
    begins = beginning(media_type, decode(content, charset[1] if charset else "").text)
    return replace(begins, exact=True, **told)


def _rendered(row: Row) -> Preview:
    """The same for who may not see the bytes."""
    label, media_type, size, rendition, _ = row
    if rendition is None:
        return Preview(withheld="Erased.")
    if label == Label.SECRET:
        return Preview(withheld="Secret: not shown here.")
    if not media_type.startswith(TEXTS):
        return Preview(withheld=f"No preview of {media_type}.")
    return beginning(media_type, rendition) if size <= READ else Preview(withheld="Too large for a preview.")


# Text


def _lines(text: str, note: str = "") -> Preview:
    lines = text[:CHARS].splitlines()
    shown = "\n".join(lines[:LINES])
    left = text.count("\n") + 1 - min(len(lines), LINES) if len(shown) < len(text.rstrip()) else 0
    more = f"{left:,} more line{'' if left == 1 else 's'}." if left > 0 else "There is more." if len(shown) < len(text.rstrip()) else ""
    return Preview(text=shown, more=f"{note} {more}".strip())


def _delimiter(text: str) -> str:
    first = text.partition("\n")[0]
    return ";" if ";" in first and "," not in first else ","


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
    head, *shown = [tuple(row) for row in rows[: ROWS + 1]]
    right = tuple(numbers(column) for column in zip_longest(*shown, fillvalue=""))
    return Preview(head=head, rows=tuple(shown), more=more, right=right)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


_PIECE = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]|[^\s"{}\[\],:]+')


def indented(text: str) -> str:
    """JSON with a line for each value. Its texts, numbers and keys stay as they are spelled, also a key that stands twice."""
    parts: list[str] = []
    depth, before = 0, ""
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece in "}]":
            depth -= 1
        if (before in ("{", "[") and piece not in "}]") or before == "," or (piece in "}]" and before not in ("{", "[")):
            parts.append("\n" + "  " * depth)
        parts.append(": " if piece == ":" else piece)
        if piece in "{[":
            depth += 1
        before = piece
    return "".join(parts)
