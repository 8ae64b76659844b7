"""The mailbox: one row per delivery, exactly as it came. A message that comes twice is here twice, and that is the point."""

import hashlib
import json
import re
from sqlite3 import Connection, Row
from typing import Any

from examples.support_triage.mime import UnreadableMessage, decode_words, one_line, parse

from . import ledger, tickets
from .errors import Missing
from .store import now


def deliver(db: Connection, *, sender: str, recipients: list[str], raw: bytes) -> int:
    """Keep one delivery with its envelope, note it in the ledger, and move the ticket that it answers. Returns its number."""
    headers = _headers(raw)
    message_id = next(iter(re.findall(r"<[^<>\s]{1,998}>", headers.get("message-id", ""))), "")
    subject = one_line(decode_words(headers.get("subject", "")))[:500]
    digest = hashlib.sha256(raw).hexdigest()
    number = db.execute(
        "INSERT INTO mail (message_id, sender, recipients, subject, sha256, raw, received_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (message_id, sender, json.dumps(recipients), subject, digest, raw, now()),
    ).lastrowid
    assert number is not None
    if "x-handrail-notification" not in headers:  # what people are told is no effect of a run
        ledger.delivered(db, message_id=message_id, number=number, digest=digest)
    tickets.answered(db, message_ids=re.findall(r"<[^<>\s]{1,998}>", headers.get("in-reply-to", ""))[:20], recipients=recipients)
    return number


def get(db: Connection, number: int) -> dict[str, Any]:
    """One delivery without its bytes. Raises Missing."""
    return _delivery(_row(db, number, _COLUMNS))


def raw(db: Connection, number: int) -> bytes:
    """The delivered message, byte for byte. Raises Missing."""
    return _row(db, number, "raw")["raw"]


def listing(db: Connection, *, message_id: str | None, limit: int) -> list[dict[str, Any]]:
    """The newest deliveries, newest first; only those of one Message-ID if it is given, with or without its brackets."""
    wanted = None if message_id is None else f"<{message_id.strip().strip('<>')}>"
    query = f"SELECT {_COLUMNS} FROM mail WHERE (? IS NULL OR message_id = ?) ORDER BY number DESC LIMIT ?"  # noqa: S608  our own constant
    return [_delivery(row) for row in db.execute(query, (wanted, wanted, limit)).fetchall()]


def count(db: Connection) -> int:
    """How many deliveries there are."""
    return db.execute("SELECT count(*) FROM mail").fetchone()[0]


# `copies` is how many deliveries carry this Message-ID: more than one means that somebody got the message twice.
_COLUMNS = (
    "number, message_id, sender, recipients, subject, sha256, length(raw) AS size, received_at,"
    " CASE message_id WHEN '' THEN 1 ELSE (SELECT count(*) FROM mail AS same WHERE same.message_id = mail.message_id) END AS copies"
)


def _headers(raw: bytes) -> dict[str, str]:
    try:
        return parse(raw).headers
    except UnreadableMessage:  # a mail server keeps what it is given, message or not
        return {}


def _row(db: Connection, number: int, columns: str) -> Row:
    row = db.execute(f"SELECT {columns} FROM mail WHERE number = ?", (number,)).fetchone()  # noqa: S608  our own constants
    if row is None:
        raise Missing(f"There is no delivery {number}.")
    return row


def _delivery(row: Row) -> dict[str, Any]:
    return {**dict(row), "recipients": json.loads(row["recipients"])}
