"""A hundred cancels, a completion and an execution at once: one ending, last in the log, and everybody is told which."""

import pytest

from access.rules import person
from approvals import decisions, policy
from approvals.models import Grant, ProposedAction
from runs import signals
from runs.engine import executor, sweep
from runs.lifecycle import ENDINGS
from runs.models import Event, Run, Signal
from runs.verification import Whole, verify
from tests.approvals.test_many_deciders import at_once
from tests.runs import workflows
from tests.runs.test_engine import start

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(cast) -> Run:
    workflows.reset()
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    run = start(cast, "test-talk", {"thing": "tea"})
    executor.execute(run.pk)
    return run


def cancelling(cast, run, key):
    otto = person(cast.otto.pk)
    return lambda: signals.send(run, kind="cancel", key=str(key), by=otto)


@pytest.mark.parametrize("ahead", [0, 30, 100])
def test_a_hundred_cancels_racing_an_execution_leave_one_ending(cast, run, ahead):
    action = ProposedAction.objects.get(run=run)
    decisions.decide(action, reviewer=person(cast.riley.pk), verdict="approved", digest=action.digest)
    cancels = [cancelling(cast, run, key) for key in range(100)]
    calls = [*cancels[:ahead], lambda: executor.execute(run.pk), *cancels[ahead:]]
    at_once(calls)
    for _ in range(3):  # what was in flight is settled by whoever comes next
        sweep.sweep()
        executor.execute(run.pk)
    run.refresh_from_db()
    endings = list(Event.objects.filter(run_id=run.pk, type__in=list(ENDINGS)).values_list("type", "seq"))
    assert len(endings) == 1
    assert endings[0][1] == run.seq
    assert ENDINGS[endings[0][0]] == run.state
    assert isinstance(verify(run), Whole)
    assert signals.ending_of(run.pk)["state"] == run.state
    assert Signal.objects.filter(run=run).count() == 100
    assert not Signal.objects.filter(run=run, status__in=["accepted", "delivered"]).exists()
    said = [what for _, what, _ in workflows.world.done].count("say")
    assert said == Grant.objects.filter(action=action, outcome="executed").count()
    if run.state == "cancelled" and said:  # it had been sent before the cancel could reach it, and the log says so in this order
        executed = Event.objects.filter(run_id=run.pk, type="effect.done").latest("seq")
        assert executed.seq < endings[0][1]


def test_the_same_cancel_again_is_one_signal(cast, run):
    sent = at_once([cancelling(cast, run, "one")] * 20)
    assert len({signal.pk for signal in sent}) == 1
    assert Event.objects.filter(run_id=run.pk, type="run.cancelled").count() == 1


def test_nothing_runs_after_a_cancel(cast, run):
    action = ProposedAction.objects.get(run=run)
    cancelling(cast, run, "one")()
    with pytest.raises(Exception, match="withdrawn"):
        decisions.decide(action, reviewer=person(cast.riley.pk), verdict="approved", digest=action.digest)
    assert executor.execute(run.pk) == "busy"
    assert workflows.world.done == []
