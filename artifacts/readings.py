"""Other ways to read a text: without invisible characters, with escapes undone, with broken lines joined, with blobs decoded.

A view remembers where each stretch of it came from, so that what is found in it can be hidden where it stands. Each view is made in
one pass over the text, and none is longer than a small multiple of it: the work stays in proportion to the input, whatever it holds.
"""

import base64
import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache

HIDDEN = "\ufffc"  # stands in a text where something is hidden already: no detector matches across it


class View:
    """A text, and for each stretch of it the stretch of the source that it was made from."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._starts: list[int] = []
        self._sources: list[tuple[int, int, bool]] = []  # start and end in the source; True: copied one to one
        self.text = ""

    def add(self, text: str, start: int, end: int, *, copied: bool) -> None:
        if text:
            self._parts.append(text)
            self._starts.append(self._length)
            self._sources.append((start, end, copied))
            self._length += len(text)

    def closed(self) -> "View":
        self.text = "".join(self._parts)
        return self

    def source(self, start: int, end: int) -> tuple[int, int]:
        """The stretch of the source that `text[start:end]` was made from."""
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        from_start, _, copied = self._sources[first]
        begin = from_start + (start - self._starts[first] if copied else 0)
        to_start, to_end, copied = self._sources[last]
        return begin, to_start + (end - self._starts[last]) if copied else to_end


def rewritten(text: str, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str]) -> View | None:
    """The view of `text` with each match replaced; None if nothing matched, so that nobody looks at the same text twice."""
    view, at = View(), 0
    for match in pattern.finditer(text):
        view.add(text[at : match.start()], at, match.start(), copied=True)
        view.add(replace(match), *match.span(), copied=False)
        at = match.end()
    if at == 0:
        return None
    view.add(text[at:], at, len(text), copied=True)
    return view.closed()


# Characters: what a person reads as the same


def folded(text: str) -> View | None:
    """Without characters that are not seen, compatibility forms and foreign digits in their plain form; None if that changes nothing."""
    if text.isascii() and not _UNSEEN_ASCII.search(text):
        return None
    if not _ODD_ASCII.search(text) and unicodedata.is_normalized("NFKC", text) and not _FOREIGN.search(text):
        return None
    return rewritten(text, _NOT_PLAIN, lambda match: _plain(match[0]))


_UNSEEN_ASCII = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ODD_ASCII = _UNSEEN_ASCII
# digits that are not 0-9, and the characters that `_plain` drops; a superset is fine, it only costs time
_FOREIGN = re.compile(
    r"(?![0-9])\d|[0-9A-Za-z][\u0300-\u036f\u20d0-\u20ff]|[\x80-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2010-\u2015\u2028-\u202f\u205f-\u206f"
    r"\u2190-\u21ff\u2212\u2400-\u2426\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffd\U000e0000-\U000e0fff]"
)
_NOT_PLAIN = re.compile(rf"[^\t\n\r -~{HIDDEN}]")
_UNSEEN_CATEGORIES = {"Cc", "Cf", "Cs", "Cn", "Mn", "Me"}
_UNSEEN_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\ufffd")
_SAME_AS = (
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d\u00b7\u2022\u30fb", "-")
    | dict.fromkeys("\u2018\u2019", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"')
    | dict.fromkeys("\u2028\u2029\x85", "\n")
)


@lru_cache(maxsize=8192)
def _plain(char: str) -> str:
    if char in _SAME_AS:
        return _SAME_AS[char]
    if char in _UNSEEN_LETTERS or "\u2400" <= char <= "\u2426" or unicodedata.category(char) in _UNSEEN_CATEGORIES:
        return ""
    if unicodedata.category(char) == "Zs":
        return " "
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    return unicodedata.normalize("NFKC", char)


def lowered(text: str) -> str:
    """In lower case, with one letter for each that `re.IGNORECASE` takes for the same: `str.lower` leaves some of them as they are."""
    return (text if text.isascii() else text.translate(_SAME_LETTER)).lower()


_SAME_LETTER = str.maketrans("\u0130\u0131\u017f\u212a\u1c82", "iisk\u043e")


# Escapes: what a program reads as the same


def unescaped(text: str) -> View | None:
    """With URL, JSON, HTML, CSV and quoted-printable escapes undone once and tags taken out; None if there are none."""
    return rewritten(text, _ESCAPE, _undo) if _ESCAPE_BEGINS.search(text) or '""' in text else None


_ESCAPE_BEGINS = re.compile(r"[%\\&=<]")  # what is looked for first, for that is much faster
_ESCAPE = re.compile(
    r"""(?P<url>%[0-9A-Fa-f]{2}(?:%[89ABab][0-9A-Fa-f]){0,3})
      | (?P<unicode>\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\u\{[0-9A-Fa-f]{1,6}\}|\\x[0-9A-Fa-f]{2})
      | (?P<short>\\(?:[nrt"'`\\/]|\r?\n))
      | (?P<entity>&(?:\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});?)
      | (?P<soft>=[ \t]{0,8}\r?\n)
      | (?P<quoted>=[0-9A-F]{2}(?:=[89AB][0-9A-F]){0,3})
      | (?P<doubled>""(?:(?<=[\w.!?}\]]"")|(?=[\w{[\\/-])))
      | (?P<tag><[A-Za-z/!][^<>]{0,500}>)""",
    re.VERBOSE,
)
_SHORT = {"n": "\n", "r": "\r", "t": "\t", "\n": "", "\r\n": ""}


def _undo(match: re.Match[str]) -> str:
    kind, text = match.lastgroup, match[0]
    if kind in ("url", "quoted"):
        return bytes.fromhex(text.replace(text[0], "")).decode("utf-8", "replace")
    if kind == "unicode":
        return "".join(chr(min(int(code, 16), 0x10FFFF)) for code in _pair(text))
    if kind == "short":
        return _SHORT.get(text[1:], text[1:])
    if kind == "entity":
        return html.unescape(text)
    return '"' if kind == "doubled" else ""


def _pair(text: str) -> list[str]:
    if len(text) == 12:  # two halves of one character
        high, low = int(text[2:6], 16), int(text[8:12], 16)
        return [f"{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):x}"]
    return [text[2:].strip("{}")]


# Lines: what was broken to fit


def joined(text: str) -> View | None:
    """With line breaks inside of words, and string literals added together, made one again; None if there are none."""
    return rewritten(text, _BROKEN, lambda _: "") if _MAY_BE_BROKEN.search(text) else None


# what is looked for first, for that is much faster: it begins with one of few characters
_MAY_BE_BROKEN = re.compile(
    r"""[\n"'`](?:(?<=\n)[ \t>|*#]{0,16}[A-Za-z0-9+/=_-]|(?<!\n)[ \t]{0,4}[+.&,\\]?[ \t]{0,4}\r?\n?[ \t]{0,16}["'`])"""
)
_BROKEN = re.compile(
    r"""(?<=[A-Za-z0-9+/=_.-])
        (?: [ \t]{0,8}\\?\r?\n[ \t>|*\#]{0,16}
          | ["'`][ \t]{0,4}[+.&,\\]?[ \t]{0,4}\r?\n?[ \t]{0,16}["'`] )
        (?=[A-Za-z0-9+/=_-])""",
    re.VERBOSE,
)


# Blobs: whole texts in another alphabet


def blobs(text: str) -> Iterator[tuple[int, int, str]]:
    """Stretches that are readable text in base64, base64url or hexadecimal, each with what it says."""
    for match in _BASE64.finditer(text):
        said = _from_hex(match[0]) or _from_base64(match[0])
        if said:
            yield *match.span(), said


_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?:0[xX])?((?:[0-9A-Fa-f]{2}){12,})")
_READABLE = 0.7  # words glued to either end of a blob come out as rubbish


def _from_hex(token: str) -> str:
    match = _HEX.fullmatch(token)
    text, readable = _read(bytes.fromhex(match[1])) if match else ("", 0.0)
    return text if readable >= _READABLE else ""


def _from_base64(token: str) -> str:
    token = token.rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
    readings = [_read(_decoded(token[skip:])) for skip in range(4)]
    text, readable = max(readings, key=lambda reading: reading[1])
    return text if readable >= _READABLE else ""


def _decoded(body: str) -> bytes:
    body = body[: len(body) - (len(body) % 4 == 1)]
    return base64.b64decode(body + "=" * (-len(body) % 4))


def _read(data: bytes) -> tuple[str, float]:
    """The text in some bytes, and how much of it is text. UTF-16 of plain letters is UTF-8 with NULs, which a view drops."""
    text = data.decode("utf-8", "replace")
    counted = text.replace("\0", "") if text.count("\0") <= len(text) / 2 + 1 else text
    return text, sum(map(_is_shown, counted)) / max(len(counted), 1)


@lru_cache(maxsize=4096)
def _is_shown(char: str) -> bool:
    return (char.isprintable() and char != "\ufffd") or char in "\t\r\n" or unicodedata.category(char) == "Cf"
