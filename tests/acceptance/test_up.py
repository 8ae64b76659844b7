"""`manage.py up`: one thing to start, one thing to stop, and nothing left behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from config import datadir
from config.env import OddSetting
from tests.stack import PYTHON, ROOT, START_MAX, Stack, children, free_ports
from tests.waiting import until

pytestmark = pytest.mark.sqlite_only  # the supervisor cares for no database: once is enough
NewStack = Callable[..., Stack]
PARTS = {"valkey", "web", "worker", "beat"}


def everybody(stack: Stack) -> set[int]:
    """The supervisor, its parts and their children."""
    parts = stack.pids().values()
    return {stack.supervisor.pid, *parts, *(child for pid in parts for child in children(pid))}


def alive(pids: set[int]) -> set[int]:
    listed = subprocess.run(["ps", "-o", "pid=,stat=", "-p", ",".join(map(str, pids))], capture_output=True, text=True).stdout
    return {int(line.split()[0]) for line in listed.splitlines() if not line.split()[1].startswith("Z")}


def with_pool(stack: Stack) -> Stack:
    until(
        lambda: len(children(stack.pid("worker"))) >= 2 and stack.pids().keys() >= PARTS,
        within=START_MAX,
        what="all parts and the worker's pool",
    )
    return stack


def up(env: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PYTHON, "manage.py", "up", *options], cwd=ROOT, env=env, capture_output=True, text=True, timeout=START_MAX)


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert all(word in done.stderr for word in ("Handrail: ", *words)), done.stderr


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One that tests leave running."""
    with Stack(tmp_path_factory.mktemp("up"), desk=True) as stack:
        yield with_pool(stack)


def test_nothing_is_left_when_the_supervisor_is_killed(new_stack: NewStack) -> None:
    stack = with_pool(new_stack(desk=True))
    all_of_them = everybody(stack)
    assert len(all_of_them) >= 8
    stack.supervisor.kill()
    stack.supervisor.wait()
    until(lambda: not alive(all_of_them), within=20, what=lambda: f"{alive(all_of_them)} to end")
    os.close(datadir.lock(stack.data, patience=1))  # and so the next may start
    stack.start()


def test_nothing_is_left_when_the_worker_is_killed(shared: Stack) -> None:
    stack = with_pool(shared)
    pool = set(children(stack.pid("worker")))
    old = stack.kill("worker")
    until(lambda: not alive(pool), within=20, what="the pool of a killed worker to end")
    stack.wait_for_new("worker", old)


@pytest.mark.parametrize("part", ["valkey", "web", "worker", "beat", "desk"])
def test_a_part_that_dies_is_started_again_and_said(part: str, shared: Stack) -> None:
    stack = with_pool(shared)
    stack.wait_for_new(part, stack.kill(part))
    assert f"{part:<6} | was ended by SIGKILL; starts again in " in stack.output()
    until(lambda: stack._answers("/readyz"), within=START_MAX, what="ready again")


def test_callers_wait_while_the_web_server_restarts(shared: Stack) -> None:
    stack = shared
    old = stack.kill("web")
    with socket.create_connection(("127.0.0.1", stack.port), timeout=START_MAX) as door:
        door.sendall(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{stack.port}\r\nConnection: close\r\n\r\n".encode())
        assert door.recv(16).startswith(b"HTTP/1.1 200")
    assert stack.pid("web") != old


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_stops_in_order_within_seconds(how: signal.Signals, new_stack: NewStack) -> None:
    stack = with_pool(new_stack(desk=True))
    all_of_them = everybody(stack)
    valkey, asked = stack.pid("valkey"), time.monotonic()
    others = all_of_them - {valkey, stack.supervisor.pid}
    stack.supervisor.send_signal(how)
    until(lambda: not alive(others), within=20, what="the others to end")
    assert stack.supervisor.wait(40) == 0
    assert time.monotonic() - asked < 25
    assert not alive(all_of_them)
    assert stack.output().rstrip().endswith("Stopped.") and not (stack.data / "up.json").exists()


def test_the_broker_goes_last(new_stack: NewStack) -> None:
    stack = with_pool(new_stack())
    valkey = stack.pid("valkey")
    others = everybody(stack) - {valkey, stack.supervisor.pid}
    os.kill(stack.pid("web"), signal.SIGSTOP)  # so that one of them takes its whole grace
    stack.supervisor.send_signal(signal.SIGTERM)
    until(lambda: not alive({valkey}), within=60, what="the broker to end")
    assert not alive(others)
    assert stack.supervisor.wait(40) == 0


def test_a_second_request_stops_it_at_once(new_stack: NewStack) -> None:
    stack = with_pool(new_stack())
    os.kill(stack.pid("worker"), signal.SIGSTOP)
    stack.supervisor.send_signal(signal.SIGTERM)
    until(lambda: "Stopping …" in stack.output(), what="it to begin")
    asked = time.monotonic()
    stack.supervisor.send_signal(signal.SIGTERM)
    assert stack.supervisor.wait(40) == 0
    assert time.monotonic() - asked < 4  # the worker's grace would be 5


def test_it_does_not_start_twice_on_the_same_data(shared: Stack) -> None:
    stack = shared
    refused(up(stack.env | {"PORT": str(free_ports(1))}), "already running", str(stack.data))
    with pytest.raises(OddSetting):
        datadir.reset(stack.data)
    assert stack._answers("/healthz")


def test_a_busy_port_is_one_line_that_names_it(tmp_path: Path) -> None:
    port = free_ports(2) + 1
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", port))
        busy.listen()
        env = Stack(tmp_path, database="sqlite").env
        refused(up(env | {"PORT": str(port)}), f"PORT={port} cannot be used: address already in use", "PORT=…")
        refused(up(env | {"PORT": str(port - 1)}, "--with", "x=python -c 1 {port+1}"), f"port {port} is taken", f"PORT={port - 1}")


def test_data_that_cannot_be_written_is_one_line_that_names_it(tmp_path: Path) -> None:
    env = Stack(tmp_path, database="sqlite").env
    (tmp_path / "file").touch()
    refused(up(env | {"DATA_DIR": str(tmp_path / "file" / "data")}), "DATA_DIR=", "cannot be used", "DATA_DIR=…")


def test_a_long_data_dir_works(tmp_path: Path) -> None:
    where = tmp_path / ("long-" * 20)
    where.mkdir()
    with Stack(where, database="sqlite", without=["worker", "beat"]) as stack:
        assert not (stack.data / "valkey.sock").exists()


def test_what_it_keeps_survives_a_restart(new_stack: NewStack) -> None:
    stack = new_stack(without=["worker", "beat"])
    secrets = {name: (stack.data / name).read_text() for name in ("secret-key", "vault-key") if (stack.data / name).exists()}
    stack.query("INSERT INTO django_session (session_key, session_data, expire_date) VALUES ('kept', '', '2030-01-01')")
    stack.restart()
    assert stack.query("SELECT session_key FROM django_session") == [{"session_key": "kept"}]
    assert secrets == {name: (stack.data / name).read_text() for name in secrets}


def test_a_command_that_runs_first_and_fails_leaves_nothing_running(tmp_path: Path) -> None:
    env = Stack(tmp_path, database="sqlite").env
    done = up(env, "--first", "migrate no_such_app")
    assert done.returncode == 1 and "No installed app with label" in done.stderr and done.stdout.rstrip().endswith("Stopped.")


def test_the_output_has_each_part_in_front_and_an_address(shared: Stack) -> None:
    stack = shared
    until(lambda: f"Handrail is ready:  {stack.base_url}" in stack.output(), what="the greeting")
    assert "desk   | desk: " in stack.output()
    assert json.loads((stack.data / "up.json").read_text())["pid"] == stack.supervisor.pid


def test_a_program_that_floods_its_output_hurts_nobody(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.write('x' * 3_000_000 + '\\n' + 'last'); sys.stdout.flush(); sys.stdin.read()"
    script = tmp_path / "flood.py"
    script.write_text(code)
    stack = Stack(tmp_path, database="sqlite", without=["worker", "beat"])
    stack._options += ["--with", f"flood={sys.executable} {script}"]
    with stack:
        until(lambda: "flood  | last" in stack.output() or "flood  | ended" in stack.output(), within=START_MAX, what="its last line")
        assert stack._answers("/healthz")
