"""From an append to its sight by 1, 100 and 1,000 viewers, beside a bare fan-out of the same server: `python -m bench.viewers`."""

import os
import subprocess
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count as count_from
from threading import Timer

import orjson

from bench import house
from bench.house import Caller, House, Row, Table, Timing, resident_kib, shortly
from tests.stack import PYTHON, ROOT

NOTE = {"type": "note.posted", "texts": {"note": "Both payments of 14 May are in the ledger; the second one has no order."}}
KINDS = {"socket": "WebSocket", "stream": "SSE"}
FEW = 50  # viewers below which the memory of one cannot be told from chance
MINUTES_MAX = 10
ARGUMENTS = [("--viewers", [1, 100, 1000], "how many watch at once"), ("--rate", 4.0, "events appended a second")]


@dataclass(frozen=True)
class Side:
    """A run to be watched, and the server that shows it."""

    pid: int
    address: str  # of what a viewer opens
    key: str
    head: int
    append: Callable[[], object]
    end: Callable[[], object]
    end_events: int  # how many events the ending is
    close: Callable[[], object]


@dataclass(frozen=True)
class Seen:
    """What the viewers of one run got. `lost` and `doubled` are counted over all of them."""

    timing: Timing
    expected: int
    lost: int
    doubled: int
    in_order: bool
    cut: int
    kib: float  # of the server's memory, a viewer


def figures(running: House, options: Namespace, table: Table) -> None:
    for kind, name in KINDS.items():
        for count in options.viewers:
            if table.rows:
                running.restart_part("web")  # memory that was used once is not given back
            ours = measured(partial(side_of, running, kind), kind, count, options)
            with house.bare(running) as (pid, address):
                theirs = measured(partial(bare_side, pid, address), kind, count, options)
            table.add(row(name, count, options.rate, ours, theirs))


def row(name: str, count: int, rate: float, ours: Seen, theirs: Seen) -> Row:
    found = {
        "p50 ms": f"{ours.timing.ms(50):.1f}",
        "p99 ms": f"{ours.timing.ms(99):.1f}",
        "seen": f"{ours.expected - ours.lost:,}",
        "lost": f"{ours.lost:,}",
        "twice": f"{ours.doubled:,}",
        "in order": "yes" if ours.in_order else "NO",
        "cut off": f"{ours.cut:,}",
        "KiB a viewer": f"{ours.kib:.0f}" if count >= FEW else "–",
    }
    slower = shortly(ours.timing.ms(50) / theirs.timing.ms(50))
    beside = f"{slower} times slower than a bare fan-out (p50 {theirs.timing.ms(50):.1f} ms, p99 {theirs.timing.ms(99):.1f} ms"
    beside += f", {theirs.kib:.0f} KiB)" if count >= FEW else ")"
    return Row(f"append to sight, {name}, {rate:g} events/s", f"{count:,} viewer{'s' * (count > 1)}", "1 Daphne", found, beside)


# one measurement ------------------------------------------------------------------------------------------------------------------------


def measured(open_side: Callable[[], Side], kind: str, count: int, options: Namespace) -> Seen:
    with closing(open_side()) as side:  # what is loaded and made once is there after this
        watched(side, kind, 1, events=2, rate=options.rate)
    with closing(open_side()) as side:
        return watched(side, kind, count, events=max(1, round(options.seconds * options.rate)), rate=options.rate)


def watched(side: Side, kind: str, count: int, *, events: int, rate: float) -> Seen:
    """Let so many viewers in, append so many events, one after the other, end the run, and ask what each viewer got."""
    before = resident_kib(side.pid)
    with crowd(side, kind, count) as process:
        assert process.stdout.readline() == b"ready\n", "the viewers did not all come in"
        append_steadily(side, events, rate)
        kib = (resident_kib(side.pid) - before) / count
        side.end()
        told = orjson.loads(process.stdout.readline())
    expected = (events + side.end_events) * count
    lost, doubled = expected - told["distinct"], told["lines"] - told["distinct"]
    return Seen(Timing(sorted(one / 1000 for one in told["ms"])), expected, lost, doubled, told["in_order"], told["cut"], kib)


@contextmanager
def crowd(side: Side, kind: str, count: int) -> Iterator[subprocess.Popen[bytes]]:
    """The viewers, in a process of their own; killed if they take too long, so that nobody waits for their words for ever."""
    command = [PYTHON, "-m", "bench.watch", kind, side.address, str(side.head), str(count)]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | {"KEY": side.key}, stdout=subprocess.PIPE) as process:
        limit = Timer(MINUTES_MAX * 60, process.kill)
        limit.start()
        try:
            yield process
            process.wait(60)
        finally:
            limit.cancel()
            process.kill()


def append_steadily(side: Side, events: int, rate: float) -> None:
    """One event every 1/rate seconds, whether or not the one before has been seen."""
    began = time.perf_counter()
    for n in range(events):
        time.sleep(max(0.0, began + n / rate - time.perf_counter()))
        side.append()
    time.sleep(1 / rate)  # memory is looked at when the last event has gone its way


# the two sides --------------------------------------------------------------------------------------------------------------------------


def side_of(running: House, kind: str) -> Side:
    """A new run in the house."""
    run, caller, ids = running.new_run(), running.caller(), count_from(1)
    head = orjson.loads(caller.get(f"/api/v1/runs/{run}"))["head"]
    paths = {"socket": f"/ws/runs/{run}", "stream": f"/api/v1/runs/{run}/stream"}
    return Side(
        pid=running.pid("web"),
        address=running.base_url + paths[kind],
        key=running.token,
        head=head,
        append=lambda: caller.post(f"/api/v1/runs/{run}/events", {"id": f"e{next(ids)}", **NOTE}),
        end=lambda: caller.post(f"/api/v1/runs/{run}/ending", {"outcome": "failed"}),
        end_events=1,
        close=caller.close,
    )


def bare_side(pid: int, address: str) -> Side:
    """Whatever the bare server tells from here on."""
    caller = Caller(address)
    head = orjson.loads(caller.post("/tell", {}))["seq"]
    return Side(
        pid=pid,
        address=f"{address}/stream",
        key="",
        head=head,
        append=lambda: caller.post("/tell", {}),
        end=lambda: caller.post("/end", {}),
        end_events=0,
        close=caller.close,
    )


if __name__ == "__main__":
    house.command(__doc__, figures, ARGUMENTS, seconds=15, without=["worker", "beat"])
