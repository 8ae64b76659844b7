"""Warnings about the HTML part of an e-mail: what it hides, does and loads, and what only one of its two parts says. Pure.

It looks where the card of an e-mail looks, so that what is warned of is what is drawn.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from approvals.both_parts import Difference, compare
from approvals.canonical import CanonicalAction, pointer
from approvals.cards import email
from approvals.findings import NOTE, WARN, Facts, Warning
from artifacts import markup
from artifacts.markup import Reading, host_of

SHOWN = 5  # hosts and reasons that are named


def html_part(action: CanonicalAction, facts: Facts) -> Iterator[Warning]:
    """Everything to say about an e-mail that is sent as HTML as well."""
    name = email.html_name(action.arguments)
    if facts.kind != "email" or not name:
        return
    path, reading = pointer("arguments", name), markup.read(action.arguments[name])
    yield from _itself(reading, path)
    yield from _loaded(reading, path)
    text = email.text_of(action.arguments)
    if not text.strip():
        yield Warning("html_without_text", NOTE, path)
        return
    yield from _differs(compare(text, reading), path)


def _itself(reading: Reading, path: str) -> Iterator[Warning]:
    if reading.unseen:
        whys = _listed(each.why for each in reading.unseen)
        yield Warning("hidden_text", WARN, path, {"count": len(reading.unseen), "kind": whys})
    if reading.comments:
        yield Warning("html_comments", WARN, path, {"count": len(reading.comments)})
    if reading.does:
        yield Warning("html_does", WARN, path, {"kind": _listed(reading.does)})
    if reading.sheets:
        yield Warning("html_style_sheet", NOTE, path, {"count": reading.sheets})
    if reading.over:
        yield Warning("html_too_much", WARN, path, {"kind": _listed(reading.over)})


def _loaded(reading: Reading, path: str) -> Iterator[Warning]:
    if reading.remote:
        kind = ", ".join(
            f"{count} remote {what}{'' if count == 1 else 's'}" for what, count in Counter(r.what for r in reading.remote).items()
        )
        yield Warning("html_remote", NOTE, path, {"kind": kind, "shown": _listed(each.host for each in reading.remote)})
    if reading.embedded:
        yield Warning("html_embedded", NOTE, path, {"count": reading.embedded})


def _differs(difference: Difference, path: str) -> Iterator[Warning]:
    if difference.words:
        yield Warning("parts_differ", WARN, path, {"count": difference.words})
    if difference.order:
        yield Warning("parts_in_other_order", WARN, path)
    links = (*difference.links_only_text, *difference.links_only_html)
    if links:
        yield Warning("parts_link_differently", WARN, path, {"count": difference.links, "shown": _listed(map(_whither, links))})


def _whither(link: str) -> str:
    """The host of a link, or of an address: its name before the @ is the action's to say."""
    if link.lower().startswith("mailto:") or ":" not in link and not link.startswith("//"):
        return link.partition("?")[0].rpartition("@")[2][:253].casefold()
    scheme = link.partition(":")[0].lower()
    return host_of(link) if scheme in ("http", "https", "ftp") or link.startswith(("/", "\\")) else f"{scheme[:30]}:"


def _listed(words: Iterable[str]) -> str:
    each = list(dict.fromkeys(words))
    return ", ".join(each[:SHOWN]) + (f" and {len(each) - SHOWN} more" if len(each) > SHOWN else "")


CHECKS = (html_part,)
