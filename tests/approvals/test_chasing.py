"""When nobody answers: a reminder, a chain of people, and who decides in whose stead."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from access.errors import Forbidden
from access.models import AuditEntry, Membership
from access.rules import person
from approvals import decisions
from approvals.errors import SelfApproval
from approvals.models import Grant
from approvals.notifications import chasing, delegation
from approvals.notifications.delegation import AlreadyAway, DelegationRefused
from approvals.notifications.models import Delegation, Escalation, EscalationStep, Notice
from config import clock
from runs import log
from runs.models import Event
from tests.approvals.mailing import Proposed, propose_mail, rules, text
from tests.approvals.noticing import Clock, Mailbox, mail_server, tick
from tests.together import together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
DAY = timedelta(days=1)


@pytest.fixture
def time_(monkeypatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def mailbox(settings) -> Iterator[Mailbox]:
    with mail_server(settings) as box:
        yield box


def decide(proposed: Proposed, who, verdict: str = "approved"):
    digest = proposed.action.digest
    return decisions.decide(proposed.action, reviewer=person(who.pk), verdict=verdict, digest=digest, reason="Not so.")


def types(proposed: Proposed) -> list[str]:
    return list(Event.objects.filter(run=proposed.run).order_by("seq").values_list("type", flat=True))


def away(cast, giver, to, *, days: float = 5) -> Delegation:
    now = datetime.now(UTC)
    return delegation.delegate(cast.workspace.pk, by=person(giver.pk), to=to.pk, starts_at=now - DAY, ends_at=now + days * DAY)


# reminders and escalation -----------------------------------------------------------------------------------------------------------


def test_what_runs_out_soon_is_told_once_to_who_claimed_it_and_not_once_decided(cast, proposed, time_, mailbox):
    other = propose_mail(cast, title="Ticket ZN-2")
    decisions.claim(proposed.action, by=person(cast.riley.pk))
    chasing.remind_due()
    assert not Notice.objects.filter(kind="soon").exists(), "four hours are left"
    time_.on(hours=3, minutes=31)
    decisions.claim(proposed.action, by=person(cast.riley.pk))
    decide(other, cast.sam, "rejected")
    together([chasing.remind_due] * 3)
    assert [notice.action_id for notice in Notice.objects.filter(kind="soon")] == [proposed.action.pk]
    Notice.objects.filter(kind="waits").delete()
    tick()
    time_.on(seconds=6)
    tick()
    assert [(mail["To"], mail["Subject"]) for mail in mailbox.mails] == [("riley@fernhill.example", "Send the reply: runs out soon")]


def test_to_whom_it_is_their_own_cannot_claim_it_and_so_keep_it_from_going_on(cast, proposed):
    type(cast.agent).objects.filter(pk=cast.agent.pk).update(owner=cast.sam)
    with pytest.raises(SelfApproval, match="own the agent"):
        decisions.claim(proposed.again(), by=person(cast.sam.pk))
    assert proposed.again().claimed_by is None


def test_what_nobody_decides_goes_on_to_who_the_chain_names_once(cast, proposed, time_, mailbox):
    ada = person(cast.ada.pk)
    chasing.add_step(cast.workspace.pk, after=timedelta(hours=1), to=cast.sam.pk, by=ada)
    assert chasing.escalate_due() == 0
    time_.on(hours=1, minutes=1)
    decisions.claim(proposed.action, by=person(cast.riley.pk))
    assert chasing.escalate_due() == 0, "somebody is on it"
    time_.on(minutes=16)
    assert sorted(together([chasing.escalate_due] * 3)) == [0, 0, 1]
    assert types(proposed).count("action.escalated") == 1
    browser = Client()
    browser.force_login(cast.riley)
    assert "Nobody answered, so it went to Sam." in text(browser.get(f"/actions/{proposed.action.pk}"))
    assert "Nobody answered, so it went to Sam" in text(browser.get(f"/runs/{proposed.run.pk}"))
    Notice.objects.filter(kind="waits").delete()
    tick()
    time_.on(seconds=6)
    tick()
    assert [(mail["To"], mail["Subject"]) for mail in mailbox.mails] == [("sam@fernhill.example", "Send the reply: came to you")]


@pytest.mark.both_databases
def test_escalating_races_deciding_and_neither_is_lost(cast, proposed, time_):
    chasing.add_step(cast.workspace.pk, after=timedelta(hours=1), to=cast.sam.pk, by=person(cast.ada.pk))
    time_.on(hours=2)
    said = together([lambda: decide(proposed, cast.riley), chasing.escalate_due, chasing.escalate_due])
    assert proposed.again().state == "approved", said
    kinds = types(proposed)
    assert kinds.count("action.escalated") <= 1 and kinds.count("action.decided") == 1
    if "action.escalated" in kinds:
        assert kinds.index("action.escalated") < kinds.index("action.decided")


def test_what_was_claimed_since_it_was_looked_for_is_not_sent_on(cast, proposed, time_, monkeypatch):
    chasing.add_step(cast.workspace.pk, after=timedelta(hours=1), to=cast.sam.pk, by=person(cast.ada.pk))
    time_.on(hours=2)
    locked = decisions.locked

    def claimed_first(pk):
        decisions.claim(proposed.again(), by=person(cast.riley.pk))
        return locked(pk)

    monkeypatch.setattr(decisions, "locked", claimed_first)
    assert chasing.escalate_due() == 0 and "action.escalated" not in types(proposed)


def test_it_never_goes_to_somebody_who_may_not_decide(cast, proposed, time_):
    ada = person(cast.ada.pk)
    for user in (cast.priya, cast.olga):
        with pytest.raises(chasing.OddChain):
            chasing.add_step(cast.workspace.pk, after=timedelta(hours=1), to=user.pk, by=ada)
    chasing.add_step(cast.workspace.pk, after=timedelta(hours=1), to=cast.sam.pk, by=ada)
    Membership.objects.filter(user=cast.sam).update(deactivated_at=datetime.now(UTC))
    time_.on(hours=2)
    assert chasing.escalate_due() == 0 and "action.escalated" not in types(proposed)


def test_what_goes_to_somebody_who_is_away_goes_on_to_who_decides_for_them(cast, proposed, time_):
    chasing.add_step(cast.workspace.pk, after=timedelta(hours=1), to=cast.riley.pk, by=person(cast.ada.pk))
    away(cast, cast.riley, cast.sam)
    time_.on(hours=1, minutes=1)
    assert chasing.escalate_due() == 1
    assert types(proposed)[-2:] == ["action.escalated", "action.delegated"]
    assert Escalation.objects.get().via.to == cast.sam
    assert set(Notice.objects.filter(action=proposed.action).values_list("kind", "to__name")) >= {
        ("escalated", "Riley"),
        ("delegated", "Sam"),
    }
    browser = Client()
    browser.force_login(cast.sam)
    assert "Nobody answered, so it went to Riley, and on to you." in text(browser.get(f"/actions/{proposed.action.pk}"))


def test_an_admin_sets_the_chain_and_nobody_else_sees_how(cast, client):
    client.force_login(cast.ada)
    chain = "/notifications/nobody-answers"
    assert client.post(chain, {"do": "step", "minutes": "60", "to": str(cast.sam.pk)}).status_code == 303
    assert client.post(chain, {"do": "remind", "minutes": "15"}).status_code == 303
    shown = text(client.get(chain))
    assert "After 1 h, to Sam" in shown and "15 min before the end, remind" in shown
    for wrong in (
        {"do": "step", "minutes": "0", "to": str(cast.sam.pk)},
        {"do": "step", "minutes": "5", "to": "x"},
        {"do": "remind", "minutes": "-1"},
    ):
        answer = client.post(chain, wrong)
        assert answer.status_code == 422 and "Nothing was saved" in text(answer)
    (step,) = chasing.steps(cast.workspace.pk)
    assert client.post(f"{chain}/{step.pk}/remove").status_code == 303 and chasing.steps(cast.workspace.pk) == []
    verbs = AuditEntry.objects.filter(actor_id=str(cast.ada.pk)).values_list("verb", flat=True)
    assert {"escalation_set", "reminder_set", "escalation_removed"} <= set(verbs)


# delegation -------------------------------------------------------------------------------------------------------------------------


def test_a_delegate_is_told_instead_and_the_card_says_for_whom(cast, proposed, time_, mailbox):
    given = away(cast, cast.riley, cast.sam)
    tick()
    time_.on(seconds=6)
    tick()
    assert {mail["To"] for mail in mailbox.mails} == {"sam@fernhill.example"}
    browser = Client()
    browser.force_login(cast.riley)
    last = given.ends_at - timedelta(seconds=1)
    assert f"Sam, for you, until {last.day} {last:%b}." in text(browser.get(f"/actions/{proposed.action.pk}"))
    browser.force_login(cast.morgan)
    assert f"Sam, for Riley, until {last.day} {last:%b}." in text(browser.get(f"/actions/{proposed.action.pk}"))
    assert delegation.end(given, by=person(cast.riley.pk)) and not delegation.end(given, by=person(cast.riley.pk))
    assert "for Riley" not in text(browser.get(f"/actions/{proposed.action.pk}"))
    verbs = AuditEntry.objects.filter(subject_id=str(given.pk)).values_list("verb", flat=True)
    assert sorted(verbs) == ["delegated", "delegation_ended"]


def test_two_who_name_each_other_are_both_told(cast, proposed, time_, mailbox):
    away(cast, cast.riley, cast.sam)
    away(cast, cast.sam, cast.riley)
    tick()
    time_.on(seconds=6)
    tick()
    assert len(mailbox.mails) == 2


def test_a_delegate_is_one_person_where_two_are_needed(cast, time_):
    rules(cast.workspace.pk, quorum=2)
    proposed = propose_mail(cast)
    away(cast, cast.riley, cast.sam)
    assert decide(proposed, cast.sam).action.state == "waiting"
    assert decide(proposed, cast.sam).again and not Grant.objects.exists()
    assert decide(proposed, cast.riley).action.state == "approved", "who is away may still decide"


def test_a_delegation_never_lets_anybody_decide_on_their_own(cast, time_):
    role = Membership.objects.get(user=cast.riley).role
    Membership.objects.filter(user=cast.priya).update(role=role)  # she owns the agent and its runs
    proposed = propose_mail(cast)
    away(cast, cast.riley, cast.priya)
    with pytest.raises(SelfApproval):
        decide(proposed, cast.priya)
    browser = Client()
    browser.force_login(cast.sam)
    assert "for Riley" not in text(browser.get(f"/actions/{proposed.action.pk}")), "she may not decide on this one"


def test_nothing_goes_on_to_who_may_not_decide_on_it_by_then(cast, proposed):
    step = EscalationStep(workspace=cast.workspace, to=cast.priya, after=timedelta(hours=1))  # it is her agent's
    with log.holding(proposed.run.pk) as held:
        assert not chasing._escalate(held, proposed.action, step)
    assert not Escalation.objects.exists() and types(proposed).count("action.escalated") == 0


def test_only_who_is_away_takes_it_back_and_no_odd_days_are_taken(cast):
    given = away(cast, cast.riley, cast.sam)
    with pytest.raises(DelegationRefused, match="Only who is away"):
        delegation.end(given, by=person(cast.sam.pk))
    assert Delegation.objects.get(pk=given.pk).ended_at is None
    now = clock.now()
    for begin, end, why in ((1, 1, "before it starts"), (-9, -2, "are over"), (1, 400, "A year at most")):
        days = {"starts_at": now + timedelta(days=begin), "ends_at": now + timedelta(days=end)}
        with pytest.raises(DelegationRefused, match=why):
            delegation.delegate(cast.workspace.pk, by=person(cast.riley.pk), to=cast.sam.pk, **days)


@pytest.mark.parametrize("who", ["morgan", "olga", "riley"])
def test_only_another_who_may_decide_can_be_named(cast, who):
    with pytest.raises(DelegationRefused):
        away(cast, cast.riley, getattr(cast, who))
    with pytest.raises(Forbidden):
        away(cast, cast.morgan, cast.riley)


@pytest.mark.both_databases
def test_one_at_a_time_decides_for_somebody(cast):
    away(cast, cast.riley, cast.sam)
    now = datetime.now(UTC)
    with pytest.raises(AlreadyAway):
        delegation.delegate(cast.workspace.pk, by=person(cast.riley.pk), to=cast.sam.pk, starts_at=now, ends_at=now + 2 * DAY)
    later = {"starts_at": now + 9 * DAY, "ends_at": now + 10 * DAY}
    calls = [lambda: delegation.delegate(cast.workspace.pk, by=person(cast.riley.pk), to=cast.sam.pk, **later)] * 4
    assert len({made.pk for made in together(calls)}) == 1, "the same again is the same"


def test_a_delegate_who_lost_the_right_stands_for_nobody(cast, proposed):
    away(cast, cast.riley, cast.sam)
    Membership.objects.filter(user=cast.sam).update(deactivated_at=datetime.now(UTC))
    assert delegation.in_force(cast.workspace.pk) == []


def test_somebody_names_a_delegate_on_the_page_and_ends_it(cast, client):
    client.force_login(cast.riley)
    day = datetime.now(UTC).date()
    form = {"from": day.isoformat(), "until": (day + 4 * DAY).isoformat(), "to": str(cast.sam.pk)}
    for wrong in ({"until": (day - 3 * DAY).isoformat()}, {"to": ""}, {"from": "soon"}, {"until": "9999-12-31"}):
        answer = client.post("/notifications/delegations", form | wrong)
        assert answer.status_code == 422 and "Nothing was changed" in text(answer)
    assert client.post("/notifications/delegations", form).status_code == 303
    (given,) = Delegation.objects.all()
    assert (given.ends_at - given.starts_at) == 5 * DAY
    assert "Sam decides for you" in text(client.get("/notifications"))
    sams = Client()
    sams.force_login(cast.sam)
    assert "You decide for Riley" in text(sams.get("/notifications"))
    assert sams.post(f"/notifications/delegations/{given.pk}/end").status_code == 403
    assert client.post(f"/notifications/delegations/{given.pk}/end").status_code == 303
    given.refresh_from_db()
    assert given.ended_at is not None
