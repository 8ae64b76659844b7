"""What differs between two texts, word by word. Pure."""

from re import compile as pattern
from typing import Literal

from runs.story.aligning import opcodes

Kind = Literal["same", "del", "ins", "gap", "none"]  # gap: line ends amid what differs; none: there is nothing, and the text says so
Part = tuple[Kind, str]
SPOKEN = pattern(r"\w+(?:[^\w\s⟦⟧]{1,3}\w+)*")  # “81-339”, “1,284.00” and an address are one word each
WORDS = pattern(rf"\s+|⟦[^⟧]*⟧|{SPOKEN.pattern}|[^\w\s]")  # what is hidden is one word, so that no half of its mark is a difference
LINE_ENDS = pattern(r"(\s*\n\s*)")
ALIGNED = 400  # words, signs and spaces between what begins and what ends the same; more are shown whole, before and after


def words(before: str, after: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Two texts as parts: what both have, what only the first has, what only the second has."""
    old, new = WORDS.findall(before), WORDS.findall(after)
    left: list[Part] = []
    right: list[Part] = []
    for kind, a, b, c, d in opcodes(old, new, ALIGNED, blanks=True):
        if kind == "equal":
            left.append(("same", "".join(old[a:b])))
            right.append(("same", "".join(new[c:d])))
            continue
        if b > a:
            left += _marked("del", "".join(old[a:b]))
        if d > c:
            right += _marked("ins", "".join(new[c:d]))
    return _joined(left), _joined(right)


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


def _marked(kind: Kind, text: str) -> list[Part]:
    """What differs, without its empty lines: a mark on one is a speck. Where there is nothing else, they are all there is to mark."""
    if not text.strip():
        return [(kind, text)]
    return [("gap" if i % 2 else kind, piece) for i, piece in enumerate(LINE_ENDS.split(text)) if piece]


def _joined(parts: list[Part]) -> tuple[Part, ...]:
    """Where nothing stands between two parts that are the same, they are one."""
    joined: list[Part] = []
    for kind, text in parts:
        if joined and joined[-1][0] == kind == "same":
            joined[-1] = ("same", joined[-1][1] + text)
        else:
            joined.append((kind, text))
    return tuple(joined)
