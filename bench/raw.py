"""The limit that a database sets: the same rows written and read without Handrail, on a plain connection to the same database."""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.types.string import TextLoader

from tests.stack import Stack

Row = Sequence[Any]
KEYS = {"runs_event": "run_month, run_id, seq", "artifacts_payload": "id"}
AN_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
EVENTS = "SELECT seq, hash, body, payloads FROM runs_event WHERE run_month = %s AND run_id = %s AND seq BETWEEN %s AND %s ORDER BY seq"
PAYLOADS = "SELECT id, rendition, label, media_type, size, findings, erased_at FROM artifacts_payload WHERE id BETWEEN %s AND %s"


class Database:
    """A plain connection, as durable as the house's own. `%s` stands for a value in a statement."""

    def __init__(self, running: Stack) -> None:
        self.url = running.env.get("DATABASE_URL")
        self.connection = _postgres(self.url) if self.url else _sqlite(running)

    def read(self, statement: str, *values: Any) -> list[Row]:
        return self.connection.execute(self._in_its_words(statement), values).fetchall()

    def write(self, statement: str, rows: Sequence[Row]) -> None:
        self.connection.cursor().executemany(self._in_its_words(statement), rows)

    def commit(self) -> None:
        self.connection.commit()

    def close(self) -> None:
        self.connection.close()

    def id(self, pk: str | UUID) -> UUID | str:
        """An id as this database has it."""
        return UUID(str(pk)) if self.url else UUID(str(pk)).hex

    def columns(self, table: str) -> list[str]:
        cursor = self.connection.execute(f"SELECT * FROM {table} WHERE 1 = 0")
        return [column[0] for column in cursor.description]

    def _in_its_words(self, statement: str) -> str:
        return statement if self.url else statement.replace("%s", "?")


def _postgres(url: str) -> psycopg.Connection[Any]:
    connection = psycopg.connect(url)
    connection.adapters.register_loader("jsonb", TextLoader)  # as text, which goes back as it is
    return connection


def _sqlite(running: Stack) -> sqlite3.Connection:
    connection = sqlite3.connect(running.data / "handrail.sqlite3", timeout=20, check_same_thread=False)
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def make_twins(running: Stack) -> None:
    """Tables with the columns and the primary key of those that an append writes to; no other index, no trigger, no foreign key."""
    database = Database(running)
    for table, key in KEYS.items():
        database.connection.execute(f"CREATE TABLE bench_{table} AS SELECT * FROM {table} WHERE 1 = 0")
        database.connection.execute(f"CREATE UNIQUE INDEX bench_{table}_key ON bench_{table} ({key})")
    database.commit()
    database.close()


class Inserts:
    """Each call inserts `size` copies of the last event of a run, and of the payloads it names, under new keys, and commits."""

    def __init__(self, running: Stack, run: str, size: int) -> None:
        self.database, self.size, self.seq = Database(running), size, 0
        self.run = self.database.id(uuid4())
        [self.event] = self._found("runs_event", "run_id = %s ORDER BY seq DESC LIMIT 1", run)
        ids = AN_ID.findall(self.event["payloads"])
        self.payloads = [self._found("artifacts_payload", "id = %s", pk)[0] for pk in ids]
        self.database.commit()

    def __call__(self) -> None:
        for payload in self.payloads:
            self._insert("artifacts_payload", [payload | {"id": self.database.id(uuid4())} for _ in range(self.size)])
        self._insert("runs_event", [self._next_event() for _ in range(self.size)])
        self.database.commit()

    def close(self) -> None:
        self.database.close()

    def _next_event(self) -> dict[str, Any]:
        self.seq += 1
        return self.event | {"run_id": self.run, "seq": self.seq}

    def _found(self, table: str, which: str, pk: str) -> list[dict[str, Any]]:
        names = self.database.columns(table)
        rows = self.database.read(f"SELECT * FROM {table} WHERE {which}", self.database.id(pk))
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        blanks = ", ".join(["%s"] * len(rows[0]))
        self.database.write(f"INSERT INTO bench_{table} VALUES ({blanks})", [tuple(row.values()) for row in rows])


class Pages:
    """Each call reads the next page of a run's events, and the renditions they name; after the last page the first again."""

    def __init__(self, running: Stack, run: str, starts: Sequence[int], size: int) -> None:
        self.database = Database(running)
        [(month,)] = self.database.read("SELECT month FROM runs_run WHERE id = %s", self.database.id(run))
        self.pages = cycle([self._page((month, self.database.id(run), start, start + size - 1), size) for start in starts])

    def __call__(self) -> None:
        events, payloads = next(self.pages)
        self.database.read(EVENTS, *events)
        if payloads:
            self.database.read(PAYLOADS, *payloads)
        self.database.commit()

    def close(self) -> None:
        self.database.close()

    def _page(self, events: Row, size: int) -> tuple[Row, Row]:
        """What to ask for: the events, and the first and last id of their payloads, which are made in their order."""
        rows = self.database.read(EVENTS, *events)
        ids = sorted(self.database.id(pk) for row in rows for pk in AN_ID.findall(row[3]))
        payloads = (ids[0], ids[-1]) if ids else ()
        assert len(rows) == size and len(self.database.read(PAYLOADS, *payloads) if ids else ()) == len(ids)
        return events, payloads
