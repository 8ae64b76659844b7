"""Migrating takes as long as it takes."""

import pytest
from django.core.management import call_command
from django.db import connection


def still_for() -> str:
    """For how long a transaction may stand still on this connection; empty where nothing limits it."""
    if connection.vendor != "postgresql":
        return ""
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        return str(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_a_slow_machine_may_think_between_two_statements_of_a_migration_and_nowhere_else():
    usual = "10s" if connection.vendor == "postgresql" else ""
    connection.close()  # it may be the one on which the test's database was migrated
    assert still_for() == usual
    try:
        call_command("migrate", verbosity=0)
        assert still_for() == ("0" if usual else "")
    finally:
        connection.close()
    assert still_for() == usual
