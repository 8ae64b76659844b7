"""`{% load renditions %}`: how a redacted rendition is drawn. What is hidden is not in the page; a mark stands in its place."""

from collections.abc import Iterable, Iterator

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from access.templatetags.handrail import breakable, icon
from artifacts.rendition import Glyph, Hidden, More, Segment, Text, segments

register = template.Library()
LOOKED_AT = 4  # times the wanted length: enough of a rendition to quote from, also when it begins with marks


@register.filter
def rendition(text: str | None) -> SafeString:
    """The whole of a rendition, its line breaks as they are."""
    return _drawn(segments(text or ""))


@register.filter
def quote(text: str | None, length: int = 140) -> SafeString:
    """The beginning of a rendition on one line, in quotation marks; an ellipsis if there is more."""
    shown = list(_shortened(segments((text or "").strip()[: length * LOOKED_AT + 400]), length))
    return mark_safe(f"“{_drawn(shown)}”") if shown else mark_safe("")  # noqa: S308  each part was escaped


@register.filter
def one_line(text: str | None, length: int = 200) -> SafeString:
    """The beginning of a rendition on one line, for lists and tables."""
    return _drawn(_shortened(segments((text or "")[: length * LOOKED_AT + 400]), length))


def _shortened(parts: Iterable[Segment], length: int) -> Iterator[Segment]:
    left = length
    for part in parts:
        if isinstance(part, More):
            break
        if not isinstance(part, Text):
            yield part
            left -= 1
            continue
        words = " ".join(part.text.split())
        words = (" " if part.text[:1].isspace() and left < length else "") + words + (" " if part.text[-1:].isspace() else "")
        if len(words) > left:
            yield Text(words[:left].rsplit(" ", 1)[0].rstrip(" ,.;:") + " …")
            return
        left -= len(words)
        yield Text(words)


def _drawn(parts: Iterable[Segment]) -> SafeString:
    return mark_safe("".join(_part(part) for part in parts))  # noqa: S308  each part was escaped


def _part(part: Segment) -> str:
    match part:
        case Text(text):
            return breakable(text)
        case Hidden():
            return format_html('<span class="redacted">{}{}</span>', icon("lock", small=True), f"{part.words} hidden")
        case Glyph():
            return format_html('<span class="glyph">{}</span>', part.words)
        case More():
            return format_html('<span class="dim">{}</span>', part.words)
