"""Budgets: a run is warned, then waits for people, and goes on when they raise a limit. And timers."""

from datetime import timedelta

import pytest

from access.rules import Actor, person
from approvals import policy
from config import clock
from runs import signals, starting, updates
from runs.engine import executor, sweep
from runs.engine.budget import NAMES, Spent, near, over
from runs.errors import RunEnded
from runs.models import Event, JournalEntry, Run
from runs.updates import Changed, PeopleSet
from tests.approvals.mailing import text
from tests.runs import workflows
from tests.runs.test_engine import approve, types, walk
from tests.runs.workflows import Unavailable, World


def spent(**more: int) -> dict:
    return dict.fromkeys(NAMES, 0) | more


def test_a_budget_is_warned_of_once_and_is_over_when_it_is_used_up():
    budgets = {"tokens": 100}
    assert list(near(budgets, spent(tokens=79), spent(tokens=81))) == [Spent("tokens", 81, 100)]
    assert list(near(budgets, spent(tokens=80), spent(tokens=90))) == []
    assert over(budgets, spent(tokens=99)) is None and over(budgets, spent(tokens=100)) == Spent("tokens", 100, 100)
    assert over({}, spent(tokens=10**9)) is None


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def run(cast, outside) -> Run:
    """It may take two steps: its third would be the proposal."""
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    by = Actor("human", str(cast.agent.owner_id), "Priya")
    more = {"title": "A talk", "workflow": "test-talk", "arguments": {"thing": "tea"}, "scope": {"thing": ["tea"]}}
    return starting.start(agent=cast.agent, owner=cast.agent.owner, by=by, budgets={"steps": 2}, **more)


@pytest.mark.django_db(transaction=True)
def test_a_run_over_its_budget_waits_for_people_and_goes_on_when_they_raise_it(cast, run, outside):
    assert walk(run) == "waiting" and run.waiting["on"] == "budget"
    assert types(run)[-2:] == ["budget.exceeded", "run.waiting"] and "budget.warned" in types(run)
    updates.set_budgets(run, {"steps": 2, "tokens": 5}, by=person(cast.otto.pk))
    run.refresh_from_db()
    assert run.state == "waiting"  # still not enough
    updates.set_budgets(run, {"steps": 50}, by=person(cast.otto.pk), note="It is nearly done.")
    run.refresh_from_db()
    assert run.state == "queued" and walk(run) == "waiting" and run.waiting["on"] == "decision"
    approve(cast, run)
    assert walk(run) == "succeeded" and len(outside.done) == 2


@pytest.mark.django_db(transaction=True)
def test_what_was_approved_is_done_also_when_the_budget_is_used_up_meanwhile(cast, run, outside):
    updates.set_budgets(run, {"steps": 50}, by=person(cast.otto.pk))
    walk(run)
    approve(cast, run)
    updates.set_budgets(run, {"steps": 3}, by=person(cast.otto.pk))  # look, phrase and propose: it is used up
    run.refresh_from_db()
    assert not updates.enough(run)
    Run.objects.filter(pk=run.pk).update(budgets={"steps": 5})  # so that the note may be proposed, and no more after it
    assert walk(run) == "succeeded"


@pytest.mark.django_db(transaction=True)
def test_a_step_that_is_tried_again_counts_once_and_warns_once(cast, run, outside):
    outside.fail_next(Unavailable("not there"), Unavailable("not there yet"))
    while walk(run) == "waiting" and run.waiting["on"] == "retry":
        Run.objects.filter(pk=run.pk).update(state="queued", waiting={}, wake_at=None)
    assert run.waiting["on"] == "budget" and run.steps == 2
    assert types(run).count("step.failed") == 2 and types(run).count("budget.warned") == 1


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_is_lost_as_its_run_comes_to_its_limit_tells_of_it_once(cast, run, outside, monkeypatch):
    class Killed(BaseException):
        pass

    def die(*_):
        raise Killed

    monkeypatch.setattr(executor, "_came_meanwhile", die)  # the last thing before what is told of it is committed
    with pytest.raises(Killed):
        executor.execute(run.pk)
    monkeypatch.undo()
    assert "budget.exceeded" not in types(run)
    assert walk(run) == "waiting" and types(run).count("budget.exceeded") == 1


@pytest.mark.django_db(transaction=True)
def test_a_limit_that_is_lowered_to_what_is_nearly_used_up_warns_once(cast, run):
    Run.objects.filter(pk=run.pk).update(tokens=850)
    for limit in (1000, 990, 2000, 1000):
        updates.set_budgets(run, {"tokens": limit}, by=person(cast.otto.pk))
    assert types(run).count("budget.warned") == 2, "at 1,000, still at 990, and again after it was raised in between"


def test_an_agent_never_sets_its_own_limits(cast, run):
    agent = Actor("agent", str(cast.agent.pk), "support-triage", {cast.workspace.pk: frozenset({"runs.steer"})})
    with pytest.raises(PeopleSet):
        updates.set_budgets(run, {"steps": 50}, by=agent)
    run.refresh_from_db()
    assert run.budgets == {"steps": 2}


@pytest.mark.django_db(transaction=True)
def test_the_same_limits_again_change_nothing_and_an_ended_run_has_none(cast, run):
    head = run.seq
    updates.set_budgets(run, {"steps": 2}, by=person(cast.otto.pk))
    run.refresh_from_db()
    assert run.seq == head
    signals.send(run, kind="cancel", key="1", by=person(cast.otto.pk))
    with pytest.raises(RunEnded):
        updates.set_budgets(run, {"steps": 3}, by=person(cast.otto.pk))


@pytest.mark.django_db(transaction=True)
def test_limits_are_set_on_the_page(cast, run, sign_in):
    otto = sign_in(cast.otto)
    given = {"cost": "2,50", "minutes": "30", "tokens": "", "steps": "2", "note": "More."}
    answer = otto.post(f"/runs/{run.pk}/limits", given, follow=True)
    run.refresh_from_db()
    assert run.budgets == {"cost_micro": 2_500_000, "working_ms": 1_800_000, "steps": 2}
    assert "set the limits of the run" in text(answer) and "Now: cost €2.50, working time 30 min, steps 2." in text(answer)
    for nonsense in ({"cost": "-1"}, {"cost": "0"}, {"steps": "x"}):
        assert "These are no limits" in text(otto.post(f"/runs/{run.pk}/limits", nonsense, follow=True))


@pytest.mark.django_db(transaction=True)
def test_limits_that_were_left_as_they_were_shown_stay_as_they_are(cast, run, sign_in):
    Run.objects.filter(pk=run.pk).update(budgets={"cost_micro": 1_234_567, "working_ms": 90_000, "steps": 2})
    walk(run)
    otto = sign_in(cast.otto)
    shown = {"cost": "1.23", "minutes": "1", "tokens": "", "steps": "2"}
    assert "The limits are set. It still waits" in text(otto.post(f"/runs/{run.pk}/limits", shown | {"tokens": "9"}, follow=True))
    run.refresh_from_db()
    assert run.budgets == {"cost_micro": 1_234_567, "working_ms": 90_000, "steps": 2, "tokens": 9}
    assert "The run goes on." in text(otto.post(f"/runs/{run.pk}/limits", shown | {"tokens": "9", "steps": "40"}, follow=True))


@pytest.mark.django_db(transaction=True)
def test_limits_that_somebody_else_changed_meanwhile_are_not_overwritten(cast, run):
    updates.set_budgets(run, {"steps": 3}, by=person(cast.otto.pk))
    with pytest.raises(Changed):
        updates.set_budgets(run, {"steps": 9}, by=person(cast.ada.pk), before={"steps": 2})


@pytest.mark.django_db(transaction=True)
def test_a_run_that_sleeps_holds_nothing_and_goes_on_when_its_time_has_come(cast, outside):
    by = Actor("human", str(cast.agent.owner_id), "Priya")
    run = starting.start(agent=cast.agent, owner=cast.agent.owner, by=by, title="Later", workflow="test-later", arguments={}, scope={})
    assert walk(run) == "waiting" and run.waiting["on"] == "timer" and run.wake_at > clock.now() + timedelta(seconds=3500)
    assert not run.lease.until
    JournalEntry.objects.filter(run=run, step="timer#1").update(started_at=clock.now() - timedelta(hours=1))
    Run.objects.filter(pk=run.pk).update(wake_at=clock.now())
    sweep.sweep()
    assert walk(run) == "succeeded" and Event.objects.filter(run_id=run.pk, type="report.published").count() == 1
