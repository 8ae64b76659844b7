"""How a rendition is laid out on its page: as a table, as code, as text with headings, or as it is.

Layout only: every character of the rendition is there in each of them, but for the commas and quotation marks of a table.
"""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["table", "code", "marked", "text"]
Cell = tuple[str, bool]
ROWS, COLUMNS = 1000, 40  # of a table; what is larger stays text
MEDIA = {
    "text/csv": "CSV",
    "text/tab-separated-values": "table",
    "application/json": "JSON",
    "application/pdf": "PDF",
    "text/markdown": "Markdown",
    "text/plain": "text",
    "text/html": "HTML",
    "message/rfc822": "e-mail",
}
_DELIMITERS = {"text/csv": ",", "text/tab-separated-values": "\t"}
_NUMBER = re.compile(r"[-+−]?(?:[€$£]\s?)?\d[\d., \u00a0\u202f]*(?:\s?(?:%|€|EUR|USD|GBP))?")


@dataclass(frozen=True)
class Sheet:
    """`head` and `rows` are of a table: cells of rendition, each with whether its column is one of numbers."""

    kind: Kind
    head: Sequence[Cell] = ()
    rows: Sequence[Sequence[Cell]] = ()


def sheet(media_type: str, rendition: str) -> Sheet:
    """`rendition` is the redacted text. What does not read as what it is called is text."""
    essence = media_type.partition(";")[0].strip().lower()
    if essence in _DELIMITERS and (table := _table(rendition, _DELIMITERS[essence])):
        return table
    if essence == "application/json" or essence.endswith("+json"):
        return Sheet("code")
    return Sheet("marked" if essence == "text/markdown" else "text")


def media_name(media_type: str) -> str:
    """The name that people have for a media type: PDF, PNG. Empty where there is none."""
    essence = media_type.partition(";")[0].strip().lower()
    if found := MEDIA.get(essence):
        return found
    group, _, name = essence.partition("/")
    return name.upper() if group == "image" and name.isalnum() and len(name) <= 5 else ""


def _table(text: str, delimiter: str) -> Sheet | None:
    """None unless it is a table with a head: every row as wide as the first, which names each column and none twice."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if row]
    except csv.Error:
        return None
    head, *rest = rows or [[]]
    named = len(head) > 1 and all(cell.strip() for cell in head) and len(set(head)) == len(head)
    if not named or not rest or len(rest) > ROWS or len(head) > COLUMNS or any(len(row) != len(head) for row in rest):
        return None
    if any(_NUMBER.fullmatch(cell.strip()) for cell in head):
        return None  # the first row is one like the others
    right = [numbers(column) for column in zip(*rest, strict=True)]
    cells = [list(zip(row, right, strict=True)) for row in (head, *rest)]
    return Sheet("table", cells[0], cells[1:])


def numbers(column: Sequence[str]) -> bool:
    """Whether all that its cells say is numbers or sums."""
    said = [cell.strip() for cell in column if cell.strip()]
    return bool(said) and all(_NUMBER.fullmatch(cell) for cell in said)
