"""The form in which an action's arguments are edited, made from its tool's schema. Pure: no database, no vault.

Each argument is one field. What is typed becomes a JSON value again by the field's kind; text that can't become one is refused with the
field's name, and stands in the form as it was typed.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import orjson

from approvals import canonical, cards
from approvals.cards import email
from runs.engine.tools import Tool

Kind = Literal["line", "text", "lines", "number", "yesno", "choice", "json"]
PREFIX = "argument."
# what a letter's parts are called, whatever its tool calls them
LETTER: Mapping[str, str] = {
    **dict.fromkeys(email.FROM, "From"),
    **dict.fromkeys(email.CC, "Cc"),
    **dict.fromkeys(email.BCC, "Bcc"),
    **dict.fromkeys(email.REPLY_TO, "Reply-To"),
    **dict.fromkeys(email.BODY, "Message"),
    **dict.fromkeys(email.HTML, "HTML"),
    **email.HEADERS,
}
PARTS = [name for names in (email.TO, email.CC, email.BCC, email.REPLY_TO, email.SUBJECT, email.BODY, email.HTML) for name in names]
LONG = 90  # characters from which on a string gets more than one line


@dataclass(frozen=True)
class Field:
    """One argument: how it is asked for, and what stands there now, as text."""

    name: str
    title: str
    kind: Kind
    text: str
    value: Any = None  # as it was proposed; what nobody changed is that, to the byte
    hint: str = ""
    choices: tuple[str, ...] = ()
    fixed: bool = False
    changed: bool = False
    error: str = ""
    empty: str = ""  # what is there while nothing is
    aside: bool = False  # stands folded until somebody wants it: what a letter has besides its own parts, and HTML that it has not

    @property
    def input_name(self) -> str:
        return PREFIX + self.name

    @property
    def is_code(self) -> bool:
        return self.kind == "json" or self.name in email.HTML

    @property
    def wide(self) -> bool:
        copies = self.kind == "lines" and self.name in email.CC + email.BCC  # side by side
        return self.name in email.SUBJECT or (self.kind in ("text", "json", "lines") and not copies)

    @property
    def rows(self) -> int:
        return min(max(self.text.count("\n") + 1, 1 if self.kind == "lines" else 2), 16)


def fields(tool: Tool, arguments: Mapping[str, Any]) -> tuple[Field, ...]:
    """A field for each argument that the tool takes, with the values of `arguments`."""
    schema = tool.arguments.model_json_schema()
    found = [
        _field(name, resolved(found, schema), arguments.get(name, found.get("default")), name in tool.fixed)
        for name, found in schema.get("properties", {}).items()
    ]
    return tuple(sorted(map(_of_a_letter, found), key=_place) if tool.card == "email" else found)


def _of_a_letter(field: Field) -> Field:
    """A part of an e-mail as letters name it. Its HTML has lines, however short it is."""
    kind: Kind = "text" if field.kind == "line" and field.name in (*email.BODY, *email.HTML) else field.kind
    empty = "Nobody" if field.kind == "lines" and field.name in (*email.TO, *email.CC, *email.BCC) else ""
    aside = field.name not in PARTS or (field.name in email.HTML and not field.text)
    return replace(field, title=LETTER.get(field.name, field.title), kind=kind, empty=empty, aside=aside)


def _place(field: Field) -> int:
    """Where a part of an e-mail stands: as on its card, then whatever else, then what the tool fills in."""
    return len(PARTS) + 1 if field.fixed else PARTS.index(field.name) if field.name in PARTS else len(PARTS)


def read(before: tuple[Field, ...], posted: Mapping[str, str]) -> tuple[tuple[Field, ...], dict[str, Any]]:
    """What was typed: the fields as they stand now, and the arguments. The errors are in the fields; then the arguments are empty."""
    typed = tuple(_typed(field, posted) for field in before)
    return typed, {} if any(field.error for field in typed) else {field.name: _value(field) for field in typed}


def marked(typed: tuple[Field, ...], found: Iterable[str], words: str) -> tuple[Field, ...]:
    """The fields, and at each that names one of what was found, these words and what it is."""
    named = {field.name: [each for each in found if each.casefold() in field.text.casefold()] for field in typed if not field.fixed}
    return tuple(replace(field, error=f"{words}: {', '.join(named[field.name])}") if named.get(field.name) else field for field in typed)


def _field(name: str, schema: Mapping[str, Any], value: Any, fixed: bool) -> Field:
    kind, choices = _kind(schema, value), tuple(map(str, schema.get("enum", ())))
    hints = {"lines": "one on each line", "json": "JSON", "text": "", "line": ""}
    return Field(name, str(schema.get("title") or name), kind, _as_text(kind, value), value, hints.get(kind, ""), choices, fixed)


def resolved(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """A property's schema with its reference followed."""
    reference = schema.get("$ref", "")
    return whole.get("$defs", {}).get(reference.rpartition("/")[2], schema) if reference else schema


def _kind(schema: Mapping[str, Any], value: Any) -> Kind:
    """By the schema, and by the value where the schema allows several: what fits neither is edited as JSON."""
    kind = schema.get("type")
    if "enum" in schema and all(isinstance(each, str) for each in schema["enum"]):
        return "choice"
    if kind == "string" and isinstance(value, str):
        return "text" if "\n" in value or len(value) > LONG else "line"
    if kind == "array" and isinstance(value, list) and schema.get("items", {}).get("type") == "string":
        return "lines" if not any("\n" in each for each in value) else "json"
    if kind in ("integer", "number") and not isinstance(value, bool) and isinstance(value, int | float):
        return "number"
    return "yesno" if kind == "boolean" and isinstance(value, bool) else "json"


def _as_text(kind: Kind, value: Any) -> str:
    if kind in ("line", "text", "choice"):
        return str(value)
    if kind == "lines":
        return "\n".join(value)
    return cards.pretty(value) if kind == "json" else orjson.dumps(value).decode()


def _as_a_browser(text: str) -> str:
    """What a form makes of a text that nobody touched: its line ends become one kind, and what can’t be in a page is replaced."""
    return re.sub(r"\r\n|\r", "\n", text).replace("\0", "\ufffd")


def _typed(field: Field, posted: Mapping[str, str]) -> Field:
    if field.fixed:
        return field
    text = _as_a_browser(posted.get(field.input_name, "false" if field.kind == "yesno" else field.text))
    now = replace(field, text=text, changed=text != _as_a_browser(field.text))
    try:
        _value(now)
    except ValueError:
        words = {"number": "Write a number.", "json": "This is not JSON.", "choice": "Choose one of these."}
        return replace(now, error=words.get(field.kind, "This can’t be read."))
    return now


def _value(field: Field) -> Any:
    """The JSON value of what stands in the field. ValueError if it is none."""
    if not field.changed:
        return field.value
    match field.kind:
        case "line" | "text":
            return field.text.replace("\n", "\r\n") if "\r\n" in field.value else field.text
        case "lines":
            return [line for line in (each.strip() for each in field.text.split("\n")) if line]
        case "yesno":
            return field.text == "true"
        case "choice":
            return _one_of(field)
        case "number":
            return _number(field.text)
        case _:
            return canonical.parse_json(field.text.strip() or "null")


def _one_of(field: Field) -> str:
    if field.text not in field.choices:
        raise ValueError(field.text)
    return field.text


def _number(text: str) -> int | float:
    value = canonical.parse_json(text.strip() or "null")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(text)
    return value
