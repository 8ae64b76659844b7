"""What differs between two texts that are cut into words, within bounds: words that come again and again take cubic time to align. Pure."""

from collections.abc import Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate

Opcode = tuple[str, int, int, int, int]  # of difflib: what, from and to in the first, from and to in the second
LOOKED = 400_000  # times that a word of the one is looked at beside the same word of the other; a page that is written anew takes a tenth


class _TooMuch(Exception):
    """These words are not aligned: it takes too long."""


def opcodes(old: Sequence[str], new: Sequence[str], most: int, *, blanks: bool = False) -> list[Opcode]:
    """How the one becomes the other. Of more than so many words between what begins and what ends the same, the one is gone and the
    other has come. `blanks`: whether space alone may be what both have.
    """
    first = shared(old, new)
    last = shared(old[first:][::-1], new[first:][::-1])
    was, now = old[first : len(old) - last], new[first : len(new) - last]
    found: list[Opcode] = [("equal", 0, first, 0, first)] if first else []
    found += [(kind, a + first, b + first, c + first, d + first) for kind, a, b, c, d in _between(was, now, most, blanks=blanks)]
    if last:
        found.append(("equal", len(old) - last, len(old), len(new) - last, len(new)))
    return found


def shared(one: Sequence[str], other: Sequence[str]) -> int:
    """With how many same words both begin."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _between(was: Sequence[str], now: Sequence[str], most: int, *, blanks: bool) -> list[Opcode]:
    """Of what neither begins nor ends the same."""
    if max(len(was), len(now)) <= most:
        try:
            return list(_Aligner(was, now, blanks=blanks).get_opcodes())
        except _TooMuch:
            pass
    return [("replace", 0, len(was), 0, len(now))]


class _Aligner(SequenceMatcher[str]):
    """Python's, which gives up once it has looked too often."""

    def __init__(self, was: Sequence[str], now: Sequence[str], *, blanks: bool) -> None:
        super().__init__(None if blanks else str.isspace, was, now, autojunk=False)
        self._upto = [0, *accumulate(len(self.b2j.get(word, ())) for word in was)]
        self._looked = 0

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        self._looked += self._upto[len(self.a) if ahi is None else ahi] - self._upto[alo]
        if self._looked > LOOKED:
            raise _TooMuch
        return super().find_longest_match(alo, ahi, blo, bhi)
