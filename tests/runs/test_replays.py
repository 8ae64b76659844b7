"""A replay runs a workflow's code against what is recorded, asks nobody for anything, and says where it would differ."""

from contextlib import contextmanager

import pytest

from access.rules import person
from approvals import decisions, policy
from approvals.models import ProposedAction
from runs.engine import models, replaying, workflow
from runs.engine.tools import TOOLS
from runs.engine.workflow import Channel
from runs.models import JournalEntry, Run
from tests.runs import workflows
from tests.runs.test_engine import approve, start, walk
from tests.runs.workflows import World, look, note_it, say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def run(cast, outside) -> Run:
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    return start(cast, "test-talk", {"thing": "tea"})


@pytest.fixture
def finished(cast, run) -> Run:
    walk(run)
    approve(cast, run)
    assert walk(run) == "succeeded"
    return run


@contextmanager
def coded(function, version: int = 2):
    """Another version of the workflow, as long as the block lasts."""
    workflow.workflow("test-talk", version=version)(function)
    try:
        yield
    finally:
        del workflow.VERSIONS["test-talk", version]
        workflow.WORKFLOWS["test-talk"] = workflow.VERSIONS["test-talk", 1]


def talk(run: Channel, thing: str, *, to: str = "a@example.org", asks: str = "", noted: bool = True, more: bool = False) -> None:
    """The recorded workflow, but for what a test changes in it."""
    run.plan("Look", "Phrase it", "Get approval", "Note it", "Say it")
    seen = run.step(look, thing)
    phrased = run.ask_model("phrase", thing=asks or seen.thing)
    kept = run.artifact("text.txt", phrased.text)
    answer = run.propose(say, to=[to], text=phrased.text, reason="Somebody asked.")
    if noted:
        run.step(note_it, phrased.text)
    run.perform(answer)
    if more:
        run.step(look, "coffee")
    run.report("Said", cites=[answer, kept])


def told(found: replaying.Replay) -> list[tuple[str, str]]:
    return [(each.step, each.what) for each in found.differences]


def test_a_finished_run_is_the_same_and_nothing_is_asked_of_the_outside(finished, outside, monkeypatch):
    def never(*_, **__):
        raise AssertionError("the outside was asked")

    for name in ("look", "say", "note_it"):
        monkeypatch.setitem(TOOLS, name, TOOLS[name])
        monkeypatch.setattr(TOOLS[name].__class__, "__call__", never)
    monkeypatch.setattr(models, "tries", never)
    before = (finished.seq, outside.reads, len(outside.done), JournalEntry.objects.count(), ProposedAction.objects.count())
    found = replaying.replay(finished)
    finished.refresh_from_db()
    assert found.same and found.end == "ended" and found.asked == found.recorded == 9
    assert before == (finished.seq, outside.reads, len(outside.done), JournalEntry.objects.count(), ProposedAction.objects.count())


def test_a_run_that_waits_is_the_same_up_to_there(run):
    walk(run)
    found = replaying.replay(run)
    assert found.same and found.end == "open" and found.asked == found.recorded == 5


def test_a_model_that_would_be_asked_otherwise_is_named_without_what_it_was_told(finished):
    with coded(lambda run, thing: talk(run, thing, asks="my prompt")):
        found = replaying.replay(finished, version=2)
    [difference] = found.differences
    assert (difference.step, difference.what, found.end) == ("model.phrase#1", "input", "ended")
    assert [(change.name, change.before, change.after) for change in difference.changes] == [("thing", "", "")]


def test_another_action_than_the_one_that_people_answered_ends_the_replay(finished):
    with coded(lambda run, thing: talk(run, thing, to="b@example.org")):
        found = replaying.replay(finished, version=2)
    assert found.end == "stopped" and told(found)[0] == ("propose.say#1", "input")
    [change] = found.differences[0].changes
    assert change.name == "to" and "example.org" not in change.before + change.after  # who is written to is hidden
    assert ("report#1", "removed") in told(found)


def test_a_step_that_is_not_recorded_ends_the_replay_and_one_that_is_left_out_is_named(finished):
    with coded(lambda run, thing: talk(run, thing, more=True)):
        found = replaying.replay(finished, version=2)
    assert told(found) == [("look#2", "added"), ("report#1", "removed")] and found.end == "stopped"
    with coded(lambda run, thing: talk(run, thing, noted=False)):
        found = replaying.replay(finished, version=2)
    assert ("propose.note_it#1", "removed") in told(found) and found.end == "ended"


def test_code_that_raises_is_told_by_what_it_raised(finished):
    def broken(run: Channel, thing: str) -> None:
        raise RuntimeError("a secret: sk-live-1234567890abcdef")

    with coded(broken):
        found = replaying.replay(finished, version=2)
    assert found.differences[0].what == "raised" and found.differences[0].detail == "Its code failed (RuntimeError)."


def test_what_was_rejected_is_rejected_again_and_a_stuck_run_sticks_again(cast, run):
    walk(run)
    action = ProposedAction.objects.get(run=run)
    decisions.decide(action, reviewer=person(cast.riley.pk), verdict="rejected", digest=action.digest, reason="No.")
    walk(run)
    assert replaying.replay(run).same
    stuck = start(cast, "test-raises", {})
    assert walk(stuck) == "parked" and replaying.replay(stuck).same


def test_what_is_not_loaded_can_not_be_replayed(run):
    walk(run)
    with pytest.raises(replaying.NotReplayable, match="version 7"):
        replaying.replay(run, version=7)
    with pytest.raises(replaying.NotReplayable, match="recorded steps"):
        replaying.replay(run, most=1)
