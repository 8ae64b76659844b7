"""What two renditions of the same content both show. Pure.

A later rendition is never shown as it is: what the earlier one hid stays hidden, and what the later one hides goes.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from artifacts.rendition import SECRET, Hidden, More, Segment, mark, segments

_TOKEN = re.compile(r"⟦(?:[a-z]+⟧|u[0-9a-f]{4,6}⟧|\+\d{1,15}⟧|⟦)|\w+|\s+|.", re.DOTALL)
_MOST = 4_000_000  # pairs of words that are compared; where more differs, all of it is hidden


def common(old: str, new: str) -> str:
    """The text of a rendition in which a word stands only if it stands in both, in this order; a mark where they differ."""
    if old == new:
        return old
    first, second = _TOKEN.findall(old), _TOKEN.findall(new)
    start = _same(first, second)
    end = _same(first[start:][::-1], second[start:][::-1])
    between = _between(first[start : len(first) - end], second[start : len(second) - end])
    return "".join([*first[:start], *between, *first[len(first) - end :]])


def _same(first: Sequence[str], second: Sequence[str]) -> int:
    """How many they begin with that are equal."""
    pairs = zip(first, second, strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))


def _between(first: list[str], second: list[str]) -> list[str]:
    if len(first) * len(second) > _MOST:
        return _hidden(first, second)
    shown: list[str] = []
    at, to = 0, 0
    for one, other, count in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks():
        shown += _hidden(first[at:one], second[to:other])
        shown += first[one : one + count]
        at, to = one + count, other + count
    return shown


def _hidden(first: list[str], second: list[str]) -> list[str]:
    """What stands in the place of what only one of them shows."""
    marks: list[Segment] = [*segments("".join(first)), *segments("".join(second))]
    if not marks:
        return []
    kinds = [each.kind for each in marks if isinstance(each, Hidden)]
    left_out = [each.size for each in marks if isinstance(each, More)]
    more = [mark(More(max(left_out)))] if left_out else []
    return more if len(left_out) == len(marks) else [mark(Hidden(kinds[0] if kinds else SECRET)), *more]
