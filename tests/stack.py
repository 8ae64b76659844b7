"""The whole house as real processes: `manage.py up` on a database of its own, with free ports, for browser and acceptance tests.

with Stack(tmp_path, desk=True) as stack:
    httpx.get(f"{stack.base_url}/runs")
    old = stack.kill("worker")            # -9; the supervisor starts another
    stack.wait_for_new("worker", old)
    stack.query("SELECT state FROM runs_run WHERE id = %s", run_id)
"""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import dict_row

from config.supervisor import LIFELINE
from tests import migrated, postgres
from tests.commanding import Commander
from tests.migrated import ROOT, SECRETS, clean_environment
from tests.waiting import until

PYTHON = sys.executable
START_MAX = 180.0  # seconds; for what takes four on an idle machine, several of them at the same time on a slow one
ANSWER_MAX = 20.0  # seconds, for one answer: what is not heard out is asked anew, and answered all the same
ROW = 10  # ports that are given out together
OWN = {"SECRET_KEY", "HANDRAIL_VAULT_KEY", "DATABASE_URL", "HANDRAIL_DEMO"}  # with one of these a stack reads no database of others
PROVIDER = "provider=python -m examples.provider --port {port+3}"
DESK = "desk=python -m examples.support_triage.desk --data {data}/desk --http-port {port+1} --smtp-port {port+2} --patience 3"


class Stack:
    """`data` is its DATA_DIR below `where`. `database` is `sqlite`, `postgres`, or by default what HANDRAIL_TEST_DB says.

    `desk` runs the example's outside world too, `provider` the one that plays a provider of models, `first` names management commands to
    run before (`demo_seed` ran already on the database that is copied, unless the stack has secrets of its own), `without` leaves out
    parts (web, worker, beat), `env` adds to the environment of every process. It is the demo's topology unless `env` says otherwise.
    `cluster`: a PostgreSQL server of the test's own, on which the database is made.
    """

    def __init__(
        self,
        where: Path,
        *,
        database: str = "",
        desk: bool = False,
        provider: bool = False,
        first: Sequence[str] = (),
        without: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cluster: postgres.Cluster | None = None,
    ) -> None:
        self.data = where / "data"
        self.cluster = cluster
        self.port = free_ports(4)
        self.database = database or os.environ.get("HANDRAIL_TEST_DB", "sqlite")
        self.log = where / "up.log"
        self.supervisor: subprocess.Popen[bytes] | None = None
        self._spawned: list[subprocess.Popen[bytes]] = []
        self._commander: Commander | None = None
        seeded = cluster is None and "demo_seed" in first and not OWN.intersection(env or {})
        self._options = [word for command in first if not (seeded and command == "demo_seed") for word in ("--first", command)]
        self._options += [word for part in without for word in ("--without", part)]
        self._options += ["--with", DESK, "--tell", "HANDRAIL_DESK_URL", "--tell", "HANDRAIL_DESK_SMTP"] if desk else []
        self._options += ["--with", PROVIDER, "--tell", "HANDRAIL_PLAYED_URL"] if provider else []
        self._has_web = "web" not in without
        self.env = {
            **clean_environment(),
            **SECRETS,
            "HANDRAIL_DEMO": "1",
            "DATA_DIR": str(self.data),
            "PORT": str(self.port),
            "WORKERS": "2",
            "HANDRAIL_DESK_URL": self.desk_url,
            **({"HANDRAIL_PLAYED_URL": f"http://127.0.0.1:{self.port + 3}/v1"} if provider else {}),
            "HANDRAIL_DESK_SMTP": f"127.0.0.1:{self.smtp_port}",
            **fresh_database(self.data, self.database, cluster, seeded=seeded),
            **(env or {}),
        }

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def desk_url(self) -> str:
        return f"http://127.0.0.1:{self.port + 1}"

    @property
    def smtp_port(self) -> int:
        return self.port + 2

    # --- as a whole

    def start(self) -> "Stack":
        """Start it and wait until somebody could sign in (without a web server: until all parts run)."""
        with self.log.open("ab") as log:
            self.supervisor = subprocess.Popen(
                [PYTHON, "-S", "-E", LIFELINE, str(os.getpid()), PYTHON, "manage.py", "up", *self._options],
                cwd=ROOT,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until(self._is_ready, within=START_MAX, what=lambda: f"the stack to be ready\n{self.output()}")
        return self

    def stop(self, *, within: float = 40.0) -> None:
        """End it as Ctrl-C would; whatever does not end in time is killed, and that is an error."""
        self._dismiss()
        for process in self._spawned:
            process.kill()
            process.wait()
        if self.supervisor is None:
            return
        self.supervisor.send_signal(signal.SIGTERM)
        try:
            self.supervisor.wait(within)
        except subprocess.TimeoutExpired:
            self.supervisor.kill()
            raise AssertionError(f"the stack did not stop within {within:g} s\n{self.output()}") from None
        finally:
            self.supervisor = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def output(self) -> str:
        """What all processes said so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    # --- its parts: valkey, web, worker, beat, desk

    def pids(self) -> dict[str, int]:
        """The parts that run now. Those of the worker's pool are its children: see `children`."""
        try:
            return json.loads((self.data / "up.json").read_text())["parts"]
        except FileNotFoundError:
            return {}

    def pid(self, part: str) -> int:
        return until(lambda: self.pids().get(part), within=START_MAX, what=f"{part} to run")

    def children(self, pid: int) -> list[int]:
        return children(pid)

    def kill(self, part: str, how: int = signal.SIGKILL) -> int:
        """Send a signal to a part, and return its pid. The supervisor starts another when it ends."""
        pid = self.pid(part)
        os.kill(pid, how)
        return pid

    def wait_for_new(self, part: str, old: int) -> int:
        """The pid of the part that came after `old`; a web server also answers by then."""

        def came() -> int | None:
            pid = self.pids().get(part)
            return pid if pid not in (None, old) and (part != "web" or self._answers("/healthz")) else None

        return until(came, within=START_MAX, what=lambda: f"another {part}\n{self.output()}")

    def restart_part(self, part: str) -> int:
        """End one part in the orderly way and wait for the next."""
        return self.wait_for_new(part, self.kill(part, signal.SIGTERM))

    def spawn(self, *command: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """One more process in the same environment (a second worker, a second beat), ended with the stack; its output goes to the log."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [PYTHON, "-S", "-E", LIFELINE, str(os.getpid()), *command],
                cwd=ROOT,
                env=self.env | dict(env or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._spawned.append(process)
        return process

    def spawn_worker(self, *, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Another Celery worker, beside the supervisor's, that nobody starts again."""
        name = f"extra-{uuid4().hex[:8]}@_test"
        words = ("worker", "--pool", "prefork", "--without-mingle", "--without-gossip", "-n", name)
        return self.spawn(PYTHON, "-m", "celery", "-A", "config.celery", "-q", *words, env=env)

    # --- what is in it

    def manage(self, *arguments: str, check: bool = True) -> str:
        """Run a management command in the same environment, and return what it printed (without `check`: also its errors)."""
        if self._commander is None or self._commander.env != self.env:
            self._dismiss()
            self._commander = Commander(self.env)
        code, output, errors = self._commander(arguments, within=120)
        assert not (check and code), f"manage.py {' '.join(arguments)} ended with {code}\n{output}{errors}"
        return output if check else output + errors

    def _dismiss(self) -> None:
        if self._commander is not None:
            self._commander.stop()
            self._commander = None

    def query(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        """Rows as the database has them. `%s` stands for a value; UUIDs fit both databases; on SQLite everything comes as it is stored."""
        if url := self.env.get("DATABASE_URL"):
            with psycopg.connect(url, row_factory=dict_row, autocommit=True) as connection:
                cursor = connection.execute(statement, values)
                return cursor.fetchall() if cursor.description else []
        # closed at once: those who wait ask many times a second, and each open connection keeps two files open until somebody collects it
        with closing(sqlite3.connect(self.data / "handrail.sqlite3", timeout=20, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            plain = [value.hex if isinstance(value, UUID) else value for value in values]
            return [dict(row) for row in connection.execute(statement.replace("%s", "?"), plain)]

    def __enter__(self) -> "Stack":
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            print(self.output()[-20_000:])  # pytest shows it with the failure
        self.stop()
        if (url := self.env.get("DATABASE_URL")) and self.cluster is None:
            postgres.drop(urlsplit(url).path.lstrip("/"))

    def _is_ready(self) -> bool:
        if self.supervisor.poll() is not None:
            raise AssertionError(f"the stack ended at once\n{self.output()}")
        return self._answers("/readyz") if self._has_web else "valkey" in self.pids()

    def _answers(self, path: str) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=ANSWER_MAX) as door:
                door.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\n\r\n".encode())
                return door.recv(16).startswith(b"HTTP/1.1 200")
        except OSError:
            return False


def fresh_database(data: Path, kind: str, cluster: postgres.Cluster | None = None, *, seeded: bool = False) -> dict[str, str]:
    """A migrated database, and the environment that names it. SQLite's lies in `data`, which is made. It is empty, or `seeded` for the demo
    with the secrets that all stacks share."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    (data / ".handrail").touch()
    if kind == "sqlite":
        shutil.copy(migrated.sqlite(seeded=seeded), data / "handrail.sqlite3")
        return {}
    owner = migrated.OWNER
    if cluster is not None:
        url = postgres.database("stack", owner=owner, on=cluster.url)
        migrated.manage("migrate", {"DATA_DIR": str(data), "DATABASE_URL": url})
        return {"DATABASE_URL": url}
    template = migrated.postgres_template(owner=owner, seeded=seeded)
    return {"DATABASE_URL": postgres.database(f"stack_{uuid4().hex[:12]}", template=template, owner=owner)}


def free_ports(count: int) -> int:
    """The first of `count` free ports in a row, below the range that the kernel hands out, so that nobody gets them by chance.

    Nobody else who shares the tests' directory is given them: what takes them does so seconds later, and may be started anew.
    """
    assert count <= ROW
    for _ in range(200):
        first = 10_000 + int.from_bytes(os.urandom(2), "big") % (20_000 // ROW) * ROW
        if all(_is_free(first + offset) for offset in range(count)) and _is_ours(first):
            return first
    raise AssertionError("no free ports")


def _is_ours(first: int) -> bool:
    try:
        (migrated.share() / f"ports-{first}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def children(pid: int) -> list[int]:
    """The direct children of a process, as the system sees them now."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(word) for word in listed.split()]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
