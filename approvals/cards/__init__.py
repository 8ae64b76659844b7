"""What a reviewer puts their name to, laid out for its kind. Pure: an action in, a card out; no query, no clock, no HTML.

A card never chooses what to leave out. It takes the arguments it knows how to draw, and `rest` draws whatever it did not take;
`covered` and `pointers` let a test hold every card to that. A tool names its card; one that names none, or an unknown one, has the
generic card. The names under which each kind looks for its parts stand in its module.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from approvals.canonical import CanonicalAction, pointer
from approvals.cards import command, email, generic, http, payment, record, sql
from approvals.cards.drawing import empty_word, pretty, said, shape, sum_of
from approvals.cards.parts import Address, Attached, Card, Field, Line, Paid, Preview, Setting, Warn

__all__ = [
    "KINDS",
    "Address",
    "Attached",
    "Card",
    "Field",
    "Line",
    "Paid",
    "Preview",
    "Setting",
    "Warn",
    "card",
    "covered",
    "empty_word",
    "pointers",
    "pretty",
    "said",
    "shape",
    "sum_of",
]

KINDS: Mapping[str, Callable[[CanonicalAction, Setting], Card]] = {
    "email": email.draw,
    "record": record.draw,
    "payment": payment.draw,
    "sql": sql.draw,
    "http": http.draw,
    "command": command.draw,
}


def card(action: CanonicalAction, setting: Setting) -> Card:
    """The card of an action. An unknown kind is drawn by the generic one: nothing is hidden for want of a drawing."""
    drawn = KINDS.get(setting.kind, generic.draw)(action, setting)
    drawn = replace(drawn, looked=setting.looked)
    placed = {warn for part in drawn.parts for warn in _warns_of(part)}
    return replace(drawn, warns=tuple(warn for warn in setting.warns if warn not in placed))


def pointers(action: CanonicalAction) -> list[str]:
    """Every part of an action that is signed, as pointers: each argument, recipient and attachment, and how it is run."""
    return [
        *(pointer("arguments", name) for name in action.arguments),
        *(pointer("recipients", i) for i in range(len(action.recipients))),
        *(pointer("attachments", i) for i in range(len(action.attachments))),
        *(f"/{name}" for name in ("tool", "tool_schema", "target", "credential", "executor", "nonce")),
    ]


def covered(drawn: Card) -> set[str]:
    """The pointers that a card shows or folds."""
    found: set[str] = set()
    for part in drawn.parts:
        found.add(part.path)
        found.update(getattr(part, "covers", ()))
    return found


def _warns_of(part: Any) -> Iterable[Warn]:
    yield from getattr(part, "warns", ())
    for address in getattr(part, "addresses", ()):
        yield from address.warns
