"""The team's topology: PostgreSQL, several web processes, two beats at once; the same code by settings alone."""

import re
from collections.abc import Callable
from functools import partial

import httpx
import pytest

from tests.stack import PYTHON, START_MAX, Stack, free_ports
from tests.waiting import until

pytestmark = pytest.mark.postgres_only
TEAM = {"HANDRAIL_DEMO": "0", "HANDRAIL_URL": "https://handrail.test", "ALLOWED_HOSTS": "127.0.0.1", "LOG_FORMAT": "json"}
READY = {"ready": True, "database": "ok", "valkey": "ok", "append_only": "ok", "audit_sealer": "ok"}


def get(port: int, path: str) -> httpx.Response | None:
    try:
        return httpx.get(f"http://127.0.0.1:{port}{path}", headers={"Host": "handrail.test"}, timeout=60)
    except httpx.HTTPError:
        return None


def is_ready(port: int) -> bool:
    """Whether all of it is: a process that has just started may miss a part in its first answer."""
    told = get(port, "/readyz")
    return told is not None and told.json() == READY


def test_a_team_runs_several_of_each_beside_one_database(new_stack: Callable[..., Stack]) -> None:
    stack = new_stack(database="postgres", env=TEAM)
    other = free_ports(1)
    valkey = {"VALKEY_URL": f"unix://{stack.data}/valkey.sock"}
    stack.spawn(PYTHON, "-m", "daphne", "-v", "0", "-b", "127.0.0.1", "-p", str(other), "config.asgi:application", env=valkey)
    stack.spawn(PYTHON, "-m", "celery", "-A", "config.beat", "-q", "beat", "--pidfile=", env=valkey)
    stack.spawn_worker(env=valkey)

    for port in (stack.port, other):
        until(partial(is_ready, port), within=START_MAX, what=lambda: f"a web process to be ready\n{stack.output()[-2000:]}")
        page = get(port, "/sign-in")
        assert page.status_code == 200 and "Continue as" not in page.text
        assert "__Host-handrail_csrf" in page.headers["Set-Cookie"] and "Secure" in page.headers["Set-Cookie"]
        assert get(port, "/sign-in/as").status_code in (403, 404, 405)
    named = re.compile(r"(worker|extra-\w+)@_\S+ ready\.")  # which is not hidden, as what looks like an e-mail address is
    both = lambda: len(set(named.findall(stack.output()))) == 2  # noqa: E731
    until(both, within=START_MAX, what=lambda: f"both workers\n{stack.output()[-2000:]}")
    assert '"level": "error"' not in stack.output(), stack.output()


def test_the_seed_is_for_the_demo_only(new_stack: Callable[..., Stack]) -> None:
    stack = new_stack(database="postgres", env=TEAM, without=["worker", "beat"])
    assert "This is not the demo" in stack.manage("demo_seed", check=False)
