"""Workflows that hang, kill their workers or go on for ever: people hear of it, and the other runs keep their workers."""

import threading
import time

import pytest

from access.rules import person
from approvals import policy
from runs import recovery
from runs.engine import executor, journal, lease
from runs.engine.lease import Claim
from runs.engine.tools import TOOLS
from runs.models import Event, JournalEntry, Lease, Run
from tests.runs import workflows
from tests.runs.test_engine import start, types, walk

pytestmark = pytest.mark.django_db(transaction=True)


class Killed(BaseException):
    """The worker is gone."""


@pytest.fixture
def run(cast) -> Run:
    workflows.reset()
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    return start(cast, "test-talk", {"thing": "tea"})


def lost(run: Run) -> None:
    """A worker takes the run and is gone."""
    try:
        executor.execute(run.pk)
    except Killed:
        Lease.objects.filter(run=run).update(until=None)  # it ran out
        Run.objects.filter(pk=run.pk).update(state="running")


def test_a_run_that_loses_one_worker_after_another_at_one_place_is_stuck_until_somebody_looks(cast, run, monkeypatch):
    def dies(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(type(TOOLS["look"]), "__call__", dies)
    monkeypatch.setattr(lease, "release", lambda held: None)
    monkeypatch.setattr(lease, "MOST_LOST", 5)
    for _ in range(lease.MOST_LOST + 1):
        lost(run)
    run.refresh_from_db()
    assert run.state == "running" and types(run).count("run.resumed") == lease.MOST_LOST
    lost(run)
    run.refresh_from_db()
    assert run.state == "parked" and recovery.parking(run).reason == "error"
    monkeypatch.undo()
    recovery.choose(run, "retry", at=recovery.parking(run).seq, by=person(cast.otto.pk))
    assert walk(run) == "waiting" and run.waiting["on"] == "decision"


def test_a_run_that_comes_further_each_time_may_lose_any_number_of_workers(run, monkeypatch):
    monkeypatch.setattr(lease, "MOST_LOST", 1)
    walk(run)
    Run.objects.filter(pk=run.pk).update(state="running", waiting={})
    assert walk(run) == "waiting" and Event.objects.filter(run=run, type="run.resumed").exists()


def test_a_workflow_that_goes_on_for_ever_is_stuck_before_its_log_is_endless(run, monkeypatch):
    monkeypatch.setattr(journal, "MOST", 3)
    assert walk(run) == "parked" and JournalEntry.objects.filter(run=run).count() == 3
    assert recovery.parking(run).reason == "error"


def test_a_worker_process_that_hangs_leaves_its_place_to_another(run, monkeypatch, settings):
    settings.HANDRAIL_LEASE_SECONDS = 0.04
    given_up = threading.Event()
    monkeypatch.setattr(lease, "_give_up_process", lambda held: given_up.set())
    held, over = Claim(run.pk, 1, "w-1"), threading.Event()
    held.beat_until = time.monotonic() - lease.HUNG - 1
    for alone in (False, True):  # a process with other things to do stays
        beat = threading.Thread(target=lease._beat, args=(held, over, alone))
        beat.start()
        assert given_up.wait(20 if alone else 0.3) is alone
        over.set()
        beat.join()
        over.clear()
