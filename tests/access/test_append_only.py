"""What is written down stays: the database itself refuses to change, replace or delete it, whoever asks and on whatever connection."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import Model
from django.test import Client

from access import append_only, roles, sealing, teams
from access.models import AuditEntry, AuditSeal, RoleVersion, TeamChange
from approvals import decisions, groups
from approvals.models import Decision, GroupVersion, StandingUse
from runs.models import Event
from tests import factories, migrated, postgres
from tests.approvals.mailing import propose_mail
from tests.approvals.test_standing_grants import stands

PROTECTED = tuple(append_only.TABLES)
on_both = pytest.mark.parametrize("model", PROTECTED, ids=lambda model: model.__name__)
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def written(cast) -> None:
    """At least two rows of each protected table."""
    proposed = propose_mail(cast)
    decisions.decide(proposed.action, reviewer=factories.actor(cast.riley), verdict="approved", digest=proposed.action.digest)
    other = propose_mail(cast, name="Ewa")
    decisions.decide(other.action, reviewer=factories.actor(cast.sam), verdict="rejected", digest=other.action.digest, reason="Not now.")
    grant = stands(cast)
    for number, action in enumerate((proposed.action, other.action), 1):
        StandingUse.objects.create(grant=grant, action=action, digest=action.digest, policy=action.policy, number=number, seq=number)
    for name in ("Finance", "Ledger"):
        groups.make(cast.workspace.pk, name=name, members=[], by=None)
    team = teams.make(cast.workspace.pk, "Refunds", by=factories.actor(cast.ada), why="Refunds are apart.")
    teams.rename(team, "Money back", by=factories.actor(cast.ada), why="It says more.")
    run = factories.make_run(cast)
    factories.note(run, sender="agent:1")
    factories.end(run)
    sealing.seal()
    roles.ask(cast.workspace.pk, None, roles.Wanted("Auditor", frozenset({"audit.view"})), base=0, by=factories.actor(cast.ada), why="Who?")
    RoleVersion.objects.create(role=cast.workspace.roles.first(), version=7, name="Reviewer")


def everything(model: type[Model]) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(str, row)) for row in model._default_manager.values_list()), key=repr)


@contextmanager
def refused(model: type[Model]) -> Iterator[None]:
    """What happens in here fails as append-only, and changes nothing."""
    before = everything(model)
    assert len(before) >= 2
    with pytest.raises(DatabaseError, match="append-only"):
        yield
    assert everything(model) == before


def test_these_tables_are_append_only():
    """What is tried in here is all that is protected, and it is these; one more has a row here and in `written`."""
    assert set(PROTECTED) == set(FIELD)


def test_after_all_migrations_every_trigger_is_there():
    assert append_only.missing() == []


# through the ORM ----------------------------------------------------------------------------------------------------------------------

FIELD = {
    AuditEntry: ("verb", "forged"),
    AuditSeal: ("hash", "forged"),
    RoleVersion: ("name", "Forged"),
    Event: ("type", "note.forged"),
    Decision: ("verdict", "approved"),
    StandingUse: ("digest", "forged"),
    GroupVersion: ("name", "Forged"),
    TeamChange: ("name", "Forged"),
}


def ways(model: type[Model], row: Model) -> dict[str, Callable[[], Any]]:
    """Each way in which the ORM changes or removes rows."""
    field, value = FIELD[model]
    setattr(row, field, value)
    key = [column.name for column in model._meta.pk_fields]
    rows = model.objects
    return {
        "save": lambda: row.save(force_update=True),
        "update": lambda: rows.update(**{field: value}),
        "update of one": lambda: rows.filter(pk=row.pk).update(**{field: value}),
        "delete": row.delete,
        "delete all": lambda: rows.all().delete(),
        "delete without looking": lambda: rows.all()._raw_delete(rows.db),
        "upsert": lambda: rows.bulk_create([row], update_conflicts=True, update_fields=[field], unique_fields=key),
    }


@on_both
def test_the_orm_changes_no_row(written, model):
    for change in ways(model, model.objects.first()).values():
        with refused(model):
            change()


# through SQL --------------------------------------------------------------------------------------------------------------------------


def statements(model: type[Model]) -> list[str]:
    """Each way in which SQL can change or remove a row, for the database that these tests run on."""
    table, (field, value) = model._meta.db_table, FIELD[model]
    key = ", ".join(column.column for column in model._meta.pk_fields)
    common = [
        f"UPDATE {table} SET {field} = '{value}'",
        f"UPDATE {table} SET {field} = {field}",
        f"DELETE FROM {table}",
        f"DELETE FROM {table} WHERE {field} <> '{value}' OR 1 = 1",
        f"INSERT INTO {table} SELECT * FROM {table} WHERE true ON CONFLICT ({key}) DO UPDATE SET {field} = '{value}'",
    ]
    if connection.vendor == "sqlite":
        verbs = ("UPDATE OR REPLACE", "UPDATE OR IGNORE", "UPDATE OR FAIL")
        common += [f"{verb} {table} SET {field} = '{value}'" for verb in verbs]
        common += [f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}", f"REPLACE INTO {table} SELECT * FROM {table}"]
    else:
        common += [
            f"WITH gone AS (DELETE FROM {table} RETURNING 1) SELECT count(*) FROM gone",
            f"MERGE INTO {table} AS t USING (SELECT 1) AS s ON true WHEN MATCHED THEN DELETE",
        ]
    return common


@on_both
def test_sql_changes_no_row(written, model):
    for statement in statements(model):
        with refused(model), connection.cursor() as cursor:
            cursor.execute(statement)


@on_both
def test_another_connection_changes_no_row(written, model):
    """One opened by hand with nothing of our settings: on SQLite without recursive_triggers, so that OR REPLACE fires no delete trigger."""
    for statement in statements(model):
        with refused(model), by_hand() as run:
            run(statement)


@contextmanager
def by_hand() -> Iterator[Callable[..., Any]]:
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=20)) as raw:
            assert raw.execute("PRAGMA recursive_triggers").fetchone() == (0,)
            with translated(sqlite3.Error), raw:
                yield raw.execute
    else:
        with psycopg.connect(postgres.address(connection.settings_dict["NAME"])) as raw, translated(psycopg.Error):
            yield raw.execute


@contextmanager
def translated(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind as error:
        raise DatabaseError(str(error)) from error


@pytest.mark.sqlite_only
@on_both
def test_a_new_row_replaces_none_whatever_they_have_in_common(written, model):
    """SQLite deletes the row that is there on a clash in any unique index, or in the hidden rowid: not only on the primary key."""
    table = model._meta.db_table
    clashes = [["rowid"], *unique_indexes(table)]
    assert (
        len(clashes)
        == {AuditEntry: 2, AuditSeal: 3, RoleVersion: 3, Event: 4, Decision: 3, StandingUse: 4, GroupVersion: 3, TeamChange: 2}[model]
    )
    for shared in clashes:
        columns, values = copied(table, shared)
        for verb in ("INSERT OR REPLACE", "REPLACE"):
            with refused(model), by_hand() as run:
                run(f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(values))})", values)


def unique_indexes(table: str) -> list[list[str]]:
    with connection.cursor() as cursor:
        cursor.execute('SELECT name FROM pragma_index_list(%s) WHERE "unique"', [table])
        names = [name for (name,) in cursor.fetchall()]
        found = []
        for name in names:
            cursor.execute("SELECT name FROM pragma_index_info(%s)", [name])
            found.append([column for (column,) in cursor.fetchall()])
    return found


def copied(table: str, shared: list[str]) -> tuple[list[str], list[Any]]:
    """A row like one that is there, whose own values but those of `shared` are new."""
    chosen = "sender IS NOT NULL" if "sender" in shared else "type = 'run.succeeded'" if shared == ["run_month", "run_id"] else "1 = 1"
    with closing(sqlite3.connect(connection.settings_dict["NAME"])) as raw:
        rows = raw.execute(f"SELECT rowid, * FROM {table} WHERE {chosen}")
        row = dict(zip([column[0] for column in rows.description], rows.fetchone(), strict=True))
    anew = {"seq": 999_999, "number": 999_999, "round": 999, "rowid": None} | {name: uuid4().hex for name in ("sender", "id", "entry")}
    for own, fresh in anew.items():
        if own in row and own not in shared:
            row[own] = fresh
    if "rowid" in shared and "run_id" in row:
        row["type"] = "note.posted"  # else it would be a second ending too
    return list(row), list(row.values())


@pytest.mark.sqlite_only
def test_a_new_row_that_shares_nothing_is_welcome(written):
    columns, values = copied("runs_event", ["none"])
    values[columns.index("type")] = "note.posted"
    before = Event.objects.count()
    with by_hand() as run:
        run(f"INSERT OR REPLACE INTO runs_event ({', '.join(columns)}) VALUES ({', '.join('?' * len(values))})", values)
    assert Event.objects.count() == before + 1


# the triggers themselves -------------------------------------------------------------------------------------------------------------


@on_both
def test_a_trigger_that_is_gone_is_named_until_it_is_back(model):
    names = append_only._names(connection.vendor, model)
    for name in names:
        drop(name, model)
        assert append_only.missing() == [name]
        append_only.install()
        assert append_only.missing() == []


def drop(trigger: str, model: type[Model]) -> None:
    on = f" ON {model._meta.db_table}" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {trigger}{on}")


def test_readiness_fails_while_a_trigger_is_missing():
    assert Client().get("/readyz").json()["append_only"] == "ok"
    drop(append_only._names(connection.vendor, Event)[0], Event)
    answer = Client().get("/readyz")
    assert answer.status_code == 503 and answer.json()["append_only"].startswith("triggers missing")
    append_only.install()


@pytest.mark.postgres_only
@on_both
def test_a_trigger_that_sleeps_is_missing_too(model):
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        assert append_only.missing() == append_only._names("postgresql", model)
        cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
    assert append_only.missing() == []


@pytest.mark.sqlite_only
@on_both
def test_a_table_that_a_migration_rebuilds_has_its_triggers_again_after_migrate(written, model):
    with connection.schema_editor() as editor:
        editor._remake_table(model)
    assert append_only.missing() == sorted(append_only._names("sqlite", model)), "SQLite is said to drop them with the table"
    call_command("migrate", verbosity=0)
    assert append_only.missing() == []
    with refused(model):
        model.objects.all()._raw_delete("default")


@pytest.mark.postgres_only
def test_the_role_of_the_application_empties_no_table():
    """TRUNCATE fires no row trigger. The role that migrates and serves is an ordinary one, as in life: ours here is the superuser."""
    owner = migrated.OWNER
    with postgres.temporary("handrail_owned", template=migrated.postgres_template(owner=owner), owner=owner) as address:
        for model in PROTECTED:
            with psycopg.connect(address) as own, pytest.raises(psycopg.errors.InsufficientPrivilege):
                own.execute(f"TRUNCATE {model._meta.db_table} CASCADE")


# the log's own constraints ------------------------------------------------------------------------------------------------------------


def inserted(**changes: Any) -> None:
    """An event put in behind the back of the one writer."""
    first = Event.objects.filter(type="run.succeeded").values().get()
    Event.objects.bulk_create([Event(**(first | changes))])


def test_the_database_refuses_a_second_ending(written):
    for ending in ("run.succeeded", "run.failed", "run.cancelled"):
        with pytest.raises(IntegrityError), transaction.atomic():
            inserted(seq=99, type=ending)
    inserted(seq=99, type="note.posted")


def test_the_database_refuses_a_second_event_with_a_number_or_a_senders_id(written):
    with pytest.raises(IntegrityError), transaction.atomic():
        inserted(type="note.posted")
    with pytest.raises(IntegrityError), transaction.atomic():
        inserted(seq=99, type="note.posted", sender="agent:1")
    inserted(seq=99, type="note.posted", sender="agent:2")
