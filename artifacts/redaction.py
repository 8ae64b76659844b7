"""Redaction: the one form of a payload that may be shown, listed, pushed, notified, logged or exported.

`redact` makes a rendition: text with a mark where something must not be seen. Templates draw `segments(text)`, everything else takes
`plain(text)`; `text` itself is for storing only. What is hidden is not in it at all.

Secrets, cards, IBANs and local paths are hidden always; e-mail addresses and telephone numbers under `personal`; `secret` wholly, and
so are prompts, hook bodies, and whatever is not text of a known type. A policy adds to this and never takes away.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from access import characters
from artifacts import detectors, structured
from artifacts.charsets import Decoded, decode
from artifacts.detectors import CARD, EMAIL, IBAN, PATH, PHONE, PROMPT, SECRET, Finding
from artifacts.json_paths import Rule, places
from artifacts.messages import NotAMessage, preview
from artifacts.readings import HIDDEN
from artifacts.rendition import UNREADABLE, WORDS, Glyph, Hidden, More, Segment, Text, add, add_text, mark, marked, plain, segments
from artifacts.structured import Piece

__all__ = [
    "DEFAULT",
    "Glyph",
    "Hidden",
    "More",
    "Policy",
    "Rendition",
    "Text",
    "beginning",
    "hide",
    "holds",
    "narrow",
    "plain",
    "redact",
    "segments",
]

MAX_RENDITION = 64 * 1024  # characters
_BEYOND = 8 * 1024  # looked at past the end, for what begins before it
_GROWS = 96  # characters of a rendition for one of its source, at the very most: a bracket on a line of its own, indented
_ROUNDS = 8  # what is hidden can bring something else to light: looked again until nothing is found
_MOSTLY = 0.1  # of which more than this cannot be read is not text
_CHUNK = 1024
ALWAYS = frozenset({SECRET, PROMPT, CARD, IBAN, PATH})
PERSONAL = frozenset({EMAIL, PHONE})


def _by_label() -> Mapping[str, frozenset[str]]:
    return {"public": frozenset(), "internal": frozenset(), "personal": PERSONAL}


@dataclass(frozen=True)
class Policy:
    """What is hidden beyond `ALWAYS`: kinds by label, and kinds of JSON values by key (in lower case, letters and digits only).

    A label that `kinds` does not name, such as `secret`, is hidden wholly.
    """

    kinds: Mapping[str, frozenset[str]] = field(default_factory=_by_label)
    keys: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()  # for JSON; the last that names a value wins

    def hides(self, label: str) -> frozenset[str]:
        return ALWAYS | self.kinds[label]


DEFAULT = Policy()


@dataclass(frozen=True)
class Rendition:
    """Marked text, how many things of each kind are hidden in it, and whether nothing of the content is left."""

    text: str
    findings: Mapping[str, int]
    masked_everything: bool = False


def redact(
    content: bytes, *, media_type: str, label: str, policy: Policy = DEFAULT, about: str = "", room: int = MAX_RENDITION
) -> Rendition:
    """The rendition of `content`. The same input always gives the same output; never raises, whatever content, type or label.

    `about`: the type of the event and the tool that it belongs to, with a blank between; a policy's rules go by that.
    `room`: characters, of which it has hardly more.
    """
    kind, charset = _parts(media_type)
    if label not in policy.kinds:
        return _only(SECRET)
    if kind in _PROMPT_TYPES:
        return _only(PROMPT)
    source = _text_of(content, kind, charset)
    if source is None or source.unread > _MOSTLY:
        return _only(UNREADABLE, f" {len(content):,} bytes of {kind or 'an unknown type'}")
    kinds = policy.hides(label)
    rules = [rule for rule in policy.rules if rule.covers(about)] if _is_json(kind) else []
    named = places(source.text, rules) if rules else {}
    if named is None:  # nobody can tell which values are meant
        return _only(next((rule.kind for rule in rules if rule.kind), SECRET))
    if _is_json(kind) and structured.is_json(source.text):
        parts = _cut(structured.pieces(source.text, policy.keys, named), source, kinds, room)
        return _rendered(structured.with_quoted_marks(_settled(parts, kinds, structured.within_strings)))
    return _rendered(_settled(_cut(_pieces(source.text), source, kinds, room), kinds))


def narrow(text: str, *, label: str, policy: Policy = DEFAULT) -> Rendition:
    """A rendition under a later policy. It is made from the rendition, so it never shows what was hidden; without news it is the same."""
    if label not in policy.kinds:
        return _only(SECRET)
    return _rendered(_settled(segments(text), policy.hides(label)))


def hide(text: str, *, label: str = "internal") -> str:
    """Words of ours that may quote somebody else's (an error, a log line), as plain text with words in place of what is hidden."""
    text = beginning(text, MAX_RENDITION)
    parts = _settled([Text(text)], DEFAULT.hides(label))
    return text if parts == [Text(text)] else "".join(map(str, parts))


def beginning(text: str, most: int) -> str:
    """A text of at most so many characters, to be kept as one of its own; of a longer one its beginning and an ellipsis.

    It does not end within what is hidden in the whole: half of a number or an address is known by no detector.
    """
    if len(text) <= most:
        return text
    text, end = text[: most + _BEYOND], characters.whole(text, most - 1)
    cut = next((found.start for found in detectors.find(text) if found.start < end < found.end), end)
    return f"{text[:cut].rstrip(' …')}…"


@lru_cache(maxsize=4096)  # names come again and again
def holds(name: str) -> str:
    """In words what a name holds that must be hidden from everybody; empty if nothing. An id or a sum in hexadecimal is neither."""
    found = detectors.find(_ID.sub("", name), kinds=ALWAYS)
    return f"a {WORDS[found[0].kind]}".replace("a IBAN", "an IBAN") if found else ""


_ID = re.compile(r"(?<![A-Za-z0-9])(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32,64})(?![A-Za-z0-9])")


def _text_of(content: bytes, kind: str, charset: str) -> Decoded | None:
    if kind == "message/rfc822":
        try:
            return Decoded(preview(content).as_text(), 0.0)
        except NotAMessage:
            return None
    return decode(content, charset) if _is_text(kind) else None


def _pieces(text: str) -> Iterator[Piece]:
    return (Piece(Text(text[at : at + _CHUNK]), min(at + _CHUNK, len(text))) for at in range(0, len(text), _CHUNK))


# Hiding


Bounds = Callable[[str, tuple[Finding, ...]], tuple[Finding, ...]]


def _settled(parts: list[Segment], kinds: frozenset[str], bounds: Bounds = lambda _, findings: findings) -> list[Segment]:
    """With everything of these kinds hidden, so that looking again finds nothing. `bounds` says where a finding has to end."""
    for _ in range(_ROUNDS):
        working = _working(parts)
        findings = detectors.find(working, kinds=kinds, has_marks=True)
        if not findings:
            return parts
        parts = _hidden(parts, working, bounds(working, findings))
    return [Hidden(SECRET)]


def _working(parts: list[Segment]) -> str:
    """The text that detectors look at: one character for each mark."""
    said = (p.text if isinstance(p, Text) else chr(p.code) if isinstance(p, Glyph) else None for p in parts)
    return "".join(HIDDEN if text is None else text.replace(HIDDEN, "\ufffd") for text in said)


def _hidden(parts: list[Segment], working: str, findings: tuple[Finding, ...]) -> list[Segment]:
    """The parts with a mark for each finding. A mark that lies within a finding becomes part of it; how much more there is stays."""
    result: list[Segment] = []
    at, todo = 0, list(reversed(findings))
    for part in parts:
        end = at + (len(part.text) if isinstance(part, Text) else 1)
        while at < end:
            while todo and todo[-1].end <= at:
                todo.pop()
            upto = min(end, todo[-1].start) if todo else end
            if upto > at:
                add(result, Text(working[at:upto]) if isinstance(part, Text) else part)
                at = upto
            else:
                if at == todo[-1].start:
                    add(result, Hidden(todo[-1].kind))
                at = min(end, todo[-1].end)
        if isinstance(part, More) and (not result or result[-1] is not part):
            add(result, part)
    return result


def _rendered(parts: list[Segment]) -> Rendition:
    hidden = [part.kind for part in parts if isinstance(part, Hidden)]
    return Rendition(marked(parts), dict(sorted(Counter(hidden).items())) if hidden else {}, 0 < len(hidden) == len(parts))


def _only(kind: str, and_say: str = "") -> Rendition:
    return Rendition(marked([Hidden(kind), Text(and_say)]), {kind: 1}, masked_everything=True)


# Cutting


def _cut(pieces: Iterator[Piece], source: Decoded, kinds: frozenset[str], room: int) -> list[Segment]:
    """As much as fits, what begins in it and ends past it hidden; then how much more there is."""
    if len(source.text) * _GROWS < room:
        return _merged(piece.part for piece in pieces)
    parts, used = _take(pieces, room)
    beyond, _ = _take(pieces, _BEYOND)
    if not beyond:
        return parts
    within = len(_working(parts))
    begun = [f for f in detectors.find(_working([*parts, *beyond]), kinds=kinds, has_marks=True) if f.start < within]
    clipped = tuple(Finding(f.start, min(f.end, within), f.kind) for f in begun)
    return [*_hidden(parts, _working(parts), clipped), More(max(1, source.size_of(used, len(source.text))))]


def _merged(parts: Iterable[Segment]) -> list[Segment]:
    """The same with one text where texts follow each other."""
    result: list[Segment] = []
    said: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            said.append(part.text)
        else:
            add_text(result, "".join(said))
            result.append(part)
            said.clear()
    add_text(result, "".join(said))
    return result


def _take(pieces: Iterator[Piece], room: int) -> tuple[list[Segment], int]:
    parts: list[Segment] = []
    used = 0
    while room > 0 and (piece := next(pieces, None)):
        add(parts, piece.part)
        used, room = piece.used, room - len(mark(piece.part))
    return parts, used


# Types


def _parts(media_type: str) -> tuple[str, str]:
    """The type in lower case and the charset it claims: `text/plain; charset="UTF-8"`."""
    kind, *parameters = media_type[:300].lower().split(";")
    named = dict(p.strip().split("=", 1) for p in parameters if "=" in p)
    return kind.strip()[:100], named.get("charset", "").strip()


_PROMPT_TYPES = frozenset({"text/x-prompt", "application/x-prompt", "text/x-hook", "application/x-hook"})
_JSON_TYPES = frozenset({"application/json", "text/json"})
_TEXT_TYPES = frozenset(
    f"application/{name}"
    for name in (
        *(
            "xml",
            "yaml",
            "x-yaml",
            "toml",
            "javascript",
            "x-javascript",
            "ecmascript",
            "typescript",
            "sql",
            "graphql",
            "x-sh",
            "csv",
            "rtf",
        ),
        *("x-www-form-urlencoded", "x-ndjson", "jsonl", "json-seq", "pgp-signature", "pgp-keys", "x-pem-file", "pem-certificate-chain"),
    )
)


def _is_json(kind: str) -> bool:
    return kind in _JSON_TYPES or kind.endswith("+json")


def _is_text(kind: str) -> bool:
    return kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(("+xml", "+yaml")) or _is_json(kind)
