"""What an e-mail message (RFC 5322, MIME) says, for a person to look at. Made for hostile and broken messages: bounded, and never raises
for what is in them.

The standard library's parser finds the parts, under its oldest policy: the newer ones parse headers by grammar, and raise or take
quadratic time on input made for it. Headers, addresses and HTML are read here, each in one pass.
"""

import base64
import hashlib
import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any

from access.errors import BadInput
from artifacts.charsets import decode

MAX_BYTES = 12 * 1024 * 1024
MAX_TEXT = 256 * 1024  # characters of the body
MAX_PARTS = 200
MAX_NESTING = 32  # multiparts and messages within each other
MAX_HEADER = 2000  # characters of a header that are shown
MAX_ADDRESSES = 500
_FAULTS = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    RecursionError,
    UnicodeError,
)  # what the library raises on broken input
_EXPECTED = frozenset({"from", "to", "subject", "date", "message-id", "mime-version", "received", "return-path", "sender", "reply-to"})


class NotAMessage(BadInput, ValueError):
    """This is not an e-mail message."""

    what_next = "Save the message as .eml in your mail program, or paste it with its From and Subject lines."


@dataclass(frozen=True)
class Address:
    """A mailbox: the name that its sender chose, and the address."""

    name: str
    address: str

    def __str__(self) -> str:
        return f"{self.name} <{self.address}>" if self.name else self.address


@dataclass(frozen=True)
class Attached:
    """A part that is not the body: its decoded size in bytes, and the SHA-256 of its decoded bytes in hex."""

    name: str
    media_type: str
    size: int
    sha256: str


@dataclass(frozen=True)
class MessagePreview:
    """What a message says. All text is the sender's: show it as text, redacted. `problems` are sentences on what is wrong with it."""

    sender: Address
    reply_to: tuple[Address, ...]
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    subject: str
    date: datetime | None
    text: str
    html_present: bool
    attachments: tuple[Attached, ...]
    problems: tuple[str, ...]

    def as_text(self) -> str:
        """Headers, body and attachments as one plain text."""
        named = (("From", [self.sender]), ("Reply-To", self.reply_to), ("To", self.to), ("Cc", self.cc))
        lines = [f"{name}: {', '.join(map(str, addresses))}" for name, addresses in named if addresses]
        lines.append(f"Subject: {self.subject}")
        if self.date:
            lines.append(f"Date: {self.date:%d %B %Y, %H:%M} UTC")
        lines += ["", self.text]
        if self.attachments:
            lines += ["", *(f"Attached: {a.name} ({a.media_type}, {a.size:,} bytes)" for a in self.attachments)]
        return "\n".join(lines)


def preview(raw: bytes) -> MessagePreview:
    """Read a message. Raises NotAMessage if it is empty, larger than MAX_BYTES, or has none of the headers that every message has."""
    if len(raw) > MAX_BYTES:
        raise NotAMessage(f"{len(raw):,} bytes; a message of at most {MAX_BYTES:,} is read.")
    problems: list[str] = []
    message = _parsed(raw, problems)
    headers = _headers(message)
    if not _EXPECTED & headers.keys():
        raise NotAMessage
    body = _Body()
    body.read(message, problems)
    senders = _addresses(headers.get("from", []), problems)
    reply_to = _addresses(headers.get("reply-to", []), problems)
    _doubt(headers, senders, reply_to, problems)
    return MessagePreview(
        sender=senders[0] if senders else Address("", ""),
        reply_to=reply_to,
        to=_addresses(headers.get("to", []), problems),
        cc=_addresses(headers.get("cc", []), problems),
        subject=_shown(_words(headers.get("subject", [""])[0])),
        date=_date(headers.get("date", [""])[0], problems),
        text=body.text(problems),
        html_present=bool(body.html),
        attachments=tuple(body.attachments),
        problems=tuple(dict.fromkeys(problems)),
    )


# Parts


def _parsed(raw: bytes, problems: list[str]) -> Message:
    lowered = raw.lower()
    if lowered.count(b"boundary=") <= MAX_NESTING and lowered.count(b"message/") <= MAX_NESTING:
        try:
            return message_from_bytes(raw, policy=policy.compat32)
        except _FAULTS:
            pass
    # each line is compared with each open boundary, so that deep nesting would cost size × depth
    problems.append("Its parts are nested deeper than Handrail reads; all of them are shown as one text.")
    head, _, rest = raw.replace(b"\r\n", b"\n").partition(b"\n\n")
    plain = b"\n".join(line for line in _unfolded(head).split(b"\n") if not line.lower().startswith(b"content-"))
    return message_from_bytes(plain + b"\n\n" + rest, policy=policy.compat32)


def _unfolded(head: bytes) -> bytes:
    return re.sub(rb"\n[ \t]+", b" ", head)


class _Body:
    """The parts of a message, sorted into plain text, HTML and attachments."""

    def __init__(self) -> None:
        self.plain: list[str] = []
        self.html: list[str] = []
        self.attachments: list[Attached] = []

    def read(self, message: Message, problems: list[str]) -> None:
        for count, part in enumerate(_leaves(message)):
            if count == MAX_PARTS:
                problems.append(f"It has more than {MAX_PARTS} parts; the others are not shown.")
                break
            if part.defects:
                problems.append("Its structure is broken; parts of it may be missing here.")
            self._sort(part, problems)

    def _sort(self, part: Message, problems: list[str]) -> None:
        content, kind, name = _content(part, problems), _kind(part), _name(part)
        is_body = kind in ("text/plain", "text/html") and not name and _disposition(part) != "attachment"
        if not is_body:
            self.attachments.append(Attached(name or "unnamed", kind, len(content), hashlib.sha256(content).hexdigest()))
            if re.search(r"[/\\\x00-\x1f]|^\.\.?$", name):
                problems.append("An attachment's name is a path, or holds characters that no file name has.")
            return
        read = decode(content, str(_safely(lambda: part.get_param("charset"), "") or ""))
        if read.unread:
            problems.append("Some characters of its text could not be read.")
        (self.plain if kind == "text/plain" else self.html).append(read.text)

    def text(self, problems: list[str]) -> str:
        """The plain text, or what the HTML says if there is no plain text."""
        bodies = self.plain if any(text.strip() for text in self.plain) else map(text_of_html, self.html)
        text = "\n\n".join(bodies)
        text = re.sub(r"\r\n?", "\n", text).replace("\0", "\ufffd").strip("\n")
        if len(text) > MAX_TEXT:
            problems.append(f"Its text is cut after {MAX_TEXT:,} characters.")
        return text[:MAX_TEXT]


def _leaves(message: Message) -> Iterator[Message]:
    """Every part that has no parts, in order, without descending into attached messages: these are attachments as a whole."""
    waiting = [message]
    while waiting:
        part = waiting.pop()
        inner = _safely(part.get_payload, None)
        if isinstance(inner, list) and part.get_content_maintype() != "message":
            waiting.extend(reversed([p for p in inner if isinstance(p, Message)]))
        else:
            yield part


def _content(part: Message, problems: list[str]) -> bytes:
    if part.is_multipart():
        attached: Any = part.get_payload()
        return b"".join(_safely(message.as_bytes, b"") for message in attached)
    content = _safely(lambda: part.get_payload(decode=True), None)
    if isinstance(content, bytes):
        return content
    problems.append("A part of it could not be decoded.")
    return b""


def _kind(part: Message) -> str:
    return _shown(str(_safely(part.get_content_type, "application/octet-stream")))[:100]


def _disposition(part: Message) -> str:
    return str(_safely(part.get_content_disposition, "") or "")


def _name(part: Message) -> str:
    return _shown(_words(str(_safely(part.get_filename, "") or "")))[:255]


def _safely(read: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return read()
    except _FAULTS:
        return otherwise


# Headers


def _headers(message: Message) -> dict[str, list[str]]:
    """Header values by name in lower case, unfolded, in their own bytes read as UTF-8."""
    found: dict[str, list[str]] = {}
    for name, value in message.raw_items():
        raw = str(value).encode("utf-8", "surrogateescape")[: 64 * 1024]
        found.setdefault(name.lower(), []).append(re.sub(r"[\r\n]+[ \t]*", " ", decode(raw).text).strip())
    return found


_WORD = re.compile(r"=\?(?P<charset>[^?\s*]{1,40})(?:\*[^?\s]{0,20})?\?(?P<how>[BbQq])\?(?P<said>[^?\s]{0,4096})\?=(?:\s{1,10}(?==\?))?")


def _words(value: str) -> str:
    """With encoded words (RFC 2047) decoded; what is none stays as it is."""
    return _WORD.sub(_decoded_word, value)


def _decoded_word(match: re.Match[str]) -> str:
    said = match["said"].encode("utf-8")
    if match["how"] in "Qq":
        data = re.sub(rb"=([0-9A-Fa-f]{2})", lambda m: bytes.fromhex(m[1].decode()), said.replace(b"_", b" "))
    else:
        data = _base64(said)
    return decode(data, match["charset"]).text


def _base64(said: bytes) -> bytes:
    clean = re.sub(rb"[^A-Za-z0-9+/]", b"", said)
    clean = clean[: len(clean) - (len(clean) % 4 == 1)]
    return base64.b64decode(clean + b"=" * (-len(clean) % 4))


def _addresses(values: list[str], problems: list[str]) -> tuple[Address, ...]:
    found = [_address(text) for value in values for text in _split(value) if text.strip()]
    if len(found) > MAX_ADDRESSES:
        problems.append(f"A list of addresses is cut after {MAX_ADDRESSES}.")
    if any("@" not in a.address for a in found):
        problems.append("One of its addresses is not an e-mail address.")
    return tuple(found[:MAX_ADDRESSES])


def _split(value: str) -> Iterator[str]:
    """At commas and group marks that are not in quotes, comments or angle brackets."""
    start, quoted, angle, comment, skip = 0, False, False, 0, False
    for i, char in enumerate(value):
        if skip:
            skip = False
        elif char == "\\":
            skip = True
        elif char == '"' and not comment:
            quoted = not quoted
        elif quoted:
            continue
        elif char == "(":
            comment += 1
        elif char == ")" and comment:
            comment -= 1
        elif char in "<>":
            angle = char == "<"
        elif char in ",;" and not (angle or comment):
            yield value[start:i]
            start = i + 1
    yield value[start:]


def _address(text: str) -> Address:
    text = re.sub(r"^[^\"<@:]{0,200}:(?=.{0,300}@)", "", text.strip(), count=1)  # a group's name
    angle = re.fullmatch(r"(?P<name>[^<]*)<(?P<address>[^<>]*)>[^<>]*", text)
    if angle:
        name, address = angle["name"], angle["address"]
    else:
        comment = re.search(r"\(([^()]*)\)\s*$", text)
        name, address = (comment[1], text[: comment.start()]) if comment else ("", text)
    name = re.sub(r"\\(.)", r"\1", name.strip().removeprefix('"').removesuffix('"'))
    return Address(_shown(_words(name)), _shown(address))


def _date(value: str, problems: list[str]) -> datetime | None:
    if not value:
        problems.append("It has no date.")
        return None
    try:
        date = parsedate_to_datetime(value[:200])
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except (*_FAULTS, OverflowError):
        problems.append("Its date cannot be read.")
        return None


def _doubt(headers: dict[str, list[str]], senders: tuple[Address, ...], reply_to: tuple[Address, ...], problems: list[str]) -> None:
    """What a reader should know before believing the headers."""
    if not senders:
        problems.append("It does not say who sent it.")
    if len(senders) > 1:
        problems.append("It names more than one sender; the first is shown.")
    for name in ("from", "to", "subject", "date"):
        if len(headers.get(name, [])) > 1:
            problems.append(f"It has more than one {name.capitalize()} line; mail programs differ in which they show.")
    if any("@" in a.name and a.address.lower() not in a.name.lower() for a in senders):
        problems.append("The sender's name is another address than the one it came from.")
    if senders and reply_to and reply_to[0].address.lower() != senders[0].address.lower():
        problems.append("Replies would go to another address than the one it came from.")


def _shown(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("\0", "\ufffd")).strip()[:MAX_HEADER]


# HTML


def text_of_html(source: str) -> str:
    """What HTML says as plain text: scripts, styles and comments out, blocks on lines of their own, links followed by where they go."""
    parts: list[str] = []
    at = 0
    while (begin := source.find("<", at)) >= 0:
        parts.append(html.unescape(source[at:begin]))
        tag = _TAG.match(source, begin)
        if not tag:
            parts.append("<")
            at = begin + 1
            continue
        at, instead = _after_tag(source, tag)
        parts.append(instead)
    parts.append(html.unescape(source[at:]))
    text = re.sub(r"[ \t\r\f\v]+", " ", "".join(parts))
    return re.sub(r"\n{3,}", "\n\n", re.sub(r" ?\n ?", "\n", text)).strip()


_TAG = re.compile(r"<(?:!--|[!?]|(?P<close>/?)(?P<name>[A-Za-z][A-Za-z0-9]{0,20})(?P<rest>[^<>]{0,8192})>?)")
_UNSEEN = frozenset({"script", "style", "head", "title", "template", "noscript"})
_BLOCKS = frozenset(
    {"p", "div", "br", "tr", "li", "ul", "ol", "table", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "hr", "section", "pre"}
)
_HREF = re.compile(r"\bhref\s{0,4}=\s{0,4}[\"']?([^\s\"'>]{1,2000})", re.IGNORECASE)


def _after_tag(source: str, tag: re.Match[str]) -> tuple[int, str]:
    """Where to read on, and what stands instead of the tag. What has no end goes to the end of the text, as in a browser."""
    if tag[0] == "<!--":
        return _past(source, "-->", tag.end()), ""
    name = (tag["name"] or "").lower()
    if not name:
        return _past(source, ">", tag.end()), ""
    if name in _UNSEEN and not tag["close"]:
        closing = re.compile(rf"</{name}\b[^<>]{{0,100}}>", re.IGNORECASE).search(source, tag.end())
        return (closing.end() if closing else len(source)), ""
    link = _HREF.search(tag["rest"] or "") if name == "a" and not tag["close"] else None
    return tag.end(), f"[{html.unescape(link[1])}] " if link else "\n" if name in _BLOCKS else ""


def _past(source: str, what: str, at: int) -> int:
    found = source.find(what, at)
    return found + len(what) if found >= 0 else len(source)
