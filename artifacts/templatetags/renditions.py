"""`{% load renditions %}`: how a redacted rendition is drawn. What is hidden is not in the page; a mark stands in its place."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from django import template
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from access import characters
from access.templatetags.handrail import breakable, hidden, icon
from artifacts import markdown
from artifacts.rendition import UNREADABLE, WORDS, Glyph, Hidden, More, Segment, Text, segments, whole_marks
from artifacts.revealing import REVEALABLE, Place
from artifacts.sheets import media_name

register = template.Library()
# what opens before a mark and closes after it stands on the mark's line: “<”, the mark, “>”. A few characters at most
_OPENS = re.compile(r"[<(\[{“„‚‘«\"']{0,3}\Z")
_CLOSES = re.compile(r"[>)\]}”’»\"'.,;:!?…]{0,3}")
SHORT_PATH = 32
_PATH = re.compile(r"(?<![\w/<>\"=.:;&-])(?:/[\w~-]+(?:\.[\w~-]+)*){2,}(?![\w/>\"])")
_NUMBER = re.compile(r"(?<![\w/#=\"-])[A-Z]{2,5}-\d{3,10}(?![\w\"-])")
_KEYED = re.compile(r'(\s*)("(?:[^"\\]|\\.)*"(?=:))?(.*)', re.DOTALL)
FOLDED = 2000  # lines of JSON that are drawn as a tree
ADDRESS = WORDS["email"]
INSET = 12  # steps of indentation that the style sheet tells apart
LOOKED_AT = 4  # times the wanted length: enough of a rendition to quote from, also when it begins with marks
# letters of scripts that are written from right to left, and marks that say so: beside them our own words and numbers would change places
_FROM_RIGHT = re.compile("[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")


@register.filter
def rendition(text: str | None) -> SafeString:
    """The whole of a rendition, its line breaks as they are."""
    return _drawn(segments(text or ""))


@register.filter
def coded(text: str | None) -> SafeString:
    """A rendition of JSON, line by line: keys told apart, and a line that wraps goes on further in than it began."""
    return code_lines(_coded(line) for line in (text or "").split("\n"))


@register.filter
def tree(text: str | None) -> SafeString:
    """The same as a tree: what stands between two brackets can be folded. Of very much, only the lines."""
    lines = (text or "").split("\n")
    return mark_safe("".join(_folded(lines))) if len(lines) <= FOLDED else coded(text)  # noqa: S308  each part was escaped


@register.filter
def marked(text: str | None) -> SafeString:
    """A rendition of Markdown, drawn: nothing in it runs, loads or leads away."""
    return mark_safe(markdown.as_html(text or "", lambda part: _drawn([part])))  # noqa: S308  nh3 let through what it is made of


@register.inclusion_tag("artifacts/_reveal_at.html")
def reveal_at(frame: str, count: int, is_file: object, *key: object) -> dict[str, Any]:
    """Where something is shown when somebody asks for what is hidden in it: the place of this key. Nothing of it is in this.

    `is_file`: it has no text, so that all of it is one hidden place.
    """
    whole = ":".join(map(str, key))
    return {"key": whole, "dom": Place.dom_of(whole), "frame": frame, "count": count, "is_file": bool(is_file)}


@register.filter
def revealable(hidden: Mapping[str, int]) -> int:
    """How many of the hidden places there is a right to reveal."""
    return sum(count for kind, count in hidden.items() if kind in REVEALABLE)


@register.simple_tag
def media(media_type: str) -> SafeString:
    """What a file is, as people say it; a type that nobody says stands as it is written."""
    said = media_name(media_type)
    return conditional_escape(said) if said else format_html('<span class="mono">{}</span>', media_type)


@register.filter
def kinds_words(hidden: Mapping[str, int]) -> str:
    """What was hidden, counted, in words: 3 IBANs, 1 phone number. A file that has no text is the file."""
    counted = (_counted(count, WORDS.get(kind, "value")) for kind, count in sorted(hidden.items()) if kind != UNREADABLE)
    return ", ".join(["the file"] if UNREADABLE in hidden else counted)


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}" + ("" if count == 1 else "es" if word.endswith("s") else "s")


@register.filter
def quote(text: str | None, length: int = 140) -> SafeString:
    """The beginning of a rendition on one line, in quotation marks; an ellipsis if there is more."""
    shown = list(_shortened(_begun((text or "").strip(), length * LOOKED_AT + 400), length))
    return mark_safe(f"“{_drawn(shown)}”") if shown else mark_safe("")  # noqa: S308  each part was escaped


@register.filter
def unbroken(drawn: SafeString) -> SafeString:
    """What was drawn, with numbers such as INV-20931 each on one line: browsers break after the hyphen."""
    return mark_safe(_NUMBER.sub(r'<span class="nowrap">\g<0></span>', conditional_escape(drawn)))  # noqa: S308  it is escaped


@register.filter
def paths(drawn: SafeString) -> SafeString:
    """What was drawn, with each path in it in type, on one line if it is short."""
    return mark_safe(_PATH.sub(_as_code, conditional_escape(drawn)))  # noqa: S308  it is escaped


def _as_code(path: re.Match[str]) -> str:
    return f'<code class="nowrap">{path[0]}</code>' if len(path[0]) <= SHORT_PATH else f"<code>{path[0]}</code>"


@register.filter
def one_line(text: str | None, length: int = 200) -> SafeString:
    """The beginning of a rendition on one line, for lists and tables: there of “Ines <an address>” no more than that it is hidden."""
    return _drawn(_shortened(_begun(text or "", length * LOOKED_AT + 400), length), brief=True)


def code_lines(lines: Iterable[tuple[int, SafeString]]) -> SafeString:
    """Lines of JSON for a `.code.flow`, each with how many steps it stands in: what wraps goes on further in than it began."""
    drawn = ((min(depth, INSET), "  " * depth, line) for depth, line in lines)
    return format_html_join("", '<span class="ln" data-in="{}">{}{}</span>', drawn)


def _folded(lines: Iterable[str]) -> Iterator[str]:
    open_now = 0
    for line in lines:
        bare = line.strip()
        if open_now and bare[:1] in ("}", "]"):
            open_now -= 1
            yield "</details>"
        depth, drawn = _coded(line)
        drawn = code_lines([(depth, drawn)])
        if depth and bare[-1:] in ("{", "["):
            open_now += 1
            yield format_html("<details open><summary>{}</summary>", drawn)
        else:
            yield drawn
    yield "</details>" * open_now


def _coded(line: str) -> tuple[int, SafeString]:
    indent, key, rest = _KEYED.match(line).groups()  # type: ignore[union-attr]  it matches every line
    named = format_html("<i>{}</i>", rendition(key)) if key else ""
    return len(indent) // 2, format_html("{}{}", named, rendition(rest))


def _begun(text: str, most: int) -> list[Segment]:
    """The parts of the first `most` characters of a rendition, and not half a mark; with how much more there is."""
    if len(text) <= most:
        return segments(text)
    kept = whole_marks(text[:most])
    return [*segments(kept), More(len(text) - len(kept))]


def _shortened(parts: Iterable[Segment], length: int) -> Iterator[Segment]:
    left = length
    for part in parts:
        if isinstance(part, More):
            yield Text(" …")
            return
        if not isinstance(part, Text):
            yield part
            left -= 1
            continue
        words = " ".join(part.text.split())
        words = (" " if part.text[:1].isspace() and left < length else "") + words + (" " if part.text[-1:].isspace() else "")
        if len(words) > left:
            kept = words[: characters.whole(words, left)]
            before, _, last = kept.rpartition(" ")  # at a space, unless there is little before it: a very long word is cut itself
            yield Text((before if len(before) > len(last) else kept).rstrip(" ,.;:") + " …")
            return
        left -= len(words)
        yield Text(words)


def _drawn(parts: Iterable[Segment], *, brief: bool = False) -> SafeString:
    shown = list(parts)
    around = zip([None, *shown], shown, [*shown[1:], None], strict=False)
    drawn = [
        [_glyphs(each for _, each, _ in run)] if unseen else [_part(*each, brief) for each in run]
        for unseen, run in groupby(around, lambda each: isinstance(each[1], Glyph))
    ]
    whole = "".join(piece for run in drawn for piece in run)
    if any(isinstance(part, Text) and _FROM_RIGHT.search(part.text) for part in shown):
        whole = f"<bdi>{whole}</bdi>"
    return mark_safe(whole)  # noqa: S308  each part was escaped


def _glyphs(run: Iterable[Segment]) -> SafeString:
    """Characters that are not seen: one that comes again is drawn once and counted, so that the page stays in proportion to the text."""
    codes = [part.code for part in run if isinstance(part, Glyph)]
    return hidden([characters.Hidden(chr(code), len(list(same))) for code, same in groupby(codes)])


def _text(text: str) -> SafeString:
    """A text with at most a few marks on each letter."""
    parts = (breakable(part) if isinstance(part, str) else hidden(part) for part in characters.too_marked(text))
    return mark_safe("".join(parts))  # noqa: S308  each part was escaped


def _part(before: Segment | None, part: Segment, after: Segment | None, brief: bool) -> str:
    match part:
        case Text(text):
            return _text(_split(text, isinstance(before, Hidden), isinstance(after, Hidden))[1])
        case Hidden():
            return _hidden(before, part, after, brief)
        case Glyph():
            return _glyphs([part])
        case More():
            return format_html('<span class="dim">{}</span>', part.words)


def _hidden(before: Segment | None, part: Hidden, after: Segment | None, brief: bool) -> SafeString:
    mark = format_html('<span class="redacted">{}{}</span>', icon("lock", small=True), f"{part.words} hidden")
    opens = _split(before.text, False, True)[2] if isinstance(before, Text) else ""
    closes = _split(after.text, True, False)[0] if isinstance(after, Text) else ""
    if brief and part.words == ADDRESS and opens == "<" and closes.startswith(">"):
        mark = format_html(
            '<span class="redacted" title="{} hidden">{}<span class="vh">address hidden</span></span>', part.words, icon("lock", small=True)
        )
        opens, closes = "", closes[1:]
    return format_html('<span class="nowrap">{}{}{}</span>', opens, mark, closes) if opens or closes else mark


def _split(text: str, follows: bool, leads: bool) -> tuple[str, str, str]:
    """What of a text closes the mark that it follows, what is its own, and what opens the mark that it leads to."""
    closed = _CLOSES.match(text).end() if follows else 0  # type: ignore[union-attr]  it matches nothing, too
    opened = _OPENS.search(text, closed).start() if leads else len(text)  # type: ignore[union-attr]
    return text[:closed], text[closed:opened], text[opened:]
