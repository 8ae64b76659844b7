"""A change of a record: each field as it is and as it would be, and the version that it was read at."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from approvals.canonical import ABSENT, CanonicalAction, canonical_json, pointer
from approvals.cards.drawing import attachments, field_of, reaching, rest, run_and_how, said, shape, sum_of, warns_at
from approvals.cards.parts import Card, Field, Row, Setting
from approvals.wordwise import Part, values

# names under which tools carry the parts of a change
RECORD = ("record", "record_id", "id")
VERSION = ("version", "if_version")
BEFORE, AFTER = ("before",), ("after", "changes")


def draw(action: CanonicalAction, setting: Setting) -> Card:
    """The fields that change, before and after; what else is signed below them. What stays is folded: it is looked up, not signed."""
    left = dict(action.arguments)
    names = tuple(next((n for n in known if isinstance(left.get(n), Mapping)), "") for known in (BEFORE, AFTER))
    before, after = (left.pop(name) if name else {} for name in names)
    rows = _rows(setting, names, before, after)
    left |= {name: {} for name, value in zip(names, (before, after), strict=True) if name and not value and not rows}
    first = [name for known in (RECORD, VERSION) for name in known if name in left]
    fields = [*(field_of(setting, name, left.pop(name)) for name in first), *rest(setting, left)]
    version = next((field.value for field in fields if field.name in VERSION), None)
    # what the heading says is not said again below, unless there is something to be said about it
    condition = next((each for each in fields if each.name in VERSION and each.shape == "number" and not each.warns), None)
    record = next((each for each in fields if each.name in RECORD), None)
    named, heading = _heading(setting, record)
    above = [each for each in (condition, record if heading and record and not record.warns else None) if each]
    return Card(
        kind="record",
        icon="list",
        heading=heading or setting.title,
        names=named,
        tool=action.tool,
        aside="" if version is None else f"Only if still at version {version}",
        said=tuple(above),
        rows=rows,
        fields=tuple(reaching(action, setting, [each for each in fields if each not in above])),
        letter=None,
        files=attachments(action, setting),
        **run_and_how(action),
        raw=dict(action.arguments),
        unit="change",
        verb="run",
        facts=sum_of((sum(row.changed for row in rows), "field")),
        stays=_stays(setting, {row.name for row in rows}),
    )


def told_apart(card: Card, changed: Mapping[str, tuple[Part, ...]]) -> Card | None:
    """The card with what an earlier action had in the place of what changed, by the pointers of these; None if one has no place in it."""
    places = {part.path for part in (*card.rows, *card.fields)}
    if not card.rows or not changed.keys() <= places:
        return None
    rows = tuple(replace(row, was=changed.get(row.path, ())) for row in card.rows)
    return replace(card, rows=rows, fields=tuple(replace(field, was=changed.get(field.path, ())) for field in card.fields))


def _heading(setting: Setting, record: Field | None) -> tuple[str, str]:
    """Whose record it is, “Customer 00417, Halden Marine”, and as what it was looked up; nothing if more or less than its name was."""
    facts = list(setting.looked.facts.items()) if setting.looked else []
    if record is None or not isinstance(record.value, str) or len(facts) != 1:
        return "", ""
    (kind, name), *_ = facts
    return kind, f"{kind} {record.value}, {name}"


def _rows(setting: Setting, names: tuple[str, ...], before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Row, ...]:
    """One for each field that either side names. The first stands for both arguments, so that both are accounted for."""
    both = tuple(pointer("arguments", name) for name in names if name)
    rows = []
    for key in dict.fromkeys((*after, *before)):
        places = tuple(pointer("arguments", name, key) for name in names if name)
        old, new = before.get(key, ABSENT), after.get(key, ABSENT)
        # without a `before` the row says what was found, and the page that this is not signed
        shown = _found(setting, key) if old is ABSENT and not names[0] else old
        left, right, changed = _compared(shown, new, masked=setting.masked)
        covers = (*places, *(both if not rows else ()))
        value = (old, new)
        rows.append(Row(places[-1], spoken(key), key, value, left, right, changed, warns_at(setting, *places), covers))
    return tuple(rows)


def _found(setting: Setting, key: str) -> Any:
    record = setting.looked.record if setting.looked else None
    return record[key] if record and key in record else ABSENT


def spoken(key: str) -> str:
    """“billing_address” as people write it."""
    spaced = key.replace("_", " ").strip()
    return spaced[:1].upper() + spaced[1:] if key.isascii() and key.replace("_", "").isalnum() else ""


def _compared(old: Any, new: Any, *, masked: bool) -> tuple[tuple[Part, ...], tuple[Part, ...], bool]:
    before, after = said(old), said(new)
    if old is not ABSENT and new is not ABSENT and canonical_json(old) == canonical_json(new):
        return (("same", before),), (("same", after),), False
    if isinstance(old, str) and isinstance(new, str) and old and new and not masked:
        return *values(before, after), True
    gone = (("none" if _is_empty(old) else "del", before),)
    return gone, (("none" if _is_empty(new) else "ins", after),), True


def _is_empty(value: Any) -> bool:
    return value is ABSENT or shape(value) == "empty"


def _stays(setting: Setting, touched: set[str]) -> tuple[tuple[str, Any], ...]:
    record = setting.looked.record if setting.looked else None
    return tuple((spoken(key) or key, said(value)) for key, value in (record or {}).items() if key not in touched)
