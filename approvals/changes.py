"""What differs between two actions, argument by argument. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from approvals import canonical, cards, edit_form
from approvals.canonical import ABSENT, CanonicalAction, pointer
from approvals.cards import record
from approvals.wordwise import Part, values
from runs.engine.tools import Tool

FIELDS = 40  # of a record; one with more is compared as a whole
_HOW: Mapping[str, str] = {
    "tool": "Tool",
    "tool_schema": "Schema",
    "target": "Target",
    "credential": "Credential",
    "executor": "Run by",
    "nonce": "Nonce",
}


@dataclass(frozen=True)
class Row:
    """One argument, or one field of an argument, before and after, each as parts to draw. `changed` is False where both are the same."""

    title: str
    name: str
    before: tuple[Part, ...]
    after: tuple[Part, ...]
    changed: bool
    path: str = ""  # of an argument or a field of one


@dataclass(frozen=True)
class Changes:
    """What differs between an action and the one that it takes the place of, argument by argument."""

    rows: tuple[Row, ...]

    @property
    def differing(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.changed)

    @property
    def alike(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if not row.changed)

    @property
    def by_path(self) -> dict[str, tuple[Part, ...]]:
        """What differs as it was, by where it stands in the action."""
        return {row.path: row.before for row in self.differing}

    @property
    def changed(self) -> int:
        return len(self.differing)


def between(old: CanonicalAction, new: CanonicalAction, tool: Tool | None) -> Changes:
    """Every argument of both actions and how it is run: what changed first, in the order of the new action."""
    differ = [change.path for change in canonical.diff(old, new)]
    touched = {_top(path) for path in differ} | {_top(path, 4) for path in differ}
    titles = tool.arguments.model_json_schema().get("properties", {}) if tool else {}
    if tool and tool.card == "email":
        titles = {name: {**each, "title": edit_form.LETTER.get(name, each.get("title"))} for name, each in titles.items()}
    given = new.arguments.keys() | old.arguments.keys()
    names = dict.fromkeys((*(name for name in titles if name in given), *sorted(given)))
    rows = [row for name in names for row in _rows(name, str(titles.get(name, {}).get("title") or name), old, new, touched)]
    rows += [_files_row(old, new, touched)] if old.attachments or new.attachments else []
    rows += [_how_row(name, old, new) for name in _HOW if f"/{name}" in touched]
    return Changes(tuple(sorted(rows, key=lambda row: not row.changed)))


def _top(path: str, parts: int = 3) -> str:
    """The argument, or the part beside the arguments, that a path leads into; with 4, the field of an argument."""
    split = path.split("/")
    return "/".join(split[:parts]) if split[1] == "arguments" else f"/{split[1]}"


def _rows(name: str, title: str, old: CanonicalAction, new: CanonicalAction, touched: set[str]) -> Iterator[Row]:
    """One row for an argument; for one that is a record on both sides, one for each of its fields, so that nobody reads JSON for it."""
    before, after = old.arguments.get(name, ABSENT), new.arguments.get(name, ABSENT)
    keys = dict.fromkeys((*after, *before)) if isinstance(before, Mapping) and isinstance(after, Mapping) else {}
    if not 0 < len(keys) <= FIELDS:
        path = pointer("arguments", name)
        yield replace(_row(name, title, before, after, path in touched), path=path)
        return
    for key in keys:
        sides = before.get(key, ABSENT), after.get(key, ABSENT)
        path = pointer("arguments", name, key)
        yield replace(_row(f"{name}.{key}", _field(name, title, _spoken(key)), *sides, path in touched), path=path)


def _field(name: str, title: str, key: str) -> str:
    """A field of a record by its own name; what was read of it before, and a field of anything else, with what it belongs to."""
    named = f"{key[:1].upper()}{key[1:]}"
    return named if name in record.AFTER else f"{named}, as it was read" if name in record.BEFORE else f"{title}: {key}"


def _spoken(key: str) -> str:
    """“billing_address” as people say it; any other name as it is written."""
    return key.replace("_", " ") if re.fullmatch(r"[a-z]+(_[a-z]+)*", key) else key


def _row(name: str, title: str, before: Any, after: Any, changed: bool) -> Row:
    told = cards.said(before, joined=True), cards.said(after, joined=True)
    if changed and (_nothing(before) or _nothing(after)):  # a word for nothing bears no mark: nobody wrote it
        sides = ("none" if _nothing(before) else "del", told[0]), ("none" if _nothing(after) else "ins", told[1])
        return Row(title, name, (sides[0],), (sides[1],), True)
    return _compared(title, name, *told, changed)


def _nothing(value: Any) -> bool:
    return value is ABSENT or value is None or value in ("", [], {})


def _files_row(old: CanonicalAction, new: CanonicalAction, touched: set[str]) -> Row:
    before, after = (", ".join(f"{a.name} ({a.size:,} bytes, {a.commitment[:12]})" for a in each.attachments) for each in (old, new))
    return _compared("Attachments", "attachments", before or "None", after or "None", "/attachments" in touched)


def _how_row(name: str, old: CanonicalAction, new: CanonicalAction) -> Row:
    return _compared(_HOW[name], name, str(getattr(old, name)), str(getattr(new, name)), True)


def _compared(title: str, name: str, before: str, after: str, changed: bool) -> Row:
    if not changed:
        return Row(title, name, (("same", after),), (("same", after),), False)
    return Row(title, name, *values(before, after), True)
