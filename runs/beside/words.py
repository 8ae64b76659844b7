"""Two renditions beside each other, word by word."""

import re
from collections.abc import Iterator, Sequence

from artifacts.rendition import whole_marks
from runs.story.aligning import opcodes
from runs.story.shapes import Piece, Text

WORDS_MOST = 4000  # characters of a text that is compared
PIECES_MOST = 40
ALIGNED = 600  # words, and spaces, between what begins and what ends the same; more are shown whole, the one gone and the other new
AROUND = 40  # characters that are shown of what is the same around a difference

_SPACE = re.compile(r"\s+")
_TOKENS = re.compile(r"⟦[^⟧]{0,20}⟧|\s+|[^\s⟦]+|⟦")


def word_by_word(before: Text | None, after: Text | None) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Both renditions with what is in one alone marked, and of what is the same no more than what stands around that.

    Nothing of two that differ only further on than is compared: then there is nothing to show.
    """
    if before is None or after is None or before.erased or after.erased:
        return (), ()
    old, new = (_TOKENS.findall(_begun(each.text)) for each in (before, after))
    left: list[Piece] = []
    right: list[Piece] = []
    for kind, start, end, at, upto in opcodes(old, new, ALIGNED):
        gone, come = "".join(old[start:end]), "".join(new[at:upto])
        left += _piece("same" if kind == "equal" else "del", gone)
        right += _piece("same" if kind == "equal" else "ins", come)
    if all(piece.kind == "same" for piece in (*left, *right)):
        return (), ()
    return tuple(_short(left))[:PIECES_MOST], tuple(_short(right))[:PIECES_MOST]


def _begun(text: str) -> str:
    """What of it is compared, without half a mark."""
    return text if len(text) <= WORDS_MOST else whole_marks(text[:WORDS_MOST])


def _piece(kind: str, text: str) -> list[Piece]:
    """A marked stretch without the space around it, which nobody can see."""
    inner = text.strip()
    if kind == "same" or inner == text:
        return [Piece(kind, text)] if text else []
    begin, end = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :] if inner else ""
    return [piece for piece in (Piece("same", begin), Piece(kind, inner), Piece("same", end)) if piece.text]


def _short(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Of a long stretch that is the same, its ends; on one line, as it stands in a row of a list."""
    for at, piece in enumerate(pieces):
        piece = Piece("same", _SPACE.sub(" ", piece.text)) if piece.kind == "same" else piece
        if piece.kind != "same" or len(piece.text) <= 2 * AROUND + 20:
            yield piece
            continue
        begins = piece.text[:AROUND].rsplit(" ", 1)[0] if at else ""
        ends = piece.text[-AROUND:].split(" ", 1)[-1] if at + 1 < len(pieces) else ""
        shown = f"{begins} … {ends}"
        yield Piece("same", shown.lstrip() if not at else shown.rstrip() if at + 1 == len(pieces) else shown)
