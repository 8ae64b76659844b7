"""What became of an action whose answer was lost: who may say so, what is refused, and what then stands."""

import html
import re
from dataclasses import replace
from datetime import timedelta

import orjson
import pytest
from django.http import HttpResponse
from django.test import Client

from access.errors import Forbidden
from access.models import Membership, Role, User
from access.rules import ROLES, Actor, person
from approvals import decisions, execution, inbox, policy, presenting
from approvals.errors import BeingLookedUp, NoteNeeded, NotUnknown, NotYours, ReferenceNeeded
from approvals.models import Grant, ProposedAction
from artifacts import vault
from config import clock
from runs import signals, starting
from runs.engine import executor, sweep
from runs.engine.tools import TOOLS
from runs.models import Event, JournalEntry, Run
from tests.approvals.mailing import propose_change, propose_mail
from tests.runs import workflows
from tests.runs.workflows import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


class Unknown:
    """A run whose last answer was lost and whose look-ups tell nothing: it waits for a person."""

    def __init__(self, cast, outside: World) -> None:
        self.cast, self.outside = cast, outside
        policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
        policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
        by = person(cast.otto.pk)  # who starts a run may still say what happened in it
        self.run = starting.start(
            agent=cast.agent,
            owner=cast.agent.owner,
            by=by,
            title="A talk",
            workflow="test-talk",
            arguments={"thing": "tea"},
            scope={"thing": ["tea"]},
        )
        executor.execute(self.run.pk)
        self.action = self.approve()
        outside.drop_answer = outside.blind = True
        self.walk_until_asked()

    def approve(self) -> ProposedAction:
        action = ProposedAction.objects.get(run=self.run, state="waiting")
        decisions.decide(action, reviewer=person(self.cast.riley.pk), verdict="approved", digest=action.digest)
        return action

    def walk_until_asked(self) -> None:
        for _ in range(4):
            Run.objects.filter(pk=self.run.pk, wake_at__isnull=False).update(wake_at=clock.now())
            sweep.sweep()
            self.walk()
        assert self.grant.outcome == "unknown"

    def walk(self) -> str:
        word = executor.execute(self.run.pk)
        self.run.refresh_from_db()
        return word

    @property
    def grant(self) -> Grant:
        return Grant.objects.get(action=self.action)

    def say(self, outcome, who=None, note="It is in the outbox.", reference="42"):
        by = person((who or self.cast.otto).pk)
        return execution.resolve(self.action, by=by, outcome=outcome, note=note, reference=reference)

    def said(self) -> int:
        return Event.objects.filter(run_id=self.run.pk, type="action.resolved").count()

    def log(self, *types: str) -> list[dict]:
        bodies = Event.objects.filter(run_id=self.run.pk, type__in=types).order_by("seq").values_list("body", flat=True)
        return [orjson.loads(body)["data"] for body in bodies]


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def unknown(cast, outside) -> Unknown:
    return Unknown(cast, outside)


# who may say ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["riley", "sam", "morgan", "ada", "priya", "olga"])
def test_only_who_holds_the_right_may_say(cast, unknown, name):
    with pytest.raises(NotYours):
        unknown.say("happened", getattr(cast, name))
    assert unknown.grant.outcome == "unknown" and unknown.said() == 0


def test_who_decided_or_owns_may_not_say_even_with_the_right(cast, unknown):
    for user, part in ((cast.riley, "decided on this action"), (cast.priya, "own the agent")):
        give_the_right(user)
        with pytest.raises(NotYours, match=part):
            unknown.say("happened", user)
    assert unknown.said() == 0
    # Morgan and Sam hold the same roles as those two, and had no part in it
    assert [user.name for user in execution.who_may_resolve(unknown.action)] == ["Morgan", "Otto", "Sam"]


def give_the_right(user: User) -> None:
    """Everybody with the same role has it then."""
    role = Membership.objects.get(user=user).role
    Role.objects.filter(pk=role.pk).update(capabilities=sorted({*ROLES[role.name], "runs.recover"}))


def test_an_agent_may_not_say(cast, unknown):
    by = Actor("agent", str(cast.agent.pk), grants={cast.workspace.pk: frozenset({"runs.recover"})})
    with pytest.raises(Forbidden):
        execution.resolve(unknown.action, by=by, outcome="happened", note="I did it.", reference="1")


# what it takes ----------------------------------------------------------------------------------------------------------------------


def test_what_was_seen_is_needed_and_a_reference_for_what_happened(unknown):
    for outcome in ("happened", "did_not_happen"):
        with pytest.raises(NoteNeeded):
            unknown.say(outcome, note="  ")
    with pytest.raises(ReferenceNeeded):
        unknown.say("happened", reference=" ")
    assert unknown.said() == 0 and unknown.grant.outcome == "unknown"


def test_it_happened_is_recorded_with_its_reference_and_never_done_again(unknown, outside):
    unknown.say("happened")
    assert unknown.walk() == "succeeded"
    assert [what for _, what, _ in outside.done] == ["note", "say"]
    grant = unknown.grant
    assert grant.outcome == "executed" and orjson.loads(vault.open_bytes(grant.receipt)) == {"reference": "42"}
    (done,) = [each for each in unknown.log("effect.done") if each["tool"] == "say"]
    assert (done["key"], done["action"]) == (str(grant.pk), str(unknown.action.pk))


@pytest.mark.both_databases
def test_the_same_said_twice_is_said_once_and_anything_else_is_told_what_stands(cast, unknown):
    first = unknown.say("happened")
    again = unknown.say("happened")
    assert (again.seq, again.again) == (first.seq, True) and unknown.said() == 1
    with pytest.raises(NotUnknown) as refused:
        unknown.say("did_not_happen")
    assert refused.value.detail == "Otto said that it happened."
    assert refused.value.extra["said"] == "happened" and refused.value.extra["seq"] == first.seq
    give_the_right(cast.sam)
    with pytest.raises(NotUnknown):
        unknown.say("happened", cast.sam)


def test_what_is_not_unknown_cannot_be_said(cast, outside):
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    by = person(cast.otto.pk)
    run = starting.start(
        agent=cast.agent,
        owner=cast.agent.owner,
        by=by,
        title="A",
        workflow="test-talk",
        arguments={"thing": "tea"},
        scope={"thing": ["tea"]},
    )
    executor.execute(run.pk)
    action = ProposedAction.objects.get(run=run)
    with pytest.raises(NotUnknown, match="It was never run: it is waiting"):
        execution.resolve(action, by=by, outcome="did_not_happen", note="Nothing there.")


# looking again ----------------------------------------------------------------------------------------------------------------------


def test_each_look_up_is_in_the_log(unknown):
    looks = [each for each in unknown.log("tool.ended") if str(each.get("call", "")).startswith("look-up:")]
    assert [look["outcome"] for look in looks] == ["unknown"] * 3
    assert {look["call"] for look in looks} == {f"look-up:{unknown.grant.pk}"}
    assert unknown.log("action.unknown")[0]["reason"] == "dropped"


def test_looking_again_needs_no_proof_and_finds_what_can_be_found(unknown, outside):
    unknown.say("look_again", note="", reference="")
    assert unknown.walk() == "waiting" and unknown.grant.outcome == "unknown"
    assert len(unknown.log("action.unknown")) == 1
    outside.blind = False
    unknown.say("look_again", note="", reference="")
    assert unknown.walk() == "succeeded"
    assert [what for _, what, _ in outside.done] == ["note", "say"]
    assert unknown.log("action.executed")[-1]["found"] is True


def test_nothing_is_said_while_it_is_being_looked_up(cast, unknown):
    unknown.say("look_again")
    with pytest.raises(BeingLookedUp):
        unknown.say("did_not_happen")
    assert unknown.say("look_again").again
    assert unknown.said() == 1


def never_arrived(unknown: Unknown) -> None:
    """The outside surely does not have it, and is past the time in which it could still come."""
    unknown.outside.blind = False
    unknown.outside.done = [each for each in unknown.outside.done if each[1] != "say"]
    Grant.objects.filter(action=unknown.action).update(redeemed_at=clock.now() - timedelta(minutes=1))


def test_what_a_look_up_surely_does_not_find_is_done_under_the_same_key(unknown, outside):
    never_arrived(unknown)
    unknown.say("look_again")
    assert unknown.walk() == "succeeded"
    assert [key for key, what, _ in outside.done if what == "say"] == [str(unknown.grant.pk)]


def test_after_many_attempts_only_a_person_goes_on(unknown, outside):
    never_arrived(unknown)
    JournalEntry.objects.filter(run=unknown.run, kind="perform", state="started").update(attempts=20)
    unknown.say("look_again")
    assert unknown.walk() == "waiting"
    assert [what for _, what, _ in outside.done] == ["note"]


# while it is being cancelled --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outcome", "then"), [("happened", "executed"), ("did_not_happen", "failed")])
def test_a_cancelled_run_ends_with_what_a_person_says(cast, unknown, outside, outcome, then):
    assert signals.send(unknown.run, kind="cancel", key="1", by=person(cast.otto.pk)).status == "delivered"
    unknown.say(outcome)
    unknown.run.refresh_from_db()
    assert (unknown.run.state, unknown.grant.outcome) == ("cancelled", then)
    assert unknown.log("run.cancelled")[0]["done"] == (2 if outcome == "happened" else 1)


def test_a_cancelled_run_is_looked_up_again_when_asked_and_sends_nothing(cast, unknown, outside):
    signals.send(unknown.run, kind="cancel", key="1", by=person(cast.otto.pk))
    assert unknown.walk() == "cancelling" and unknown.run.wake_at > clock.now()
    outside.blind = False
    unknown.say("look_again")
    unknown.run.refresh_from_db()
    assert unknown.run.wake_at <= clock.now()
    unknown.walk()
    assert unknown.run.state == "cancelled" and unknown.grant.outcome == "executed"
    assert [what for _, what, _ in outside.done] == ["note", "say"]


# the page ---------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def otto(cast, client) -> Client:
    client.force_login(cast.otto)
    return client


def url(unknown: Unknown, *more: str) -> str:
    return "/".join(["/actions", str(unknown.action.pk), *(more or ["outcome"])])


def text(response: HttpResponse) -> str:
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split()))


def test_where_else_to_look_is_a_link_and_names_no_key_that_the_outside_does_not_know(unknown, otto, monkeypatch):
    assert "Open its log" not in text(otto.get(url(unknown)))
    for address, there in (("https://desk.example/log?x=1&y=2", True), ("javascript:alert(1)", False), ("", False), (None, False)):
        monkeypatch.setitem(TOOLS, "say", replace(TOOLS["say"], where=lambda address=address: address))
        page = otto.get(url(unknown)).content.decode()
        assert (f'href="{html.escape(address or "none")}"' in page) == ("Open its log" in page) == there
    monkeypatch.setitem(TOOLS, "say", replace(TOOLS["say"], where=lambda: {}["address"]))
    page = otto.get(url(unknown))
    assert page.status_code == 200 and "Open its log" not in text(page), "its code failed, and the page is needed all the same"
    ProposedAction.objects.filter(pk=unknown.action.pk).update(card="email")
    nonce = "Search for the nonce in its Message-ID. Nonce "
    shown = text(otto.get(url(unknown)))
    assert nonce in shown and str(unknown.grant.pk)[:8] not in shown, "a mail server knows a message by its own id"
    monkeypatch.setitem(TOOLS, "say", replace(TOOLS["say"], honours_key=True))
    shown = text(otto.get(url(unknown)))
    assert nonce not in shown and f"Search for its key or its nonce. Key {str(unknown.grant.pk)[:8]}" in shown


def test_the_page_tells_what_was_tried_and_what_each_look_up_gave(unknown, otto):
    page = otto.get(url(unknown))
    shown, key = text(page), str(unknown.grant.pk)
    assert f'data-copy="{key}"' in page.content.decode(), "the whole key is one press away"
    for words in (
        "Say it: did it happen?",
        "Handrail asked for this and never heard back.",
        "Riley approved exactly this",
        "Request left for the outside",
        "Nothing tells whether it arrived. A second one is blocked.",
        "You Riley, who approved it Priya, who owns the run The agent",
        f"Search for its key. Key {key[:8]}…{key[-4:]}",
    ):
        assert words in shown, words
    assert shown.count("No answer Proves nothing either way. blind") == 1 and "3 times, to" in shown
    assert "Record this" in shown and "Look again now" in shown


def test_a_get_changes_nothing_whatever_it_carries(unknown, otto):
    before = Event.objects.filter(run_id=unknown.run.pk).count()
    for _ in range(2):
        assert otto.get(url(unknown), {"outcome": "happened", "note": "It did.", "reference": "1"}).status_code == 200
    assert otto.head(url(unknown)).status_code == 200
    assert Event.objects.filter(run_id=unknown.run.pk).count() == before and unknown.grant.outcome == "unknown"


@pytest.mark.parametrize(
    ("sent", "status", "told"),
    [
        (
            {"outcome": "happened", "note": " ", "reference": "RE-1"},
            422,
            "Say what you saw, in at least one sentence. Nothing was recorded.",
        ),
        ({"outcome": "happened", "note": "I saw <b>it</b>.", "reference": ""}, 422, "Name the reference under which it happened."),
        ({"outcome": "did_not_happen", "note": "", "reference": "RE-1"}, 422, "Say what you saw"),
        ({"outcome": "no idea", "note": "I saw <b>it</b>."}, 422, "Choose what happened. Nothing was recorded."),
        ({"outcome": "happened", "note": "x" * 4001, "reference": "RE-1"}, 422, "The note is too long."),
    ],
)
def test_what_is_missing_is_said_beside_the_field_and_what_was_typed_stays(unknown, otto, sent, status, told):
    response = otto.post(url(unknown), sent)
    assert response.status_code == status and told in text(response)
    page = response.content.decode()
    assert html.escape(sent["note"]) in page and html.escape(sent.get("reference", "")) in page and "<b>it</b>" not in page
    assert unknown.said() == 0


def test_who_may_not_say_reads_the_page_and_is_told_why_in_place(cast, unknown, client):
    client.force_login(cast.riley)
    page = client.get(url(unknown))
    assert "Record this" not in text(page) and "This needs the right “Say what happened" in text(page)
    refused = client.post(url(unknown), {"outcome": "happened", "note": "I know it did.", "reference": "RE-1"})
    assert refused.status_code == 403 and "What was tried" in text(refused)
    assert "I know it did." in text(refused) and unknown.said() == 0


def test_who_comes_too_late_is_told_what_stands(cast, unknown, otto):
    unknown.say("happened")
    give_the_right(cast.sam)
    sam = Client()
    sam.force_login(cast.sam)
    late = sam.post(url(unknown), {"outcome": "did_not_happen", "note": "Nothing there."})
    assert late.status_code == 409 and "Otto said that it happened." in text(late) and "Nothing there." in text(late)
    assert "Record this" not in text(late)


@pytest.mark.both_databases
def test_the_same_form_twice_records_once_and_shows_what_stands(unknown, otto):
    sent = {"outcome": "happened", "note": "It is in the outbox.", "reference": "RE-7 <i>"}
    for _ in range(2):
        response = otto.post(url(unknown), sent)
        assert (response.status_code, response["Location"]) == (303, url(unknown))
    assert unknown.said() == 1
    shown = text(otto.get(url(unknown)))
    assert "Otto said that it happened" in shown and "Reference RE-7 <i>" in shown and "Record this" not in shown


def test_htmx_is_answered_with_the_two_columns_in_place(unknown, otto):
    response = otto.post(url(unknown), {"outcome": "look_again"}, headers={"HX-Request": "true"})
    page = response.content.decode()
    assert response.status_code == 200 and page.lstrip().startswith('<div class="doc__main" id="unknown"')
    assert 'id="unknown-aside" aria-label="Rules" hx-swap-oob="morph"' in page and "<html" not in page
    assert "It is being looked up now" in text(response) and "Asking" in text(response)
    early = otto.post(url(unknown), {"outcome": "did_not_happen", "note": "Nothing there."}, headers={"HX-Request": "true"})
    assert early.status_code == 409 and "This is being looked up right now." in text(early) and "Nothing there." in text(early)


def test_a_push_is_what_the_page_is(cast, unknown, otto):
    before = Event.objects.filter(run_id=unknown.run.pk).count()
    unknown.say("look_again")
    unknown.walk()
    pushed, seq = presenting.push_outcome(person(cast.otto.pk), unknown.action.pk, before)
    assert seq > before and presenting.push_outcome(person(cast.otto.pk), unknown.action.pk, seq) == ("", seq)
    page = without_token(otto.get(url(unknown)).content.decode())
    for part in re.split(r' hx-swap-oob="morph"', pushed)[1:]:
        assert squeezed(part[: part.rindex("<")]) in squeezed(page)


def without_token(page: str) -> str:
    return re.sub(r'<input type="hidden" name="csrfmiddlewaretoken"[^>]*>', "", page)


def squeezed(page: str) -> str:
    return "".join(page.split())


def test_what_was_never_unknown_has_a_page_of_its_own_and_takes_no_word(cast, otto):
    proposed = propose_mail(cast)
    assert otto.get(proposed.url("outcome"))["Location"] == proposed.url()
    late = otto.post(proposed.url("outcome"), {"outcome": "did_not_happen", "note": "Nothing there."})
    assert late.status_code == 409 and "It was never run: it is waiting." in text(late)


def test_an_operator_finds_it_in_the_inbox_on_the_run_and_on_the_action(cast, unknown, otto, client):
    propose_change(cast)  # which he may not decide: it is not counted, and does not open by itself
    assert inbox.waiting_count(person(cast.otto.pk)) == inbox.queue(person(cast.otto.pk)).waiting == 1
    page = otto.get("/inbox").content.decode()
    assert f'<a class="btn small" href="{url(unknown)}">Say what happened</a>' in page and "data-asks" in page
    assert f'href="{url(unknown)}"' in otto.get("/inbox").content.decode()
    assert f'href="{url(unknown)}"' in otto.get(url(unknown, "")[:-1]).content.decode()
    run = otto.get(f"/runs/{unknown.run.pk}").content.decode()
    assert f'href="{url(unknown)}" data-key="Enter">Say what happened' in run and "can say what happened." not in run
    client.force_login(cast.riley)
    assert inbox.waiting_count(person(cast.riley.pk)) == 1  # the change
    assert f'href="{url(unknown)}"' not in client.get("/inbox").content.decode()
    run = client.get(f"/runs/{unknown.run.pk}").content.decode()
    assert "Read what was tried" in run and "Otto can say what happened." in run


def test_the_api_takes_a_persons_word_and_answers_a_repeat_with_the_first(unknown, otto, cast):
    address = f"/api/v1/actions/{unknown.action.pk}/resolution"
    sent = {"outcome": "happened", "note": "It is in the outbox.", "reference": "RE-7"}
    first, again = (otto.post(address, sent, content_type="application/json") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["resolution"]["seq"] == again.json()["resolution"]["seq"] and again.json()["resolution"]["again"]
    assert first.json()["action"]["grant"]["outcome"] == "executed"
    other = otto.post(address, sent | {"outcome": "did_not_happen"}, content_type="application/json")
    assert other.status_code == 409 and other.json()["said"] == "happened" and other.json()["by"] == "Otto"
