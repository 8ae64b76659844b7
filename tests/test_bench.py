"""The figures can be measured: each on a tiny scale, for what it counts and never for how long it took."""

from argparse import Namespace
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pytest

from bench import append, decision, house, inbox, read, steps, vault, viewers
from bench.house import House, Row, Table

pytestmark = pytest.mark.timeout(900)  # the fixture measures all, and its processes share the machine with other tests
FIGURES = (append, read, viewers, decision, inbox, steps, vault)
TINY = "--database sqlite --seconds 0.05 --sizes 1 3 --connections 2 --events 20 --viewers 3 --rate 20 --few 3 --waiting 20"
TINY += " --reads 6 --writes 4 --every 2 --mib 1"


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    """All of them in one house, as their commands would measure them: rows by the name of the command, and what was `printed`."""
    rows: dict[str, list[Row]] = {}

    def all_of_them(running: House, options: Namespace, table: Table) -> None:
        for module in FIGURES:
            rows[module.__name__] = (own := Table(table.place, options.markdown)).rows
            module.figures(running, options, own)

    with redirect_stdout(StringIO()) as printed:
        arguments = [argument for module in FIGURES for argument in module.ARGUMENTS]
        house.command("", all_of_them, arguments, seconds=0, words=[*TINY.split(), "--markdown"], desk=True)
    return rows | {"printed": printed.getvalue()}


def test_no_viewer_loses_an_event_or_gets_one_twice(measured):
    found = [row.found for row in measured["bench.viewers"]]
    assert [(row["seen"], row["lost"], row["twice"], row["in order"]) for row in found] == [("6", "0", "0", "yes")] * 2


def test_appends_stand_beside_an_empty_call_and_raw_inserts(measured):
    rows = measured["bench.append"]
    assert len(rows) == 4
    assert all("an empty call" in row.beside and "raw inserts" in row.beside for row in rows)


def test_a_whole_log_read_stands_beside_the_raw_read(measured):
    assert ["the raw read" in row.beside for row in measured["bench.read"]] == [True, True]


def test_large_files_stand_beside_sealing_and_writing_them(measured):
    found = [row.beside for row in measured["bench.vault"]]
    assert ["writing a file" in found[0], "opening in memory" in found[1]] == [True, True]


def test_a_decision_stands_beside_an_empty_task(measured):
    assert ["an empty Celery task" in row.beside for row in measured["bench.decision"]] == [True]


def test_an_inbox_with_many_in_it_stands_beside_one_with_few_and_asks_as_often(measured):
    rows = measured["bench.inbox"]
    assert ["times the time with 3" in row.beside for row in rows] == [False, False, True, True]
    assert rows[0].found["queries"] == rows[2].found["queries"] and int(rows[2].found["queries"]) <= 8


def test_a_run_of_many_steps_stands_beside_its_own_beginning(measured):
    rows = measured["bench.steps"]
    assert [row.what for row in rows] == ["6 reads in one run", "4 writes of one tool in one run"]
    assert all("times the time of the first" in row.beside and "MiB since then" in row.beside for row in rows)


def test_each_row_says_where_it_was_measured(measured):
    rows = [line for line in measured["printed"].splitlines() if line.startswith("| ") and "---" not in line and "database" not in line]
    assert len(rows) == 17
    assert all("SQLite" in row and ("Daphne" in row or "in process" in row) for row in rows)
