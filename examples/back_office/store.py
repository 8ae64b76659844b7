"""The back office's own data: one SQLite file and one directory of reports. It knows nothing of Handrail.

Every effect is written with the key that it was asked under, in one transaction: the same key again gives what it gave the first time.
"""

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from examples.back_office.seed import CUSTOMERS, PAYMENTS, REPORT, STOCK

TABLES = """
CREATE TABLE IF NOT EXISTS customer (id TEXT PRIMARY KEY, version INTEGER NOT NULL, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS payment (id TEXT PRIMARY KEY, customer TEXT NOT NULL, invoice TEXT NOT NULL, cents INTEGER NOT NULL, card TEXT);
CREATE TABLE IF NOT EXISTS refund (number INTEGER PRIMARY KEY, payment TEXT NOT NULL, cents INTEGER NOT NULL, reason TEXT, statement TEXT);
CREATE TABLE IF NOT EXISTS hold (number INTEGER PRIMARY KEY, payment TEXT NOT NULL, cents INTEGER NOT NULL, released INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS stock (sku TEXT PRIMARY KEY, name TEXT, category TEXT, quantity INTEGER, price_cents INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS removal (number INTEGER PRIMARY KEY, person TEXT, systems TEXT, day TEXT, tell_manager INTEGER, notes TEXT);
CREATE TABLE IF NOT EXISTS request (id TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS done (key TEXT PRIMARY KEY, result TEXT NOT NULL);
"""
VERSION = 2  # of the tables
PATIENCE = 5  # seconds for another writer
STEPS = 10_000  # of the database's machine between two looks at the clock


class Refused(Exception):
    """The back office said no and changed nothing."""


def home() -> Path:
    """Where its data lies: HANDRAIL_BACK_OFFICE, else beside Handrail's own."""
    named = os.environ.get("HANDRAIL_BACK_OFFICE")
    return Path(named or Path(os.environ.get("DATA_DIR", "data")) / "back-office").expanduser().absolute()


def reports() -> Path:
    """The directory that commands run in."""
    found = home() / "reports"
    if not found.exists():
        found.mkdir(mode=0o700, parents=True, exist_ok=True)
        (found / "stock-2026-11.csv").write_text(REPORT)
    return found


def connect() -> sqlite3.Connection:
    """The file, made and filled the first time. Transactions are begun by hand."""
    home().mkdir(mode=0o700, parents=True, exist_ok=True)
    db = sqlite3.connect(home() / "office.sqlite3", timeout=PATIENCE, isolation_level=None)
    db.row_factory = sqlite3.Row
    try:
        if not _is_filled(db):
            with _writing(db):
                _fill(db)
    except BaseException:
        db.close()
        raise
    return db


def _is_filled(db: sqlite3.Connection) -> bool:
    return _version(db) == VERSION


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _fill(db: sqlite3.Connection) -> None:
    """Make and fill everything, once: what was taken out later stays out. In one transaction, which another connection may have won."""
    before = _version(db)
    if before == VERSION:
        return
    for made in TABLES.split(";"):
        db.execute(made)
    if before == 0:
        _fill_tables(db)
    db.execute(f"PRAGMA user_version = {VERSION}")


def _fill_tables(db: sqlite3.Connection) -> None:
    for customer, version, record in CUSTOMERS:
        db.execute("INSERT OR IGNORE INTO customer VALUES (?, ?, ?)", (customer, version, json.dumps(record)))
    for table, rows in (("payment", PAYMENTS), ("stock", STOCK)):
        for row in rows:
            db.execute(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608  our own names


@contextmanager
def _writing(db: sqlite3.Connection) -> Iterator[None]:
    """One transaction, begun as a writer's."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextmanager
def reading() -> Iterator[sqlite3.Connection]:
    with closing(connect()) as db:
        yield db


def once(key: str, before_commit: Callable[[], None], do: Callable[[sqlite3.Connection], dict[str, Any]]) -> dict[str, Any]:
    """Do it in one transaction, under its key; what was done under the key before is not done again. Refused, or sqlite3.Error."""
    with closing(connect()) as db, _writing(db):
        if earlier := _found(db, key):
            return earlier
        result = do(db)
        db.execute("INSERT INTO done VALUES (?, ?)", (key, json.dumps(result)))
        before_commit()
    return result


def done(key: str) -> dict[str, Any] | None:
    """What was done under a key."""
    with reading() as db:
        return _found(db, key)


def _found(db: sqlite3.Connection, key: str) -> dict[str, Any] | None:
    row = db.execute("SELECT result FROM done WHERE key = ?", (key,)).fetchone()
    return json.loads(row["result"]) if row else None


def customer(db: sqlite3.Connection, pk: str) -> tuple[int, dict[str, Any]]:
    """Version and fields. Refused if there is none."""
    row = db.execute("SELECT version, record FROM customer WHERE id = ?", (pk,)).fetchone()
    if row is None:
        raise Refused(f"There is no customer {pk}.")
    return row["version"], json.loads(row["record"])


def change_customer(db: sqlite3.Connection, pk: str, version: int, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Set fields, if the record is still at `version` and holds what `before` says. Refused if not."""
    now, record = customer(db, pk)
    if now != version:
        raise Refused(f"Customer {pk} is at version {now}, not {version}.")
    if other := [field for field, value in before.items() if record.get(field) != value]:
        raise Refused(f"Customer {pk} holds something else in {', '.join(other)}.")
    db.execute("UPDATE customer SET version = version + 1, record = ? WHERE id = ?", (json.dumps(record | after), pk))
    return {"customer": pk, "version": now + 1}


def payment(db: sqlite3.Connection, pk: str) -> dict[str, Any]:
    """A payment with what went back of it, in cents. Refused if there is none."""
    row = db.execute("SELECT * FROM payment WHERE id = ?", (pk,)).fetchone()
    if row is None:
        raise Refused(f"There is no payment {pk}.")
    (back,) = db.execute("SELECT coalesce(sum(cents), 0) FROM refund WHERE payment = ?", (pk,)).fetchone()
    return dict(row) | {"back": back}


def paid_for(db: sqlite3.Connection, invoice: str) -> list[dict[str, Any]]:
    """The payments of an invoice, each with what went back of it, in cents."""
    found = db.execute("SELECT id FROM payment WHERE invoice = ? ORDER BY id", (invoice,)).fetchall()
    return [payment(db, row["id"]) for row in found]


def refund(db: sqlite3.Connection, customer_id: str, payment_id: str, cents: int, reason: str, statement: str) -> dict[str, Any]:
    """Give money back of a payment of this customer, never more than is left of it. Refused if not."""
    found = payment(db, payment_id)
    if found["customer"] != customer_id:
        raise Refused(f"{payment_id} is no payment of customer {customer_id}.")
    if not 0 < cents <= found["cents"] - found["back"]:
        raise Refused(f"{payment_id} has {found['cents'] - found['back']} cents left.")
    row = db.execute("INSERT INTO refund (payment, cents, reason, statement) VALUES (?, ?, ?, ?)", (payment_id, cents, reason, statement))
    return {"refund": f"RF-{row.lastrowid}"}


def hold(db: sqlite3.Connection, customer_id: str, payment_id: str, cents: int) -> dict[str, Any]:
    """Put aside what is to go back of a payment of this customer, never more than is left of it. Refused if not."""
    found = payment(db, payment_id)
    if found["customer"] != customer_id:
        raise Refused(f"{payment_id} is no payment of customer {customer_id}.")
    (held,) = db.execute("SELECT coalesce(sum(cents), 0) FROM hold WHERE payment = ? AND NOT released", (payment_id,)).fetchone()
    left = found["cents"] - found["back"] - held
    if not 0 < cents <= left:
        raise Refused(f"{payment_id} has {left} cents left.")
    row = db.execute("INSERT INTO hold (payment, cents, released) VALUES (?, ?, 0)", (payment_id, cents))
    return {"account": customer_id, "hold": f"HD-{row.lastrowid}"}


def release(db: sqlite3.Connection, customer_id: str, hold_id: str) -> dict[str, Any]:
    """Take a hold back; one that was released before stays so. Refused if this customer has none of that number."""
    found = "number = ? AND payment IN (SELECT id FROM payment WHERE customer = ?)"
    changed = db.execute(f"UPDATE hold SET released = 1 WHERE {found}", (_number(hold_id), customer_id))  # noqa: S608  our own words
    if changed.rowcount == 0:
        raise Refused(f"There is no hold {hold_id} of customer {customer_id}.")
    return {"hold": hold_id, "released": True}


def _number(hold_id: str) -> int:
    digits = hold_id.removeprefix("HD-")
    return int(digits) if digits.isdecimal() and len(digits) < 16 else -1


_ALLOWED = {sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_ALLOWED |= {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}


def run_statement(db: sqlite3.Connection, statement: str, parameters: list[Any], at_most: int, seconds: float) -> int:
    """Run one statement that reads rows, or changes rows of the stock; give how many it changed. Refused if it does anything else.

    Refused as well if it takes longer than `seconds`: a statement can go on for ever.
    """
    until = monotonic() + seconds

    def allow(action: int, table: str | None, *_: Any) -> int:
        writes = action in (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)
        return sqlite3.SQLITE_OK if action in _ALLOWED and not (writes and table != "stock") else sqlite3.SQLITE_DENY

    db.set_authorizer(allow)
    db.set_progress_handler(lambda: monotonic() > until, STEPS)
    try:
        changed = max(db.execute(statement, parameters).rowcount, 0)
    except (sqlite3.Error, sqlite3.Warning) as error:
        late = f"It was stopped after {seconds:g} seconds." if monotonic() > until else f"The database refused it: {error}."
        raise Refused(late) from error
    finally:
        db.set_progress_handler(None, 0)
        db.set_authorizer(None)
    if changed > at_most:
        raise Refused(f"It would change {changed} rows, more than {at_most}.")
    return changed


def dry_run(statement: str, parameters: list[Any], seconds: float) -> int:
    """How many rows the statement would change, tried on a copy in memory. Refused as by `run_statement`."""
    with reading() as db, closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        db.backup(copy)
        return run_statement(copy, statement, parameters, at_most=2**31, seconds=seconds)


def keep_request(pk: str, text: str) -> None:
    with reading() as db:
        db.execute("INSERT OR IGNORE INTO request VALUES (?, ?)", (pk, text))


def request(pk: str) -> str:
    with reading() as db:
        row = db.execute("SELECT text FROM request WHERE id = ?", (pk,)).fetchone()
    if row is None:
        raise Refused(f"There is no request {pk}.")
    return row["text"]


def is_plain_name(word: str) -> bool:
    """Whether a word is an option or the name of a file right here: nothing that leads out of the directory."""
    return re.fullmatch(r"-{0,2}[A-Za-z0-9][A-Za-z0-9_.-]{0,80}", word) is not None and ".." not in word
