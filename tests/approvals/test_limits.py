"""What goes beyond a tool's limit is not granted: not at once from many runs, not a day later, and not by a rule."""

from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from access.rules import person
from approvals import decisions, exact, history, policy
from approvals.errors import ApproveLocked
from approvals.models import Decision, Grant, ProposedAction
from runs import starting
from runs.engine import executor
from runs.engine.tools import Call, Limit, tool
from runs.engine.workflow import Channel, workflow
from runs.models import Run
from tests.approvals.mailing import Proposed
from tests.approvals.test_looking import paid, propose, refund
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)


def approve(proposed: Proposed, by: Any) -> decisions.Decided:
    return decisions.decide(proposed.action, reviewer=person(by.pk), verdict="approved", digest=proposed.action.digest)


def automatic(cast: Any) -> None:
    policy.set_rule(cast.workspace.pk, refund.name, name="Small refunds", outcome="automatic", by=None)


def started(cast: Any, amount: str = "", **more: Any) -> Run:
    given: dict[str, Any] = {
        "workflow": "test-refunding",
        "arguments": {"account": "417", "amount": amount},
        "scope": {"account": ["417"]},
    }
    by = person(cast.agent.owner_id)
    return starting.start(agent=cast.agent, owner=cast.agent.owner, by=by, title="Refund RF-339", **given | more)


def since(before: timedelta, action: ProposedAction) -> None:
    """As if it had been granted so long ago."""
    grant = Grant.objects.get(action=action)
    moved = {name: getattr(grant, name) - before for name in ("granted_at", "redeemed_at", "executed_at") if getattr(grant, name)}
    Grant.objects.filter(pk=grant.pk).update(**moved)


def test_of_payments_that_each_fit_into_the_day_only_as_many_are_granted_at_once_as_fit_together(cast):
    waiting = [propose(cast, "1000.00") for _ in range(5)]
    said = together([partial(approve, each, by) for each in waiting for by in (cast.riley, cast.sam)])
    granted = Grant.objects.filter(action__tool=refund.name)
    assert granted.count() == 3
    assert sum(isinstance(answer, ApproveLocked) for answer in said) == 4
    assert Decision.objects.filter(action__tool=refund.name, verdict="approved").count() == 3, "what was refused was not recorded"
    assert sorted(each.again().state for each in waiting) == ["approved"] * 3 + ["waiting"] * 2


def test_who_is_refused_is_told_the_limit(cast):
    waiting = [propose(cast, "2000.00") for _ in range(2)]
    approve(waiting[0], cast.riley)
    with pytest.raises(ApproveLocked, match="more than it may in a day. Its limit for a day is €3,000.00."):
        approve(waiting[1], cast.riley)


def test_what_a_rule_would_grant_at_once_waits_for_a_person_if_it_goes_beyond(cast):
    automatic(cast)
    paid.clear()
    runs = [started(cast, "1000.00") for _ in range(5)]
    ended = together([partial(executor.execute, run.pk) for run in runs])
    assert sorted(ended) == ["succeeded"] * 3 + ["waiting"] * 2
    assert paid == ["1000.00"] * 3
    for left in ProposedAction.objects.filter(state="waiting"):
        assert left.locked and [warning["code"] for warning in left.warnings if warning["severity"] == "lock"] == ["amount_over_day"]
        with pytest.raises(ApproveLocked):
            approve(Proposed(left.run, left), cast.riley)


def test_what_was_granted_the_day_before_counts_until_it_is_run(cast):
    first, second = propose(cast, "2000.00"), propose(cast, "2000.00")
    approve(first, cast.riley)
    Grant.objects.filter(action=first.action).update(granted_at=first.action.proposed_at - timedelta(days=1))
    with pytest.raises(ApproveLocked):
        approve(second, cast.riley)


def test_what_was_paid_the_day_before_leaves_the_day_free(cast):
    first, second = propose(cast, "2000.00"), propose(cast, "2000.00")
    approve(first, cast.riley)
    assert first.walk() == "succeeded"
    since(timedelta(days=1), first.action)
    approve(second, cast.riley)
    assert second.again().state == "approved"


def granted(cast: Any, *amounts: str) -> None:
    for amount in amounts:
        approve(propose(cast, amount), cast.riley)


def test_the_day_counts_all_its_payments_however_many_there_are(cast, monkeypatch):
    monkeypatch.setattr(history, "LOOKED_AT", 2)
    granted(cast, "10.00", "20.00", "30.00", "40.00", "50.00")
    last = propose(cast, "2900.00")
    assert history.of(cast.workspace.pk, exact.read(last.action)).today == {"EUR": Decimal("150.00")}
    assert "amount_over_day" in [warning["code"] for warning in last.action.warnings]


def test_a_payment_counts_though_the_memory_is_emptied_meanwhile(cast, monkeypatch):
    granted(cast, "10.00", "20.00", "30.00")
    history._known.clear()
    read = history._read

    def read_while_another_thread_empties_it(kept):
        history._known.clear()
        return read(kept)

    monkeypatch.setattr(history, "_read", read_while_another_thread_empties_it)
    last = propose(cast, "1.00")
    assert history.of(cast.workspace.pk, exact.read(last.action)).today == {"EUR": Decimal("60.00")}


@tool(effect="write", title="Book a voucher", limit=Limit("EUR", each="50"))
def book_voucher(call: Call, amount: str, currency: str = "EUR") -> None:
    paid.append(amount)


@workflow("test-vouchers", version=1, title="Book a voucher")
def vouchers(run: Channel, amount: str) -> None:
    run.perform(run.propose(book_voucher, amount=amount))


def test_a_limit_holds_whatever_card_the_tool_is_drawn_on(cast):
    policy.set_rule(cast.workspace.pk, book_voucher.name, name="Vouchers", outcome="automatic", by=None)
    run = started(cast, workflow="test-vouchers", arguments={"amount": "50.01"}, scope={})
    assert executor.execute(run.pk) == "waiting"
    with pytest.raises(ApproveLocked):
        approve(Proposed(run, ProposedAction.objects.get(run=run)), cast.riley)
