"""A database that goes away under a worker says nothing about the workflow: the run is not stuck, and whoever comes next goes on."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import OperationalError, connection
from django.test import Client

from approvals import policy
from runs.models import Lease
from runs.verification import Whole, verify
from tests.runs import workflows
from tests.runs.test_engine import start, types, walk

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]


def cut_off() -> None:
    """The server ends this process's connection, as it does when it is restarted."""
    mine = connection.connection.info.backend_pid
    with psycopg.connect(connection.connection.info.dsn, password=connection.settings_dict["PASSWORD"], autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [mine])


def test_a_connection_that_is_cut_off_while_a_tool_works_parks_nothing(cast):
    world = workflows.reset()
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    run = start(cast, "test-talk", {"thing": "tea"})
    original = workflows.look.function

    def looked_and_cut_off(call, thing):
        seen = original(call, thing)
        cut_off()
        return seen

    object.__setattr__(workflows.look, "function", looked_and_cut_off)
    try:
        with pytest.raises(OperationalError):
            walk(run)
    finally:
        object.__setattr__(workflows.look, "function", original)
    run.refresh_from_db()
    assert run.state == "running" and Lease.objects.get(run=run).until is None, "it was given back at once"
    assert walk(run) == "waiting" and world.reads == 2
    assert "run.parked" not in types(run) and isinstance(verify(run), Whole)


@contextmanager
def nobody_listens() -> Iterator[None]:
    """The database's port is one where nobody answers."""
    here = connection.settings_dict
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # taken, and not listened at
        there = here | {"HOST": "127.0.0.1", "PORT": str(closed.getsockname()[1])}
        connection.close()
        connection.settings_dict = there
        try:
            yield
        finally:
            connection.close()
            connection.settings_dict = here


def test_a_page_and_the_api_say_that_the_database_is_away_and_when_to_come_again(cast, caplog):
    browser = Client(raise_request_exception=False)
    browser.force_login(cast.otto)
    with nobody_listens():
        page, answer = browser.get("/runs"), browser.get("/api/v1/runs")
    assert (page.status_code, page["Retry-After"]) == (503, "5") and "The database does not answer at the moment." in page.content.decode()
    told = answer.json()
    assert (answer.status_code, answer["Retry-After"], told["type"]) == (503, "5", "urn:handrail:problem:database-away")
    assert "same ids" in told["what_next"] and told["request"]
    assert browser.get("/runs").status_code == 200, "it came back, and so do we"
