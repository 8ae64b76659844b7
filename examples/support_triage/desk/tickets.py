"""The help desk: one ticket per message that was filed, with the message's exact bytes."""

import hashlib
from sqlite3 import Connection, Row
from typing import Any

from examples.support_triage.reading import UnreadableMessage, read

from . import accounts, hooks
from .errors import Malformed, Missing, Outdated, Problem
from .store import now

FIRST_NUMBER = 4821
STATUSES = ("open", "in_progress", "answered", "closed")


def file(db: Connection, raw: bytes) -> dict[str, Any]:
    """Open a ticket for the message `raw`. Raises Problem for what is not a message."""
    try:
        message = read(raw)
    except UnreadableMessage as error:
        raise Problem(str(error)) from error
    account = accounts.of(db, message.sender_address, message.sender_name)
    number = _next_number(db)
    values = (message.sender_address, message.sender_name, message.subject, message.message_id, hashlib.sha256(raw).hexdigest(), raw, now())
    db.execute(
        "INSERT INTO ticket (number, account, status, version, sender, sender_name, subject, message_id, sha256, raw, received_at)"
        " VALUES (?, ?, 'open', 1, ?, ?, ?, ?, ?, ?, ?)",
        (number, account["id"], *values),
    )
    return get(db, f"ZN-{number}")


def get(db: Connection, ticket: str) -> dict[str, Any]:
    """The ticket without its message. Raises Missing."""
    return _ticket(_row(db, ticket, _COLUMNS))


def raw(db: Connection, ticket: str) -> bytes:
    """The ticket's message, byte for byte as it was filed. Raises Missing."""
    return _row(db, ticket, "raw")["raw"]


def listing(db: Connection, limit: int) -> list[dict[str, Any]]:
    """The newest tickets, newest first."""
    rows = db.execute(f"SELECT {_COLUMNS} FROM ticket ORDER BY number DESC LIMIT ?", (limit,))  # noqa: S608  our own constant
    return [_ticket(row) for row in rows.fetchall()]


def count(db: Connection) -> int:
    """How many tickets there are."""
    return db.execute("SELECT count(*) FROM ticket").fetchone()[0]


def set_status(db: Connection, ticket: str, *, status: str, version: int | None) -> dict[str, Any]:
    """Move the ticket; the answer names the status before. Raises Missing, Malformed, Outdated."""
    if status not in STATUSES:
        raise Malformed(f"A ticket's status is one of {', '.join(STATUSES)}.")
    before = get(db, ticket)
    if version is not None and version != before["version"]:
        raise Outdated(f"Ticket {ticket} is at version {before['version']}, not {version}.")
    db.execute("UPDATE ticket SET status = ?, version = version + 1 WHERE number = ?", (status, _number(ticket)))
    changed = {"ticket": ticket, "status": status, "previous_status": before["status"]}
    hooks.tell(db, "ticket.changed", changed, about=ticket)
    return {**get(db, ticket), "previous_status": before["status"]}


def answered(db: Connection, *, message_ids: list[str], recipients: list[str]) -> None:
    """A message went out in reply to these: their tickets that are still open, of whom it reached, are answered."""
    reached = {address.casefold() for address in recipients}
    for message_id in message_ids:
        for row in db.execute("SELECT number, sender FROM ticket WHERE message_id = ? AND status = 'open'", (message_id,)).fetchall():
            if row["sender"].casefold() in reached:
                set_status(db, f"ZN-{row['number']}", status="answered", version=None)


_COLUMNS = "number, account, status, sender, sender_name, subject, message_id, sha256, length(raw) AS size, version, received_at"


def _next_number(db: Connection) -> int:
    (last,) = db.execute("SELECT max(number) FROM ticket").fetchone()
    return FIRST_NUMBER if last is None else last + 1


def _row(db: Connection, ticket: str, columns: str) -> Row:
    row = db.execute(f"SELECT {columns} FROM ticket WHERE number = ?", (_number(ticket),)).fetchone()  # noqa: S608  our own constants
    if row is None:
        raise Missing(f"There is no ticket {ticket}.")
    return row


def _number(ticket: str) -> int:
    digits = ticket.removeprefix("ZN-")
    return int(digits) if ticket.startswith("ZN-") and digits.isdecimal() and len(digits) < 16 else -1


def _ticket(row: Row) -> dict[str, Any]:
    named = {name: row[name] for name in row.keys() if name not in ("number", "account")}  # noqa: SIM118  a Row is no dict
    return {"id": f"ZN-{row['number']}", "customer": row["account"], **named, "message": f"/tickets/ZN-{row['number']}/message"}
