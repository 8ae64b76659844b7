"""Reading the inbox while many actions wait, beside reading it while few do: `python -m bench.inbox`."""

import subprocess
from argparse import Namespace
from collections.abc import Mapping
from contextlib import closing
from urllib.parse import urlsplit
from uuid import UUID

import orjson

from bench import house
from bench.house import Caller, House, Row, Table, Timing, drive, shortly
from bench.waiting import QUEUE
from tests.acceptance.triage import Person, Triage
from tests.stack import PYTHON, ROOT

WHO = "Riley"
ARGUMENTS = [("--few", 100, "how many wait first"), ("--waiting", 10_000, "how many wait then")]
READS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "queue": ("the queue alone", QUEUE),
    "page": ("the page with the first action open", {}),
}


def figures(running: House, options: Namespace, table: Table) -> None:
    """An inbox with few in it, then the same one with many."""
    action = UUID(str(Triage.start(running, again=True).waiting_action()["id"]))
    there = running.query("SELECT count(*) AS n FROM approvals_proposedaction WHERE state = 'waiting'")[0]["n"]
    asked = fill(running, action, options.few - there)
    few = {name: read(running, options.seconds, headers) for name, (_, headers) in READS.items()}
    for name, (words, _) in READS.items():
        table.add(row(f"{options.few:,} waiting, {words}", few[name], asked[name], ""))
    asked = fill(running, action, options.waiting - options.few)
    for name, (words, headers) in READS.items():
        many = read(running, options.seconds, headers)
        beside = f"{shortly(many.ms(50) / few[name].ms(50))} times the time with {options.few:,}"
        table.add(row(f"{options.waiting:,} waiting, {words}", many, asked[name], beside))


def fill(running: House, action: UUID, count: int) -> dict[str, int]:
    """Let so many more wait. How many queries each read takes then."""
    who = running.query("SELECT email FROM access_user WHERE name LIKE %s", f"{WHO}%")[0]["email"]
    command = [PYTHON, "-m", "bench.waiting", str(action), str(max(count, 0)), who, urlsplit(running.base_url).netloc]
    done = subprocess.run(command, cwd=ROOT, env=running.env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return orjson.loads(done.stdout.splitlines()[-1])


def read(running: House, seconds: float, headers: Mapping[str, str]) -> Timing:
    with Person(running, WHO) as who, closing(Caller(running.base_url)) as caller:
        caller.headers |= headers | {"Cookie": "; ".join(f"{each.name}={each.value}" for each in who.http.cookies.jar)}
        assert b'data-count="' in caller.get("/inbox")
        return drive([lambda: caller.get("/inbox")], seconds)


def row(what: str, found: Timing, queries: int, beside: str) -> Row:
    told = {"p50 ms": f"{found.ms(50):.0f}", "p99 ms": f"{found.ms(99):.0f}", "queries": str(queries)}
    return Row(f"inbox, {what}", "1 reviewer", "1 Daphne", told, beside or "itself")


if __name__ == "__main__":
    house.command(__doc__, figures, ARGUMENTS, seconds=10, desk=True)
