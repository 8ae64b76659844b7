"""A line of the log as it comes over the wire, read without trust in what it holds: a missing field is empty, never an error."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from runs.story.shapes import Text, Who

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Line:
    """One event. `data` is the event's own; `texts` what was written with it, by role."""

    seq: int
    type: str
    at: datetime
    who: Who
    data: Mapping[str, Any]
    texts: Mapping[str, Text]
    hash: str = ""

    def text(self, role: str) -> Text | None:
        return self.texts.get(role)

    def word(self, name: str) -> str:
        """A text or enum of the data, or ""."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""

    def count(self, name: str, default: int = 0) -> int:
        value = self.data.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.data.get(name)
        return value if isinstance(value, bool) else default

    def moment(self, name: str) -> datetime | None:
        return moment(self.data.get(name))

    def seqs(self, name: str) -> tuple[int, ...]:
        value = self.data.get(name)
        return tuple(seq for seq in value if isinstance(seq, int)) if isinstance(value, list | tuple) else ()


def read(line: Mapping[str, Any]) -> Line:
    """A parsed JSON line of `runs.stream` as a `Line`."""
    body = line.get("body") or {}
    actor = body.get("actor") or {}
    texts = {role: _text(given) for role, given in (line.get("texts") or {}).items()}
    return Line(
        seq=int(line["seq"]),
        type=str(body.get("type") or ""),
        at=moment(body.get("at")) or EPOCH,
        who=Who(str(actor.get("kind") or "system"), str(actor.get("id") or "")),
        data=body.get("data") or {},
        texts=texts,
        hash=str(line.get("hash") or ""),
    )


def moment(value: Any) -> datetime | None:
    """A time of the log, aware; None if it is none."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def object_of(text: Text | None) -> dict[str, Any]:
    """The JSON object that a text is; an empty one if it is none, or was erased."""
    if text is None or text.erased or not text.text.startswith("{"):
        return {}
    try:
        value = orjson.loads(text.text)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _text(given: Mapping[str, Any]) -> Text:
    return Text(
        text=str(given.get("text") or ""),
        label=str(given.get("label") or ""),
        media_type=str(given.get("media_type") or "text/plain"),
        size=int(given.get("size") or 0),
        hidden=dict(given.get("hidden") or {}),
        erased_at=str(given.get("erased_at") or ""),
        erased_by=str(given.get("erased_by") or ""),
    )


def spoken(name: str) -> str:
    """ticket_id → Ticket id."""
    words = name.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]
