"""Many people, one action: whatever they press and however often, one decision stands, and it gives one grant."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from access.errors import Refusal
from access.models import Agent
from access.rules import person
from approvals import decisions, policy
from approvals.errors import AlreadyDecided, DigestChanged, ReasonNeeded, SelfApproval
from approvals.models import Decision, Grant, ProposedAction
from runs.engine import executor
from runs.models import Event, Run
from tests.runs import workflows
from tests.runs.test_engine import start

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def action(cast) -> ProposedAction:
    workflows.reset()
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    run = start(cast, "test-talk", {"thing": "tea"})
    executor.execute(run.pk)
    return ProposedAction.objects.get(run=run)


def at_once(calls) -> list[object]:
    """Run them in threads that start together; what each gives or raises, in their order."""
    gate = threading.Barrier(len(calls))

    def one(call):
        gate.wait(timeout=30)
        try:
            return call()
        except Refusal as refusal:
            return refusal
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [done.result(timeout=60) for done in [pool.submit(one, call) for call in calls]]


def deciding(action, user, verdict):
    reviewer = person(user.pk)
    return lambda: decisions.decide(action, reviewer=reviewer, verdict=verdict, digest=action.digest, reason="Not like this.")


def test_twenty_decisions_at_once_leave_one_that_stands(cast, action):
    calls = [deciding(action, user, verdict) for user in (cast.riley, cast.sam) for verdict in ("approved", "rejected") for _ in range(5)]
    said = at_once(calls)
    stands = Decision.objects.get(action=action)
    action.refresh_from_db()
    assert action.state == stands.verdict
    assert Grant.objects.filter(action=action).count() == (1 if stands.verdict == "approved" else 0)
    assert Event.objects.filter(run_id=action.run_id, type="action.decided").count() == 1
    answered = [answer for answer in said if isinstance(answer, decisions.Decided)]
    assert Counter(answer.again for answer in answered) == {False: 1, True: 4}  # the same five presses of one person
    assert {answer.decision.pk for answer in answered} == {stands.pk}
    refused = [answer for answer in said if isinstance(answer, Refusal)]
    assert len(refused) == 15
    for refusal in refused:
        assert isinstance(refusal, AlreadyDecided) and refusal.status == 409
        assert refusal.extra["verdict"] == stands.verdict
        assert refusal.extra["by"] == stands.reviewer.name


def test_the_same_again_is_answered_with_the_first(cast, action):
    first = deciding(action, cast.riley, "approved")()
    again = deciding(action, cast.riley, "approved")()
    assert again.again and again.decision.pk == first.decision.pk


def test_an_old_digest_decides_nothing_and_names_the_new_one(cast, action):
    with pytest.raises(DigestChanged) as refused:
        decisions.decide(action, reviewer=person(cast.riley.pk), verdict="approved", digest="0" * 64)
    assert refused.value.extra["digest"] == action.digest
    assert not Decision.objects.exists()


@pytest.mark.parametrize("of", ["agent", "run", "starter", "editor"])
def test_nobody_decides_on_their_own_action(cast, action, of):
    assert cast.riley in decisions.who_may(action)
    run = Run.objects.filter(pk=action.run_id)
    if of == "agent":
        Agent.objects.filter(pk=cast.agent.pk).update(owner=cast.riley)
    elif of == "run":
        run.update(owner=cast.riley)
    elif of == "starter":
        run.update(starter_kind="human", starter_id=str(cast.riley.pk))
    else:
        ProposedAction.objects.filter(pk=action.pk).update(editor=cast.riley)
    action = ProposedAction.objects.get(pk=action.pk)
    with pytest.raises(SelfApproval):
        deciding(action, cast.riley, "approved")()
    assert cast.riley not in decisions.who_may(action) and cast.sam in decisions.who_may(action)
    assert not Decision.objects.exists()


@pytest.mark.parametrize(
    "reason", ["  ", "no", "\u200b" * 30, "\u200b\u2060\u3164", "x" * 4001], ids=["blank", "short", "unseen", "blank letters", "long"]
)
def test_a_rejection_needs_a_reason_that_can_be_seen(cast, action, reason):
    with pytest.raises(ReasonNeeded):
        decisions.decide(action, reviewer=person(cast.riley.pk), verdict="rejected", digest=action.digest, reason=reason)
    assert not Decision.objects.exists()


def test_what_expired_can_not_be_approved(cast, action):
    ProposedAction.objects.filter(pk=action.pk).update(expires_at=action.proposed_at)
    with pytest.raises(Refusal, match="time to decide is over"):
        deciding(action, cast.riley, "approved")()
    assert decisions.expire_due() == 1
    assert decisions.expire_due() == 0
    action.refresh_from_db()
    assert action.state == "expired"
    assert Event.objects.filter(run_id=action.run_id, type="action.expired").count() == 1


def test_expiry_and_approval_at_once_have_one_outcome(cast, action):
    from config import clock

    ProposedAction.objects.filter(pk=action.pk).update(expires_at=clock.now())
    at_once([deciding(action, cast.riley, "approved"), decisions.expire_due, decisions.expire_due])
    action.refresh_from_db()
    assert action.state == "expired"
    assert not Grant.objects.filter(action=action).exists()
