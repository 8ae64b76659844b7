"""What differs between two texts that are cut into words, within bounds: words that come again and again take cubic time to align. Pure."""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

Opcode = tuple[str, int, int, int, int]  # of difflib: what, from and to in the first, from and to in the second
PAIRS = 4000  # of a word of the one with the same word of the other; a page of prose has a quarter of them


def opcodes(old: Sequence[str], new: Sequence[str], most: int) -> list[Opcode]:
    """How the one becomes the other. Of more than so many words between what begins and what ends the same, the one is gone and the
    other has come.
    """
    first = shared(old, new)
    last = shared(old[first:][::-1], new[first:][::-1])
    was, now = old[first : len(old) - last], new[first : len(new) - last]
    found: list[Opcode] = [("equal", 0, first, 0, first)] if first else []
    if was or now:
        whole = ("replace", 0, len(was), 0, len(now))
        steps = SequenceMatcher(str.isspace, was, now, autojunk=False).get_opcodes() if _few(was, now, most) else [whole]
        found += [(kind, a + first, b + first, c + first, d + first) for kind, a, b, c, d in steps]
    if last:
        found.append(("equal", len(old) - last, len(old), len(new) - last, len(new)))
    return found


def shared(one: Sequence[str], other: Sequence[str]) -> int:
    """With how many same words both begin."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _few(was: Sequence[str], now: Sequence[str], most: int) -> bool:
    if max(len(was), len(now)) > most:
        return False
    times = Counter(now)
    return sum(times[word] for word in was if not word.isspace()) <= PAIRS
