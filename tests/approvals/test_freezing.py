"""Frozen is frozen: at once, whoever is just granting or redeeming, until it is lifted or runs out; and nothing is lost meanwhile."""

from datetime import datetime, timedelta, timezone

import pytest

from access.models import AuditEntry
from access.rules import person
from approvals import decisions, freezes, policy
from approvals.errors import AlreadyLifted, FreezeRefused, Frozen
from approvals.models import Decision, Freeze, Grant, ProposedAction
from config import clock
from runs.engine import executor
from runs.models import Event, Run
from tests.approvals.mailing import sent
from tests.runs import workflows
from tests.runs.test_engine import start
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)
WHY = "Wrong amounts since noon."


def frozen(cast, what="tool", **more) -> Freeze:
    given = {"tool": "send_mail"} if what == "tool" else {"agent_id": cast.agent.pk} if what == "agent" else {}
    return freezes.freeze(cast.workspace.pk, what=what, by=person(cast.ada.pk), reason=WHY, **given, **more).freeze


def thaw(cast, freeze: Freeze) -> Freeze:
    return freezes.lift(freeze, by=person(cast.otto.pk), reason="The amounts are right again.").freeze


def approve(cast, proposed, user=None):
    return decisions.decide(proposed.action, reviewer=person((user or cast.riley).pk), verdict="approved", digest=proposed.action.digest)


def types(run: Run) -> list[str]:
    return list(Event.objects.filter(run_id=run.pk).order_by("seq").values_list("type", flat=True))


@pytest.mark.parametrize("what", ["tool", "agent", "workspace"])
def test_nothing_is_approved_while_frozen_and_rejecting_goes_on(cast, proposed, what):
    stands = frozen(cast, what)
    with pytest.raises(Frozen, match=r"Frozen by Ada since \d\d:\d\d \(UTC\): Wrong amounts since noon\.") as refused:
        approve(cast, proposed)
    assert refused.value.status == 409 and refused.value.extra["frozen"]["id"] == str(stands.pk)
    assert not Decision.objects.exists() and not Grant.objects.exists() and proposed.again().state == "waiting"
    decisions.decide(
        proposed.action, reviewer=person(cast.riley.pk), verdict="rejected", digest=proposed.action.digest, reason="Not like this."
    )
    assert proposed.again().state == "rejected"


def test_what_is_not_frozen_goes_on(cast, proposed):
    freezes.freeze(cast.workspace.pk, what="tool", tool="change_record", by=person(cast.ada.pk), reason=WHY)
    freezes.freeze(cast.elsewhere.pk, what="workspace", by=person(cast.olga.pk), reason=WHY)
    approve(cast, proposed)
    assert proposed.walk() == "succeeded" and len(sent) == 1


def test_a_run_waits_at_what_is_frozen_and_goes_on_by_itself_once_it_is_lifted(cast, proposed):
    approve(cast, proposed)
    stands = frozen(cast)
    assert proposed.walk() == "waiting" and sent == []
    proposed.run.refresh_from_db()
    assert proposed.run.waiting["on"] == "unfreezing" and proposed.run.lease.until is None, "no worker is held"
    assert types(proposed.run)[-2:] == ["block.raised", "run.waiting"]
    assert proposed.walk() == "busy", "nothing looks again before it is lifted"
    lifted = thaw(cast, stands)
    assert lifted.lifted_by == cast.otto and lifted.let_go_at is not None
    assert types(proposed.run)[-2:] == ["block.cleared", "run.queued"]
    assert proposed.walk() == "succeeded" and len(sent) == 1
    assert [e.verb for e in AuditEntry.objects.filter(verb__in=["frozen", "unfrozen"]).order_by("at")] == ["frozen", "unfrozen"]


def test_a_freeze_ends_by_the_clock_and_lets_go_of_what_waited(cast, proposed, monkeypatch):
    approve(cast, proposed)
    frozen(cast, until=clock.now() + timedelta(minutes=30))
    assert proposed.walk() == "waiting"
    assert freezes.let_go_due() == 0
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + timedelta(minutes=31))
    assert freezes.seen_by(person(cast.riley.pk)) == []
    assert (freezes.let_go_due(), freezes.let_go_due()) == (1, 0)
    assert proposed.walk() == "succeeded" and len(sent) == 1


def test_an_approval_that_lapses_while_frozen_is_asked_for_again(cast, proposed, monkeypatch):
    approve(cast, proposed)
    stands = frozen(cast)
    assert proposed.walk() == "waiting"
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + timedelta(hours=3))
    thaw(cast, stands)
    assert proposed.walk() == "waiting" and sent == []
    again = ProposedAction.objects.filter(run=proposed.run).exclude(pk=proposed.action.pk).get()
    assert again.state == "waiting" and again.digest != proposed.action.digest
    decisions.decide(again, reviewer=person(cast.riley.pk), verdict="approved", digest=again.digest)
    assert proposed.walk() == "succeeded" and len(sent) == 1


def test_what_a_rule_allows_waits_before_it_is_even_proposed(cast):
    world = workflows.reset()
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    stands = frozen(cast, "workspace")
    run = start(cast, "test-talk", {"thing": "tea"})
    assert executor.execute(run.pk) == "waiting"
    say = ProposedAction.objects.get(run=run)  # a person decides on it: it may be put up
    assert say.state == "waiting"
    thaw(cast, stands)
    decisions.decide(say, reviewer=person(cast.riley.pk), verdict="approved", digest=say.digest)
    stands = frozen(cast, "workspace")
    assert executor.execute(run.pk) == "waiting" and world.done == []
    thaw(cast, stands)
    assert executor.execute(run.pk) == "succeeded" and len(world.done) == 2


def test_each_freeze_stands_for_itself(cast, proposed):
    approve(cast, proposed)
    first, second = frozen(cast), frozen(cast, "agent")
    assert proposed.walk() == "waiting"
    thaw(cast, first)
    proposed.run.refresh_from_db()
    assert proposed.run.state == "waiting"
    thaw(cast, second)
    assert proposed.walk() == "succeeded" and len(sent) == 1


def test_a_double_click_freezes_once_and_two_who_lift_are_told_who_did(cast, proposed):
    first, again = frozen(cast), frozen(cast)
    assert first.pk == again.pk and Freeze.objects.count() == 1
    thaw(cast, first)
    assert thaw(cast, first).lifted_by == cast.otto
    with pytest.raises(AlreadyLifted, match="Otto lifted it"):
        freezes.lift(first, by=person(cast.ada.pk), reason="Me too.")


@pytest.mark.parametrize(
    "given",
    [
        {"what": "tool", "tool": "made_up"},
        {"what": "agent", "agent_id": None},
        {"what": "everything"},
        {"what": "workspace", "reason": " "},
        {"what": "workspace", "until": clock.now() - timedelta(hours=1)},
        {
            "what": "workspace",
            "until": datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-1))),
        },  # in UTC there is no such time
    ],
)
def test_what_can_not_be_frozen_is_refused(cast, given):
    with pytest.raises(FreezeRefused):
        freezes.freeze(cast.workspace.pk, by=person(cast.ada.pk), **({"reason": WHY} | given))
    assert not Freeze.objects.exists()


def test_an_agent_of_another_workspace_is_not_there(cast):
    with pytest.raises(FreezeRefused, match="no such agent"):
        freezes.freeze(cast.workspace.pk, what="agent", agent_id=cast.other_agent.pk, by=person(cast.ada.pk), reason=WHY)


@pytest.mark.parametrize("turn", range(4))
def test_of_freezing_and_granting_at_once_nothing_is_granted_after_the_freeze(cast, proposed, turn):
    """What came through came before: it was committed when the freeze was."""
    granted = together([lambda: frozen(cast), lambda: approve(cast, proposed)][:: 1 if turn % 2 else -1])
    made = next(each for each in granted if isinstance(each, Freeze))
    grant = Grant.objects.filter(action=proposed.action).first()
    assert grant is None or grant.granted_at <= made.since
    assert any(isinstance(each, Frozen) for each in granted) == (grant is None)


@pytest.mark.parametrize("turn", range(4))
def test_of_freezing_and_redeeming_at_once_nothing_is_redeemed_after_the_freeze(cast, proposed, turn):
    approve(cast, proposed)
    done = together([lambda: frozen(cast), proposed.walk][:: 1 if turn % 2 else -1])
    made = next(each for each in done if isinstance(each, Freeze))
    grant = Grant.objects.get(action=proposed.action)
    assert (grant.redeemed_at is None) == (sent == []) == ("waiting" in done)
    assert grant.redeemed_at is None or grant.redeemed_at <= made.since
    thaw(cast, made)
    proposed.walk()
    assert len(sent) == 1


def test_what_is_frozen_is_named_by_what_it_is(cast):
    named = [freezes.target_words(frozen(cast, what)) for what in ("agent", "tool", "workspace")]
    assert named == ["agent support-triage", "“Send the reply”", f"everything in {cast.workspace.name}"]
