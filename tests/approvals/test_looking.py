"""What Handrail finds out itself before people decide stands beside the action, apart from what is signed, and says when it could not."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.template.loader import render_to_string

from access.rules import person
from approvals import cards, decisions, editing, history, policy, presenting
from approvals.canonical import CanonicalAction
from approvals.cards.parts import Share
from approvals.errors import ApproveLocked
from approvals.models import Grant, ProposedAction
from artifacts.models import Payload
from runs import starting
from runs.engine import executor
from runs.engine.tools import Call, Limit, Looked, Unavailable, tool
from runs.engine.workflow import Channel, workflow
from runs.models import Event
from tests.approvals.mailing import Proposed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
paid: list[str] = []
looks: list[Mapping[str, Any]] = []


def look(call: Call, arguments: Mapping[str, Any]) -> Looked:
    return FOUND[0](call, arguments)


def find(call: Call, arguments: Mapping[str, Any]) -> Looked:
    looks.append(arguments)
    return Looked({"Paid on invoice": "€2,568.00", "Card": "4111 1111 1111 1111"}, paid="2568.00", left="2568.00")


FOUND = [find]


@tool(
    effect="write",
    title="Refund a payment",
    card="payment",
    look=look,
    limit=Limit("EUR", each="2000", a_day="3000"),
    subject=lambda a: f"Refund {a['amount']}",
    touches=lambda a: {"account": [a["account"]]},
)
def test_refund(call: Call, account: str, amount: str, currency: str = "EUR") -> None:
    paid.append(amount)


refund, refund.function.__test__ = test_refund, False
del test_refund


@workflow("test-refunding", version=1, title="Refund")
def refunding(run: Channel, account: str, amount: str) -> None:
    run.plan("Get approval", "Refund a payment")
    answer = run.propose(refund, account=account, amount=amount)
    if answer.approved:
        run.perform(answer)


@pytest.fixture
def with_look(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    return lambda other: monkeypatch.setattr(f"{__name__}.FOUND", [other])


def propose(cast, amount="1284.00", account="417", scope=("417",), workflow="test-refunding") -> Proposed:
    if policy.in_force(cast.workspace.pk, refund.name) is None:
        policy.set_rule(cast.workspace.pk, refund.name, name="Refunds", outcome="reviewers", by=None, expires_after=timedelta(hours=1))
    run = starting.start(
        agent=cast.agent,
        owner=cast.agent.owner,
        by=person(cast.agent.owner_id),
        title="Refund RF-339",
        workflow=workflow,
        arguments={"account": account, "amount": amount},
        scope={"account": list(scope)},
    )
    assert executor.execute(run.pk) == "waiting"
    return Proposed(run, ProposedAction.objects.get(run=run))


def approve(proposed: Proposed, by) -> None:
    decisions.decide(proposed.action, reviewer=person(by.pk), verdict="approved", digest=proposed.action.digest, reason="", seen={})


def card(proposed: Proposed, user) -> Any:
    return presenting.panel(presenting.find(person(user.pk), proposed.action.pk), person(user.pk)).card


def test_what_was_looked_up_is_on_the_card_and_no_part_of_the_digest(cast, client):
    proposed = propose(cast)
    drawn = card(proposed, cast.riley)
    assert dict(drawn.found)["Paid on invoice"] == "€2,568.00"
    assert drawn.looked_at is not None and drawn.amount.share[-1] == Share("this", 500, 500)
    assert drawn.count == len(drawn.parts) == 7  # amount, currency, account; how it runs; and three folded
    client.force_login(cast.riley)
    page = client.get(proposed.url()).content.decode()
    assert "€1,284.00" in page and 'Looked up<span class="vh"> by Handrail</span> at ' in page and ", not signed</p>" in page


def test_who_is_about_to_approve_a_payment_reads_how_much_goes(cast, client):
    proposed = propose(cast)
    client.force_login(cast.riley)
    for headers in ({}, {"HX-Request": "true", "HX-Target": f"decide-{proposed.action.pk}"}):
        page = client.get(proposed.url() + "?do=approve", headers=headers).content.decode()
        assert "Approve and pay out €1,284.00 <kbd>" in page and "and pay out €1,284.00, once?" in page


def test_what_was_looked_up_is_in_the_log_and_redacted_for_who_may_not_decide(cast):
    proposed = propose(cast)
    event = Event.objects.get(run=proposed.run, seq=proposed.action.proposed_seq)
    kept = Payload.objects.get(pk=event.payloads["looked"])
    assert "4111" not in kept.rendition
    drawn = card(proposed, cast.morgan)
    assert dict(drawn.found)["Paid on invoice"] == "€2,568.00"
    assert "4111" not in str(drawn)


def test_a_look_that_fails_is_said_and_stops_nothing(cast, with_look):
    def away(call: Call, arguments: Mapping[str, Any]) -> Looked:
        raise Unavailable("The ledger can't be reached.")

    with_look(away)
    proposed = propose(cast)
    assert card(proposed, cast.riley).looked.trouble == "The ledger can't be reached."
    assert [warning["code"] for warning in proposed.action.warnings] == ["not_looked_up"]


def test_why_a_look_failed_is_kept_whatever_characters_it_holds(cast, with_look):
    def away(call: Call, arguments: Mapping[str, Any]) -> Looked:
        raise Unavailable("The ledger \ud800 can't be reached.")

    with_look(away)
    assert card(propose(cast), cast.riley).looked.trouble == "The ledger ? can't be reached."


def test_whatever_a_look_raises_the_action_is_put_to_people(cast, with_look):
    with_look(lambda call, arguments: 1 / 0)
    assert card(propose(cast), cast.riley).looked.trouble == "The look’s code failed (ZeroDivisionError)."


class Deep:
    """A value of 40 lists, each in the next."""

    value: Any = 1
    for _ in range(40):
        value = [value]


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, "gave NoneType"),
        ({"Paid": "€2"}, "gave dict"),
        (Looked({"Paid": 2}), "something else than text"),  # type: ignore[dict-item]
        (Looked(["Paid"]), "title by title"),  # type: ignore[arg-type]
        (Looked(left=2568), "something else than text"),  # type: ignore[arg-type]
        (Looked(record=["a"]), "something else than text"),  # type: ignore[arg-type]
        (Looked(record={"seats": 2**53}), "can’t be kept exactly"),
        (Looked(version=2**60), "can’t be kept exactly"),
        (Looked(record={"at": timedelta(1)}), "can’t be kept exactly"),
        (Looked(record={1: "a"}), "can’t be kept exactly"),  # type: ignore[dict-item]
        (Looked(record={"share": float("nan")}), "can’t be kept exactly"),
        (Looked(record={"name": "\ud800"}), "can’t be kept exactly"),
        (Looked(record={"tree": Deep.value}), "nested more than 32 deep"),
        (Looked({"Log": "x" * 300_000}), "at most 262,144 are shown"),
    ],
)
def test_a_look_that_gives_what_can_not_be_kept_is_said_and_stops_nothing(cast, with_look, found, why):
    with_look(lambda call, arguments: found)
    proposed = propose(cast)
    assert why in card(proposed, cast.riley).looked.trouble
    assert "not_looked_up" in [warning["code"] for warning in proposed.action.warnings]


def test_nothing_is_looked_up_outside_the_scope_of_the_run(cast):
    looks.clear()
    with pytest.raises(AssertionError, match="parked"):
        propose(cast, account="666")
    assert looks == []


def test_an_edit_is_looked_up_anew(cast):
    proposed = propose(cast)
    looks.clear()
    arguments = {"account": "417", "amount": "100.00", "currency": "EUR"}
    edited = editing.edit(proposed.action, by=person(cast.riley.pk), arguments=arguments, digest=proposed.action.digest).action
    assert [each["amount"] for each in looks] == ["100.00"]
    assert card(Proposed(proposed.run, edited), cast.sam).amount.share[-1] == Share("this", 961, 39)


def test_earlier_payments_to_the_account_are_on_the_card_and_sum_up_against_the_day(cast):
    first = propose(cast, "1500.00")
    approve(first, cast.riley)
    assert first.walk() == "succeeded" and paid[-1] == "1500.00"
    other = propose(cast, "10.00", account="418", scope=["418"])
    second = propose(cast, "1500.01")
    drawn = card(second, cast.riley)
    assert [(each.text, each.ref) for each in drawn.earlier] == [("€1,500.00", first.run.ref)]
    assert dict(drawn.found)["Paid today"] == "€1,500.00 of €3,000.00"
    assert card(other, cast.riley).earlier == ()
    assert {warning["code"]: warning["severity"] for warning in second.action.warnings} == {
        "amount_over_day": "lock",
        "paid_before": "note",
    }


def test_an_amount_beyond_its_limit_can_not_be_approved_whatever_is_sent(cast, client):
    proposed = propose(cast, "2000.01")
    with pytest.raises(ApproveLocked):
        approve(proposed, cast.riley)
    client.force_login(cast.riley)
    client.post(proposed.url("decision"), {"verdict": "approved", "digest": proposed.action.digest, "armed": "1"})
    assert proposed.again().state == "waiting"
    assert "2000.01" not in paid


def test_a_repeat_in_the_same_run_is_told_from_another_run(cast):
    first = propose(cast, "20.00")
    approve(first, cast.riley)
    first.walk()
    assert "repeat_of_executed" not in [warning["code"] for warning in propose(cast, "20.00").action.warnings]


def test_a_card_tells_what_was_paid_when_it_was_proposed_whenever_it_is_opened(cast):
    first, waiting = propose(cast, "1500.00"), propose(cast, "100.00")
    approve(first, cast.riley)
    assert first.walk() == "succeeded"
    drawn = card(waiting, cast.riley)
    assert dict(drawn.found)["Paid today"] == "€0.00 of €3,000.00" and drawn.earlier == ()
    later = propose(cast, "200.00")
    Grant.objects.filter(action=first.action).update(**{at: later.action.proposed_at - timedelta(days=3) for at in TIMES})
    ProposedAction.objects.filter(pk=later.action.pk).update(proposed_at=later.action.proposed_at - timedelta(days=3))
    drawn = card(later, cast.riley)
    assert dict(drawn.found)["Paid today"] == "€1,500.00 of €3,000.00", "the day is the one of the proposal"
    assert len(drawn.earlier) == 1


TIMES = ("granted_at", "redeemed_at", "executed_at")


def test_earlier_payments_are_all_counted_though_not_all_are_listed(cast, client, monkeypatch):
    monkeypatch.setattr(history, "SHOWN", 1)
    for amount in ("10.00", "20.00"):
        each = propose(cast, amount)
        approve(each, cast.riley)
        each.walk()
    proposed = propose(cast, "30.00")
    (warning,) = [warning for warning in proposed.action.warnings if warning["code"] == "paid_before"]
    assert warning["params"] == {"count": 2}
    client.force_login(cast.riley)
    assert "2 earlier, to the same account" in client.get(proposed.url()).content.decode()
    assert len(card(proposed, cast.riley).earlier) == 1


@tool(effect="write", title="Pay back", card="payment", subject=lambda a: f"Pay back {a['amount']}")
def pay_back(call: Call, account: str, amount: str, currency: str = "EUR") -> None:
    paid.append(amount)


@workflow("test-paying-back", version=1, title="Pay back")
def paying_back(run: Channel, account: str, amount: str) -> None:
    run.perform(run.propose(pay_back, account=account, amount=amount))


def test_earlier_payments_are_on_the_card_of_a_tool_without_a_limit_or_a_look(cast, client):
    policy.set_rule(cast.workspace.pk, pay_back.name, name="Paying back", outcome="reviewers", by=None)
    first = propose(cast, "10.00", workflow="test-paying-back")
    approve(first, cast.riley)
    assert first.walk() == "succeeded"
    client.force_login(cast.riley)
    page = client.get(propose(cast, "20.00", workflow="test-paying-back").url()).content.decode()
    assert "1 earlier, to the same account" in page and first.run.ref in page


def test_that_a_look_found_nothing_is_said_as_well():
    what = CanonicalAction("pay_back", 1, {"amount": "1.00"}, "", "", "n")
    drawn = cards.card(what, cards.Setting(title="Pay back", effect="write", kind="payment", looked=Looked(at="2026-11-29T12:00:00Z")))
    assert "Looked up<span> by Handrail</span> at" in render_to_string("approvals/_found.html", {"card": drawn})
