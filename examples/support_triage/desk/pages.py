"""What a person sees of the desk: the mailbox, the tickets, the accounts with their notes, the ledger. No script, all escaped."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from examples.support_triage import reading

from . import accounts, contracts, faults, ledger, mail, tickets
from .errors import Missing
from .web import Answer, Request

_FOLDER = Path(__file__).parent
_MOST = 500  # rows of a list


def _mailbox(db: Connection, parts: tuple[str, ...]) -> Answer:
    return _page("mailbox.html", deliveries=mail.listing(db, message_id=None, limit=_MOST), total=mail.count(db))


def _message(db: Connection, parts: tuple[str, ...]) -> Answer:
    delivery = mail.get(db, int(parts[0]))
    raw = mail.raw(db, int(parts[0]))
    return _page("message.html", delivery=delivery, message=_read(raw), plain=raw[: reading.MAX_TEXT].decode("utf-8", "replace"))


def _mail_file(db: Connection, parts: tuple[str, ...]) -> Answer:
    return _file(mail.raw(db, int(parts[0])), int(parts[1]))


def _tickets(db: Connection, parts: tuple[str, ...]) -> Answer:
    return _page("tickets.html", tickets=tickets.listing(db, _MOST), total=tickets.count(db))


def _ticket(db: Connection, parts: tuple[str, ...]) -> Answer:
    ticket = tickets.get(db, parts[0])
    return _page("ticket.html", ticket=ticket, account=accounts.get(db, ticket["customer"]), message=_read(tickets.raw(db, parts[0])))


def _ticket_file(db: Connection, parts: tuple[str, ...]) -> Answer:
    return _file(tickets.raw(db, parts[0]), int(parts[1]))


def _accounts(db: Connection, parts: tuple[str, ...]) -> Answer:
    entries = [(account, accounts.notes(db, account["id"])) for account in accounts.listing(db)]
    return _page("accounts.html", entries=entries)


def _account(db: Connection, parts: tuple[str, ...]) -> Answer:
    account = accounts.get(db, parts[0])
    return _page("account.html", account=account, notes=accounts.notes(db, parts[0]), contract=contracts.of(db, account))


def _ledger(db: Connection, parts: tuple[str, ...]) -> Answer:
    return _page("ledger.html", effects=list(reversed(ledger.entries(db)))[:_MOST], faults=faults.listing(db))


def _style(db: Connection, parts: tuple[str, ...]) -> Answer:
    return Answer(200, (_FOLDER / "static" / "desk.css").read_bytes(), "text/css; charset=utf-8")


def _icon(db: Connection, parts: tuple[str, ...]) -> Answer:
    return Answer(200, (_FOLDER / "static" / "icon.svg").read_bytes(), "image/svg+xml")


def _read(raw: bytes) -> reading.Ticket | None:
    try:
        return reading.read(raw)
    except reading.UnreadableMessage:
        return None


def _file(raw: bytes, place: int) -> Answer:
    try:
        part = reading.attachments(raw)[place]
    except (reading.UnreadableMessage, IndexError) as error:
        raise Missing("This message has no such attachment.") from error
    # Always a download of unknown type: nothing that came by mail is ever opened by the browser in the desk's name.
    disposition = f"attachment; filename*=UTF-8''{quote(part.name, safe='')}"
    return Answer(200, part.content, "application/octet-stream", {"Content-Disposition": disposition})


def _page(template: str, status: int = 200, **values: Any) -> Answer:
    return Answer(status, _TEMPLATES.get_template(template).render(**values).encode("utf-8"), "text/html; charset=utf-8")


def _time(value: str) -> str:
    moment = datetime.fromisoformat(value)
    return f"{moment.day} {moment:%b %Y, %H:%M:%S}"


def _size(count: int) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000 or unit == "MB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"
        count = count / 1000
    raise AssertionError("unreachable")


_TEMPLATES = Environment(
    loader=FileSystemLoader(_FOLDER / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_TEMPLATES.filters.update(time=_time, size=_size)


def _view(show: Callable[[Connection, tuple[str, ...]], Answer]) -> Callable[[Connection, Request, tuple[str, ...]], Answer]:
    def view(db: Connection, request: Request, parts: tuple[str, ...]) -> Answer:
        try:
            return show(db, parts)
        except Missing as error:
            return _page("missing.html", 404, reason=str(error))

    return view


PAGES = tuple(
    (path, _view(show))
    for path, show in (
        ("/", _mailbox),
        ("/mailbox", _mailbox),
        ("/mailbox/{n}", _message),
        ("/mailbox/{n}/files/{n}", _mail_file),
        ("/crm", _accounts),
        ("/crm/accounts/{}", _account),
        ("/crm/tickets", _tickets),
        ("/crm/tickets/{}", _ticket),
        ("/crm/tickets/{}/files/{n}", _ticket_file),
        ("/crm/ledger", _ledger),
        ("/desk.css", _style),
        ("/icon.svg", _icon),
    )
)
