"""From a person's decision to the start of the tool, as the log has it, beside an empty Celery task: `python -m bench.decision`."""

import subprocess
import time
from argparse import Namespace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import orjson

from bench import house
from bench.house import AGENT, House, Row, Table, Timing, shortly
from tests.acceptance.triage import Person, Triage
from tests.stack import PYTHON, ROOT

WARM_UP = 2  # runs that are not counted
ARGUMENTS: house.Arguments = []


def figures(running: House, options: Namespace, table: Table) -> None:
    ours = decided_runs(running, options.seconds)
    theirs = empty_tasks(running, len(ours.took))
    found = {"p50 ms": f"{ours.ms(50):.0f}", "p99 ms": f"{ours.ms(99):.0f}"}
    slower = shortly(ours.ms(50) / theirs.ms(50))
    beside = f"{slower} times slower than an empty Celery task (p50 {theirs.ms(50):.1f} ms, p99 {theirs.ms(99):.1f} ms)"
    server = f"1 Daphne, 1 worker of {running.env['WORKERS']} processes, beat"
    table.add(Row(f"decision to tool, {len(ours.took)} runs", "1 reviewer", server, found, beside))


def decided_runs(running: House, seconds: float) -> Timing:
    """Decide one run after the other, as many as there is time for."""
    first = Triage.start(running)
    with Person(running, "Riley") as riley:
        approve(first, riley)
        for _ in range(WARM_UP - 1):
            approve(another(running, first), riley)
        until, took = time.monotonic() + seconds, [approve(another(running, first), riley)]
        while time.monotonic() < until:
            took.append(approve(another(running, first), riley))
        return Timing(sorted(took))


def approve(run: Triage, by: Person) -> float:
    """Decide when it waits, and see it to its end. Seconds from `action.decided` to the `tool.started` after it."""
    answer = by.decide(run.waiting_action(), "approved")
    assert answer.status_code < 400, answer.text
    run.wait_for("succeeded")
    events = run.stack.query("SELECT type, body FROM runs_event WHERE run_id = %s ORDER BY seq", run.id)
    decided = next(n for n, event in enumerate(events) if event["type"] == "action.decided")
    started = next(event for event in events[decided:] if event["type"] == "tool.started")
    return (time_of(started) - time_of(events[decided])).total_seconds()


def another(running: House, first: Triage) -> Triage:
    """A new run for the same ticket."""
    scope = first.row["scope"]
    scope = orjson.loads(scope) if isinstance(scope, str) else scope
    started = running.new_run(workflow=AGENT, arguments={"ticket_id": scope["ticket"][0]}, scope=scope)
    return Triage(running, running.query("SELECT ref FROM runs_run WHERE id = %s", UUID(started))[0]["ref"])


def time_of(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(orjson.loads(event["body"])["at"])


def empty_tasks(running: House, times: int) -> Timing:
    words = ("worker", "--pool", "prefork", "--concurrency", running.env["WORKERS"], "--without-mingle", "--without-gossip")
    worker = running.spawn(PYTHON, "-m", "celery", "-A", "bench.bare_task", "-q", *words, "-n", f"{uuid4().hex[:8]}@bench")
    command = [PYTHON, "-m", "bench.bare_task", str(times + WARM_UP)]
    done = subprocess.run(command, cwd=ROOT, env=running.env, capture_output=True, text=True, timeout=300)
    worker.kill()
    assert done.returncode == 0, done.stderr
    return Timing(sorted(ms / 1000 for ms in orjson.loads(done.stdout)[WARM_UP:]))


if __name__ == "__main__":
    house.command(__doc__, figures, ARGUMENTS, seconds=60, desk=True)
