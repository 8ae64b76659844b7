"""What a letter says, in a sentence or two, and what a record holds: where there is no room for all. Works on renditions, and is pure."""

import json
import re
from collections import Counter
from typing import Any

from access import characters
from artifacts.rendition import whole_marks

WRAPPED = 56  # characters; a line that is shorter was ended by who wrote it
NAMED = 40  # characters of a greeting or a name at the end, at most
DEPTH = 4  # how far into a record is counted
COUNTS = 4  # of so many lists it is said how long they are
_NAMES = ("name", "title", "subject")  # whose value says what a record is of
_LIST = re.compile(r"(?:[-•*] |--|\d{1,3}[.)] |Attached:|Written in its HTML)")
_SENTENCE = re.compile(r"(?<=[.!?])[”\"’)]?\s+(?=[^\W_a-z]|[“\"⟦(])")
_ALONE = re.compile(r"(?:[sui]s|series|species)$")  # how words end that are no more than one: status, analysis, address
_LABELLED = re.compile(r"[^\W\d_][\w ]{0,24}: \S")  # a line of a form: “Category: mounts”
_ENDS = (".", "!", "?", ":", ";", "…", "”", '"', ")")


def gist(text: str, most: int) -> str:
    """The first whole sentences of a text, `most` characters of them: without its greeting, and no further than its first list or name.

    An ellipsis stands where a sentence had to be cut, and only there.
    """
    words = _joined(_letter(unwrapped(text).split("\n")))
    if len(words) <= most:
        return words
    kept = ""
    for sentence in _SENTENCE.split(words):
        longer = f"{kept} {sentence}".strip()
        if len(longer) > most:
            break
        kept = longer
    return kept or cut(words, most)


def record(text: str, most: int, *, counted: bool = True) -> str:
    """What a record in JSON is of, and how much it holds: “Brightwater Logistics: 1 contact, 2 payments”. Empty if it is no record.

    Its values stay where they are; only a name of it is said, and that within `most` characters. `counted`: else only that name, if it
    has one.
    """
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(held, dict) or not held:
        return ""
    lists: Counter[str] = Counter()
    fields = _count(held, lists, DEPTH)
    told = [_counted(key, number) for key, number in list(lists.items())[:COUNTS] if number] or [_counted("fields", fields)]
    name = _name(held)
    if not counted and name:
        told = []
    return ": ".join(filter(None, (cut(name, most) if len(name) > most else name, ", ".join(told))))


def _count(held: Any, lists: Counter[str], depth: int) -> int:
    """The plain values of a record, those of the records in it among them; its lists are counted by their names."""
    if not isinstance(held, dict):
        return 1
    if not depth:
        return 0
    fields = 0
    for key, value in held.items():
        if not isinstance(value, list):
            fields += _count(value, lists, depth - 1)
            continue
        lists[key] += len(value)
        for each in value:
            if isinstance(each, dict):
                _count(each, lists, depth - 1)
    return fields


def _name(held: dict[str, Any]) -> str:
    """Its own name, or that of the one record in it. One in which something is hidden is none."""
    inner = [value for value in held.values() if isinstance(value, dict)]
    for each in (held, *(inner if len(inner) == 1 else ())):
        for key in _NAMES:
            value = each.get(key)
            if isinstance(value, str) and value.strip() and "⟦" not in value:
                return " ".join(value.split())
    return ""


def is_plural(name: str) -> bool:
    """Whether a field of this name seems to hold several: attachments, but not status."""
    return name.endswith("s") and not _ALONE.search(name)


def _counted(key: str, number: int) -> str:
    word = key.replace("_", " ").lower()[:NAMED]
    if number == 1 and is_plural(word):
        word = re.sub(r"(?<!ser)(?<!spec)ies$", "y", word) if word.endswith("ies") else re.sub(r"(?<![sui])s$", "", word)
    return f"{number} {word}"


def unwrapped(text: str) -> str:
    """Its lines as somebody wrote them: where a mail program broke a long one, it goes on. Empty ones are left out."""
    lines: list[str] = []
    goes_on = False
    for line in (" ".join(each.split()) for each in text.split("\n")):
        if line and goes_on:
            lines[-1] += f" {line}"
        elif line:
            lines.append(line)
        goes_on = len(line) >= WRAPPED
    return "\n".join(lines)


def _letter(lines: list[str]) -> list[str]:
    """Its lines between the greeting and what comes after the first thing said."""
    if len(lines) > 1 and len(lines[0]) <= NAMED and lines[0].endswith((",", "!")):
        lines = lines[1:]
    until = next((at for at, line in enumerate(lines) if at and (_LIST.match(line) or _is_name(line))), len(lines))
    return lines[:until]


def _is_name(line: str) -> bool:
    return len(line) <= NAMED and not line.endswith(_ENDS) and not _LABELLED.match(line)


def _joined(lines: list[str]) -> str:
    """One after the other; between two lines of a form is seen where the first ended."""
    words = ""
    for line in lines:
        apart = " / " if _LABELLED.match(line) and words and not words.endswith(_ENDS) else " "
        words += (apart if words else "") + line
    return words


def cut(words: str, most: int) -> str:
    """At a space, and never within the mark of something hidden."""
    kept = whole_marks(words[: characters.whole(words, most)].rsplit(" ", 1)[0])
    return kept.rstrip(" ,.;:–-") + "…"
