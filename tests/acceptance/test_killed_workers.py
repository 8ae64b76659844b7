"""A worker that dies or freezes at the worst moments: the run goes on by itself, and nothing happens twice outside.

Real processes: Daphne, Celery, beat, Valkey, the desk with its mail server. Each test kills (-9) or freezes (SIGSTOP, later SIGCONT) the
process that stands at a named point; it is the one whose pid is in the lease.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.triage import Person, Triage, arm, ledger, stopped_at, wake_all
from tests.stack import Stack
from tests.waiting import until

LEASE = 4.0  # seconds, the default
GOES_ON = LEASE + 5.0  # after the kill: the lease runs out, and within five seconds more the run is where it can be
MARGIN = 20.0  # for a machine that is busy with the rest of the tests

AFTER_THE_DECISION = ["approved", "redeemed-update_crm", "called-update_crm", "redeemed-send_email", "called-send_email"]


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("points")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, points: Path) -> Iterator[Stack]:
    """One house for all of them: each test has a run of its own in it."""
    where = tmp_path_factory.mktemp("killed")
    with Stack(where, desk=True, first=["demo_seed"], env={"HANDRAIL_STOP_POINTS": str(points)}) as stack:
        yield stack


@pytest.fixture(autouse=True)
def nobody_stays_frozen(points: Path) -> Iterator[None]:
    yield
    wake_all(points)


@pytest.fixture
def run(stack: Stack) -> Triage:
    return Triage.start(stack, again=True)


@pytest.fixture(scope="module")
def riley(stack: Stack) -> Iterator[Person]:
    with Person(stack, "Riley") as riley:
        yield riley


def test_a_worker_killed_after_the_model_answered_costs_nothing_but_time(stack, points, riley):
    arm(points, "model-answered")
    run = Triage.start(stack, again=True)
    kill_the_one_with_the_lease(run, stopped_at(points, "model-answered"))
    riley.decide(run.waiting_action(), "approved")
    run.wait_for("succeeded", within=GOES_ON + MARGIN)
    ended_well(run)


@pytest.mark.parametrize("point", AFTER_THE_DECISION)
def test_a_worker_killed_after_the_approval_leaves_exactly_one_message(run, points, riley, point):
    action = run.waiting_action()
    arm(points, point)
    riley.decide(action, "approved")
    kill_the_one_with_the_lease(run, stopped_at(points, point))
    run.wait_for("succeeded", within=GOES_ON + MARGIN)
    ended_well(run)


@pytest.mark.parametrize("point", ["redeemed-send_email", "called-send_email"])
def test_a_frozen_worker_that_wakes_too_late_is_fenced_out(stack, run, points, riley, point):
    action = run.waiting_action()
    arm(points, point)
    riley.decide(action, "approved")
    pid, token = stopped_at(points, point), run.lease()["token"]
    until(lambda: run.lease()["token"] > token, within=GOES_ON + MARGIN, what="another worker to take over")
    run.wait_for("succeeded", within=GOES_ON + MARGIN)
    head = run.row["seq"]
    os.kill(pid, signal.SIGCONT)
    notice = f"overtaken: nothing more was written run={run.id} token={token}"
    until(lambda: notice in stack.output(), within=MARGIN, what="the woken worker to notice that it was overtaken")
    assert run.row["seq"] == head
    ended_well(run)


def kill_the_one_with_the_lease(run: Triage, stopped: int) -> None:
    # on a busy machine the lease may have run out by now, so ask who ever held it
    assert f"w-{stopped}" in run.workers()
    os.kill(stopped, signal.SIGKILL)


def ended_well(run: Triage) -> None:
    """One message, one note, one redemption of each grant, one ending, and a whole chain."""
    assert len(run.messages()) == 1
    notes = [effect for effect in ledger(run.stack, "crm.note") if effect["key"] == run.grant_key("update_crm")]
    assert [effect["done"] for effect in notes] == [1]
    types = run.types()
    assert types.count("action.redeemed") == types.count("action.executed") == 2
    assert types[-1] == "run.succeeded"
    run.verify()
