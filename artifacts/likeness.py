"""Whether a stored rendition is one of its payload's bytes, or was changed behind the pipeline's back.

What the rules of now make of the bytes settles nearly all. A rendition that was made under other policies, or made anew since, hides more
or less of them: it is still one if all that it shows stands in the bytes, in order, and everything that it leaves out has a mark.
"""

from typing import Literal

from artifacts import ruling, vault
from artifacts.models import Payload
from artifacts.redaction import redact
from artifacts.rendition import Hidden, More, mark, segments

Likeness = Literal["same", "forged", "unknown"]  # unknown: made under earlier rules of Handrail's own, and not made anew yet


def likeness(payload: Payload, content: bytes | None) -> Likeness:
    """`content`: what was committed to; None if it is too large to be looked through."""
    stored, (version, policy) = payload.rendition or "", ruling.rules(payload.workspace_id)
    if not _counts(payload, stored):
        return "forged"
    if content is None:
        made = vault.unseen(payload.size, payload.media_type, payload.label).text
        return "same" if _narrows(stored, made) else "forged"
    how = {"media_type": payload.media_type, "label": payload.label, "about": payload.about}
    if stored == redact(content, policy=policy, **how).text:
        return "same"
    if ruling.built_in(payload.rules) != ruling.built_in(version):
        return "unknown"
    return "same" if _narrows(stored, redact(content, room=_ALL, **how).text) else "forged"


_ALL = 2**62  # characters: where a rendition was cut is another place under other rules


def _counts(payload: Payload, stored: str) -> bool:
    """Whether what is said to be hidden is what has a mark."""
    marks = [part.kind for part in segments(stored) if isinstance(part, Hidden)]
    return {kind: marks.count(kind) for kind in marks} == payload.findings


def _narrows(stored: str, widest: str) -> bool:
    """Whether `stored` shows what `widest` shows, but for what has a mark in it."""
    first, *rest = _pieces(stored)
    if not rest or not widest.startswith(first):
        return first == widest and not rest
    *between, last = rest
    at = len(first)
    for piece in between:
        found = widest.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return widest.endswith(last) and len(widest) - len(last) >= at


def _pieces(text: str) -> list[str]:
    """What stands before, between and behind its marks. A mark in place of a number stands in quotes that are not the content's."""
    pieces = [""]
    for part in segments(text):
        if isinstance(part, Hidden | More):
            pieces.append("")
        else:
            pieces[-1] += mark(part)
    last = len(pieces) - 1
    return [piece[int(i > 0 and piece[:1] == '"') : len(piece) - int(i < last and piece[-1:] == '"')] for i, piece in enumerate(pieces)]
