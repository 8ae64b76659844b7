"""One run of many steps: what each thousand of them takes, and the memory of its worker then: `python -m bench.steps`."""

import subprocess
from argparse import Namespace
from collections.abc import Mapping
from statistics import median
from typing import Any

import orjson

from bench import house
from bench.house import House, Row, Table, shortly
from tests.stack import PYTHON, ROOT

ARGUMENTS = [
    ("--reads", 20_000, "steps that read"),
    ("--writes", 20_000, "steps that write by one tool, through a policy that asks nobody"),
    ("--every", 1000, "steps to a point of the curve"),
]
EDGE = 3  # points at the curve's beginning and end that are compared
KINDS: Mapping[str, str] = {"read": "reads", "write": "writes of one tool"}


def figures(running: House, options: Namespace, table: Table) -> None:
    for kind, steps in (("read", options.reads), ("write", options.writes)):
        [curve] = walked(running, kind, steps, every=options.every)
        print_curve(KINDS[kind], curve, options.every)
        table.add(row(kind, steps, curve, options.every))


def walked(running: House, kind: str, steps: int, *, runs: int = 1, every: int = 0) -> list[dict[str, Any]]:
    """Runs of so many steps, walked by one process: of each the `seconds` of so many steps after the other, and the `memory` then."""
    command = [PYTHON, "-m", "bench.walking", kind, str(steps), str(runs), str(every or steps)]
    done = subprocess.run(command, cwd=ROOT, env=running.env, capture_output=True, text=True, timeout=6 * 3600)
    assert done.returncode == 0, done.stderr
    return [orjson.loads(line) for line in done.stdout.splitlines()]


def print_curve(what: str, curve: Mapping[str, Any], every: int) -> None:
    """A line for each point: up to which step, milliseconds a step, memory."""
    print(f"{what}: up to step, ms a step, MiB", flush=True)
    for number, (seconds, kib) in enumerate(zip(curve["seconds"], curve["memory"], strict=True), 1):
        print(f"{number * every:>9,} {seconds / every * 1000:>9.2f} {kib / 1024:>9.1f}", flush=True)


def row(kind: str, steps: int, curve: Mapping[str, Any], every: int) -> Row:
    first, last = (median(some) / every * 1000 for some in (curve["seconds"][:EDGE], curve["seconds"][-EDGE:]))
    # after the first points, in which modules are loaded and caches filled
    grown = (curve["memory"][-1] - curve["memory"][min(EDGE, len(curve["memory"]) - 1)]) / 1024
    found = {"ms a step, first": f"{first:.2f}", "ms a step, last": f"{last:.2f}", "MiB, last": f"{curve['memory'][-1] / 1024:.0f}"}
    beside = f"{shortly(last / first)} times the time of the first {every * EDGE:,}; {grown:+.1f} MiB since then"
    return Row(f"{steps:,} {KINDS[kind]} in one run", "–", f"in process ({curve['database']})", found, beside)


if __name__ == "__main__":
    house.command(__doc__, figures, ARGUMENTS, seconds=0, without=["worker", "beat"])
