"""Walks one run in this process, and says what its steps took. `bench.steps` and `bench.durable` start it.

`python -m bench.walking KIND STEPS RUNS [EVERY]` prints a line of JSON for each run: the seconds of each EVERY steps and the memory after
them, in KiB. KIND is `read`, a tool that asks the outside nothing and gives a sentence, or `write`, one through an automatic policy.
"""

import os
import sys
import time
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django
import orjson

TEXT = "The account has two open invoices, and both of them are due before the end of May."


class Clock:
    """When each so manieth step was done, and the memory then."""

    def __init__(self, every: int) -> None:
        self.every, self.began, self.took, self.memory = every, time.perf_counter(), [], []

    def done(self, number: int) -> None:
        if (number + 1) % self.every == 0:
            now = time.perf_counter()
            self.took.append(now - self.began)
            self.memory.append(resident())
            self.began = now


def resident() -> int:
    """The memory of this process that is in RAM, in KiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def main(kind: str, steps: int, runs: int, every: int) -> None:
    django.setup()
    from django.db import connection

    from runs import live
    from runs.engine import executor

    live.call_worker = lambda run_id: None  # it is walked here, and by nobody else
    declare()
    for _ in range(runs):
        run = started(kind, steps)
        clocks[:] = [Clock(every)]
        word = executor.execute(run)
        assert word == "succeeded", word
        print(orjson.dumps({"seconds": clocks[0].took, "memory": clocks[0].memory, "database": shown(connection)}).decode(), flush=True)


clocks: list[Clock] = []


def declare() -> None:
    from runs.engine.tools import Call, tool
    from runs.engine.workflow import Channel, workflow

    @tool(effect="read", title="Look", name="bench_look")
    def look(call: Call, number: int) -> dict[str, object]:
        return {"number": number, "text": TEXT}

    @tool(effect="write", title="Write", name="bench_write", honours_key=True)
    def write(call: Call, number: int, text: str) -> dict[str, object]:
        return {"number": number}

    @workflow("bench-read", version=1)
    def reads(run: Channel, steps: int) -> None:
        for number in range(steps):
            assert run.step(look, number).number == number
            clocks[0].done(number)

    @workflow("bench-write", version=1)
    def writes(run: Channel, steps: int) -> None:
        for number in range(steps):
            assert run.step(write, number, TEXT).number == number
            clocks[0].done(number)


def started(kind: str, steps: int):
    from access.models import Agent
    from access.rules import Actor
    from approvals import policy
    from runs import starting

    agent = Agent.objects.select_related("owner").order_by("pk").first()
    if policy.in_force(agent.workspace_id, "bench_write") is None:
        policy.set_rule(agent.workspace_id, "bench_write", name="Measured", outcome="automatic", by=None)
    by = Actor("human", str(agent.owner_id), agent.owner.name)
    none = {"tokens": 2**50}  # no budget of steps
    more = {"workflow": f"bench-{kind}", "arguments": {"steps": steps}, "scope": {}, "budgets": none}
    return starting.start(agent=agent, owner=agent.owner, by=by, title="A measured run", **more).pk


def shown(connection) -> str:
    """How the walk's connection is set."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA synchronous")
            return f"autocommit between transactions, synchronous={cursor.fetchone()[0]}"
        found = {}
        for name in ("synchronous_commit", "fsync", "full_page_writes", "transaction_isolation"):
            cursor.execute(f"SHOW {name}")
            found[name] = cursor.fetchone()[0]
        said = ", ".join(f"{name}={value}" for name, value in found.items())
        return f"autocommit={'on' if connection.get_autocommit() else 'off'}, {said}"


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int((sys.argv[4:] or ["1000"])[0]))
