"""A statement for a database: its text line by line, each value it is given, and what a dry run found."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from approvals.canonical import CanonicalAction, pointer
from approvals.cards.drawing import apart, attachments, how, reaching, rest, running, sum_of, warns_at
from approvals.cards.parts import Card, Code, Field, Setting

# names under which tools carry a statement and its values
STATEMENT, VALUES = ("statement", "sql", "query"), ("parameters", "params", "values")
_TYPES = {str: "text", bool: "true or false", int: "whole number", float: "number", type(None): "null"}


def draw(action: CanonicalAction, setting: Setting) -> Card:
    """The statement in the open, below it each value by its place or name and whatever else the tool takes."""
    left = dict(action.arguments)
    name = next((each for each in STATEMENT if isinstance(left.get(each), str)), "")
    code = _code(setting, name, left.pop(name)) if name else None
    values = next((each for each in VALUES if isinstance(left.get(each), list | Mapping) and left[each]), "")
    given = _values(setting, values, left.pop(values), "$" if code and "$" in code.value else "?") if values else []
    options = [*given, *rest(setting, left)]
    return Card(
        kind="sql",
        icon="tool",
        heading="" if code else setting.title,
        tool=action.tool,
        fields=(),
        letter=None,
        code=code,
        options=tuple(reaching(action, setting, options)),
        files=attachments(action, setting),
        folded=how(action),
        lines=(running(action),),
        raw=dict(action.arguments),
        unit="statement",
        verb="run",
        facts=sum_of((int(code is not None), "statement"), (len(given), "value")),
    )


def _code(setting: Setting, name: str, text: str) -> Code:
    from approvals import statements  # its parser takes a third of a second to load: only who meets SQL waits for it

    path = pointer("arguments", name)
    lines = statements.lines(text, "" if setting.masked else setting.dialect, plain=setting.masked)
    return Code(path, "The statement", name, text, lines, numbered=not setting.masked, warns=warns_at(setting, path))


def _values(setting: Setting, name: str, given: list[Any] | Mapping[str, Any], mark: str) -> list[Field]:
    """Each value by the sign that stands for it in the statement."""
    signs = [f":{place}" for place in given] if isinstance(given, Mapping) else [f"{mark}{i + 1}" for i in range(len(given))]
    fields = zip(apart(setting, name, given), signs, strict=True)
    return [replace(field, title=sign, typed=_TYPES.get(type(field.value), "")) for field, sign in fields]
