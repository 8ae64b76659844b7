"""A hundred durable steps in one run, beside DBOS and LangGraph on the same PostgreSQL: `python -m bench.durable --database postgres`.

Each runs in a process of its own that does nothing else, as its guide says for what must not be lost: a step's result is committed, and the
commit is on the disk, before the next step begins. The peers live in an environment that is made for them.
"""

import subprocess
import tempfile
import venv
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import orjson

from bench import house, steps
from bench.house import House, Row, Table
from tests import postgres
from tests.stack import ROOT

INSTALLED = ("dbos==3.4.0", "langgraph==1.2.24", "langgraph-checkpoint-postgres==3.2.0", "psycopg[binary,pool]>=3.3.9")
PEERS: Mapping[str, tuple[str, ...]] = {  # name → its script in bench/peers, and how it is called
    "DBOS": ("dbos_steps.py",),
    "LangGraph, AsyncPostgresSaver": ("langgraph_steps.py", "async"),
    "LangGraph, PostgresSaver": ("langgraph_steps.py",),
}
ARGUMENTS = [
    ("--steps", 100, "steps in a run"),
    ("--runs", 5, "runs in a round, after one that is not counted"),
    ("--rounds", 5, "rounds: one after the other of all, so that what else the machine does falls on all alike"),
    ("--peers", "", "a directory in which the peers' environment is, or is made and kept; none: one that is removed afterwards"),
]


def figures(running: House, options: Namespace, table: Table) -> None:
    assert running.database == "postgres", "What is compared here is durability on PostgreSQL: give --database postgres."
    with environment(options.peers) as python:
        databases = {name: dsn(postgres.database(f"bench_{uuid4().hex[:12]}")) for name in PEERS}
        took: dict[str, list[float]] = {name: [] for name in ("Handrail", *PEERS)}
        said: dict[str, Mapping[str, Any]] = {}
        for _ in range(options.rounds):
            for run in steps.walked(running, "read", options.steps, runs=options.runs + 1)[1:]:
                took["Handrail"].append(run["seconds"][0])
                said["Handrail"] = {"version": "this", "connections": [f"2 connections, not pooled; {run['database']}"]}
            for name in PEERS:
                said[name] = peer(python, name, databases[name], options)
                took[name] += said[name]["seconds"]
    for name in took:
        table.add(row(name, took, said[name], options.steps))


def peer(python: Path, name: str, database: str, options: Namespace) -> dict[str, Any]:
    script, *more = PEERS[name]
    command = [str(python), str(ROOT / "bench" / "peers" / script), database, str(options.steps), str(options.runs), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    return orjson.loads(done.stdout.splitlines()[-1])


@contextmanager
def environment(where: str) -> Iterator[Path]:
    """The Python of an environment in which the peers are installed."""
    with tempfile.TemporaryDirectory(prefix="handrail-peers-") as made:
        python = Path(where or made) / "bin" / "python"
        if not python.exists():
            venv.create(python.parent.parent, with_pip=True)
            subprocess.run([python, "-m", "pip", "install", "-q", *INSTALLED], check=True)
        yield python


def dsn(url: str) -> str:
    """The address of a database as every client takes it, also where its server listens on a unix socket."""
    parts = urlsplit(url)
    login, _, place = parts.netloc.rpartition("@")
    host = unquote(place)
    return f"postgresql://{login}@{parts.path}?host={host}" if host.startswith("/") else parts._replace(scheme="postgresql").geturl()


def row(name: str, took: Mapping[str, list[float]], said: Mapping[str, Any], count: int) -> Row:
    own, ours = median(took[name]), median(took["Handrail"])
    found = {"version": said["version"], "ms a step": f"{own / count * 1000:.2f}", "fastest": f"{min(took[name]) / count * 1000:.2f}"}
    beside = "–" if name == "Handrail" else f"{own / ours:.2f} times the time of Handrail"
    return Row(f"{count} durable steps in one run: {name}", "–", f"in process; {said['connections'][0]}", found, beside)


if __name__ == "__main__":
    house.command(__doc__, figures, ARGUMENTS, seconds=0, without=["worker", "beat"])
