"""A letter: who it is from and for, its subject, its text, its HTML and its files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from approvals.both_parts import compare
from approvals.canonical import CanonicalAction, pointer
from approvals.cards.drawing import address, address_in, attachments, how, outside, reaching, rest, sum_of, take, warns_at
from approvals.cards.parts import MOST_ROWS, Address, Card, Field, Html, Line, Setting
from artifacts import markup

# names under which tools carry the parts of a message
FROM = ("from", "from_", "from_address", "sender")
TO, CC, BCC = ("to", "recipients"), ("cc",), ("bcc",)
REPLY_TO = ("reply_to",)
HEADERS = {"in_reply_to": "In-Reply-To", "message_id": "Message-ID"}
SUBJECT, BODY, HTML = ("subject",), ("body", "text"), ("html", "body_html", "html_body")


ACROSS = 42  # characters on a line of the frame
FEWEST_ROWS = 6
CLOSE = re.compile(r"<(?:li|br)\b", re.IGNORECASE)


def draw(action: CanonicalAction, setting: Setting) -> Card:
    """From, To, Cc, Bcc, Reply-To, Subject, the letter and its files in the open; other headers and how it is run folded and counted.

    HTML is drawn beside the text; its source, which is what is signed, is folded and counted.
    """
    left = dict(action.arguments)
    addressed = [
        _addressed(action, setting, left, names, title)
        for names, title in ((FROM, "From"), (TO, "To"), (CC, "Cc"), (BCC, "Bcc"), (REPLY_TO, "Reply-To"))
    ]
    subject = take(setting, left, SUBJECT, title="Subject", bold=True)
    letter = take(setting, left, BODY, title="Message")
    if letter is not None and not isinstance(letter.value, str):
        left[letter.name], letter = letter.value, None
    html = _html(action, setting, left)
    fields = [each for each in (*addressed, subject) if each]
    fields = reaching(action, setting, fields)
    headers = tuple(replace(each, title=HEADERS.get(each.name, each.title)) for each in rest(setting, left))
    return Card(
        kind="email",
        icon="mail",
        heading="",
        tool=action.tool,
        fields=tuple(fields),
        letter=letter,
        html=html,
        files=attachments(action, setting),
        folded=(*headers, *how(action)),
        lines=(_sending(action),),
        raw=dict(action.arguments),
        unit="e-mail",
        verb="send",
        facts=sum_of((len(action.recipients), "recipient"), (len(action.attachments), "attachment")),
    )


def html_name(arguments: Mapping[str, Any]) -> str:
    """Under which name the arguments hold HTML; empty if they hold none."""
    return next((each for each in HTML if isinstance(arguments.get(each), str) and arguments[each].strip()), "")


def text_of(arguments: Mapping[str, Any]) -> str:
    """The text that stands beside the HTML."""
    found = next((arguments[each] for each in BODY if each in arguments), "")
    return found if isinstance(found, str) else ""


def _html(action: CanonicalAction, setting: Setting, left: dict[str, Any]) -> Html | None:
    """The HTML part; of a redacted one only its source is told, for nothing can be read in it."""
    name = html_name(left)
    if not name:
        return None
    source, path = left.pop(name), pointer("arguments", name)
    warns = warns_at(setting, path)
    if setting.masked:
        return Html(path, "HTML", name, source, warns=warns)
    reading = markup.read(source)
    return Html(
        path,
        "HTML",
        name,
        source,
        unseen=tuple((each.why, each.text) for each in reading.unseen),
        comments=tuple(reading.comments),
        links=tuple((each.shown, each.to) for each in reading.links),
        unlike=compare(text_of(action.arguments), reading),
        rows=_rows(source, reading.text),
        warns=warns,
    )


def _rows(source: str, seen: str) -> int:
    """How many lines HTML takes in the narrow frame beside its text: a frame without scripts can’t say so itself.

    A block has a line of space below it, an item of a list and a line after `<br>` have none.
    """
    blocks = [each for each in seen.splitlines() if each.strip()]
    lines = sum(ceil(len(each) / ACROSS) for each in blocks)
    close = len(CLOSE.findall(source))
    rows = lines + ceil(0.8 * max(len(blocks) - close, 0)) + bool(close)
    return min(max(rows + rows % 2, FEWEST_ROWS), MOST_ROWS)


def _addressed(action: CanonicalAction, setting: Setting, left: dict[str, Any], names: Sequence[str], title: str) -> Field | None:
    name = next((each for each in names if each in left), None)
    if name is None:
        return None
    path, value = pointer("arguments", name), left[name]
    texts = [value] if isinstance(value, str) and value else value or []
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        return None  # not addresses after all: drawn with the rest, as it is
    del left[name]
    places = [path if isinstance(value, str) else f"{path}/{i}" for i in range(len(texts))]
    reached = {address_in(text) for text in texts}
    covers = tuple(pointer("recipients", i) for i, to in enumerate(action.recipients) if address_in(to) in reached)
    addresses = tuple(_told(address(text, at, setting, action.recipients), names) for text, at in zip(texts, places, strict=True))
    beside = tuple(warn for warn in setting.warns if warn.at == path and path not in places)
    empty = not addresses
    return Field(path, title, name, value, "nobody" if empty else "addresses", addresses, beside, covers=covers)


def _told(found: Address, names: Sequence[str]) -> Address:
    """Of who sends nothing is told beside it; of where answers go not how often it was written to, for this is not sent there."""
    if names is FROM:
        return replace(found, outside=False, sent=None)
    return replace(found, sent=None) if names is REPLY_TO else found


def _sending(action: CanonicalAction) -> Line:
    via = f" through {outside(action.target)}" if action.target else ""
    if action.executor == "agent":
        return Line("/executor", "Send", f"Run by the agent{via}; Handrail cannot see the call.", ("/target",))
    return Line("/executor", "Send", f"On approval, only once, by Handrail{via}.", ("/target",))
