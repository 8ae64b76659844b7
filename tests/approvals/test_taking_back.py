"""Recalling and withdrawing: of recall and redemption, of withdrawal and decision, one stands, and whoever came second is told which."""

from datetime import timedelta

import pytest

from access.rules import person
from approvals import decisions, policy, taking_back
from approvals.errors import AlreadyDecided, ReasonNeeded, SelfApproval, TooLateToRecall, WithdrawnBefore
from approvals.models import Decision, Grant, ProposedAction
from config import clock
from runs.engine import executor, sweep
from runs.engine.workflow import Channel, Patience, workflow
from runs.models import Event, Run
from tests.approvals.mailing import MAIL, propose_change, propose_mail, send_mail, sent
from tests.cast import Cast
from tests.factories import agent_actor
from tests.runs.test_engine import start
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)
WHY = "The amount is wrong after all."


@workflow("test-impatient", version=1)
def impatient(run: Channel) -> None:
    answer = run.propose(send_mail, patience=Patience(timedelta(minutes=20), "The customer has called meanwhile."), **MAIL)
    if answer.approved:
        run.perform(answer)
    run.report("Sent" if answer.approved else "Not sent", cites=[answer])


@pytest.fixture
def held(cast):
    """An approved message that can be recalled for half a minute."""
    sent.clear()
    policy.set_rule(cast.workspace.pk, "send_mail", name="E-mail", outcome="reviewers", by=None, recall_delay=timedelta(seconds=30))
    proposed = propose_mail(cast)
    decisions.decide(proposed.action, reviewer=person(cast.riley.pk), verdict="approved", digest=proposed.action.digest)
    return proposed


def recall(cast: Cast, proposed, user=None):
    return taking_back.recall(proposed.again(), by=person((user or cast.riley).pk), reason=WHY)


def later(monkeypatch, **by) -> None:
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + timedelta(**by))


def test_nothing_runs_before_the_time_to_recall_is_over_and_then_it_does(cast, held, monkeypatch):
    assert held.walk() == "waiting" and sent == []
    held.run.refresh_from_db()
    assert held.run.waiting["on"] == "timer" and not Event.objects.filter(run_id=held.run.pk, type="action.delivered").exists()
    grant = Grant.objects.get()
    assert grant.held_until - grant.granted_at == timedelta(seconds=30)
    later(monkeypatch, seconds=31)
    sweep.sweep()
    assert held.walk() == "succeeded" and len(sent) == 1
    with pytest.raises(TooLateToRecall, match="redeemed already"):
        recall(cast, held)


def test_what_is_recalled_never_runs_and_the_agent_gets_the_reason(cast, held, monkeypatch):
    assert held.walk() == "waiting"
    recalled = recall(cast, held, cast.sam)  # anyone who may decide
    assert not recalled.again and held.again().state == "recalled"
    assert recall(cast, held, cast.sam).again
    with pytest.raises(WithdrawnBefore):
        recall(cast, held)
    assert taking_back.reason_of(held.again()) == WHY
    later(monkeypatch, minutes=5)
    assert held.walk() == "succeeded" and sent == []
    told = Event.objects.get(run_id=held.run.pk, type="action.recalled")
    assert list(told.payloads) == ["reason"] and str(cast.sam.pk) in told.body
    assert Grant.objects.get().voided_at is not None and Decision.objects.count() == 1


def test_without_a_delay_there_is_nothing_to_recall(cast, proposed):
    decisions.decide(proposed.action, reviewer=person(cast.riley.pk), verdict="approved", digest=proposed.action.digest)
    with pytest.raises(TooLateToRecall, match="lets nobody recall"):
        recall(cast, proposed)
    assert proposed.again().state == "approved"


def test_who_may_not_decide_recalls_nothing_and_a_recall_needs_a_reason(cast, held):
    for user in (cast.priya, cast.morgan):
        with pytest.raises(SelfApproval):
            recall(cast, held, user)
    with pytest.raises(ReasonNeeded):
        taking_back.recall(held.again(), by=person(cast.riley.pk), reason=" ")
    assert held.again().state == "approved"


@pytest.mark.parametrize("turn", range(4))
def test_of_recalling_and_redeeming_at_once_exactly_one_stands(cast, held, turn, monkeypatch):
    """At the very end of the delay both are asked for; the clock stands, so that it is not the clock that decides."""
    held.walk()
    end = Grant.objects.get().held_until
    monkeypatch.setattr(clock, "now", lambda: end if turn % 2 else end - timedelta(microseconds=1))
    Run.objects.filter(pk=held.run.pk).update(wake_at=end - timedelta(seconds=1))
    sweep.sweep()
    together([lambda: recall(cast, held), held.walk])
    action, grant = held.again(), Grant.objects.get()
    assert (action.state == "recalled") != (grant.redeemed_at is not None)
    monkeypatch.setattr(clock, "now", lambda: end + timedelta(seconds=1))
    sweep.sweep()
    held.walk()
    assert len(sent) == (0 if action.state == "recalled" else 1)


def test_the_agent_withdraws_what_waits_and_nobody_approves_it_any_more(cast, proposed):
    by = agent_actor(cast.agent)
    first = taking_back.withdraw(proposed.action, by=by, reason="The ticket was closed.")
    assert not first.again and taking_back.withdraw(proposed.action, by=by, reason="The ticket was closed.").again
    with pytest.raises(Exception, match="It was withdrawn"):
        decisions.decide(proposed.action, reviewer=person(cast.riley.pk), verdict="approved", digest=proposed.action.digest)
    assert proposed.walk() == "succeeded" and sent == [] and proposed.again().state == "withdrawn"


def test_who_withdraws_what_was_decided_is_told_what_stands(cast, proposed):
    decisions.decide(proposed.action, reviewer=person(cast.riley.pk), verdict="approved", digest=proposed.action.digest)
    with pytest.raises(AlreadyDecided) as refused:
        taking_back.withdraw(proposed.action, by=agent_actor(cast.agent), reason="The ticket was closed.")
    assert refused.value.extra["by"] == "Riley" and proposed.again().state == "approved"


@pytest.mark.parametrize("turn", range(4))
def test_of_withdrawing_and_deciding_at_once_exactly_one_stands(cast, proposed, turn):
    by, verdict = agent_actor(cast.agent), "approved" if turn % 2 else "rejected"
    said = together(
        [
            lambda: taking_back.withdraw(proposed.action, by=by, reason="The ticket was closed."),
            lambda: decisions.decide(
                proposed.action, reviewer=person(cast.riley.pk), verdict=verdict, digest=proposed.action.digest, reason=WHY
            ),
        ][:: 1 if turn < 2 else -1]
    )
    assert proposed.again().state in ("withdrawn", verdict)
    assert sum(isinstance(each, Exception) for each in said) == 1
    proposed.walk()
    assert len(sent) == (1 if proposed.again().state == "approved" else 0)


def test_a_workflow_withdraws_what_nobody_decided_while_it_was_wanted(cast, proposed, monkeypatch):
    run = start(cast, "test-impatient", {})
    assert executor.execute(run.pk) == "waiting"
    action = ProposedAction.objects.get(run=run)
    run.refresh_from_db()
    assert timedelta(minutes=19) < run.wake_at - clock.now() <= timedelta(minutes=20)
    later(monkeypatch, minutes=21)
    sweep.sweep()
    assert executor.execute(run.pk) == "succeeded"
    action.refresh_from_db()
    assert (action.state, taking_back.reason_of(action)) == ("withdrawn", "The customer has called meanwhile.")
    assert sent == []


def test_what_a_rule_allows_can_be_recalled_for_as_long_as_it_says(cast, monkeypatch):
    sent.clear()
    delay = {"recall_delay": timedelta(seconds=30)}
    policy.set_rule(cast.workspace.pk, "change_record", name="Notes", outcome="automatic", by=None, **delay)
    first, second = propose_change(cast, record="ACC-1"), propose_change(cast, record="ACC-2")
    assert first.again().state == "approved" and sent == [], "both wait for the end of that time"
    assert not recall(cast, first, cast.sam).again
    later(monkeypatch, seconds=31)
    sweep.sweep()
    assert (first.walk(), second.walk()) == ("succeeded", "succeeded")
    assert [each["record"] for each in sent] == ["ACC-2"]
