"""One RFC 5322 message taken apart, whatever it holds: pure, bounded in time and size, and it raises `UnreadableMessage` or nothing.

The standard library's tolerant parser does the work, behind guards: what would cost it too much is read as one plain text instead.
Its newer header parser is not used: it raises and slows down on hostile headers.
"""

import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser

from examples.support_triage.html_text import hidden, to_text

MAX_BYTES = 12 * 1024 * 1024
MAX_TEXT = 100_000  # characters kept of the body
MAX_HIDDEN = 2_000  # of what its HTML hides
MAX_HEADER = 8_000  # characters looked at of one header
_MAX_HEADERS = 256 * 1024  # bytes of the header block
_MAX_NESTING = 60  # mentions of a container type: the parser recurses on each
_MAX_COMPARISONS = 5_000_000  # it also compares each line with each open boundary
_MAX_LINES = 400_000  # 12 MB of base64 has 166,000
_MAX_DEPTH = 20
_MAX_ATTACHMENTS = 100


class UnreadableMessage(ValueError):
    """These bytes are not an e-mail message that can be answered."""


@dataclass(frozen=True)
class Part:
    """An attached file: its name without any folder, its type and its decoded bytes."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True)
class Mail:
    """`headers` holds the first header of each name, lower case, decoded, on one line; `text` has only `\\n` line ends."""

    headers: dict[str, str] = field(default_factory=dict)
    text: str = ""
    truncated: bool = False
    attachments: tuple[Part, ...] = ()
    rich: bool = False  # it came as HTML, alone or beside a text
    hidden: str = ""  # what its HTML says and does not show


def parse(raw: bytes) -> Mail:
    """Take `raw` apart. Raises UnreadableMessage for bytes that have no header lines, or that are over MAX_BYTES."""
    if len(raw) > MAX_BYTES:
        raise UnreadableMessage(f"The message is larger than {MAX_BYTES // 1024 // 1024} MB.")
    message = _message(raw.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n"))
    headers = _headers(message)
    if not headers:
        raise UnreadableMessage("This is not an e-mail message: it does not begin with header lines such as From and Subject.")
    text, attachments, rich = _contents(message)
    unseen = "\n".join(filter(None, (clean_text(hidden(markup[: 10 * MAX_TEXT])) for markup in rich)))
    return Mail(headers, text[:MAX_TEXT], len(text) > MAX_TEXT, attachments, bool(rich), unseen[:MAX_HIDDEN])


def decode_words(text: str) -> str:
    """RFC 2047 encoded words in `text` put back into characters; what is no proper encoded word stays as it is."""
    text = re.sub(r"(\?=)\s+(?==\?)", r"\1", text)  # space between two encoded words is not part of the text
    return _ENCODED.sub(_decode_run, text)


def one_line(text: str) -> str:
    """`text` without line ends, control characters or lone surrogates, runs of space as one: it can start no header of its own."""
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", _whole(text)).split())


def clean_text(text: str) -> str:
    """`text` with plain `\\n` line ends; other control characters and lone surrogates are shown as U+FFFD."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\ufffd", re.sub(r"\r\n?", "\n", _whole(text)))


def _message(raw: bytes) -> Message:
    lines, containers = raw.count(b"\n"), len(re.findall(rb"(?i)multipart/|message/", raw))
    if lines <= _MAX_LINES and containers <= _MAX_NESTING and lines * containers <= _MAX_COMPARISONS:
        try:
            return BytesParser().parsebytes(raw)
        except Exception:  # noqa: S110  the parser's failures on hostile bytes are of any kind; the plain reading follows
            pass
    head, body = _split(raw)
    message = BytesParser().parsebytes(head[:_MAX_HEADERS] + b"\n\n", headersonly=True)
    del message["Content-Transfer-Encoding"], message["Content-Type"]
    message.set_payload(body[: 4 * MAX_TEXT].decode("ascii", "surrogateescape"))
    return message


def _split(raw: bytes) -> tuple[bytes, bytes]:
    blank = re.search(rb"\r?\n\r?\n", raw)
    return (raw[: blank.start()], raw[blank.end() :]) if blank else (raw, b"")


def _headers(message: Message) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in message.raw_items():
        headers.setdefault(one_line(name).lower(), one_line(_eight_bit(str(value)[:MAX_HEADER])))
    return headers


def _eight_bit(value: str) -> str:
    # The parser keeps bytes over 127 as surrogates; headers in UTF-8 are common though only RFC 6532 allows them.
    return _decode(value.encode("utf-8", "surrogateescape"), "")


def _contents(message: Message) -> tuple[str, tuple[Part, ...], list[str]]:
    plain: list[str] = []
    rich: list[str] = []
    attachments: list[Part] = []
    for part in _leaves(message):
        media_type, name = _type(part), _name(part)
        if media_type in ("text/plain", "text/html") and not name and not _is_attached(part):
            (plain if media_type == "text/plain" else rich).append(clean_text(_decode(_bytes(part), _charset(part))))
        elif len(attachments) < _MAX_ATTACHMENTS:
            attachments.append(Part(name or f"part-{len(attachments) + 1}", media_type, _bytes(part)))
    text = "\n\n".join(filter(str.strip, plain))
    if not text:
        text = "\n\n".join(clean_text(to_text(markup[: 10 * MAX_TEXT])) for markup in rich)
    return text.strip("\n"), tuple(attachments), rich


def _leaves(part: Message, depth: int = 0) -> Iterator[Message]:
    if part.get_content_maintype() != "multipart" or not part.is_multipart() or depth == _MAX_DEPTH:
        yield part
        return
    for inner in part.get_payload():
        yield from _leaves(inner, depth + 1)


def _type(part: Message) -> str:
    media_type = part.get_content_type()
    return media_type if re.fullmatch(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60}", media_type) else "application/octet-stream"


def _name(part: Message) -> str:
    try:
        name = one_line(decode_words(str(part.get_filename() or "")[:MAX_HEADER]))
    except Exception:  # a broken RFC 2231 value; the file is still there, without a name
        return ""
    return re.split(r"[/\\]", name)[-1].strip(". ")[:200]


def _is_attached(part: Message) -> bool:
    return str(part.get("Content-Disposition", "")).strip().lower().startswith("attachment")


def _charset(part: Message) -> str:
    try:
        return str(part.get_content_charset() or "")
    except Exception:  # as for names
        return ""


def _bytes(part: Message) -> bytes:
    try:
        if part.is_multipart():  # an attached message, or containers nested too deep
            return b"\n".join(inner.as_bytes() for inner in part.get_payload())
        return part.get_payload(decode=True) or b""
    except Exception:  # an encoding that can't be undone: keep the bytes as they came
        del part["Content-Transfer-Encoding"]
        return b"" if part.is_multipart() else part.get_payload(decode=True)


# Python's other codecs include slow ones (idna, punycode) and ones that are no charsets (unicode_escape): none of those.
_CHARSETS = re.compile(
    r"(?i)utf-?(8|16|32)([lb]e)?|iso-?8859-\d{1,2}|latin-?1|(windows-|cp)(125\d|874|932)|koi8-[ru]|gb(2312|k|18030)|big5|shift[_-]jis|euc-(jp|kr)|iso-2022-(jp|kr)|macintosh"
)


def _decode(content: bytes, charset: str) -> str:
    if _CHARSETS.fullmatch(charset):
        try:
            return content.decode(charset, "replace")
        except (LookupError, UnicodeError):  # a charset that Python doesn't have
            pass
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


_ENCODED = re.compile(r"(?:=\?[^?\s]{1,40}\?[bBqQ]\?[^?\s]*\?=)+")
_WORD = re.compile(r"=\?([^?\s]{1,40})\?([bBqQ])\?([^?\s]*)\?=")


def _decode_run(match: re.Match[str]) -> str:
    # Some senders cut one character's bytes over two words, so neighbours of one charset are joined before they are decoded.
    runs: list[tuple[str, bytes]] = []
    for charset, encoding, word in _WORD.findall(match[0]):
        content = _from_base64(word) if encoding in "bB" else _from_q(word)
        charset = charset.partition("*")[0]  # RFC 2231 lets a language follow
        if runs and runs[-1][0].lower() == charset.lower():
            runs[-1] = (charset, runs[-1][1] + content)
        else:
            runs.append((charset, content))
    return "".join(_decode(content, charset) for charset, content in runs)


def _from_base64(word: str) -> bytes:
    try:
        return binascii.a2b_base64(word.encode("ascii", "replace").rstrip(b"=") + b"==")
    except binascii.Error:
        return word.encode("utf-8", "replace")


def _from_q(word: str) -> bytes:
    return binascii.a2b_qp(word.encode("utf-8", "replace"), header=True)


def _whole(text: str) -> str:
    return re.sub(r"[\ud800-\udfff]", "\ufffd", text)
