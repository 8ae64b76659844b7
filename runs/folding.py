"""Finding text whatever its accents and case: `ozturk` finds Öztürk, and the other way round. Pure."""

import re
import unicodedata
from collections import defaultdict
from functools import lru_cache

LETTERS = (*range(0x00C0, 0x0250), *range(0x1E00, 0x1F00))  # Latin with marks
PLAIN = {"ø": "o", "Ø": "o", "ł": "l", "Ł": "l", "đ": "d", "Đ": "d", "ı": "i", "ħ": "h", "Ħ": "h"}  # those that are no letter and a mark
MARKS = "[\u0300-\u036f]*"  # the same marks as characters of their own


def pattern(term: str) -> str:
    """A regular expression that both databases understand, for text that holds `term` but for accents and case."""
    return "".join(_letter(letter) for letter in _folded(term))


def _folded(text: str) -> str:
    bare = "".join(PLAIN.get(char, char) for char in text)
    return "".join(char for char in unicodedata.normalize("NFD", bare) if not unicodedata.combining(char)).lower()


def _letter(letter: str) -> str:
    alike = _alike().get(letter, "")
    if not alike and not letter.isalpha():
        return re.escape(letter) if not letter.isdigit() else letter
    return f"[{letter}{letter.upper() if len(letter.upper()) == 1 else ''}{alike}]{MARKS}"


@lru_cache(maxsize=1)
def _alike() -> dict[str, str]:
    """Plain letter → all that fold to it."""
    found: dict[str, str] = defaultdict(str)
    for code in LETTERS:
        folded = _folded(chr(code))
        if len(folded) == 1 and folded != chr(code):
            found[folded] += chr(code)
    return found
