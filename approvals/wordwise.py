"""What differs between two texts, word by word. Pure."""

from difflib import SequenceMatcher
from re import compile as pattern
from typing import Literal

Part = tuple[Literal["same", "del", "ins", "none"], str]  # none: there is nothing, and the text says so
WORDS = pattern(r"\s+|\w+|[^\w\s]")
ALIGNED = 4000  # words; longer texts are shown whole, before and after


def words(before: str, after: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Two texts as parts: what both have, what only the first has, what only the second has."""
    old, new = WORDS.findall(before), WORDS.findall(after)
    if len(old) > ALIGNED or len(new) > ALIGNED:
        return (("del", before),), (("ins", after),)
    left: list[Part] = []
    right: list[Part] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            left.append(("same", "".join(old[a:b])))
            right.append(("same", "".join(new[c:d])))
            continue
        if b > a:
            left.append(("del", "".join(old[a:b])))
        if d > c:
            right.append(("ins", "".join(new[c:d])))
    return tuple(left), tuple(right)
