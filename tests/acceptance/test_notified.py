"""A person is told by e-mail through the whole house, and a worker that is killed between sending and saying so costs one repeat at most.

The mail server is the desk's: its mailbox shows what came. Every clock is moved by the file, so that nobody waits for a lease.
"""

import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.acceptance.triage import PATIENCE, Person, Triage, arm, mailbox, set_clock, stopped_at, wake_all
from tests.stack import Stack
from tests.waiting import until


@pytest.fixture
def points(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "points"
    wake_all(tmp_path / "points")


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    (tmp_path / "clock").write_text("0")
    return tmp_path / "clock"


@pytest.fixture
def stack(tmp_path: Path, points: Path, clock: Path) -> Iterator[Stack]:
    env = {"HANDRAIL_STOP_POINTS": str(points), "HANDRAIL_CLOCK_FILE": str(clock)}
    stack = Stack(tmp_path, desk=True, first=["demo_seed"], env=env)
    stack.env["SMTP_URL"] = f"smtp://127.0.0.1:{stack.smtp_port}"
    with stack:
        yield stack


def told(stack: Stack) -> list[EmailMessage]:
    return [mail for mail in mailbox(stack) if mail["X-Handrail-Notification"]]


def states(stack: Stack) -> list[str]:
    return sorted(row["state"] for row in stack.query("SELECT state FROM approvals_message"))


def test_the_desks_mailbox_gets_what_waits_and_a_killed_worker_repeats_it_under_the_same_id(stack, points, clock):
    arm(points, "notified")
    run = Triage.start(stack)
    action = run.waiting_action()
    pid = stopped_at(points, "notified")
    until(lambda: told(stack), within=PATIENCE, what="the first e-mail")
    until(lambda: states(stack) == ["sent", "waiting"], within=PATIENCE, what="the other to be sent by another worker, whose lease is good")
    os.kill(pid, signal.SIGKILL)
    set_clock(clock, seconds=120)  # the lease of the dead is over
    until(lambda: states(stack) == ["sent", "sent"], within=PATIENCE, what="both to be sent")
    mails = told(stack)
    assert sorted(Counter(mail["Message-ID"] for mail in mails).values()) == [1, 2], "one came again, as the same"
    assert {mail["To"] for mail in mails} == {"riley@fernhill.example", "sam@fernhill.example"}
    assert {mail["Subject"] for mail in mails} == {"Send the reply: waits for you"}
    (link,) = set(re.findall(r"http://\S+/actions/\S+", mails[0].get_body(("plain",)).get_content()))
    with Person(stack, "Riley") as riley:
        assert "Approve exactly this" in riley.http.get(link).text
        assert run.actions()[0]["state"] == "waiting", "to open it decides nothing"
        riley.decide(action, "approved")
    run.wait_for("succeeded")
    assert len(run.messages()) == 1
