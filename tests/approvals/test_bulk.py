"""Deciding on several that are alike: each looked at, each with a decision of its own; what is unlike them is taken out, with why."""

import html
import re
from datetime import timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from django.test import Client

from access.rules import person
from approvals import alike, bulk, decisions, freezes, looks, policy
from approvals.alike import Facts
from approvals.errors import NotAllOpened
from approvals.models import Decision, Grant, Look, ProposedAction
from config import clock
from tests import proving
from tests.approvals.mailing import Proposed, propose_change, propose_mail, text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture
def three(cast) -> list[Proposed]:
    return [propose_change(cast, record=f"ACC-{n}") for n in (1, 2, 3)]


def address(like: Proposed, *more: str) -> str:
    return "/".join(["/inbox/alike", str(like.action.pk), *more])


def see(client: Client, like: Proposed, *those: Proposed, out: tuple[Proposed, ...] = ()) -> None:
    """Open each and say that it was seen, as the page does."""
    for each in those:
        query = {"item": each.action.pk, "out": [one.action.pk for one in out]}
        page = client.get(address(like), query).content.decode()
        token = re.search(r'name="look" value="([^"]+)"', page)
        if token:
            answer = client.post(address(like, "looks"), {"look": html.unescape(token[1]), "out": [str(pk) for pk in query["out"]]})
            assert answer.status_code == 303


def decide(client: Client, like: Proposed, *those: Proposed, **more: str):
    sent = {"verdict": "approved", "item": [f"{each.action.pk}:{each.action.digest}" for each in those]} | more
    return client.post(address(like, "decisions"), sent)


def test_of_addresses_at_one_host_a_row_says_what_comes_after_it(cast, riley):
    those = [propose_change(cast, record=f"https://crm.example/accounts/{n}") for n in (1, 2)]
    assert "Record /accounts/2" in text(riley.get(address(those[0])))
    propose_change(cast, record="https://crm.example.evil.example/accounts/3")
    assert "Record https://crm.example/accounts/2" in text(riley.get(address(those[0]))), "the hosts differ, so that they are said"


def test_what_all_are_called_stands_once_in_the_heading_and_rows_say_what_each_has_of_its_own():
    put = "Put a note on the file of {} at the help desk".format
    assert bulk.common_words([put("Halden Marine"), put("Brightwater")]) == ("Put a note on the file of", "at the help desk")
    assert bulk.common_words([put("Halden"), put("Halden")]) == (put("Halden"), "")
    for those in ([put("Halden")], ["Pay Halden", "Pay Brightwater"], ["Put a note on it", "Put a note on it now"]):
        assert bulk.common_words(those) == ("", "")


def test_three_alike_are_opened_and_approved_each_with_a_decision_and_a_grant_of_its_own(riley, three):
    assert "3 alike: Change the record" in text(riley.get("/inbox"))
    page = text(riley.get(address(three[0])))
    assert "Three alike" in page and "0 of 3 opened" in page and "3 not opened." in page and "Record ACC-2" in page
    see(riley, three[0], *three)
    page = text(riley.get(address(three[0]), {"do": "approve"}))
    assert "Approve each of these 3 , once, under its own digest?" in page
    done = decide(riley, three[0], *three)
    assert done.status_code == 200 and "Three approved" in text(done)
    assert {decision.digest for decision in Decision.objects.all()} == {each.action.digest for each in three}
    assert Grant.objects.count() == 3 and all(each.again().state == "approved" for each in three)
    seen = Decision.objects.earliest("decided_at").seen
    assert seen["bulk"] == 3 and seen["shown"] > 0 and seen["looked_at"].endswith("Z")
    assert [each.walk() for each in three] == ["succeeded"] * 3


@pytest.mark.both_databases
def test_the_same_sent_twice_is_decided_once(riley, three):
    see(riley, three[0], *three)
    first, second = (decide(riley, three[0], *three) for _ in range(2))
    assert "Three approved" in text(first) and "Three approved" in text(second) and "before, recorded as" in text(second)
    assert Decision.objects.count() == Grant.objects.count() == 3


def test_several_of_high_risk_ask_again_who_it_is_though_the_one_of_the_address_is_decided(cast, riley, three):
    ProposedAction.objects.update(risk=3)
    for each in three:
        looks.record(each.again(), by=person(cast.riley.pk), digest=each.action.digest)
    decisions.decide(three[0].again(), reviewer=person(cast.sam.pk), verdict="approved", digest=three[0].action.digest)
    proving.shown(riley, ago=timedelta(hours=1))
    assert "Show that it is you" in text(decide(riley, three[0], *three[1:]))
    assert "Show that it is you" in text(decide(riley, three[0], *three)), "also with the one that is decided among them"
    assert Decision.objects.count() == 1
    assert "Two rejected" in text(decide(riley, three[0], *three[1:], verdict="rejected", reason="Not like this."))


def test_nothing_is_decided_unless_the_server_holds_that_each_was_opened(riley, three):
    see(riley, three[0], *three[:2])
    refused = decide(riley, three[0], *three)
    assert refused.status_code == 409 and "1 of 3 was not opened" in text(refused) and "Nothing was decided." in text(refused)
    assert decide(riley, three[0], *three, verdict="rejected", reason="Not like this.").status_code == 409
    assert Decision.objects.count() == 0
    assert "Approve each of these" not in text(riley.get(address(three[0]), {"do": "approve"}))


def test_a_look_counts_only_for_whom_it_was_drawn_and_only_what_was_drawn(cast, riley, three):
    sam = person(cast.sam.pk)
    for forged in ("", "x", looks.token(three[0].action, sam)):
        assert riley.post(address(three[0], "looks"), {"look": forged}).status_code == 409
    older = looks.token(three[0].action, person(cast.riley.pk))
    ProposedAction.objects.filter(pk=three[0].action.pk).update(digest="0" * 64)
    assert riley.post(address(three[0], "looks"), {"look": older}).status_code == 409
    assert Look.objects.count() == 0
    riley.get(address(three[1]))
    assert Look.objects.count() == 0, "looking at a page records nothing"


def test_what_is_not_like_the_others_is_taken_out_by_itself_and_says_why(cast, riley, three):
    locked, held, grave, newer, two = (propose_change(cast, record=f"ACC-{n}") for n in (4, 5, 6, 7, 8))
    rows = ProposedAction.objects
    rows.filter(pk=locked.action.pk).update(locked=True, warnings=[{"code": "invisible", "severity": "lock", "path": "/arguments/record"}])
    decisions.claim(held.action, by=person(cast.sam.pk))
    rows.filter(pk=grave.action.pk).update(risk=3)
    for each, quorum in ((newer, 1), (two, 2)):
        rule = policy.set_rule(cast.workspace.pk, "change_record", name="Newer", outcome="reviewers", by=None, quorum=quorum)
        rows.filter(pk=each.action.pk).update(policy=rule)
    found = bulk.batch(three[0].action, person(cast.riley.pk))
    assert [item.action.pk for item in found.items] == [each.action.pk for each in three]
    why = {item.action.pk: item.why for item in found.out}
    assert why[held.action.pk] == "Sam is on it." and why[grave.action.pk] == "Its risk is high, not low."
    assert "version" in why[newer.action.pk] and why[locked.action.pk]
    assert why[two.action.pk] == "It takes 2 people: its policy is “Newer”, version 4."
    page = text(riley.get(address(three[0])))
    assert "Taken out 5" in page and "Sam is on it." in page
    # and whatever a form says, they are not decided with the others
    see(riley, three[0], *three)
    for each in (locked, held, grave, newer, two):
        looks.record(each.again(), by=person(cast.riley.pk), digest=each.action.digest)
    done = text(decide(riley, three[0], *three, locked, held, grave, newer, two))
    assert "Three approved, 5 not" in done and "Not decided Sam is on it." in done
    assert Decision.objects.count() == 3


def test_what_is_sent_out_of_a_tainted_run_or_to_the_outside_is_never_decided_with_others(cast, riley):
    inside = [propose_mail(cast, to=["anna@fernhill.example"], name=name) for name in "AB"]
    outside = propose_mail(cast, name="C")
    ProposedAction.objects.update(warnings=[], risk=2)
    found = bulk.batch(inside[0].action, person(cast.riley.pk))
    assert found.items == ()
    assert {item.why for item in found.out} == {"It sends data out of a run that has read private and outside text."}
    assert "Nothing that can be decided together" in text(riley.get(address(outside)))


@pytest.mark.both_databases
def test_one_that_is_overtaken_leaves_the_others_as_they_are(cast, riley, three):
    see(riley, three[0], *three)
    gone = three[1].action
    decisions.decide(gone, reviewer=person(cast.sam.pk), verdict="rejected", digest=gone.digest, reason="Wrong record.")
    ProposedAction.objects.filter(pk=three[2].action.pk).update(expires_at=clock.now() - timedelta(seconds=1))
    done = text(decide(riley, three[0], *three))
    assert "One approved, 2 not" in done and "Sam rejected it before." in done and "Its time to decide is over." in done
    assert Decision.objects.filter(reviewer=cast.riley).count() == 1
    assert list(Grant.objects.values_list("action", flat=True)) == [three[0].action.pk]


def test_where_nothing_is_left_to_decide_the_page_says_none(cast, riley, three):
    see(riley, three[0], *three)
    freezes.freeze(cast.workspace.pk, what="agent", agent_id=cast.agent.pk, by=person(cast.otto.pk), reason="It writes to strangers.")
    done = text(decide(riley, three[0], *three))
    assert "None approved, 3 not" in done and done.count("It writes to strangers.") >= 3 and not Decision.objects.exists()
    for each in three:
        decisions.decide(each.again(), reviewer=person(cast.sam.pk), verdict="rejected", digest=each.action.digest, reason="Not like this.")
    assert "None left of those alike" in text(riley.get(address(three[0])))


def test_an_action_that_changed_after_it_was_opened_is_not_decided(cast, riley, three):
    see(riley, three[0], *three)
    ProposedAction.objects.filter(pk=three[1].action.pk).update(digest="1" * 64)
    done = text(decide(riley, three[0], *three))
    assert "Two approved, 1 not" in done
    assert three[1].again().state == "waiting"
    with pytest.raises(NotAllOpened):
        digests = {three[1].action.pk: "1" * 64}
        bulk.decide(three[0].action, reviewer=person(cast.riley.pk), verdict="approved", digests=digests)


def test_who_rejects_all_gives_one_reason_that_each_agent_gets(riley, three):
    see(riley, three[0], *three)
    empty = decide(riley, three[0], *three, verdict="rejected", reason="")
    assert empty.status_code == 422 and "Write at least one sentence." in text(empty) and Decision.objects.count() == 0
    done = text(decide(riley, three[0], *three, verdict="rejected", reason="Wrong register."))
    assert "Three rejected" in done and {each.again().state for each in three} == {"rejected"}


def test_what_was_taken_out_by_hand_stays_out_and_can_be_put_back(riley, three):
    page = riley.get(address(three[0]), {"out": three[1].action.pk})
    assert "Two alike" in text(page) and "You took it out." in text(page) and "Put it back" in text(page)
    see(riley, three[0], three[0], three[2], out=(three[1],))
    assert "Two approved" in text(decide(riley, three[0], three[0], three[2]))
    assert three[1].again().state == "waiting"


@pytest.mark.parametrize("item", ["", "x", "0" * 64, f"{UUID(int=7)}", f"{UUID(int=7)}:zz", "\0"])
def test_a_form_that_makes_no_sense_decides_nothing(riley, three, item):
    answer = riley.post(address(three[0], "decisions"), {"verdict": "approved", "item": item})
    assert answer.status_code in (409, 422) and Decision.objects.count() == 0


def facts(**more) -> Facts:
    given = {"id": uuid4(), "schema": 1, "policy": LIKE, "policy_words": "“P”, version 1", "needs": 1, "risk": 1, "risk_word": "Low"}
    return Facts(**(given | more))


LIKE = uuid4()


def test_an_amount_far_from_the_others_is_taken_out():
    money = [(Decimal(amount), "EUR") for amount in ("10", "12", "11", "500")] + [(Decimal("11"), "GBP")]
    those = [facts(money=each, money_words=f"{each[0]} {each[1]}") for each in money] + [facts(money_words="1,284")]
    found = alike.why_alone(those, those[0])
    assert set(found) == {those[3].id, those[4].id, those[5].id}
    assert "more than 2 times" in found[those[3].id] and "another currency" in found[those[4].id]


def test_what_is_long_is_cut_at_a_whole_character():
    assert bulk._short(f"{'a' * (bulk.SHORT - 2)}e\u0301 and more") == f"{'a' * (bulk.SHORT - 2)}…"


def test_an_amount_below_zero_that_is_far_from_the_others_is_taken_out():
    those = [facts(money=(Decimal(amount), "EUR"), money_words=amount) for amount in ("-10", "12", "11", "-500")]
    assert set(alike.why_alone(those, those[0])) == {those[3].id}


def test_where_nothing_moves_money_nothing_is_far_from_the_others():
    those = [facts() for _ in range(3)]
    assert alike.why_alone(those, those[0]) == {}


def test_the_page_takes_a_few_queries_for_each_item_and_no_more(cast, riley, django_assert_max_num_queries):
    those = [propose_change(cast, record=f"ACC-{n}") for n in range(6)]
    with django_assert_max_num_queries(30 + 5 * 6):
        riley.get(address(those[0]))
