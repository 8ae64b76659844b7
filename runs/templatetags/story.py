"""`{% load story %}`: how the parts of a story are drawn. They read `view` (or `run` and `names`) from the context."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from access.ids import as_uuid
from access.templatetags.handrail import LABELS, clock_, digest, grouped, icon, sensitivity, spell
from artifacts.gist import gist
from artifacts.templatetags.renditions import one_line, quote, rendition, unbroken
from runs import ledgered
from runs.engine.tools import TOOLS
from runs.presenting import name_of
from runs.story import made, rows, shapes, titles
from runs.story.wire import moment

register = template.Library()
QUOTED, LOOKED_AT = 140, 4000  # characters of a letter that are quoted, and of which they are taken
ENUMS = ("error", "outcome", "reason", "kind", "label", "effect", "on", "choice", "how", "executor", "budget", "verdict")
LONG = 1200  # characters of somebody's words that stand in the story; the rest is one click away


@register.simple_tag(takes_context=True)
def rich(context: template.Context, parts: shapes.Rich) -> SafeString:
    """A sentence of the story. What somebody looks for in the run is marked in it."""
    return _marked(context, "".join(_part(context, part) for part in parts))


@register.simple_tag(takes_context=True)
def flat(context: template.Context, parts: shapes.Rich) -> SafeString:
    """A sentence of the story without links, for where it is one itself."""
    return _marked(context, "".join(_flat(context, part) for part in parts))


def _marked(context: template.Context, html: str) -> SafeString:
    """The words that are looked for, marked where they stand in the text: never in a tag, or in the name of a character."""
    asked = getattr(context.get("view"), "q", "")
    words = sorted({str(escape(word)) for word in asked.split()}, key=len, reverse=True)
    if not words:
        return mark_safe(html)  # noqa: S308  each part was escaped
    found = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    pieces = _MARKUP.split(html)  # text, then markup, in turn
    pieces[::2] = [found.sub(lambda word: f"<mark>{word[0]}</mark>", text) for text in pieces[::2]]
    return mark_safe("".join(pieces))  # noqa: S308  each part was escaped, and a mark stands in text only


_MARKUP = re.compile(r"(<[^>]*>|&[#\w]+;)")


@register.simple_tag
def beneath(item: shapes.Item, section: shapes.Section) -> shapes.Item:
    """An item under its step's heading: where its title says the same again, its first line takes the place of it."""
    again = section.title is not None and titles.plain(item.title) == section.title.text
    if not (again and item.lines):
        return item
    told = titles.with_argument(section.title.text, item.lines[0]) if item.kind == "tool" else item.lines[0]
    return replace(item, title=told, lines=item.lines[1:])


@register.simple_tag
def folded(view: Any, section: shapes.Section) -> bool:
    """Whether a finished step of a long run is one row."""
    return view.long and rows.folds(section, view.at)


@register.simple_tag
def drawn_of(section: shapes.Section, view: Any) -> rows.Stretched:
    """The rows of a section that are drawn."""
    return rows.stretched(section, view.at, long=view.long, new=view.new_at, hits=view.hits)


@register.simple_tag
def will_do(section: shapes.Section) -> str:
    """What a step that is planned will do, as far as its tool declares it: empty where no tool is called as it, or several are."""
    return titles.will_do(section.title.text) if section.title else ""


@register.simple_tag
def ledger_row(item: shapes.Item, view: Any) -> ledgered.Ledgered | None:
    """What became after the run's end of the effect that a row tells of."""
    return ledgered.row_of(view.ledger, item.first) if item.kind == "effect" and not (view.live or view.at) else None


@register.simple_tag
def undone_since(view: Any) -> shapes.Rich:
    """What was undone after the run's end."""
    return () if view.live else ledgered.undone_since(view.ledger)


@register.simple_tag
def hits_in(section: shapes.Section, view: Any) -> list[int]:
    """The events of a section that hold what is looked for."""
    return [hit for hit in view.hits if section.opened <= hit <= section.last]


@register.simple_tag
def named(section: shapes.Section, view: Any) -> SafeString:
    """What a step is called on its run's page."""
    return wording(view.step_names[section.key], f"Step {section.number}")


@register.simple_tag
def came_to(section: shapes.Section) -> str:
    """What a folded step holds, counted."""
    return rows.came_to(section.items, of_step=section.kind == "step")


@register.simple_tag(takes_context=True)
def event_link(context: template.Context, first: int, last: int = 0) -> SafeString:
    """The seq of an item in the gutter: 4–6, linked to the raw log."""
    words = f"{first:,}–{last:,}" if last > first else f"{first:,}"
    url = _event_url(context, first)
    return format_html('<a class="ev__seq" href="{}" aria-label="Event {} in the raw log">{}</a>', url, words, words)


@register.simple_tag(takes_context=True)
def said(context: template.Context, text: shapes.Text | None) -> SafeString:
    """Somebody's own words, as a quote; long ones begin."""
    if text is None or not (text.erased or text.text.strip()):
        return mark_safe("")
    words = one_line(text.text, LONG) if len(text.text) > LONG else rendition(text.text.strip())
    return format_html('<blockquote class="said">{}</blockquote>', _erased(text) or _marked(context, unbroken(words)))


@register.simple_tag
def datum(name: str, value: str) -> SafeString:
    """A value of an event's data: an id and a digest short, with all of it to copy; a plain word or number in the page's own letters."""
    if as_uuid(value) is not None or re.fullmatch(r"[0-9a-f]{64}", value):
        return digest(value) if as_uuid(value) is None else _copied(value)
    if (at := moment(value)) is not None and len(value) > 12:
        return format_html("{} UTC", f"{at.astimezone(UTC):%-d %b %Y, %H:%M:%S}")
    if value in ("true", "false"):
        return escape("Yes" if value == "true" else "No")
    if name.endswith("_ms") and value.isdecimal() or name == "ms":
        return escape(f"{int(value):,} ms")
    if name in ("step", "tool"):
        title = titles.of_tool(value) if name == "tool" else titles.of_step(shapes.Step(value))
        return format_html('{} <span class="mono xs dim wrap">{}</span>', title, value)
    if value.isdecimal() or re.fullmatch(r"[a-z][a-z_]*", value) and name in ENUMS:
        return escape(value.replace("_", " "))
    return format_html('<span class="mono xs wrap">{}</span>', value)


@register.filter
def excerpt(text: shapes.Text) -> SafeString:
    """What a text says or holds, in a line: of a message its body's first sentences, of a record how much it holds."""
    if _erased(text):
        return _erased(text)
    if text.media_type.startswith(("application/json", "text/csv")):
        holds = made.held_in(text)
        return _text(holds) if isinstance(holds, shapes.Text) else escape(holds)
    if not text.media_type.startswith(("text/", "message/")):
        return one_line(text.text, QUOTED)  # what stands in the place of bytes is nobody's words
    return quote(gist(made.body_of(text).text[:LOOKED_AT], QUOTED), 2 * QUOTED)


def _copied(pk: str) -> SafeString:
    short = f"{pk[:8]}…{pk[-4:]}"
    button = format_html(
        '<button type="button" data-copy="{}" aria-label="Copy all of {}">{}</button>', pk, short, icon("copy", small=True)
    )
    return format_html('<span class="digest"><span title="{}">{}</span>{}</span>', pk, short, button)


@register.filter
def tool_title(name: str) -> str:
    return titles.of_tool(name)


@register.filter
def has_undo(name: str) -> bool:
    """Whether what a tool did can be undone by another."""
    return name in TOOLS and bool(TOOLS[name].compensate)


@register.filter
def field_word(name: str) -> str:
    """A name of the log as people write it: “Took” for ms, “Wait” for wait_ms."""
    words = "took" if name == "ms" else name.removesuffix("_ms").replace("_", " ")
    return words[:1].upper() + words[1:]


@register.filter
def label_word(name: str) -> str:
    """How sensitive something is, in words alone."""
    return LABELS.get(name, (4, "Unlabelled"))[1]


@register.filter
def short_key(text: str) -> SafeString:
    """A key or name in type; of a long id the beginning and the end, as the raw log has the whole of it."""
    if as_uuid(text) is None:
        return format_html("<code>{}</code>", text)
    return format_html('<code title="{}">{}…{}</code>', text, text[:8], text[-4:])


@register.simple_tag
def wording(text: shapes.Text | None, otherwise: str = "") -> SafeString:
    """A short text of the log; `otherwise` where there is none."""
    return _text(text) if text is not None else escape(otherwise)


def _part(context: template.Context, part: shapes.Part) -> str:
    if isinstance(part, str):
        return escape(part)
    if isinstance(part, shapes.At):
        return format_html('<a class="num" href="{}">#{}</a>', _event_url(context, part.seq), grouped(part.seq))
    if isinstance(part, shapes.Who):
        return format_html("<b>{}</b>", name_of(part, _names(context), context["run"]))
    return DRAWN[type(part)](part)


def _flat(context: template.Context, part: shapes.Part) -> str:
    match part:
        case shapes.At(seq=seq):
            return f"#{grouped(seq)}"
        case shapes.File(name=name):
            return escape(name)
        case shapes.Elsewhere(ref=ref):
            return escape(ref)
        case shapes.Text():
            return _erased(part) or one_line(part.text, QUOTED)
    return _part(context, part)


def _event_url(context: template.Context, seq: int) -> str:
    return reverse("runs:event", args=(context["run"].pk, seq))


def _names(context: template.Context) -> dict[str, str]:
    return context["view"].names if "view" in context else context["names"]


def _text(text: shapes.Text) -> SafeString:
    return _erased(text) or one_line(text.text, LONG)


@register.filter(name="gone")
def _erased(text: shapes.Text) -> SafeString:
    """Who erased it, and when; nothing of what is there."""
    if not text.erased:
        return mark_safe("")
    when = clock_(datetime.fromisoformat(text.erased_at))
    return format_html('<span class="dim">Erased by {}, {}</span>', text.erased_by or "somebody", when)


def _changed(part: shapes.Changed) -> str:
    before = format_html("<del>{}</del>", _text(part.before)) if part.before else ""
    after = format_html("<ins>{}</ins>", _text(part.after)) if part.after else ""
    return format_html("{}{}{}", before, " " if before and after else "", after)


def _difference(part: shapes.Difference) -> str:
    return format_html_join(" ", "{}", ((_piece(piece),) for piece in made.differences(part.before, part.after, hides=part.hides)))


def _piece(piece: shapes.Piece) -> SafeString:
    words = one_line(piece.text, LONG)
    if piece.kind == "same":
        return words
    if piece.kind == "more":
        return format_html('<span class="dim">{}</span>', words)
    return format_html("<ins>{}</ins>", words) if piece.kind == "ins" else format_html("<del>{}</del>", words)


def _elsewhere(part: shapes.Elsewhere) -> str:
    """Whoever may see one run of a workspace may see them all."""
    if as_uuid(part.run) is None:
        return escape(part.ref)
    url = reverse("runs:event", args=(part.run, part.seq)) if part.seq else reverse("runs:run", args=(part.run,))
    return format_html('<a class="num" href="{}">{}{}</a>', url, part.ref, f" #{grouped(part.seq)}" if part.seq else "")


DRAWN: dict[type, Callable[[Any], str]] = {
    shapes.Text: _text,
    shapes.Elsewhere: lambda part: _elsewhere(part),
    shapes.Code: lambda part: short_key(part.text),
    shapes.File: lambda part: format_html('<a href="{}">{}</a>', reverse("artifacts:artifact", args=(part.id,)), part.name),
    shapes.Moment: lambda part: clock_(part.at),
    shapes.Took: lambda part: spell(part.ms / 1000),
    shapes.Tool: lambda part: escape(titles.of_tool(part.name)),
    shapes.One: lambda part: escape(titles.one_of(part.tool)),
    shapes.Step: lambda part: escape(titles.of_step(part)),
    shapes.Quote: lambda part: _erased(part.text) or quote(gist(part.text.text[:LOOKED_AT], QUOTED), 2 * QUOTED),
    shapes.Changed: _changed,
    shapes.Difference: _difference,
    shapes.Label: lambda part: sensitivity(part.name),
    shapes.Tag: lambda part: format_html('<span class="tag">{}</span>', part.text),
}
