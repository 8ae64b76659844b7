"""`{% load approving %}`: how an exact text, a rendition, a JSON value and a link to the log are drawn. Everything is escaped."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any
from uuid import UUID

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from access.templatetags.handrail import glyphs
from approvals import cards, conditions, inbox, policy_forms, sourcing
from artifacts.rendition import plain as plain_text
from artifacts.templatetags import renditions

register = template.Library()
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


@register.simple_tag
def said(rendition: str) -> SafeString:
    """A rendition: what is hidden in it is drawn as hidden, the rest as it is."""
    return renditions.rendition(rendition)


@register.filter
def at(found: Mapping[int, Any], index: int) -> Any:
    """What stands at an index; None if nothing does."""
    return found.get(index)


@register.simple_tag
def titled(rendition: str) -> SafeString:
    """As `said`, for a title in a narrow place: a number in it stays on one line."""
    return renditions.unbroken(renditions.rendition(rendition))


@register.simple_tag
def exactly(text: object, full: bool) -> SafeString:
    """A text of an action: as it is for who may see it in full, else as a rendition. A number such as INV-20931 stays on one line."""
    return renditions.unbroken(glyphs(text) if full else said(str(text)))


@register.simple_tag
def linked(text: str, full: bool, run_id: UUID, upto: int) -> SafeString:
    """As `exactly`, numbers each on one line, and each #12 that was there when the action was proposed leads to the event."""
    pieces = sourcing.EVENT.split(text)
    drawn = []
    for at, piece in enumerate(pieces):
        is_event = at % 2 == 1 and 0 < int(piece) < upto
        drawn.append(event(run_id, int(piece)) if is_event else exactly("#" + piece if at % 2 else piece, full))
    return _joined(drawn)


@register.simple_tag
def event(run_id: UUID, seq: int) -> SafeString:
    """A link to an event: #15."""
    try:
        return format_html('<a class="num" href="{}">#{}</a>', reverse("runs:event", args=(run_id, seq)), seq)
    except NoReverseMatch:
        return format_html('<span class="num">#{}</span>', seq)


@register.simple_tag
def page(name: str, *args: object) -> str:
    """The address of another app's page, or nothing while it does not exist."""
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return ""


@register.filter
def midway(title: str) -> str:
    """A title inside a sentence: “the ticket”. A name stays as it is."""
    return f"the{title[3:]}" if title.startswith("The ") else title


@register.simple_tag(name="json")
def json_(value: Any, full: bool) -> SafeString:
    """A JSON value over several lines: keys, texts and numbers told apart, every character drawn."""
    if not isinstance(value, dict | list) or not value:
        return _scalar(value, full)
    return renditions.code_lines(_lines(value, full, 0, mark_safe(""), ""))


@register.simple_tag
def empty_word(value: Any) -> str:
    return cards.empty_word(value)


@register.filter
def plain(rendition: str) -> str:
    """A rendition as plain text, for titles and labels."""
    return plain_text(rendition)


@register.filter
def counted(number: int) -> str:
    """How many wait, grouped: 500+ where no more were counted."""
    return f"{inbox.COUNTED:,}+" if number > inbox.COUNTED else f"{number + 0:,}"  # a lazy number has no format of its own


@register.filter
def short_path(path: str) -> str:
    """A path into the arguments as people type it."""
    return conditions.short(path)


@register.simple_tag
def choices(row: Mapping[str, str], tool: str) -> Mapping[str, str]:
    """What the value of a condition can be, by its words; empty where it is typed. What it has now is one of them."""
    known = policy_forms.choices(row, tool)
    value = row.get("value", "")
    return known if value in known or not known else {value: value or "—"} | dict(known)


@register.filter
def as_day(value: Any) -> str:
    """A day that is written as in ISO 8601, as people write it: “Mon 30 Nov 2026”. Of anything else nothing."""
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        return ""
    try:
        day = date.fromisoformat(value)
    except ValueError:
        return ""
    return f"{day:%a} {day.day} {day:%b} {day.year}"


@register.filter
def short_id(value: object) -> str:
    """The beginning and the end of a long id; a short one whole."""
    text = str(value)
    return text if len(text) <= 16 else f"{text[:8]}…{text[-4:]}"


@register.filter
def first_name(name: str) -> str:
    return name.split()[0] if name.split() else name


def _lines(value: Any, full: bool, depth: int, before: SafeString, after: str) -> Iterator[tuple[int, SafeString]]:
    """Each line with how deep it stands. `before` is the key that it begins with, `after` the comma that it ends with."""
    if not isinstance(value, dict | list) or not value:
        yield depth, format_html("{}{}{}", before, _scalar(value, full), after)
        return
    begin, end = ("{", "}") if isinstance(value, dict) else ("[", "]")
    yield depth, format_html("{}{}", before, begin)
    items = value.items() if isinstance(value, dict) else (("", each) for each in value)
    for number, (key, each) in enumerate(items, start=1):
        named = format_html("<i>{}</i>: ", _scalar(key, full)) if isinstance(value, dict) else mark_safe("")
        yield from _lines(each, full, depth + 1, named, "," if number < len(value) else "")
    yield depth, format_html("{}{}", end, after)


def _scalar(value: Any, full: bool) -> SafeString:
    text = json.dumps(value, ensure_ascii=not isinstance(value, str))
    return exactly(text, full) if isinstance(value, str) else format_html("<b>{}</b>", text)


def _joined(parts: Iterable[SafeString]) -> SafeString:
    return mark_safe("".join(conditional_escape(part) for part in parts))  # noqa: S308  each part is escaped
