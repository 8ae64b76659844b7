"""What every figure needs: the house as real processes with an agent in it, timed loops, and rows that say where they were measured."""

import os
import resource
import sqlite3
import subprocess
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import orjson

from tests import postgres
from tests.stack import PYTHON, Stack, free_ports
from tests.waiting import until

AGENT = "support-triage"  # the demo's agent
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}  # a test's server trades these for speed; a figure may not
START_MAX = 60.0  # seconds
WARM_UP = 5  # calls that are not counted
BUSY = "In the last minute {load:.1f} processes were at work here on {cpus} CPUs: unless they have ended, the figures mean little."


# from the command line to a running house -----------------------------------------------------------------------------------------------


def command(
    about: str, figures: "Figures", arguments: "Arguments", *, seconds: float, words: Sequence[str] | None = None, **parts: Any
) -> None:
    """What `python -m bench.…` does: read the command line (or `words`), start the house with these `parts`, measure, stop it."""
    given = parser(about, arguments, seconds=seconds).parse_args(words)
    load = os.getloadavg()[0]  # asked before anything is started
    with house(given, **parts) as running:
        figures(running, given, Table.of(running, load, markdown=given.markdown))


def parser(about: str, arguments: "Arguments", *, seconds: float) -> ArgumentParser:
    """What all commands take, and the arguments of this one. `seconds`: how long each loop lasts if the command line does not say."""
    options = ArgumentParser(description=about)
    options.add_argument(
        "--database", choices=("sqlite", "postgres"), default="sqlite", help="a PostgreSQL that DATABASE_URL names, or its own"
    )
    options.add_argument("--seconds", type=float, default=seconds, metavar="N", help="how long each loop lasts (%(default)s)")
    options.add_argument("--markdown", action="store_true", help="print the rows of a table, as docs/performance.md has them")
    for name, default, what in arguments:
        many = {"nargs": "+", "type": type(default[0])} if isinstance(default, list) else {"type": type(default)}
        options.add_argument(name, default=default, metavar="N", help=f"{what} (%(default)s)", **many)
    return options


class House(Stack):
    """A stack with the demo's people and an agent's key (`token`)."""

    def __init__(self, where: Path, database: str, **parts: Any) -> None:
        super().__init__(where, database=database, first=["demo_seed"], **parts)
        self.token = ""

    def start(self) -> "House":
        super().start()
        self.token = self.token or self.manage("agentkey", AGENT).strip()
        return self

    def caller(self) -> "Caller":
        return Caller(self.base_url, self.token)

    def new_run(self, **more: Any) -> str:
        """A run that the agent works on itself, or one of a `workflow`. Its id."""
        body = {"title": "A measured run", "agent_version": "1", **more}
        with closing(self.caller()) as caller:
            return orjson.loads(caller.post("/api/v1/runs", body, key=uuid4().hex))["id"]


@contextmanager
def house(options: Namespace, **parts: Any) -> Iterator[House]:
    """The house on the database that was asked for, in a directory that is removed afterwards."""
    if options.database == "postgres":
        postgres.FAST.update(DURABLE)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a viewer is an open file on both sides, and children inherit this
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as where, House(Path(where), options.database, **parts) as running:
        yield running


@contextmanager
def bare(running: Stack) -> Iterator[tuple[int, str]]:
    """The peer (`bench.bare`) on a Daphne of its own in the same environment: its pid and address."""
    port = free_ports(1)
    command = (PYTHON, "-m", "daphne", "-p", str(port), "-v", "0", "--no-server-name", "bench.bare:application")
    process = running.spawn(*command, env={"DJANGO_SETTINGS_MODULE": "bench.bare_settings"})
    address = f"http://127.0.0.1:{port}"
    try:
        until(partial(_answers, address), within=START_MAX, what=lambda: f"the bare server\n{running.output()}")
        yield process.pid, address
    finally:
        process.kill()
        process.wait()


def _answers(address: str) -> bool:
    try:
        with closing(Caller(address)) as caller:
            return bool(caller.post("/empty", {}))
    except OSError:
        return False


# timed loops ----------------------------------------------------------------------------------------------------------------------------


class Caller:
    """One keep-alive connection to a server. The standard library's client, for it takes little of the time that is measured."""

    def __init__(self, address: str, token: str = "") -> None:
        self.connection = HTTPConnection(urlsplit(address).netloc, timeout=60)
        self.headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def post(self, path: str, body: Any, *, key: str = "") -> bytes:
        return self._ask("POST", path, orjson.dumps(body), {"Idempotency-Key": key} if key else {})

    def get(self, path: str) -> bytes:
        return self._ask("GET", path, None, {})

    def close(self) -> None:
        self.connection.close()

    def _ask(self, method: str, path: str, body: bytes | None, more: Mapping[str, str]) -> bytes:
        self.connection.request(method, path, body, {**self.headers, **more})
        answer = self.connection.getresponse()
        content = answer.read()
        assert answer.status < 300, f"{method} {path}: {answer.status} {content[:500]!r}"
        return content


@dataclass(frozen=True)
class Timing:
    """Times of single things, in seconds and sorted, and how long all took together."""

    took: Sequence[float]
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Calls a second."""
        return len(self.took) / self.seconds

    def ms(self, percent: float) -> float:
        """The percentile in milliseconds: the smallest time that so many percent do not exceed."""
        return self.took[max(0, -int(-len(self.took) * percent // 100) - 1)] * 1000


class Closing(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closing)


@contextmanager
def opened(things: Iterable[C]) -> Iterator[list[C]]:
    """All of them, closed at the end."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(thing)) for thing in things]


def drive(calls: Sequence[Callable[[], object]], seconds: float) -> Timing:
    """Make each of the calls again and again, each in a thread of its own, all at once, for so long."""
    for call in calls:
        for _ in range(WARM_UP):
            call()
    with ThreadPoolExecutor(len(calls)) as threads:
        began = time.perf_counter()
        took = [one for each in threads.map(partial(_again, until=began + seconds), calls) for one in each]
        return Timing(sorted(took), time.perf_counter() - began)


def _again(call: Callable[[], object], until: float) -> list[float]:
    took: list[float] = []
    while not took or time.perf_counter() < until:
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return took


# rows -----------------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One figure. `found`: its numbers by their names; `beside`: how it compares with what was measured beside it."""

    what: str
    clients: str
    server: str
    found: Mapping[str, str]
    beside: str


@dataclass(frozen=True)
class Place:
    """Where figures are measured."""

    database: str
    cpus: int
    load: float  # processes at work in the last minute, before we came
    fsync_ms: float

    @property
    def line(self) -> str:
        return f"{self.database}; {self.cpus} CPUs; 4 KiB to the disk {self.fsync_ms:.2g} ms"


@dataclass
class Table:
    """Prints each row as soon as it is measured."""

    place: Place
    markdown: bool
    rows: list[Row] = field(default_factory=list)

    @classmethod
    def of(cls, running: Stack, load: float, *, markdown: bool) -> "Table":
        place = Place(_database(running), os.cpu_count() or 1, load, _fsync_ms(running.data))
        if load > 1:
            print(BUSY.format(load=load, cpus=place.cpus), flush=True)
        print(place.line, flush=True)
        return cls(place, markdown)

    def add(self, row: Row) -> None:
        if self.markdown and not self.rows:
            names = ("what", "database", "clients", "server", "CPUs", *row.found, "beside")
            _print_cells(names)
            _print_cells(["---"] * len(names))
        if self.markdown:
            cells = (row.what, self.place.database, row.clients, row.server, str(self.place.cpus), *row.found.values(), row.beside)
            _print_cells(cells)
        else:
            found = ", ".join(f"{name} {value}" for name, value in row.found.items())
            print(f"{row.what}; {row.clients}; {row.server}: {found}; {row.beside}", flush=True)
        self.rows.append(row)


Figures = Callable[[House, Namespace, Table], None]
Arguments = Sequence[tuple[str, Any, str]]  # name, default, what it means


def times(ours: float, theirs: float, peer: str) -> str:
    """How many times our rate is a peer's, in words."""
    return f"{shortly(theirs / ours)} times slower than {peer} ({theirs:,.0f}/s)"


def shortly(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def resident_kib(pid: int) -> int:
    """The memory of a process that is in RAM, in KiB."""
    return int(subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout)


def _print_cells(cells: Sequence[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def _database(running: Stack) -> str:
    if running.database == "sqlite":
        return f"SQLite {sqlite3.sqlite_version} (WAL, synchronous=FULL)"
    said = {name: running.query(f"SHOW {name}")[0][name] for name in ("server_version", "fsync", "synchronous_commit")}
    return f"PostgreSQL {said['server_version'].split()[0]} (fsync={said['fsync']}, synchronous_commit={said['synchronous_commit']})"


def _fsync_ms(where: Path, tries: int = 21) -> float:
    """What it takes to have 4 KiB on this disk: the floor under each commit. The median."""
    took = []
    with tempfile.NamedTemporaryFile(dir=where, buffering=0) as file:
        for _ in range(tries):
            began = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    return sorted(took)[tries // 2] * 1000
