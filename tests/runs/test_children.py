"""Child runs: a part of the work in a run of its own, with the same limits, the same taint, and cancelled with its parent."""

from dataclasses import replace

import orjson
import pytest

from access.rules import person
from approvals import gate, policy
from approvals.models import ProposedAction
from config import clock
from runs import signals
from runs.engine import executor, lease, sweep
from runs.engine.tools import TOOLS
from runs.engine.walk import Walk
from runs.models import Event, Run
from runs.verification import Whole, verify
from tests.runs import workflows
from tests.runs.test_engine import approve, start, types, walk
from tests.runs.workflows import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def run(cast, outside) -> Run:
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    return start(cast, "test-parent", {"thing": "tea"})


def of(run: Run) -> Run:
    return Run.objects.get(parent=run)


def test_a_parent_waits_for_its_child_and_goes_on_with_its_report(cast, run, outside):
    assert walk(run) == "waiting" and run.waiting["on"] == "child"
    child = of(run)
    assert (child.owner_id, child.starter_id, child.scope) == (run.owner_id, run.starter_id, run.scope)
    walk(child)
    approve(cast, child)
    assert walk(child) == "succeeded"
    sweep.sweep()
    run.refresh_from_db()
    assert run.state == "queued" and walk(run) == "succeeded"
    assert [kind for kind in types(run) if kind.startswith("child.")] == ["child.started", "child.ended"]
    assert isinstance(verify(run), Whole) and isinstance(verify(child), Whole)
    assert Run.objects.filter(parent=run).count() == 1 and len(outside.done) == 2


def test_a_child_that_ends_while_its_parent_is_on_its_way_to_wait_is_not_missed(cast, run, outside, monkeypatch):
    real = executor._wait

    def late(held, outcome):
        child = of(run)
        executor.execute(child.pk)
        signals.send(child, kind="cancel", key="1", by=person(cast.otto.pk))
        return real(held, outcome)

    monkeypatch.setattr(executor, "_wait", late)
    executor.execute(run.pk)
    run.refresh_from_db()
    assert run.state == "queued"
    monkeypatch.undo()
    assert walk(run) == "succeeded"


def test_a_parent_whose_child_goes_on_is_not_woken(cast, run, outside):
    walk(run)
    Run.objects.filter(pk=run.pk).update(wake_at=clock.now())
    head = run.seq
    sweep.sweep()
    run.refresh_from_db()
    assert (run.state, run.seq) == ("waiting", head) and run.wake_at > clock.now()


def test_a_worker_that_dies_while_it_starts_a_child_leaves_none_behind(cast, run, outside, monkeypatch):
    class Killed(BaseException):
        pass

    def die(**_):
        raise Killed

    monkeypatch.setattr("runs.engine.children.ChildStarted", die)
    with pytest.raises(Killed):
        executor.execute(run.pk)
    assert not Run.objects.filter(parent=run).exists()
    monkeypatch.undo()
    assert walk(run) == "waiting" and Run.objects.filter(parent=run).count() == 1


def test_a_worker_that_was_overtaken_starts_no_child(cast, run, outside, monkeypatch):
    real = Walk.check_budget

    def overtaken(walk):
        real(walk)
        lease.fence_out(walk.id)

    monkeypatch.setattr(Walk, "check_budget", overtaken)
    assert executor.execute(run.pk) == "overtaken" and not Run.objects.filter(parent=run).exists()


def test_a_child_may_touch_no_more_than_its_parent(cast, run, outside):
    wider = start(cast, "test-parent", {"thing": "tea", "scope": {"thing": ["tea", "coffee"]}})
    assert walk(wider) == "parked" and not Run.objects.filter(parent=wider).exists()


def test_a_child_shares_what_is_left_of_its_parents_budget(cast, outside, run):
    Run.objects.filter(pk=run.pk).update(budgets={"tokens": 100, "steps": 40}, tokens=30)
    walk(run)
    assert of(run).budgets == {"tokens": 70, "steps": 40}


def test_cancelling_a_parent_cancels_its_child(cast, run, outside):
    walk(run)
    child = of(run)
    walk(child)
    signals.send(run, kind="cancel", key="1", by=person(cast.otto.pk))
    run.refresh_from_db()
    child.refresh_from_db()
    assert (run.state, child.state) == ("cancelled", "cancelled")
    assert ProposedAction.objects.get(run=child).state == "withdrawn"


def test_a_child_that_was_not_told_is_found_by_the_sweep(cast, run, outside, monkeypatch):
    walk(run)
    child = of(run)
    monkeypatch.setattr(signals, "cancel_children", lambda run, by: None)
    signals.send(run, kind="cancel", key="1", by=person(cast.otto.pk))
    monkeypatch.undo()
    sweep.sweep()
    child.refresh_from_db()
    assert child.state == "cancelled"


def test_what_one_of_a_family_has_read_each_of_them_has(cast, run, outside, monkeypatch):
    monkeypatch.setitem(TOOLS, "look", replace(TOOLS["look"], reads_untrusted=True, reads_private=True))
    walk(run)
    child = of(run)
    assert not gate.taint_of(child, TOOLS["say"]).lethal
    walk(child)
    for each in (run, child, Run.objects.get(pk=child.pk)):
        assert gate.taint_of(each, TOOLS["say"]).lethal
    assert not gate.taint_of(start(cast, "test-parent", {"thing": "tea"}), TOOLS["say"]).lethal


def undone_with_its_parent(cast) -> Run:
    """A child run whose parent was cancelled afterwards, and took back what both had done."""
    for tool in ("put", "note_it", "take_away"):
        policy.set_rule(cast.workspace.pk, tool, name="Notes", outcome="automatic", by=None)
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    run = start(cast, "test-parent-puts", {}, scope={})
    walk(run)
    child = of(run)
    walk(child)
    sweep.sweep()
    walk(run)
    signals.send(run, kind="cancel", key="1", by=person(cast.otto.pk))
    assert walk(run) == "compensated"
    return child


def test_what_a_child_did_is_undone_with_its_parent_after_what_the_parent_did_later(cast, outside):
    for tool in ("put", "note_it", "take_away"):
        policy.set_rule(cast.workspace.pk, tool, name="Notes", outcome="automatic", by=None)
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    run = start(cast, "test-parent-puts", {}, scope={})
    walk(run)
    child = of(run)
    assert walk(child) == "succeeded"
    sweep.sweep()
    run.refresh_from_db()
    assert walk(run) == "waiting" and [text for _, _, text in outside.done] == ["before", "of the child", "after"]
    signals.send(run, kind="cancel", key="1", by=person(cast.otto.pk))
    assert walk(run) == "compensated" and run.state == "cancelled"
    assert [text for _, what, text in outside.done if what == "took away"] == ["after", "of the child", "before"]
    told = Event.objects.get(run_id=run.pk, type="run.cancelled")
    assert orjson.loads(told.body)["data"] | {"signal": ""} == {"signal": "", "done": 0, "undone": 3, "withdrawn": 1}
    assert types(run).count("effect.undone") == 3 and isinstance(verify(run), Whole) and isinstance(verify(child), Whole)


def test_the_page_of_a_parent_tells_that_what_its_child_did_was_undone(cast, outside, sign_in):
    test_what_a_child_did_is_undone_with_its_parent_after_what_the_parent_did_later(cast, outside)
    assert sign_in(cast.otto).get(f"/runs/{Run.objects.get(parent=None).pk}").status_code == 200
