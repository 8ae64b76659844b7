"""What `runs.log` does, as single statements of PostgreSQL: one round trip where Django takes five. Nobody else imports this.

The statements are of fixed text with their values beside them, so that PostgreSQL plans each of them once.
"""

from datetime import datetime
from functools import lru_cache
from typing import Any, Protocol
from uuid import UUID

import orjson
import psycopg
from django.db import DEFAULT_DB_ALIAS, DataError, connection, connections
from django.db.models import JSONField, Model

from access import inserting
from access.inserting import Statement
from artifacts import vault
from artifacts.models import Payload
from runs.models import Run


class Rows(Protocol):
    """Rows that are written with the events. `statement` is for PostgreSQL, which writes all in one; elsewhere they write themselves."""

    def statement(self) -> Statement: ...
    def write(self) -> None: ...


class Writing(Protocol):
    """What there is to write: a `runs.log.Held`."""

    row: Run
    changed: dict[str, Any]
    pending: list[Any]
    texts: list[Payload]
    rows: dict[str, Rows]
    version: str


def locked(run_id: UUID, fenced: bool) -> tuple[Run | None, str, int | None]:
    """The run with its row's lock, the row's version, and if it is `fenced` the newest token.

    In one round trip, with the transaction's beginning; each statement sees what was committed when it began.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.pipeline():
        row, lease = _ask(_LOCK, [run_id]), _ask(_TOKEN, [run_id]) if fenced else None
    found, token = row.fetchone(), lease.fetchone() if lease else None
    if found is None:
        return None, "", None
    *values, version = found
    run = Run.from_db("default", _NAMES, [_read(f, value) for f, value in zip(_FIELDS, values, strict=True)])
    return run, version, int(token[0]) if token else None


def _read(field: Any, value: Any) -> Any:
    return field.from_db_value(value, None, connection) if isinstance(field, JSONField) else value


_FIELDS = Run._meta.concrete_fields
_NAMES = [f.attname for f in _FIELDS]
_LOCK = f"SELECT {', '.join(f.column for f in _FIELDS)}, xmin::text FROM runs_run WHERE id = %s FOR NO KEY UPDATE"  # noqa: S608
_TOKEN = "SELECT token FROM runs_lease WHERE run_id = %s"  # noqa: S105  a fencing token


def write_held(held: Writing, before: int) -> bool:
    """All of it in one statement. Whether the run's row was moved, if it was to be."""
    parts, values = _parts(held)
    if not held.changed:
        _ask(f"{_with(parts)} SELECT 1", values)
        return True
    moved, more = _moved(held, before)
    found = _ask(f"{_with(parts)} {moved} RETURNING xmin::text", [*values, *more]).fetchone()
    held.version = found[0] if found else ""
    return found is not None


def write_unheld(held: Writing, before: int, token: int) -> bool:
    """The same and its commit, with no lock held: only on the version of the row that was read, and under the newest token.

    The row is changed first, which takes its lock, and the lease is looked at after that, and locked: in the order of `holding`.
    """
    parts, values = _parts(held)
    moved, more = _moved(held, before)
    parts += [f"moved AS ({moved} AND xmin = %s::xid RETURNING xmin::text AS version)", f"fenced AS ({_FENCED})"]
    values += [*more, held.version, held.row.pk, token]
    try:
        [held.version, _] = _ask(f"{_with(parts)} {_OR_NOTHING}", values).fetchone()
    except DataError as error:
        if isinstance(error.__cause__, psycopg.errors.DivisionByZero):  # the one way to take a statement back from within
            return False
        raise
    return True


def _parts(held: Writing) -> tuple[list[str], list[Any]]:
    """The rows that belong to what was appended, as parts of one statement: one round trip, whatever is written.

    References between the rows hold when the transaction is committed, and not before.
    """
    parts = [vault.insertion(held.texts)] if held.texts else []
    parts += [rows.statement() for rows in held.rows.values()]
    parts += [inserting.insertion("runs_event", _EVENT, _events(held))] if held.pending else []
    return [f"part{at} AS ({sql})" for at, (sql, _) in enumerate(parts)], [value for _, given in parts for value in given]


def _events(held: Writing) -> list[tuple[Any, ...]]:
    month, run_id = held.row.month, held.row.pk
    return [(month, run_id, *_columns(event)) for event in held.pending]


def _columns(e: Any) -> tuple[Any, ...]:
    return e.seq, e.type, e.body, e.prev_hash, e.hash, e.artifact_id, orjson.dumps(e.payloads).decode(), e.sender


def _with(parts: list[str]) -> str:
    return f"WITH {', '.join(parts)}" if parts else ""


def _moved(held: Writing, before: int) -> Statement:
    text, fields = _updating(tuple(held.changed))
    values = [_saved(field, value) for field, value in zip(fields, held.changed.values(), strict=True)]
    return text, [*values, held.row.pk, before]


@lru_cache(maxsize=200)
def _updating(names: tuple[str, ...]) -> tuple[str, list[Any]]:
    fields = [Run._meta.get_field(name) for name in names]
    return f"UPDATE runs_run SET {', '.join(f'{f.column} = %s' for f in fields)} WHERE id = %s AND seq = %s", fields  # noqa: S608


def _saved(field: Any, value: Any) -> Any:
    if type(value) in _AS_THEY_ARE:
        return value
    return field.get_db_prep_save(value.pk if isinstance(value, Model) else value, connection)


_AS_THEY_ARE = (bytes, str, datetime)  # of which Django makes nothing else for PostgreSQL


_FENCED = "SELECT 1 FROM runs_lease WHERE run_id = %s AND token = %s AND EXISTS (SELECT 1 FROM moved) FOR SHARE"
_OR_NOTHING = "SELECT (SELECT version FROM moved), 1 / (SELECT count(*) FROM fenced)"
_EVENT = {
    "run_month": "date",
    "run_id": "uuid",
    "seq": "bigint",
    "type": "text",
    "body": "text",
    "prev_hash": "bytea",
    "hash": "bytea",
    "artifact_id": "uuid",
    "payloads": "jsonb",
    "sender": "text",
}


def _ask(text: str, values: list[Any]) -> Any:
    """A statement of fixed text for PostgreSQL, with its values beside it, which it plans once. Django puts values into the text."""
    here = connections[DEFAULT_DB_ALIAS]  # `connection` looks for it at every word
    here.ensure_connection()
    with here.wrap_database_errors:
        return psycopg.RawCursor(here.connection).execute(_numbered(text), values)


@lru_cache(maxsize=500)
def _numbered(text: str) -> bytes:
    first, *rest = text.split("%s")
    return (first + "".join(f"${at}{part}" for at, part in enumerate(rest, 1))).encode()
