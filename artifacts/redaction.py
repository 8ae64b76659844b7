"""Redaction: the one form of a payload that may be shown, listed, pushed, notified, logged or exported.

`redact` makes a rendition: text in which what must not be seen is replaced by a mark, `⟦card⟧`. The input cannot forge a mark, since
its own ⟦ is doubled; templates draw `segments(text)`, everything else takes `plain(text)`. The original is not in a rendition at all.
Characters that would act on the reader's screen (controls, bidirectional overrides, tags) become marks as well: `⟦u202e⟧`.

What is hidden: secrets, cards, IBANs and local paths always; e-mail addresses and telephone numbers for `personal`; `secret` wholly;
prompts and hook bodies wholly; what is not text, or of no known type, wholly. A policy can add to this and never take away.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from artifacts import detectors
from artifacts.charsets import Decoded, decode
from artifacts.detectors import CARD, EMAIL, IBAN, PATH, PHONE, SECRET
from artifacts.views import HIDDEN

MAX_RENDITION = 64 * 1024  # characters
_BEYOND = 8 * 1024  # looked at past the end, for what begins before it
_ROUNDS = 8  # what is hidden can bring something else to light: looked again until nothing is found
_MOSTLY = 0.1  # a text of which more cannot be read is not text
PROMPT, UNREADABLE = "prompt", "unreadable"
ALWAYS = frozenset({SECRET, CARD, IBAN, PATH, PROMPT, UNREADABLE})
PERSONAL = frozenset({EMAIL, PHONE})
WORDS: Mapping[str, str] = {
    SECRET: "secret",
    CARD: "card number",
    IBAN: "IBAN",
    PATH: "local path",
    EMAIL: "e-mail address",
    PHONE: "phone number",
    PROMPT: "prompt",
    UNREADABLE: "content",
}


@dataclass(frozen=True)
class Policy:
    """What is hidden beyond `ALWAYS`: kinds by label, and the kind of a JSON value by its key (lower case, letters and digits only)."""

    kinds: Mapping[str, frozenset[str]] = field(
        default_factory=lambda: {"public": frozenset(), "internal": frozenset(), "personal": PERSONAL}
    )
    keys: Mapping[str, str] = field(default_factory=dict)

    def hides(self, label: str) -> frozenset[str]:
        return ALWAYS | self.kinds[label]


DEFAULT = Policy()


@dataclass(frozen=True)
class Rendition:
    """Marked text, how many things of each kind it hides, and whether nothing of the content is left in it."""

    text: str
    findings: Mapping[str, int]
    masked_everything: bool = False


def redact(content: bytes, *, media_type: str, label: str, policy: Policy = DEFAULT) -> Rendition:
    """The rendition of `content`. The same input always gives the same output; never raises for any content, type or label."""
    kind, charset = _parts(media_type)
    if label not in policy.kinds:  # secret, and any label nobody has heard of
        return _nothing_but(SECRET)
    if kind in _PROMPT_TYPES:
        return _nothing_but(PROMPT)
    decoded = decode(content, charset)
    if not _is_text(kind) or decoded.unread > _MOSTLY:
        return _nothing_but(UNREADABLE, f" {len(content)} bytes of {kind[:80] or 'an unknown type'}")
    if _is_json(kind) and _parses(decoded.text):
        pieces = _json(decoded.text, policy)
    else:
        pieces = _Piece.of(decoded.text)
    return _rendered(_settled(_cut(pieces, decoded, len(content), policy.hides(label)), policy.hides(label)))


def narrow(text: str, *, label: str, policy: Policy = DEFAULT) -> Rendition:
    """A rendition under a later policy: made from the rendition, so that it never shows what was hidden. Without change if nothing is new."""
    if label not in policy.kinds:
        return _nothing_but(SECRET)
    return _rendered(_settled(segments(text), policy.hides(label)))


def plain(text: str) -> str:
    """A rendition as plain text: “Card [card number hidden]”. For notifications, logs and exports."""
    return "".join(map(str, segments(text)))


# Segments


@dataclass(frozen=True)
class Text:
    """Text to show as it is (and to escape as HTML)."""

    type: ClassVar[Literal["text"]] = "text"
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Hidden:
    """Here stood something of this kind."""

    type: ClassVar[Literal["hidden"]] = "hidden"
    kind: str

    @property
    def words(self) -> str:
        return WORDS[self.kind]

    def __str__(self) -> str:
        return f"[{self.words} hidden]"


@dataclass(frozen=True)
class Glyph:
    """A character that is not seen or acts on its neighbours; show its code."""

    type: ClassVar[Literal["glyph"]] = "glyph"
    code: int

    @property
    def words(self) -> str:
        return f"U+{self.code:04X}"

    def __str__(self) -> str:
        return f"[{self.words}]"


@dataclass(frozen=True)
class More:
    """The rendition ends here; so many bytes of the content do not show."""

    type: ClassVar[Literal["more"]] = "more"
    size: int

    @property
    def words(self) -> str:
        return f"… {self.size:,} bytes more"

    def __str__(self) -> str:
        return self.words


Segment = Text | Hidden | Glyph | More


def segments(text: str) -> list[Segment]:
    """The parts of a rendition's text, in order."""
    found: list[Segment] = []
    at = 0
    for mark in _MARK.finditer(text):
        _add(found, text[at : mark.start()])
        at = mark.end()
        if mark["kind"]:
            found.append(Hidden(mark["kind"]))
        elif mark["code"]:
            found.append(Glyph(int(mark["code"], 16)))
        elif mark["size"]:
            found.append(More(int(mark["size"])))
        else:
            _add(found, "⟦")
    _add(found, text[at:])
    return found


_MARK = re.compile(rf"⟦(?:(?P<kind>{'|'.join(WORDS)})⟧|u(?P<code>[0-9a-f]{{4,6}})⟧|\+(?P<size>\d{{1,15}})⟧|⟦)")
# controls but tab and line feeds, bidirectional embeddings, overrides and isolates, invisible operators, tags, half surrogate pairs.
# joiners and plain direction marks stay: many scripts need them to be read
_ACTING = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u180e\u200b\u2028-\u202e\u2060-\u2069\u206a-\u206f\ufeff\ufff9-\ufffb\ufdd0-\ufdef"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)


def _add(found: list[Segment], text: str) -> None:
    if text and found and isinstance(found[-1], Text):
        found[-1] = Text(found[-1].text + text)
    elif text:
        found.append(Text(text))


def _marked(parts: Iterable[Segment]) -> str:
    return "".join(_mark(part) for part in parts)


def _mark(part: Segment) -> str:
    match part:
        case Text(text):
            return _ACTING.sub(lambda m: f"⟦u{ord(m[0]):04x}⟧", text.replace("⟦", "⟦⟦"))
        case Hidden(kind):
            return f"⟦{kind}⟧"
        case Glyph(code):
            return f"⟦u{code:04x}⟧"
        case More(size):
            return f"⟦+{size}⟧"


# Hiding


def _settled(parts: list[Segment], kinds: frozenset[str]) -> list[Segment]:
    """With everything of these kinds hidden, so that looking again finds nothing."""
    for _ in range(_ROUNDS):
        working = _working(parts)
        findings = detectors.find(working, kinds=kinds & set(detectors.KINDS))
        if not findings:
            return parts
        parts = _hidden(parts, working, findings)
    return [Hidden(SECRET)]


def _working(parts: list[Segment]) -> str:
    return "".join(p.text if isinstance(p, Text) else chr(p.code) if isinstance(p, Glyph) else HIDDEN for p in parts)


def _hidden(parts: list[Segment], working: str, findings: tuple[detectors.Finding, ...]) -> list[Segment]:
    """A mark for each finding; marks that a finding covers are part of it."""
    result: list[Segment] = []
    spans = iter([*findings, detectors.Finding(len(working), len(working), "")])
    at, span = 0, next(spans)
    for part in parts:
        end = at + (len(part.text) if isinstance(part, Text) else 1)
        while at < end:
            if at >= span.end and span.kind:
                span = next(spans)
            elif at < span.start:
                upto = min(end, span.start)
                _keep(result, part, working[at:upto])
                at = upto
            else:
                if at == span.start:
                    result.append(Hidden(span.kind))
                at = min(end, span.end)
        if isinstance(part, More) and result[-1] is not part:
            result.append(part)
    return result


def _keep(result: list[Segment], part: Segment, text: str) -> None:
    if isinstance(part, Text):
        _add(result, text)
    else:
        result.append(part)


def _rendered(parts: list[Segment]) -> Rendition:
    counts = Counter(part.kind for part in parts if isinstance(part, Hidden))
    return Rendition(_marked(parts), dict(sorted(counts.items())), all(isinstance(part, Hidden) for part in parts) and bool(parts))


def _nothing_but(kind: str, and_say: str = "") -> Rendition:
    return Rendition(_marked([Hidden(kind), Text(and_say)]), {kind: 1}, masked_everything=True)


# Cutting


@dataclass(frozen=True)
class _Piece:
    """A segment, and how much of the source it and those before it used up."""

    part: Segment
    used: int

    @staticmethod
    def of(text: str, *, size: int = 1024) -> Iterator["_Piece"]:
        return (_Piece(Text(text[at : at + size]), min(at + size, len(text))) for at in range(0, len(text), size))


def _cut(pieces: Iterator[_Piece], source: Decoded, size: int, kinds: frozenset[str]) -> list[Segment]:
    """As much as fits, with what begins in it and ends past it hidden; then how much there is more."""
    parts, used = _take(pieces, MAX_RENDITION)
    rest, _ = _take(pieces, _BEYOND)
    if not rest:
        return parts
    working = _working([*parts, *rest])
    within = len(_working(parts))
    findings = [f for f in detectors.find(working, kinds=kinds & set(detectors.KINDS)) if f.start < within]
    cut = [detectors.Finding(f.start, min(f.end, within), f.kind) for f in findings]
    return [*_hidden(parts, working[:within], tuple(cut)), More(max(1, size - source.size_of(used)))]


def _take(pieces: Iterator[_Piece], room: int) -> tuple[list[Segment], int]:
    parts: list[Segment] = []
    used = 0
    for piece in pieces:
        _add_part(parts, piece.part)
        used, room = piece.used, room - len(_mark(piece.part))
        if room <= 0:
            break
    return parts, used


def _add_part(parts: list[Segment], part: Segment) -> None:
    if isinstance(part, Text):
        _add(parts, part.text)
    else:
        parts.append(part)


# Types


def _parts(media_type: str) -> tuple[str, str]:
    kind, _, rest = media_type[:200].partition(";")
    charset = re.search(r"charset\s*=\s*\"?([\w.:-]{1,40})", rest, re.IGNORECASE)
    return kind.strip().lower(), charset[1] if charset else ""


_PROMPT_TYPES = frozenset({"text/x-prompt", "application/x-prompt", "text/x-hook", "application/x-hook"})
_TEXT_TYPES = frozenset(
    f"application/{name}"
    for name in (
        "xml xhtml+xml yaml x-yaml toml javascript x-javascript ecmascript typescript sql graphql x-sh x-httpd-php x-www-form-urlencoded "
        "x-ndjson jsonl json-seq csv rtf pgp-signature pgp-keys x-pem-file pem-certificate-chain ld+json"
    ).split()
)


def _is_text(kind: str) -> bool:
    return kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(("+xml", "+yaml", "+json")) or _is_json(kind)


def _is_json(kind: str) -> bool:
    return kind in ("application/json", "text/json") or kind.endswith("+json")


# JSON: each value on its own, by its key as well

_JSON_TOKEN = re.compile(r'\s*(?P<token>"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+)', re.DOTALL)
_SECRET_KEY = re.compile(
    r"(?:password|passwd|passphrase|passcode|passwort|kennwort|pwd|secret|apikey|accesskey|accesskeyid|secretkey|privatekey|signingkey|"
    r"encryptionkey|masterkey|accountkey|token|credentials|authorization|cookie|sessionid|sessionkey|connectionstring|dsn|otp|pin|cvv2?|cvc2?)$"
)
_PROMPT_KEY = re.compile(r"(?:system|developer|user)?prompts?$|hook(?:body)?$|systemmessage$|internalscores?$")
_NAME_KEYS, _VALUE_KEYS = frozenset({"name", "key", "field", "header", "variable"}), frozenset({"value", "val", "content", "default"})
_MAX_NESTED = 3


def _parses(text: str) -> bool:
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


@dataclass
class _Level:
    """Where the reader of a JSON text stands: in an object or array, after which key, and whether all in here is hidden."""

    is_object: bool
    hide: str
    key: str = ""
    named: str = ""
    count: int = 0


def _json(text: str, policy: Policy, *, nested: int = 0) -> Iterator[_Piece]:
    """The text again, laid out, with the values under secret keys hidden and the strings decoded. Never recurses into its structure."""
    levels = [_Level(False, "")]
    tokens = (
        [(m["token"], m.end()) for m in _JSON_TOKEN.finditer(text)]
        if nested
        else ((m["token"], m.end()) for m in _JSON_TOKEN.finditer(text))
    )
    after_colon = False
    for token, end in tokens:
        level = levels[-1]
        if token in "}]":
            levels.pop()
            yield _Piece(Text(("" if level.count == 0 or nested else _line(levels)) + token), end)
        elif token == ",":
            yield _Piece(Text(", " if nested else ","), end)
        elif token == ":":
            after_colon = True
            yield _Piece(Text(": "), end)
        else:
            if not after_colon:
                level.count += 1
                if len(levels) > 1 and not nested:
                    yield _Piece(Text(_line(levels)), end)
            is_key, after_colon = level.is_object and not after_colon, False
            if is_key:
                level.key = _said(token)
            hide = "" if is_key else _kind_for(level, policy)
            if token in "{[":
                levels.append(_Level(token == "{", hide))
                yield _Piece(Text(token), end)
            else:
                if level.is_object and not is_key and _bare(level.key) in _NAME_KEYS:
                    level.named = _said(token)
                for part in _value(token, hide, policy, nested):
                    yield _Piece(part, end)


def _line(levels: list[_Level]) -> str:
    return "\n" + "  " * min(len(levels) - 1, 40)


def _kind_for(level: _Level, policy: Policy) -> str:
    if level.hide:
        return level.hide
    kind = _kind_of_key(level.key, policy) if level.is_object else ""
    if not kind and level.is_object and _bare(level.key) in _VALUE_KEYS:
        kind = _kind_of_key(level.named, policy)
    return kind


def _kind_of_key(key: str, policy: Policy) -> str:
    bare = _bare(key)
    if bare in policy.keys:
        return policy.keys[bare]
    return SECRET if _SECRET_KEY.search(bare) else PROMPT if _PROMPT_KEY.match(bare) else ""


def _bare(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", key[:80].lower())


def _said(token: str) -> str:
    return json.loads(token, strict=False) if token.startswith('"') else token


def _value(token: str, hide: str, policy: Policy, nested: int) -> Iterator[Segment]:
    if not token.startswith('"'):
        yield Hidden(hide) if hide and token not in ("true", "false", "null") else Text(token)
        return
    said = _said(token)
    if hide and said:
        yield from (Text('"'), Hidden(hide), Text('"'))
    elif nested < _MAX_NESTED and said[:200].lstrip()[:1] in ("{", "[") and _parses(said):
        yield Text('"')
        for piece in _json(said, policy, nested=nested + 1):
            yield Text(json.dumps(piece.part.text, ensure_ascii=False)[1:-1]) if isinstance(piece.part, Text) else piece.part
        yield Text('"')
    else:
        yield from (
            Text(json.dumps(said[at : at + 1024], ensure_ascii=False)[bool(at) : None if at + 1024 >= len(said) else -1])
            for at in range(0, len(said) or 1, 1024)
        )
