"""Appending over HTTP, beside an empty call of the same server and raw inserts of the same rows: `python -m bench.append`."""

from argparse import Namespace
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from bench import house, raw
from bench.house import Caller, House, Row, Table, Timing, drive, opened, times

NOTE = "Both payments of 14 May are in the ledger; the second one has no order"
KINDS: Mapping[str, Mapping[str, Any]] = {
    "event without text": {"type": "tool.ended", "data": {"tool": "search", "outcome": "ok", "ms": 120}},
    "event with a text of 80 bytes": {"type": "note.posted", "texts": {"note": NOTE.ljust(80, ".")}},
}
ARGUMENTS = [("--sizes", [1, 100], "events in one request"), ("--connections", [1, 8], "how many send at once")]


def figures(running: House, options: Namespace, table: Table) -> None:
    raw.make_twins(running)
    with house.bare(running) as (_, bare):
        for kind, event in KINDS.items():
            for size in options.sizes:
                for connections in options.connections:
                    table.add(measure(running, bare, kind, event, size, connections, options.seconds))


def measure(running: House, bare: str, kind: str, event: Mapping[str, Any], size: int, connections: int, seconds: float) -> Row:
    """One run for each connection, as if each were an agent at work."""
    runs = [running.new_run() for _ in range(connections)]
    with opened(running.caller() for _ in runs) as callers:
        paths = [f"/api/v1/runs/{run}/events" for run in runs]
        ours = drive([appending(caller, path, event, size) for caller, path in zip(callers, paths, strict=True)], seconds)
    with opened(Caller(bare) for _ in runs) as callers:
        empty = drive([appending(caller, "/empty", event, size) for caller in callers], seconds)
    with opened(raw.Inserts(running, run, size) for run in runs) as inserts:
        inserted = drive(inserts, seconds)
    return row(f"append, {kind}, {size} a request", connections, size, ours, empty, inserted)


def appending(caller: Caller, path: str, event: Mapping[str, Any], size: int) -> Callable[[], bytes]:
    """A call that posts that many events, each with an id of its own."""
    ids = count()

    def call() -> bytes:
        events = [{"id": f"e{next(ids)}", **event} for _ in range(size)]
        return caller.post(path, events if size > 1 else events[0])

    return call


def row(what: str, connections: int, size: int, ours: Timing, empty: Timing, inserted: Timing) -> Row:
    found = {"events/s": f"{ours.rate * size:,.0f}", "p50 ms": f"{ours.ms(50):.1f}", "p99 ms": f"{ours.ms(99):.1f}"}
    beside = f"{times(ours.rate, empty.rate, 'an empty call')}, {times(ours.rate * size, inserted.rate * size, 'raw inserts')}"
    return Row(what, f"{connections} connection{'s' * (connections > 1)}", "1 Daphne", found, beside)


if __name__ == "__main__":
    house.command(__doc__, figures, ARGUMENTS, seconds=5, without=["worker", "beat"])
