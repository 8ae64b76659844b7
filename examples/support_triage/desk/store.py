"""The desk's own small database: one SQLite file. What is answered is on the disk before it is answered."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS account (
    id TEXT PRIMARY KEY, record TEXT NOT NULL, known INTEGER NOT NULL, version INTEGER NOT NULL, created_at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS contact (email TEXT PRIMARY KEY, name TEXT NOT NULL, account TEXT NOT NULL REFERENCES account) STRICT;
CREATE TABLE IF NOT EXISTS terms (account TEXT PRIMARY KEY REFERENCES account, days INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS note (
    number INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT NOT NULL REFERENCES account, text TEXT NOT NULL,
    version INTEGER NOT NULL, created_at TEXT NOT NULL, removed_at TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS note_account ON note (account);
CREATE TABLE IF NOT EXISTS ticket (
    number INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT NOT NULL REFERENCES account, status TEXT NOT NULL,
    sender TEXT NOT NULL, sender_name TEXT NOT NULL, subject TEXT NOT NULL, message_id TEXT NOT NULL, sha256 TEXT NOT NULL,
    raw BLOB NOT NULL, version INTEGER NOT NULL, received_at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS mail (
    number INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT NOT NULL, sender TEXT NOT NULL, recipients TEXT NOT NULL,
    subject TEXT NOT NULL, sha256 TEXT NOT NULL, raw BLOB NOT NULL, received_at TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS mail_message_id ON mail (message_id);
CREATE TABLE IF NOT EXISTS effect (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT CONSTRAINT effect_key_once UNIQUE, kind TEXT NOT NULL, target TEXT NOT NULL,
    digest TEXT NOT NULL, answer TEXT NOT NULL, asked INTEGER NOT NULL, done INTEGER NOT NULL, first_at TEXT NOT NULL, last_at TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS hook (url TEXT NOT NULL, ticket TEXT NOT NULL, secret TEXT NOT NULL, PRIMARY KEY (url, ticket)) STRICT;
CREATE TABLE IF NOT EXISTS delivery (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, url TEXT NOT NULL, secret TEXT NOT NULL, body TEXT NOT NULL,
    tries INTEGER NOT NULL, due REAL NOT NULL, status INTEGER
) STRICT;
CREATE TABLE IF NOT EXISTS fault (
    number INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT NOT NULL, fault TEXT NOT NULL, options TEXT NOT NULL,
    times INTEGER NOT NULL, used INTEGER NOT NULL, created_at TEXT NOT NULL
) STRICT;
"""


class Store:
    """The open database. One connection under one lock: the desk is small, and this way nothing can interleave."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(folder / "desk.sqlite3", isolation_level=None, check_same_thread=False, timeout=10)
        self._db.row_factory = sqlite3.Row
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.executescript(_SCHEMA)

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: on leaving it, all of it is on the disk; on an exception, none of it."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The database, to look at only."""
        with self._lock:
            yield self._db

    def close(self) -> None:
        """Wait for the transaction under way, then close the file. A request that comes later waits until the process is gone."""
        self._lock.acquire()  # never given back
        self._db.close()


def now() -> str:
    """The time of day as the desk writes it: ISO 8601, UTC, milliseconds."""
    return _now().isoformat(timespec="milliseconds").replace("+00:00", "Z")


def stamp() -> int:
    """The same in whole seconds since 1970."""
    return int(_now().timestamp())


def _now() -> datetime:
    """The demo can let a day pass, for the outside as well: the file that HANDRAIL_CLOCK_FILE names holds an offset in seconds."""
    file = Path(os.environ.get("HANDRAIL_CLOCK_FILE") or os.devnull)
    moved = file.read_text().strip() if file.exists() else ""
    return datetime.now(UTC) + timedelta(seconds=float(moved or 0))
