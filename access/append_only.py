"""Tables that the database itself keeps append-only.

Triggers are installed anew after every `migrate`: SQLite rebuilds a table to alter it and drops its triggers without a word.
`missing()` is asked by the readiness check and by a test that runs after all migrations.
"""

from typing import Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.utils import CursorWrapper
from django.db.models import Model

TABLES: list[type[Model]] = []


def protect(model: type[Model]) -> type[Model]:
    """Class decorator: rows of this model are inserted and read, never changed, replaced or deleted."""
    TABLES.append(model)
    return model


def install(using: str = DEFAULT_DB_ALIAS, **_: Any) -> None:
    """Create the triggers of every protected table that exists. Safe to repeat."""
    connection = connections[using]
    there = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        for model in TABLES:
            if model._meta.db_table in there:
                table = model._meta.db_table
                for statement in _sqlite(cursor, table) if connection.vendor == "sqlite" else _postgresql(table):
                    cursor.execute(statement)


def missing(using: str = DEFAULT_DB_ALIAS) -> list[str]:
    """Names of triggers that should be there and are not."""
    connection = connections[using]
    query = {
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
        "postgresql": "SELECT tgname FROM pg_trigger WHERE tgenabled IN ('O', 'A')",
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(query)
        there = {name for (name,) in cursor.fetchall()}
    return sorted(name for model in TABLES for name in _names(connection.vendor, model) if name not in there)


def remove(using: str = DEFAULT_DB_ALIAS) -> None:
    """Drop the triggers. For retention, as another database role, and for emptying a test database."""
    connection = connections[using]
    with connection.cursor() as cursor:
        for model in TABLES:
            for name in _names(connection.vendor, model):
                on = f" ON {model._meta.db_table}" if connection.vendor == "postgresql" else ""
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}{on}")


def _names(vendor: str, model: type[Model]) -> list[str]:
    table = model._meta.db_table
    verbs = ("update", "delete", "replace") if vendor == "sqlite" else ("update_delete",)
    return [f"{table}_no_{verb}" for verb in verbs]


def _sqlite(cursor: CursorWrapper, table: str) -> list[str]:
    refuse = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    taken = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only and has such a row already'); END"
    return [
        f"DROP TRIGGER IF EXISTS {table}_no_update",
        f"DROP TRIGGER IF EXISTS {table}_no_delete",
        f"DROP TRIGGER IF EXISTS {table}_no_replace",
        f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {refuse}",
        f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {refuse}",
        # INSERT OR REPLACE deletes without firing the delete trigger unless recursive_triggers is on; this one fires on any connection
        f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {' OR '.join(_clashes(cursor, table))} {taken}",
    ]


def _clashes(cursor: CursorWrapper, table: str) -> list[str]:
    """What makes OR REPLACE delete a row that is there: its rowid in the new one, or what a unique index says is its own."""
    cursor.execute("SELECT name FROM pragma_table_info(%s)", [table])
    new = ", ".join(f'NEW."{column}" AS "{column}"' for (column,) in cursor.fetchall())
    cursor.execute(
        'SELECT i.name, m.sql FROM pragma_index_list(%s) AS i LEFT JOIN sqlite_master AS m ON m.name = i.name WHERE i."unique"', [table]
    )
    found = ["rowid = NEW.rowid"]
    for index, sql in cursor.fetchall():
        cursor.execute("SELECT name FROM pragma_index_info(%s)", [index])
        same = [f'"{column}" = NEW."{column}"' for (column,) in cursor.fetchall()]
        if condition := (sql or "").partition(") WHERE ")[2]:  # a partial index: true of the old and the new
            same += [f"({condition})", f"EXISTS (SELECT 1 FROM (SELECT {new}) WHERE {condition})"]  # noqa: S608  names of the schema
        found.append(" AND ".join(same))
    return [f"EXISTS (SELECT 1 FROM {table} WHERE {clash})" for clash in found]  # noqa: S608  names of the schema


def _postgresql(table: str) -> list[str]:
    return [
        "CREATE OR REPLACE FUNCTION handrail_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation'; END $$",
        f"CREATE OR REPLACE TRIGGER {table}_no_update_delete BEFORE UPDATE OR DELETE ON {table} "
        "FOR EACH ROW EXECUTE FUNCTION handrail_append_only()",
        # no TRUNCATE trigger: it would stop a test database from being emptied; the app's own role loses the right instead
        f"REVOKE TRUNCATE ON {table} FROM CURRENT_USER",
    ]


def connect() -> None:
    """Install after every migrate. Called once, by the app that is migrated last."""
    from django.db.models.signals import post_migrate

    post_migrate.connect(install, sender=apps.get_app_config("approvals"), dispatch_uid="append_only")
