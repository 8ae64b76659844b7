"""The CRM: accounts, their invoices and payments, how long they have to pay, and the notes on them."""

import json
from sqlite3 import Connection, Row
from typing import Any

from .errors import Malformed, Missing, Outdated
from .store import now

MAX_NOTE = 20_000
USUAL_DAYS, MOST_DAYS = 30, 365  # to pay
_FIRST_INVENTED = 2001


def seed(db: Connection, records: list[dict[str, Any]]) -> None:
    """Put the given accounts in, unless they are there. `contacts` is a list of {name, email}; the rest is kept as it is."""
    for record in records:
        rest = {name: value for name, value in record.items() if name not in ("id", "contacts")}
        row = (record["id"], json.dumps(rest), now())
        db.execute("INSERT INTO account VALUES (?, ?, 1, 1, ?) ON CONFLICT DO NOTHING", row)
        for contact in record["contacts"]:
            contact_row = (contact["email"].lower(), contact["name"], record["id"])
            db.execute("INSERT INTO contact VALUES (?, ?, ?) ON CONFLICT DO NOTHING", contact_row)


def of(db: Connection, email: str, name: str = "") -> dict[str, Any]:
    """The account that `email` is a contact of. A stranger gets an empty one (`known` false), the same one ever after."""
    address = email.strip().lower()
    if "@" not in address or len(address) > 320:
        raise Malformed("An account is looked up by an e-mail address.")
    row = db.execute("SELECT account FROM contact WHERE email = ?", (address,)).fetchone()
    return get(db, row["account"] if row else _invent(db, address, name))


def get(db: Connection, account: str) -> dict[str, Any]:
    """The account with its contacts. Raises Missing."""
    row = db.execute("SELECT * FROM account WHERE id = ?", (account,)).fetchone()
    if row is None:
        raise Missing(f"There is no account {account}.")
    return _account(db, row)


def listing(db: Connection) -> list[dict[str, Any]]:
    """All accounts by id."""
    return [_account(db, row) for row in db.execute("SELECT * FROM account ORDER BY id").fetchall()]


def notes(db: Connection, account: str) -> list[dict[str, Any]]:
    """The account's notes, oldest first, with the removed ones. Raises Missing."""
    get(db, account)
    return [_note(row) for row in db.execute("SELECT * FROM note WHERE account = ? ORDER BY number", (account,)).fetchall()]


def add_note(db: Connection, account: str, *, text: str, version: int | None) -> dict[str, Any]:
    """Write a note, and count the account's version up. Raises Missing, Outdated when `version` is given and not the account's."""
    if not text.strip() or len(text) > MAX_NOTE:
        raise Malformed(f"A note has 1 to {MAX_NOTE} characters of text.")
    _touch(db, account, version)
    row = (account, text, now())
    number = db.execute("INSERT INTO note (account, text, version, created_at) VALUES (?, ?, 1, ?)", row).lastrowid
    return get_note(db, account, f"N-{number}")


def remove_note(db: Connection, account: str, note: str) -> dict[str, Any]:
    """Take a note back, and count the account's version up. A note already taken back stays as it is. Raises Missing."""
    found = get_note(db, account, note)
    guarded = "UPDATE note SET removed_at = ?, version = version + 1 WHERE number = ? AND removed_at IS NULL"
    if db.execute(guarded, (now(), _number(note))).rowcount == 0:
        return found
    _touch(db, account, None)
    return get_note(db, account, note)


def terms(db: Connection, account: str) -> dict[str, Any]:
    """How many days an account has to pay: {account, name, days}. Raises Missing."""
    found = get(db, account)
    row = db.execute("SELECT days FROM terms WHERE account = ?", (account,)).fetchone()
    return {"account": account, "name": found["name"], "days": row["days"] if row else USUAL_DAYS}


def set_terms(db: Connection, account: str, *, days: int) -> dict[str, Any]:
    """Give an account so many days to pay, and count its version up; `before` in the answer: how many it had. Raises Missing."""
    if not 0 < days <= MOST_DAYS:
        raise Malformed(f"An account has 1 to {MOST_DAYS} days to pay.")
    before = terms(db, account)["days"]
    _touch(db, account, None)
    db.execute("INSERT INTO terms VALUES (?, ?) ON CONFLICT (account) DO UPDATE SET days = excluded.days", (account, days))
    return terms(db, account) | {"before": before}


def get_note(db: Connection, account: str, note: str) -> dict[str, Any]:
    """One note, also a removed one. Raises Missing."""
    row = db.execute("SELECT * FROM note WHERE account = ? AND number = ?", (account, _number(note))).fetchone()
    if row is None:
        raise Missing(f"Account {account} has no note {note}.")
    return _note(row)


def _invent(db: Connection, address: str, name: str) -> str:
    (strangers,) = db.execute("SELECT count(*) FROM account WHERE known = 0").fetchone()
    account = f"{_FIRST_INVENTED + strangers:05}"
    domain = address.rpartition("@")[2]
    record = {
        "name": domain,  # all that is known of a stranger: what it is called is nobody's guess
        "plan": "None yet",
        "language": "",
        "vat_number": "",
        "refunds_to": "",
        "invoices": [],
    }
    db.execute("INSERT INTO account VALUES (?, ?, 0, 1, ?)", (account, json.dumps(record), now()))
    db.execute("INSERT INTO contact VALUES (?, ?, ?)", (address, name, account))
    return account


def _touch(db: Connection, account: str, version: int | None) -> None:
    guarded = "UPDATE account SET version = version + 1 WHERE id = ? AND (? IS NULL OR version = ?)"
    if db.execute(guarded, (account, version, version)).rowcount == 0:
        raise Outdated(f"Account {account} is at version {get(db, account)['version']}, not {version}.")


def _account(db: Connection, row: Row) -> dict[str, Any]:
    contacts = db.execute("SELECT name, email FROM contact WHERE account = ? ORDER BY email", (row["id"],)).fetchall()
    return {
        "id": row["id"],
        "known": bool(row["known"]),
        "version": row["version"],
        "created_at": row["created_at"],
        "contacts": [dict(contact) for contact in contacts],
        **json.loads(row["record"]),
    }


def _note(row: Row) -> dict[str, Any]:
    return {
        "id": f"N-{row['number']}",
        "account": row["account"],
        "text": row["text"],
        "version": row["version"],
        "created_at": row["created_at"],
        "removed_at": row["removed_at"],
    }


def _number(note: str) -> int:
    digits = note.removeprefix("N-")
    return int(digits) if digits.isdecimal() and len(digits) < 16 else -1
