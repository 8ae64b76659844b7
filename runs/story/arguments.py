"""What the arguments of a call say in a line: those that are short, and of how many things it is."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from runs.story.shapes import Part, Rich, Text
from runs.story.wire import object_of, spoken

_PLURAL = re.compile(r"[A-Za-z][A-Za-z_]{0,30}[^su_\W]s")


def short_arguments(arguments: Text | None) -> Iterator[Rich]:
    """The arguments in a line, if they are few and short."""
    facts = scalars(object_of(arguments), arguments.label if arguments else "")
    if facts and len(facts) <= 3 and all(len(value.text) <= 80 for _, value in facts):
        parts: list[Part] = []
        for name, value in facts:
            parts += [f", {spoken(name).lower()} " if parts else f"{spoken(name)} ", value]
        yield tuple(part for part in parts if part != "")


def amounts(arguments: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Of how many things an action is, as its arguments say: a whole number under a name in the plural, as in `files: 16`."""
    return tuple((spoken(name).lower(), value) for name, value in arguments.items() if type(value) is int and _PLURAL.fullmatch(name))


def scalars(value: Mapping[str, Any], label: str) -> list[tuple[str, Text]]:
    """The texts and numbers of an object, in their order."""
    return [(str(name), Text(str(each), label)) for name, each in value.items() if isinstance(each, str | int | float)]
