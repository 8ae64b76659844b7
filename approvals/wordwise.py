"""What differs between two texts, word by word. Pure."""

from difflib import SequenceMatcher
from re import compile as pattern
from typing import Literal

from runs.story.aligning import shared

Kind = Literal["same", "del", "ins", "gap", "none"]  # gap: line ends amid what differs; none: there is nothing, and the text says so
Part = tuple[Kind, str]
SPOKEN = pattern(r"\w+(?:[^\w\s⟦⟧]{1,3}\w+)*")  # “81-339”, “1,284.00” and an address are one word each
WORDS = pattern(rf"\s+|⟦[^⟧]*⟧|{SPOKEN.pattern}|[^\w\s]")  # what is hidden is one word, so that no half of its mark is a difference
LINE_ENDS = pattern(r"(\s*\n\s*)")
ALIGNED = 400  # words between what begins and what ends the same; more are shown whole, before and after: aligning takes cubic time


def words(before: str, after: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Two texts as parts: what both have, what only the first has, what only the second has."""
    old, new = WORDS.findall(before), WORDS.findall(after)
    first = shared(old, new)
    last = shared(old[first:][::-1], new[first:][::-1])
    head, tail = "".join(old[:first]), "".join(old[len(old) - last :])
    left, right = _aligned(old[first : len(old) - last], new[first : len(new) - last])
    return _framed(head, left, tail), _framed(head, right, tail)


def values(before: str, after: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Two values on a line each, as parts: word by word where most words stay, else the one whole and the other whole."""
    left, right = words(before, after)
    if "\n" in before + after or 2 * _count(left, "same") > max(_count(left), _count(right)):
        return _closed(left), _closed(right)
    return (("del", before),), (("ins", after),)


def _count(parts: tuple[Part, ...], only: str = "") -> int:
    """How many words there are, signs and spaces aside."""
    return sum(len(SPOKEN.findall(text)) for kind, text in parts if not only or kind == only)


def _closed(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """A space or a sign between two words that both changed changed with them: it is easier to read so."""
    found: list[Part] = []
    for i, (kind, text) in enumerate(parts):
        around = {parts[j][0] for j in (i - 1, i + 1) if 0 <= j < len(parts)}
        inner = kind == "same" and not SPOKEN.search(text) and 0 < i < len(parts) - 1 and len(around) == 1
        kind = around.pop() if inner else kind
        if found and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1] + text)
        else:
            found.append((kind, text))
    return tuple(found)


def _aligned(old: list[str], new: list[str]) -> tuple[list[Part], list[Part]]:
    left: list[Part] = []
    right: list[Part] = []
    few = len(old) <= ALIGNED and len(new) <= ALIGNED
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if few else [("replace", 0, len(old), 0, len(new))]
    for kind, a, b, c, d in steps:
        if kind == "equal":
            left.append(("same", "".join(old[a:b])))
            right.append(("same", "".join(new[c:d])))
            continue
        if b > a:
            left += _marked("del", "".join(old[a:b]))
        if d > c:
            right += _marked("ins", "".join(new[c:d]))
    return left, right


def _marked(kind: Kind, text: str) -> list[Part]:
    """What differs, without its empty lines: a mark on one is a speck. Where there is nothing else, they are all there is to mark."""
    if not text.strip():
        return [(kind, text)]
    return [("gap" if i % 2 else kind, piece) for i, piece in enumerate(LINE_ENDS.split(text)) if piece]


def _framed(head: str, parts: list[Part], tail: str) -> tuple[Part, ...]:
    """The parts with what both texts begin and end with, joined to a part that is the same where they meet."""
    joined: list[Part] = []
    for kind, text in [("same", head), *parts, ("same", tail)]:
        if not text:
            continue
        if joined and joined[-1][0] == kind == "same":
            joined[-1] = ("same", joined[-1][1] + text)
        else:
            joined.append((kind, text))
    return tuple(joined)
