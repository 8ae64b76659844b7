"""HTML as its text, tags and comments, in order and as far as browsers read broken HTML: quotes without an end, tags without one. Pure.

One pass in proportion to the source, and it never raises. What the tags mean is `markup.py`'s to say.
"""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Tag:
    name: str
    closes: bool
    attributes: Mapping[str, str]


@dataclass(frozen=True)
class Comment:
    text: str


_NAME = re.compile(r"(/?)([A-Za-z][^\s/>]*)")
_GAP = re.compile(r"[\s/]*")
_ATTRIBUTE = re.compile(r"[^\s/>][^\s/>=]*")
_EQUALS = re.compile(r"\s*=\s*")
_BARE = re.compile(r"[^\s>]*")
_COMMENT_END = re.compile(r"--!?>")
RAW = frozenset({"script", "style", "title", "textarea", "iframe", "noembed", "noframes", "xmp"})  # what is in them is no HTML
_RAW_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in RAW}


def pieces(source: str) -> Iterator[str | Tag | Comment]:
    """Text, tags and comments, in order. What is in an element of RAW comes as a text right after its tag."""
    at = 0
    while (begin := source.find("<", at)) >= 0:
        if begin > at:
            yield html.unescape(source[at:begin])
        name = _NAME.match(source, begin + 1)
        if name:
            tag, at = _tag(source, name)
            if tag is None:
                yield Comment(source[begin:])  # it has no end, so nothing of it is shown
                return
            yield tag
            if tag.name == "plaintext" and not tag.closes:
                yield source[at:]
                return
            if tag.name in RAW and not tag.closes:
                end = _RAW_END[tag.name].search(source, at)
                upto = end.start() if end else len(source)
                yield source[at:upto]
                at = upto
        elif source.startswith(("<!", "<?", "</"), begin):
            said, at = _aside(source, begin)
            yield said
        else:
            yield "<"
            at = begin + 1
    if at < len(source):
        yield html.unescape(source[at:])


def _tag(source: str, name: re.Match[str]) -> tuple[Tag | None, int]:
    """A tag with its attributes, the first of each name, and where to read on; None if it never ends."""
    at, found = name.end(), {}
    while True:
        at = _end(_GAP, source, at)
        if at >= len(source):
            return None, at
        if source[at] == ">":
            return Tag(name[2].lower(), bool(name[1]), found), at + 1
        key_at, at = at, _end(_ATTRIBUTE, source, at)
        key, value = source[key_at:at].lower(), ""
        equals = _EQUALS.match(source, at)
        if equals:
            at = equals.end()
            quote = source[at : at + 1]
            if quote and quote in "\"'":
                end = source.find(quote, at + 1)
                if end < 0:
                    return None, len(source)
                value, at = source[at + 1 : end], end + 1
            else:
                value_at, at = at, _end(_BARE, source, at)
                value = source[value_at:at]
        found.setdefault(key, _unescaped(value))


def _unescaped(value: str) -> str:
    """The value of an attribute: there, `&copy=1` is no ©."""
    return html.unescape(_NO_ENTITY.sub("&amp;", value)) if "&" in value else value


_NO_ENTITY = re.compile(r"&(?=[A-Za-z][A-Za-z0-9]{0,30}=)")


def _end(pattern: re.Pattern[str], source: str, at: int) -> int:
    match = pattern.match(source, at)
    return match.end() if match else at


def _aside(source: str, begin: int) -> tuple[Comment | str, int]:
    """A comment, or what browsers take for one; a doctype says nothing."""
    if source.startswith("<!--", begin):
        end = _COMMENT_END.search(source, begin + 2)
        text = source[begin + 4 : end.start()] if end and end.start() > begin + 4 else "" if end else source[begin + 4 :]
        return Comment(text), end.end() if end else len(source)
    to = source.find(">", begin)
    upto = to if to >= 0 else len(source)
    text = source[begin + 2 : upto]
    return ("" if text.lower().startswith("doctype") else Comment(text)), upto + 1
