"""`{% load handrail %}`: how a state, a time, a digest, a person or a hostile text is drawn. Pure: no query, no clock but `config.clock`.

Every tag escapes what it is given and answers safe HTML. docs/frontend.md lists them.
"""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from access import characters, rules, wording
from config import clock

register = template.Library()
_LONG_WORD = re.compile(r"(\S{80})(?=\S)")

# key → (what the style sheet colours by, icon, word)
STATES: Final[Mapping[str, tuple[str, str, str]]] = {
    # what steps, actions and runs have in common
    "waiting": ("waiting", "wait", "Waiting"),
    "running": ("running", "run", "Running"),
    "done": ("done", "done", "Done"),
    "failed": ("failed", "fail", "Failed"),
    "undone": ("undone", "undo", "Undone"),
    "planned": ("planned", "plan", "Planned"),
    "paused": ("paused", "pause", "Paused"),
    "cancelled": ("cancelled", "stop", "Cancelled"),
    # runs
    "queued": ("running", "run", "Running"),
    "parked": ("failed", "fail", "Stuck"),
    "stalled": ("failed", "fail", "Stuck"),
    "cancelling": ("undone", "undo", "Undoing"),
    "compensating": ("undone", "undo", "Undoing"),
    "succeeded": ("done", "done", "Done"),
    # actions
    "proposed": ("waiting", "wait", "Waiting"),
    "unknown": ("waiting", "wait", "Outcome unknown"),
    "approved": ("done", "done", "Approved"),
    "granted": ("running", "run", "Approved, not run yet"),
    "delivered": ("running", "run", "Approved, not run yet"),
    "redeemed": ("running", "run", "Being run"),
    "executed": ("done", "done", "Done"),
    "verified": ("done", "done", "Done"),
    "rejected": ("cancelled", "stop", "Rejected"),
    "refused": ("failed", "fail", "Refused"),
    "expired": ("cancelled", "stop", "Expired"),
    "withdrawn": ("cancelled", "stop", "Withdrawn"),
    "superseded": ("cancelled", "stop", "Replaced"),
    "recalled": ("undone", "undo", "Recalled"),
    # checks
    "pass": ("done", "done", "Pass"),
    "fail": ("failed", "fail", "Fail"),
    "not_yet": ("planned", "plan", "Not yet"),
}
LABELS: Final[Mapping[str, tuple[int, str]]] = {
    "public": (1, "Public"),
    "internal": (2, "Internal"),
    "personal": (3, "Personal data"),
    "secret": (4, "Secret"),
}
HOT = timedelta(minutes=15)
DAY = timedelta(days=1)
# (URL name, word, capabilities, of which one will do)
NAV: Final = (
    ("approvals:inbox", "Inbox", ("approvals.view",)),
    ("runs:list", "Runs", ("runs.view",)),
    ("runs:recovery", "Recovery", ("runs.recover",)),
    ("access:permissions", "Permissions", ("access.manage", "policies.manage", "audit.view")),
)

# rooms whose pages stand elsewhere too
ALSO: Final[Mapping[str, tuple[str, ...]]] = {"access:permissions": ("approvals:policies", "approvals:groups")}


@register.simple_tag
def icon(name: str, label: str = "", small: bool = False) -> SafeString:
    """An icon of the sprite. Silent unless it has a label of its own."""
    size = "i s" if small else "i"
    if label:
        return format_html('<svg class="{}" role="img" aria-label="{}"><use href="#i-{}"></use></svg>', size, label, name)
    return format_html('<svg class="{}" aria-hidden="true"><use href="#i-{}"></use></svg>', size, name)


@register.simple_tag
def state(key: str, word: str = "", pill: bool = False) -> SafeString:
    """Shape, word and colour of a state. A key nobody knows is drawn in ink under its own name."""
    colour, form, usual = STATES.get(str(key), ("", "minus", str(key).replace("_", " ").capitalize()))
    return format_html('<span class="{}" data-s="{}">{}{}</span>', "st pill" if pill else "st", colour, icon(form), word or usual)


@register.filter
def shade(key: str) -> str:
    """The `data-s` of a state key, for parts that are coloured as a whole."""
    return STATES.get(str(key), ("", "", ""))[0]


@register.filter
def shape(key: str) -> str:
    """The icon name of a state key."""
    return STATES.get(str(key), ("", "minus", ""))[1]


@register.simple_tag
def sensitivity(label: str) -> SafeString:
    """A payload's label: filled bars and its name. What has no known label counts as the highest."""
    level, word = LABELS.get(str(label), (4, "Unlabelled"))
    return format_html('<span class="label" data-n="{}">{}</span>', level, word)


@register.simple_tag
def redacted(what: str = "hidden", reveal: str = "") -> SafeString:
    """In place of a value that is not in the page. `reveal` is the id of the dialog that asks for it; none means no Reveal."""
    button = (
        format_html('<button type="button" command="show-modal" commandfor="{}" aria-label="Reveal {}">Reveal</button>', reveal, what)
        if reveal
        else ""
    )
    return format_html('<span class="redacted">{}{}{}</span>', icon("lock", small=True), what, button)


@register.simple_tag
def digest(value: str | bytes, chars: int = 12, copy: bool = True, key: str = "") -> SafeString:
    """A digest in groups of four; the button copies the whole of it. `chars=0` shows all. `key` is the key that copies."""
    whole = value.hex() if isinstance(value, bytes) else str(value).removeprefix("sha256:")
    shown = whole[:chars] if chars else whole
    grouped = " ".join(shown[at : at + 4] for at in range(0, len(shown), 4))
    if not copy:
        return format_html('<span class="digest">{}</span>', grouped)
    shortcut = format_html(' data-key="{}"', key) if key else ""
    return format_html(
        '<span class="digest"><span>{}</span><button type="button" data-copy="{}" aria-label="Copy full digest {}"{}>{}</button></span>',
        grouped,
        whole,
        grouped,
        shortcut,
        icon("copy", small=True),
    )


HOW: Final[Mapping[str, str]] = {
    "password": "by password",
    "password+totp": "by password and code",
    "password+recovery": "by password and recovery code",
    "password+passkey": "by password and passkey",
    "passkey": "by passkey",
    "sso": "by single sign-on",
    "demo": "as a demo person",
}


@register.simple_tag
def how(signed_in: str) -> str:
    """How somebody signed in."""
    return HOW.get(signed_in, "in a way that is not known")


@register.simple_tag
def fuse(until: datetime | None, since: datetime | None = None, form: str = "short") -> SafeString:
    """A deadline that burns down. `form`: "short" (44 min), "left" (44 min left), "long" (44 min left, until 15:15).

    All bars have one scale, so that those of a queue can be compared: see `left_of`. Without `since` it is full until the deadline passes.
    """
    if until is None:
        return mark_safe("")
    start = since or until
    now = clock.now()
    percent, hot = left_of(start, until, now), " hot" if is_hot(start, until, now) else ""
    return format_html(
        '<span class="fuse{}" data-p="{}" data-since="{}" data-until="{}">{}</span>',
        hot,
        percent,
        _iso(start),
        _iso(until),
        _time(until, f"left-{form}", f"until {_utc(until)}"),
    )


def left_of(since: datetime, until: datetime, now: datetime) -> int:
    """The time left as a bar, 0…100: full from a day on, half at two hours and a half, an eighth at ten minutes.

    What never had more than a quarter of an hour burns down evenly from full.
    """
    left, whole = until - now, until - since
    if left <= timedelta() or whole <= timedelta():
        return 100 if left > timedelta() else 0
    share = left / whole if whole <= HOT else math.log1p(left / HOT) / math.log1p(DAY / HOT)
    return min(100, max(1, round(100 * share)))


def is_hot(since: datetime, until: datetime, now: datetime) -> bool:
    """In the last quarter of an hour, but not from the start."""
    left = max(until - now, timedelta())
    return left <= HOT and left * 2 <= until - since


@register.simple_tag
def ago(when: datetime | None) -> SafeString:
    """How long ago; until the script has run, and on paper, when."""
    return _time(when, "ago", _utc(when)) if when else mark_safe("")


@register.simple_tag(name="clock")
def clock_(when: datetime | None, css: str = "", seconds: bool = False) -> SafeString:
    """A time of day in the viewer's zone, with the date if it is not today."""
    return _time(when, "clock-s" if seconds else "clock", _utc(when, seconds), css) if when else mark_safe("")


@register.simple_tag
def drawn_at() -> SafeString:
    """When this page was drawn."""
    now = clock.now()
    return _time(now, "clock", f"{now:%H:%M} UTC")


@register.simple_tag
def duration(start: datetime | timedelta | float | None, end: datetime | None = None) -> SafeString:
    """How long something took: a span, seconds, or from start to end. From a start alone it counts on ("18 min so far")."""
    if start is None:
        return mark_safe("")
    if isinstance(start, datetime) and end is None:
        return _time(start, "so-far", f"since {_utc(start)}")
    span = end - start if isinstance(start, datetime) and end else start
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)  # type: ignore[arg-type]
    return format_html('<time datetime="PT{}S">{}</time>', f"{max(seconds, 0):g}", spell(seconds))


def spell(seconds: float) -> str:
    """Seconds in words: 0.4 s, 38 s, 4 min, 2 h 10, 3 days. Two units at most, never more exact than people care."""
    seconds = max(seconds, 0)
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds % 1 >= 0.05 else f"{seconds:.0f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = int(seconds / 60 + 0.5) if seconds < 3570 else int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02d}" if minutes % 60 else f"{minutes // 60} h"
    days = minutes // (24 * 60)
    return f"{days} days" if days > 1 else "1 day"


@register.simple_tag
def person(name: str, small: bool = False, named: bool = False) -> SafeString:
    """A person's initials in a circle, silent; with `named` the name beside it."""
    circle = format_html('<span class="{}" aria-hidden="true">{}</span>', "avatar av-s" if small else "avatar", initials(name))
    return format_html("{} <b>{}</b>", circle, name) if named else circle


@register.filter
def initials(name: str) -> str:
    """First letters of the first and the last word: JW. "?" for a name without a letter."""
    words = [[char for char in word if char.isalnum()] for word in str(name).split()]
    letters = [word[0] for word in words if word]
    if not letters:
        return "?"
    return (letters[0] if len(letters) == 1 else letters[0] + letters[-1]).upper()


@register.simple_tag
def bytesize(count: int) -> SafeString:
    """A size for people, in steps of a thousand; the exact number stands in the title."""
    exact = f"{int(count):,} byte" + ("" if int(count) == 1 else "s")
    size, unit = float(count), "bytes"
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5 or unit == "GB":
            break
        size /= 1000
    text = exact if unit == "bytes" else f"{size:.0f} {unit}" if size >= 9.95 else f"{size:.1f} {unit}"
    return format_html('<data value="{}" title="{}">{}</data>', int(count), exact, text)


@register.simple_tag
def num(value: int | float | str) -> SafeString:
    """A figure that lines up with others: thousands apart."""
    return format_html('<span class="num">{}</span>', f"{value:,}" if isinstance(value, int | float) else value)


@register.filter
def grouped(value: object) -> object:
    """A number with thousands apart: #2,352. What is no number is drawn as it is, and None not at all."""
    return f"{value:,}" if isinstance(value, int) else "" if value is None else value


@register.simple_tag
def glyphs(text: object) -> SafeString:
    """A text as it is, nothing lost: what cannot be seen is drawn with its code point, what passes for another letter is marked.

    Its direction stays its own. A long run of different hidden characters is drawn as one mark that counts them, so that the page
    stays in proportion to the text.
    """
    drawn = [hidden(part) if isinstance(part, list) else _seen(part) for part in characters.parts(str(text))]
    return mark_safe(f"<bdi>{''.join(drawn)}</bdi>")  # noqa: S308  each part was escaped


def hidden(run: Sequence[characters.Hidden]) -> SafeString:
    """Characters that are not seen, each by its code point; of many different ones in a row their number."""
    if len(run) > 8:
        count = sum(one.count for one in run)
        codes = sorted({one.code for one in run}, key=lambda code: int(code[2:], 16))
        listed = ", ".join(codes[:12]) + (f" and {len(codes) - 12} more" if len(codes) > 12 else "")
        return format_html('<span class="glyph" title="{}">{} hidden characters</span>', listed, f"{count:,}")
    return format_html_join(
        "",
        '<span class="glyph" title="{}">{}{}</span>',
        ((one.name, one.code, f" ×{one.count:,}" if one.count > 1 else "") for one in run),
    )


def _seen(text: str) -> SafeString:
    pieces = characters.lookalikes(text)
    return format_html_join("", "{}", ((breakable(piece) if isinstance(piece, str) else _lookalike(piece),) for piece in pieces))


def breakable(text: str) -> SafeString:
    """A text, escaped, with places to break in its very long words.

    Without them a browser lays out a word again for each line that it fills: one of 64,000 letters kept Chromium for 18 seconds.
    """
    pieces = _LONG_WORD.split(text)  # every other one is a stretch of a word that goes on
    return mark_safe("".join(escape(piece) + ("<wbr>" if at % 2 else "") for at, piece in enumerate(pieces)))  # noqa: S308


def _lookalike(letter: characters.Lookalike) -> SafeString:
    return format_html('<span class="glyph" title="{}, {}">{}</span>', letter.name, letter.code, letter.char)


@register.simple_tag(takes_context=True)
def theme(context: template.Context) -> SafeString:
    """`data-theme` for <html>, from the cookie; nothing when the system decides."""
    chosen = theme_choice(context)
    return format_html(' data-theme="{}"', chosen) if chosen != "system" else mark_safe("")


@register.simple_tag(takes_context=True)
def theme_choice(context: template.Context) -> str:
    """light, dark, or system, which is the default."""
    request = context.get("request")
    chosen = request.COOKIES.get("theme", "") if request else ""
    return chosen if chosen in ("light", "dark") else "system"


@register.simple_tag
def server_now() -> str:
    """The server's time, so that a page counts down by it and not by the viewer's clock."""
    return _iso(clock.now())


@register.simple_tag(takes_context=True)
def ask_for(context: template.Context, capability: str = "", otherwise: str = "") -> str:
    """Whom to ask who lacks a right: who can do it, and who can give it. `otherwise`: what is said where nobody can be named."""
    actor = getattr(context.get("request"), "actor", None) or rules.NOBODY
    able, admins = (either(names) for names in rules.others_with_each(actor, capability, "access.manage"))
    told = (f"{able} can do it." if able else "", f"{admins} can give you the right." if admins else "")
    return " ".join(filter(None, told)) or otherwise


@register.simple_tag(takes_context=True)
def admins(context: template.Context, otherwise: str = "") -> str:
    """Who of the reader's workspace can let somebody in, by name."""
    return either(rules.others_with(getattr(context.get("request"), "actor", None) or rules.NOBODY, "access.manage")) or otherwise


@register.filter
def either(names: Sequence[str]) -> str:
    """Ada or Otto; of many the first, and how many there are beside."""
    return wording.listed(names, "or", most=wording.MOST)


@register.simple_tag(takes_context=True)
def nav(context: template.Context) -> list[dict[str, Any]]:
    """The rooms this person may enter and that exist: [{name, word, url, here}]. No dead links. A page elsewhere sets `room`."""
    request = context.get("request")
    actor = getattr(request, "actor", None)
    if actor is None or not actor.is_known:
        return []
    rooms = []
    for name, word, capabilities in NAV:
        url = nav_url(name)
        if url and any(actor.somewhere(each) for each in capabilities):
            places = [url, *filter(None, map(nav_url, ALSO.get(name, ())))]
            within = any(request.path == each or request.path.startswith(each.rstrip("/") + "/") for each in places)
            here = context.get("room") == word.lower() or within
            rooms.append({"name": word.lower(), "word": word, "url": url, "here": here})
    return rooms


@register.simple_tag(takes_context=True)
def holds(context: template.Context, capability: str) -> bool:
    """Whether who looks holds this capability anywhere."""
    return bool(context["request"].actor.somewhere(capability))


@register.simple_tag
def nav_url(name: str) -> str:
    """The address of a named page, or nothing while it does not exist."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


def _time(when: datetime, kind: str, text: str, css: str = "") -> SafeString:
    """`static/js/times.js` rewrites the text by `data-time`; what stands here is true without it."""
    style = format_html(' class="{}"', css) if css else ""
    return format_html('<time{} datetime="{}" data-time="{}">{}</time>', style, _iso(when), kind, text)


def _iso(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _utc(when: datetime, seconds: bool = False) -> str:
    utc = when.astimezone(UTC)
    return f"{utc.day} {utc:%b %Y}, {utc:%H:%M:%S} UTC" if seconds else f"{utc.day} {utc:%b %Y}, {utc:%H:%M} UTC"
