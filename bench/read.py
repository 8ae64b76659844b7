"""Reading a whole log over HTTP, beside the raw read of the same rows: `python -m bench.read`."""

from argparse import Namespace
from collections.abc import Mapping
from contextlib import closing
from itertools import cycle
from typing import Any

import orjson

from bench import house, raw
from bench.append import KINDS
from bench.house import House, Row, Table, drive, times

PAGE = 1000  # as many as one answer gives
ARGUMENTS = [("--events", 10_000, "how long the log is")]


def figures(running: House, options: Namespace, table: Table) -> None:
    for kind, event in KINDS.items():
        table.add(measure(running, kind, event, options.events, options.seconds))


def measure(running: House, kind: str, event: Mapping[str, Any], events: int, seconds: float) -> Row:
    size = min(PAGE, events)
    run, head = filled_run(running, event, events, size)
    starts = range(head - events + 1, head + 1, size)
    addresses = cycle([f"/api/v1/runs/{run}/events?after={start - 1}&limit={size}" for start in starts])
    with closing(running.caller()) as caller:
        check_page(caller.get(next(addresses)), size)
        ours = drive([lambda: caller.get(next(addresses))], seconds)
    with closing(raw.Pages(running, run, starts, size)) as pages:
        theirs = drive([pages], seconds)
    found = {
        "events/s": f"{ours.rate * size:,.0f}",
        f"{events:,} events ms": f"{events / (ours.rate * size) * 1000:.0f}",
        "p50 ms a page": f"{ours.ms(50):.1f}",
        "p99 ms a page": f"{ours.ms(99):.1f}",
    }
    what = f"read {events:,} of one run, {kind}, {size} a page"
    return Row(what, "1 connection", "1 Daphne", found, times(ours.rate * size, theirs.rate * size, "the raw read"))


def filled_run(running: House, event: Mapping[str, Any], events: int, size: int) -> tuple[str, int]:
    """A run with that many events, a whole number of pages, and its head."""
    assert events % size == 0, f"--events is a multiple of {size}"
    run = running.new_run()
    with closing(running.caller()) as caller:
        for start in range(0, events, size):
            batch = [{"id": f"e{n}", **event} for n in range(start, start + size)]
            answer = caller.post(f"/api/v1/runs/{run}/events", batch)
    return run, orjson.loads(answer)["accepted"][-1]["seq"]


def check_page(answer: bytes, size: int) -> None:
    assert len(orjson.loads(answer)["events"]) == size


if __name__ == "__main__":
    house.command(__doc__, figures, ARGUMENTS, seconds=10, without=["worker", "beat"])
