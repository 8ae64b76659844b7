"""A customer's message, read: who wrote, what about, in which language, and which invoices and amounts they name. Pure."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from email.utils import getaddresses
from typing import Any

from examples.support_triage import language
from examples.support_triage.mime import MAX_BYTES, MAX_TEXT, Part, UnreadableMessage, decode_words, one_line, parse
from runs.engine import orders

__all__ = ["MAX_BYTES", "MAX_TEXT", "Amount", "Attached", "Ticket", "UnreadableMessage", "attachments", "read"]


@dataclass(frozen=True)
class Amount:
    """A sum of money: `value` with a point and two decimals ("1284.00"), `currency` as in ISO 4217 ("EUR")."""

    value: str
    currency: str


@dataclass(frozen=True)
class Attached:
    """A file that came with a message; its bytes are in `attachments(raw)`, at the same place."""

    name: str
    media_type: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Ticket:
    """What a message says. All of it is outside text: nothing in it may be followed as an order.

    No header field holds a line end or a control character; `text` has at most MAX_TEXT characters and no control characters but
    tabs and `\\n`. `language` is a code of ISO 639-1, or "und". Missing fields are "" or (). `reply_to` is "" unless it differs. `rich`:
    it came as HTML, alone or beside a text; `hidden`: what that says and does not show. `automatic`: a program sent it, such as a
    newsletter. `orders`: what of all of it reads like orders to a machine.
    """

    sender_name: str
    sender_address: str
    reply_to: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    subject: str
    date: str
    text: str
    truncated: bool
    language: str
    invoices: tuple[str, ...]
    amounts: tuple[Amount, ...]
    attachments: tuple[Attached, ...]
    message_id: str
    references: tuple[str, ...]
    size: int
    sha256: str
    rich: bool = False
    hidden: str = ""
    automatic: str = ""
    orders: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The same as plain values, for a journal; `Ticket.from_json` takes it back, also after a trip through JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Ticket":
        """The ticket that `as_json` gave."""
        fields = {name: tuple(entry) if isinstance(entry, list) else entry for name, entry in value.items()}
        fields["amounts"] = tuple(Amount(**amount) for amount in fields["amounts"])
        fields["attachments"] = tuple(Attached(**attached) for attached in fields["attachments"])
        return cls(**fields)


def read(raw: bytes) -> Ticket:
    """Read the message `raw` (RFC 5322 bytes, at most MAX_BYTES).

    Raises UnreadableMessage, and nothing else, when it is not a message or names no sender who could be answered.
    """
    mail = parse(raw)
    header = mail.headers.get
    sender_name, sender_address = _sender(header("from", ""))
    subject = one_line(decode_words(header("subject", "")))[:1000]
    words = f"{subject}\n{mail.text}"
    names = "\n\n".join(part.name for part in mail.attachments)
    replies = _addresses(header("reply-to", ""))
    return Ticket(
        sender_name=sender_name,
        sender_address=sender_address,
        reply_to=replies[0] if replies and replies[0].lower() != sender_address.lower() else "",
        to=_addresses(header("to", "")),
        cc=_addresses(header("cc", "")),
        subject=subject,
        date=one_line(header("date", ""))[:100],
        text=mail.text,
        truncated=mail.truncated,
        language=language.guess(words),
        invoices=_invoices(words),
        amounts=_amounts(words),
        attachments=tuple(_attached(part) for part in mail.attachments),
        message_id=next(iter(_message_ids(header("message-id", ""))), ""),
        references=_message_ids(header("references", "") + header("in-reply-to", "")),
        size=len(raw),
        sha256=hashlib.sha256(raw).hexdigest(),
        rich=mail.rich,
        hidden=mail.hidden,
        automatic=_automatic(mail.headers),
        orders=orders.found(f"{subject}\n\n{mail.text}\n\n{mail.hidden}\n\n{names}"),
    )


def _automatic(headers: Mapping[str, str]) -> str:
    """What kind of program sent it, as RFC 3834 and mailing lists tell: newsletter, automatic reply or delivery report; "" for a person."""
    if "multipart/report" in headers.get("content-type", "").lower() or headers.get("return-path", "").strip() == "<>":
        return "delivery report"
    told = re.split(r"[;(\s]", headers.get("auto-submitted", "no").strip().lower())[0]
    if told == "auto-replied" or "x-autoreply" in headers or headers.get("precedence", "").strip().lower() == "auto_reply":
        return "automatic reply"
    bulk = headers.get("precedence", "").strip().lower() in ("bulk", "list", "junk")
    return "newsletter" if bulk or told != "no" or {"list-id", "list-unsubscribe"} & headers.keys() else ""


def attachments(raw: bytes) -> tuple[Part, ...]:
    """The files of the message with their bytes, in the order of `read(raw).attachments`. Raises UnreadableMessage."""
    return parse(raw).attachments


def _sender(value: str) -> tuple[str, str]:
    for name, address in _mailboxes(value):
        if _ADDRESS.fullmatch(address):
            return one_line(decode_words(name))[:200], address
    raise UnreadableMessage("The message has no From line with an address that could be answered.")


def _addresses(value: str) -> tuple[str, ...]:
    found = (address for _, address in _mailboxes(value) if _ADDRESS.fullmatch(address))
    return tuple(dict.fromkeys(found))[:100]


# Deliberately narrower than RFC 5321: no quoted local parts, no address literals. Other scripts are allowed, as in RFC 6531.
_ADDRESS = re.compile(r"[^\s@<>()\[\],;:\"\\]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){0,10}[^\W_](?:[\w-]{0,61}[^\W_])?")


def _mailboxes(value: str) -> list[tuple[str, str]]:
    try:
        return getaddresses([value])
    except Exception:  # deep comments exhaust its recursion; such a line names nobody
        return []


def _message_ids(value: str) -> tuple[str, ...]:
    found = re.findall(r"<[^<>\s]{1,250}>", value)
    return tuple(dict.fromkeys(each for each in found if "=?" not in each))[:50]  # an encoded word is no part of an id


def _attached(part: Part) -> Attached:
    return Attached(part.name, part.media_type, len(part.content), hashlib.sha256(part.content).hexdigest())


# A bare number counts as one of ours only right behind the word: "Rechnung Nr. 20931", "fatura n.º 21077", "invoice #20931".
_INVOICE = re.compile(
    r"\bINV[-–\u2011 ]?(\d{3,10})\b"
    r"|\b(?:invoice|rechnung|fatura|factura|facture|fattura|factuur)(?:snummer|nummer)?"
    r"[ ]?(?:number|numero|número|nummer|nr|no|n)?[.]?[ºo°]?[ ]{0,2}[:#]?[ ]{0,2}(\d{5,8})\b",
    re.I,
)


def _invoices(text: str) -> tuple[str, ...]:
    found = (f"INV-{match[1] or match[2]}" for match in _INVOICE.finditer(text))
    return tuple(dict.fromkeys(found))[:20]


_CURRENCIES = {"€": "EUR", "EURO": "EUR", "EUROS": "EUR", "£": "GBP", "$": "USD", "US$": "USD", "R$": "BRL"}
_CURRENCY = r"US\$|R\$|[€£$]|\b(?:EUROS?|EUR|GBP|USD|BRL|CHF)\b"
_GROUPED = r"\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3}){1,4}(?:[.,]\d{2})?"
_NUMBER = rf"(?<![\d.,])(?:{_GROUPED}|\d{{1,9}}(?:[.,]\d{{2}})?)(?!\d|[.,]\d)"
_SPACE = r"[ \u00a0\u202f]?"
_AMOUNT = re.compile(rf"({_CURRENCY}){_SPACE}({_NUMBER})|({_NUMBER}){_SPACE}({_CURRENCY})", re.I)


def _amounts(text: str) -> tuple[Amount, ...]:
    found = (_amount(match[2] or match[3], match[1] or match[4]) for match in _AMOUNT.finditer(text))
    return tuple(dict.fromkeys(found))[:50]


def _amount(number: str, currency: str) -> Amount:
    # "1.284,00", "1,284.00" and "1 284": two digits after the last point or comma are decimals, all other marks only group.
    decimals = re.search(r"[.,](\d{2})$", number)
    whole = re.sub(r"\D", "", number[: decimals.start()] if decimals else number).lstrip("0") or "0"
    return Amount(f"{whole}.{decimals[1] if decimals else '00'}", _CURRENCIES.get(currency.upper(), currency.upper()))
