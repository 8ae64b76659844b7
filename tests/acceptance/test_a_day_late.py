"""Approved a day late: `misbehave a-day-late` moves the clock of every process while a run waits, and everything is restarted before
anybody decides. What is about time does what it says: deadlines, leases, quiet hours, the time to recall.
"""

import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.acceptance.triage import PATIENCE, Person, Triage, arm, mailbox, set_clock, stopped_at, wake_all
from tests.stack import Stack
from tests.waiting import until

RECALLED_LATER = """
from datetime import timedelta
from access.models import Workspace
from approvals import policy
workspace = Workspace.objects.get(slug="fernhill")
policy.set_rule(workspace.pk, "send_email", name="Outside e-mail", outcome="reviewers", by=None, recall_delay=timedelta(minutes=10))
"""


@pytest.fixture
def points(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "points"
    wake_all(tmp_path / "points")


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    return tmp_path / "clock"


@pytest.fixture
def stack(tmp_path: Path, clock: Path, points: Path) -> Iterator[Stack]:
    env = {"HANDRAIL_CLOCK_FILE": str(clock), "HANDRAIL_STOP_POINTS": str(points), "LEASE_SECONDS": "300"}  # so that only a day ends it
    stack = Stack(tmp_path, desk=True, first=["demo_seed"], env=env)
    stack.env["SMTP_URL"] = f"smtp://127.0.0.1:{stack.smtp_port}"
    with stack:
        yield stack


def test_an_approval_a_day_late_and_a_restart_later_goes_on_where_it_was(stack, clock, points):
    with Person(stack, "Sam") as sam, Person(stack, "Riley") as riley:
        be_quiet_now(sam)
        forgotten = Triage.start(stack)
        action = forgotten.waiting_action()  # before a worker is frozen at what it comes to first
        at_work = frozen_at_work(stack, points)
        late = Triage(stack, stack.manage("misbehave", "a-day-late").split()[0])
        assert float(clock.read_text()) == timedelta(days=1).total_seconds()
        taken_over(*at_work)
        expired_and_told(forgotten, action, riley)

        stack.stop()
        set_clock(clock, hours=26)
        stack.start()
        until(lambda: "sam@fernhill.example" in told(stack), within=PATIENCE, what="Sam, whose quiet hours are over, to be told")
        riley.decide(late.waiting_action(), "approved")
        late.wait_for("succeeded")
        assert len(late.messages()) == 1 and late.types()[-1] == "run.succeeded"
        assert timedelta(hours=25) < took(late, "action.proposed", "action.decided") < timedelta(hours=27)
        late.verify()
        recalled_for_ten_minutes(stack, clock, riley)


def be_quiet_now(sam: Person) -> None:
    """Sam wants to hear nothing within the hour around now, not even what is urgent."""
    now = datetime.now(UTC)
    around = {"quiet_from": f"{now - timedelta(hours=1):%H:%M}", "quiet_to": f"{now + timedelta(hours=1):%H:%M}"}
    assert sam.post("/notifications", around | {"waits": "mail", "zone": "UTC"}).status_code == 200


def frozen_at_work(stack: Stack, points: Path) -> tuple[Triage, int, int]:
    """A run whose worker stands still with the lease in its hand: its pid and token."""
    arm(points, "asking-check_account#1")
    run = Triage.start(stack, again=True)
    pid = stopped_at(points, "asking-check_account#1")
    return run, pid, run.token_of(pid)


def taken_over(run: Triage, pid: int, token: int) -> None:
    """A lease of yesterday is over: another worker has the run, and the one that wakes writes nothing."""
    run.wait_for("waiting")
    assert run.lease()["token"] > token
    head = run.row["seq"]
    os.kill(pid, signal.SIGCONT)
    notice = f"overtaken: nothing more was written run={run.id} token={token}"
    until(lambda: notice in run.stack.output(), within=PATIENCE, what="the woken worker to notice that it was overtaken")
    assert run.row["seq"] == head


def expired_and_told(run: Triage, action: dict, riley: Person) -> None:
    """What may wait for four hours is over: nothing was sent, and the page, the log and whoever still decides are told."""
    run.wait_for("succeeded")
    assert "action.expired" in run.types() and run.messages() == []
    assert "not approved: expired" in riley.http.get(f"/runs/{run.id}").text
    late = riley.decide(action, "approved")
    assert "xpired" in late.text and run.messages() == []


def told(stack: Stack) -> set[str]:
    return {mail["To"] for mail in mailbox(stack) if mail["X-Handrail-Notification"]}


def took(run: Triage, first: str, then: str) -> timedelta:
    """The time between two events of a run, by the log."""
    rows = run.stack.query("SELECT type, body FROM runs_event WHERE run_id = %s ORDER BY seq", run.id)
    at = {row["type"]: datetime.fromisoformat(json.loads(row["body"])["at"]) for row in reversed(rows)}
    return at[then] - at[first]


def recalled_for_ten_minutes(stack: Stack, clock: Path, riley: Person) -> None:
    """An approval that can be recalled for ten minutes sends nothing before, and by itself after."""
    stack.manage("shell", "-v0", "-c", RECALLED_LATER)
    run = Triage.start(stack, again=True)
    riley.decide(run.waiting_action(), "approved")
    until(lambda: '"on":"timer"' in run.bodies("run.waiting"), within=PATIENCE, what="it to wait until nobody can recall it")
    assert run.messages() == []
    set_clock(clock, hours=26, minutes=11)
    run.wait_for("succeeded")
    assert len(run.messages()) == 1
