"""JSON, laid out to be read, with each value looked at on its own: by its key here, by what it says in `redaction`.

The text is read token by token and never turned into values, so that the spelling of numbers, keys that stand twice and the order of
everything stay as they are, and depth and size cost no more than the part that is shown.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from artifacts.detectors import PROMPT, SECRET, Finding
from artifacts.json_paths import Place
from artifacts.rendition import Hidden, Segment, Text, add

_TOKEN = re.compile(r'\s*(?P<token>"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+)', re.DOTALL)
_LITERALS = frozenset({"true", "false", "null"})
_MAX_NESTED = 3  # JSON in a string in JSON
_MAX_INDENT = 40
_CHUNK = 1024

# keys by their end, in lower case, letters and digits only: `DB_PASSWORD`, `x-api-key` and `apiKey` are all meant
_SECRET_KEY = re.compile(
    r"(?:password|passwd|passphrase|passcode|passwort|kennwort|contrasena|senha|wachtwoord|pwd|secret|apikey|accesskey|accesskeyid|secretkey|"
    r"privatekey|signingkey|encryptionkey|masterkey|accountkey|token|credentials|authorization|cookie|sessionid|sessionkey|connectionstring|"
    r"signature|dsn|otp|pin|cvv2?|cvc2?)$"
)
_PROMPT_KEY = re.compile(r"(?:system|developer|user|agent)?prompts?$|hook(?:body)?$|systemmessage$|internalscores?$")
# in {"name": "DB_PASSWORD", "value": "…"} the key stands in a value
_NAME_KEYS, _VALUE_KEYS = frozenset({"name", "key", "field", "header", "variable"}), frozenset({"value", "val", "content", "default"})


class Piece(NamedTuple):
    """A part of a rendition, and how many characters of the source it and those before it used up."""

    part: Segment
    used: int


@dataclass
class _Level:
    """An open object or array: the kind under which all in it is hidden (for certain, or unless a policy shows it), where it stands, the
    last key, the name it gave itself, how many items it had."""

    is_object: bool
    hide: str = ""
    unless_shown: str = ""
    place: Place = ()
    key: str = ""
    named: str = ""
    count: int = 0


Named = Mapping[Place, str]  # values by their place: the kind each is hidden as, or empty if it is shown
_NOTHING: Named = {}


def is_json(text: str) -> bool:
    """Whether some text is one JSON value that can be laid out here."""
    try:
        _UNREAD.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


_UNREAD = json.JSONDecoder(parse_int=str, parse_float=str)


def pieces(text: str, keys: Mapping[str, str], named: Named = _NOTHING) -> Iterator[Piece]:
    """The parts of a JSON text in order, from the first; what nobody asks for is not read. `keys` names further keys and their kinds,
    `named` values by their place."""
    return _Reader(text, keys, named=named).pieces()


def within_strings(text: str, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """What begins inside of a string ends in it, so that the quotes stay: a key without an end does not swallow the values after it."""
    strings = list(_STRING.finditer(text))
    begins = [string.start() for string in strings]
    return tuple(_clipped(finding, strings[at] if (at := bisect_left(begins, finding.start) - 1) >= 0 else None) for finding in findings)


def _clipped(finding: Finding, string: re.Match[str] | None) -> Finding:
    if string is None or finding.start >= string.end() - 1:
        return finding
    return Finding(finding.start, min(finding.end, string.end() - 1), finding.kind)


_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def with_quoted_marks(parts: list[Segment]) -> list[Segment]:
    """With quotes around what is hidden outside of a string, such as a number, so that JSON stays JSON."""
    if not any(isinstance(part, Hidden) for part in parts):
        return parts
    result: list[Segment] = []
    inside = False
    for part in parts:
        if isinstance(part, Text):
            inside ^= len(_QUOTE.findall(part.text)) % 2 == 1
        bare = isinstance(part, Hidden) and not inside
        for each in (Text('"'), part, Text('"')) if bare else (part,):
            add(result, each)
    return result


_QUOTE = re.compile(r'(?<!\\)(?:\\\\)*"')


def kind_of_key(key: str) -> str:
    """The kind of value that a key promises: `secret`, `prompt`, or empty. `DB_PASSWORD`, `x-api-key` and `apiKey` are all secret."""
    return _kind_of(_bare(key))


@lru_cache(maxsize=4096)
def _kind_of(bare: str) -> str:
    return SECRET if _SECRET_KEY.search(bare) else PROMPT if _PROMPT_KEY.match(bare) else ""


class _Reader:
    def __init__(self, text: str, keys: Mapping[str, str], nested: int = 0, named: Named = _NOTHING) -> None:
        self.text, self.keys, self.nested, self.named = text, keys, nested, named
        self.levels = [_Level(is_object=False)]
        self.value_next = False  # a colon came last

    def pieces(self) -> Iterator[Piece]:
        for match in _TOKEN.finditer(self.text):
            lexeme, start, end = match["token"], match.start("token"), match.end()
            if lexeme in "}]":
                yield Piece(Text(self._close() + lexeme), end)
            elif lexeme in ",:":
                self.value_next = lexeme == ":"
                yield Piece(Text(lexeme + (" " if self.value_next or self.nested else "")), end)
            else:
                yield from self._item(lexeme, start, end)

    def _close(self) -> str:
        return self._new_line() if self.levels.pop().count else ""

    def _item(self, lexeme: str, start: int, end: int) -> Iterator[Piece]:
        level = self.levels[-1]
        is_key = level.is_object and not self.value_next
        if not self.value_next:
            level.count += 1
            yield Piece(Text(self._new_line() if len(self.levels) > 1 else ""), start)
        self.value_next = False
        if is_key:
            level.key = _said(lexeme)
            yield from self._string(level.key, start, end)
        elif lexeme in "{[":
            self.levels.append(_Level(lexeme == "{", self._sure(level), self._said_by_policy(level), self._place(level)))
            yield Piece(Text(lexeme), end)
        else:
            yield from self._scalar(lexeme, self._kind(level), start, end)
            if level.is_object and _bare(level.key) in _NAME_KEYS:
                level.named = _said(lexeme)

    def _new_line(self) -> str:
        return "" if self.nested else "\n" + "  " * min(len(self.levels) - 1, _MAX_INDENT)

    def _kind(self, level: _Level) -> str:
        """The kind under which the value that comes next is hidden; empty if only what it says can tell."""
        return self._sure(level) or self._said_by_policy(level)

    def _said_by_policy(self, level: _Level) -> str:
        """What is said of the value itself, before what is said of what it stands in."""
        return self.named.get(self._place(level), level.unless_shown) if self.named else ""

    def _place(self, level: _Level) -> Place:
        """Where the value that comes next stands. Not kept where nobody asks."""
        if not self.named or len(self.levels) == 1:
            return ()
        return (*level.place, level.key if level.is_object else level.count - 1)

    def _sure(self, level: _Level) -> str:
        if level.hide or not level.is_object:
            return level.hide
        return self._kind_of_key(level.key) or (self._kind_of_key(level.named) if _bare(level.key) in _VALUE_KEYS else "")

    def _kind_of_key(self, key: str) -> str:
        return self.keys.get(_bare(key)) or kind_of_key(key)

    def _scalar(self, lexeme: str, hide: str, start: int, end: int) -> Iterator[Piece]:
        if not lexeme.startswith('"'):
            yield Piece(Hidden(hide) if hide and lexeme not in _LITERALS else Text(lexeme), end)
            return
        said = _said(lexeme)
        if hide and said:
            yield from (Piece(Text('"'), start), Piece(Hidden(hide), end), Piece(Text('"'), end))
        elif self.nested < _MAX_NESTED and said[:200].lstrip()[:1] in ("{", "[") and is_json(said):
            yield from self._json_in(said, start, end)
        else:
            yield from self._string(said, start, end)

    def _json_in(self, said: str, start: int, end: int) -> Iterator[Piece]:
        yield Piece(Text('"'), start)
        for piece in _Reader(said, self.keys, self.nested + 1).pieces():
            used = min(start + 1 + piece.used, end)
            yield Piece(Text(_quoted(piece.part.text)) if isinstance(piece.part, Text) else piece.part, used)
        yield Piece(Text('"'), end)

    def _string(self, said: str, start: int, end: int) -> Iterator[Piece]:
        if len(said) <= _CHUNK:
            yield Piece(Text(f'"{_quoted(said)}"'), end)
            return
        yield Piece(Text('"'), start)
        for at in range(0, len(said), _CHUNK):
            yield Piece(Text(_quoted(said[at : at + _CHUNK])), min(start + 1 + at + _CHUNK, end))
        yield Piece(Text('"'), end)


def _said(lexeme: str) -> str:
    if not lexeme.startswith('"'):
        return lexeme
    return json.loads(lexeme) if "\\" in lexeme else lexeme[1:-1]


def _quoted(text: str) -> str:
    return _AS_IT_IS.encode(text)[1:-1]


_AS_IT_IS = json.JSONEncoder(ensure_ascii=False)


def _bare(key: str) -> str:
    return _letters(key[-80:])


@lru_cache(maxsize=4096)  # names come again and again
def _letters(key: str) -> str:
    return _NO_LETTER.sub("", key.lower())


_NO_LETTER = re.compile(r"[^a-z0-9]")
