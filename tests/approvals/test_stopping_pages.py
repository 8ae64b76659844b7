"""Freezing, recalling and withdrawing, as people see it and as a program does it: in place, with what stands and why."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from access import keys
from access.models import AuditEntry
from access.rules import SYSTEM, person
from approvals import decisions, policy, presenting
from approvals.models import Decision, Freeze, Grant, ProposedAction
from artifacts import vault
from config import clock
from runs import log
from runs.models import Event
from tests.approvals.mailing import propose_mail, sent, text
from tests.approvals.test_freezing import WHY, approve, frozen

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
HTMX = {"HX-Request": "true", "HX-Target": "panel"}
RECALLED = {"reason": "The amount is wrong."}


def as_(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def call(client: Client, address: str, **body: Any):
    return client.post(f"/api/v1/{address}", body, content_type="application/json")


@pytest.fixture
def agent(cast) -> Client:
    return Client(headers={"Authorization": f"Bearer {keys.make(cast.agent, name='test', by=SYSTEM)[1]}"})


@pytest.fixture
def held(cast):
    sent.clear()
    policy.set_rule(cast.workspace.pk, "send_mail", name="E-mail", outcome="reviewers", by=None, recall_delay=timedelta(minutes=1))
    proposed = propose_mail(cast)
    approve(cast, proposed)
    return proposed


def test_an_operator_freezes_and_an_admin_lifts_and_everybody_sees_who_and_why(cast, proposed):
    otto = as_(cast.otto)
    assert "Nothing is frozen." in text(otto.get("/freezes"))
    done = otto.post("/freezes", {"target": "tool:send_mail", "reason": WHY, "lasts": "60"}, follow=True)
    assert "Frozen: “Send the reply”. Nothing of it is granted or run." in text(done)
    stands = Freeze.objects.get()
    assert timedelta(minutes=59) < stands.until - clock.now() < timedelta(minutes=62)
    page = text(as_(cast.riley).get(proposed.url()))
    assert "Frozen: “Send the reply” , by Otto since" in page and "Frozen by Otto since" in page and f"“{WHY}”" in page
    assert "Frozen by you" in text(otto.get("/freezes"))
    assert "Unfreeze" not in text(as_(cast.riley).get("/freezes")) and "Ada or Otto can freeze" in text(as_(cast.riley).get("/freezes"))
    ada = as_(cast.ada)
    assert "It is still frozen. The reason has 0 characters" in text(ada.post(f"/freezes/{stands.pk}/lifting", {"reason": ""}))
    after = text(ada.post(f"/freezes/{stands.pk}/lifting", {"reason": "It was a test."}, follow=True))
    assert "Unfrozen: “Send the reply”." in after and "Nothing is frozen." in after and "Lifted by Ada" in after
    assert "Frozen by" not in text(as_(cast.riley).get(proposed.url()))


def test_what_was_typed_stays_when_freezing_is_refused(cast):
    answer = as_(cast.ada).post("/freezes", {"target": "tool:made_up", "reason": WHY})
    assert answer.status_code == 422 and WHY in answer.content.decode() and "Nothing was frozen." in text(answer)
    assert not Freeze.objects.exists()


def test_approving_what_is_frozen_is_refused_in_place_and_nothing_is_recorded(cast, riley, proposed):
    frozen(cast)
    answer = riley.post(proposed.url("decision"), {"verdict": "approved", "digest": proposed.action.digest}, headers=HTMX)
    assert answer.status_code == 409
    assert "Your approval was not recorded. Frozen by Ada since" in text(answer) and "Nothing was approved" in text(answer)
    problem = call(riley, f"actions/{proposed.action.pk}/decisions", verdict="approved", digest=proposed.action.digest)
    assert problem.status_code == 409 and problem.json()["type"] == "urn:handrail:problem:frozen"
    assert problem.json()["frozen"]["by"]["name"] == "Ada" and problem.json()["frozen"]["reason"] == WHY
    assert not Decision.objects.exists()
    assert riley.get(f"/api/v1/actions/{proposed.action.pk}").json()["frozen"]["what"] == "tool"


def test_what_is_frozen_is_not_offered_for_approval_and_can_still_be_rejected(cast, riley, proposed):
    off = "Approve is off while this is frozen."
    page = riley.get(proposed.url()).content.decode()
    assert f"data-while-frozen hidden>{off}" in page and 'aria-disabled="true"' not in page
    frozen(cast)
    for address in (proposed.url(), f"{proposed.url()}?do=approve"):
        page = riley.get(address).content.decode()
        assert f"data-while-frozen>{off}" in page and 'value="approve" data-key="a" aria-disabled="true"' in page
        assert "Approve and send" not in page
    assert "What should change?" in riley.get(f"{proposed.url()}?do=reject").content.decode()


def test_a_freeze_is_pushed_to_whoever_looks_and_its_bytes_are_those_of_the_page(cast, riley, proposed):
    reader = person(cast.riley.pk)
    before = presenting.push_inbox(reader, proposed.action.pk)
    frozen(cast)
    push = presenting.push_inbox(reader, proposed.action.pk, last_key=before.key)
    assert push.frozen != before.frozen and "data-frozen" in push.html
    page = riley.get(proposed.url()).content.decode()
    strip = push.html[push.html.index('<aside hx-swap-oob="morph" id="frozen-now"') :]
    strip = strip[: strip.index("</aside>")].replace(' hx-swap-oob="morph"', "", 1)
    assert strip in page
    assert strip in presenting.frozen_now(reader).replace(' hx-swap-oob="morph"', "", 1)


def test_the_card_counts_down_the_time_to_recall_and_recalls_in_place(cast, riley, held):
    page = riley.get(held.url())
    assert "Can be recalled" in text(page) and "It is not sent before the time to recall it is over." in text(page)
    told = riley.get(f"/api/v1/actions/{held.action.pk}").json()
    assert told["recall_until"] and [each["stage"] for each in told["delivery"]] == ["decided", "granted"]
    empty = riley.post(held.url("recall"), {"reason": ""}, headers=HTMX)
    assert empty.status_code == 422 and "it needs 3 to 4000" in text(empty) and held.again().state == "approved"
    done = riley.post(held.url("recall"), RECALLED, headers=HTMX)
    assert done.status_code == 200 and "You recalled the approval." in text(done) and "“The amount is wrong.”" in text(done)
    assert held.again().state == "recalled" and "Riley recalled the approval." in text(as_(cast.sam).get(held.url()))
    late = riley.post(held.url("recall"), RECALLED, headers=HTMX)
    assert late.status_code == 200, "a double click is answered with the first"
    assert "Recalled" in text(riley.get("/inbox"))


def test_who_comes_too_late_to_recall_is_told_what_stands(cast, riley, held):
    Grant.objects.update(held_until=clock.now() - timedelta(seconds=1))
    late = riley.post(held.url("recall"), RECALLED, headers=HTMX)
    assert late.status_code == 409 and "The time to recall it is over." in text(late)
    assert call(riley, f"actions/{held.action.pk}/recall", **RECALLED).json()["type"] == "urn:handrail:problem:too-late-to-recall"


def test_the_agent_withdraws_and_the_card_swaps_in_place(cast, riley, agent, proposed):
    reader = person(cast.riley.pk)
    before = presenting.push_inbox(reader, proposed.action.pk)
    first = call(agent, f"actions/{proposed.action.pk}/withdrawal", reason="The ticket was closed.")
    again = call(agent, f"actions/{proposed.action.pk}/withdrawal", reason="The ticket was closed.")
    assert (first.status_code, again.status_code) == (201, 200) and first.json()["action"]["state"] == "withdrawn"
    push = presenting.push_inbox(reader, proposed.action.pk, last_key=before.key)
    assert (
        "The agent withdrew this, so nothing was sent." in push.html and "The ticket was closed." in push.html and "data-over" in push.html
    )
    late = call(riley, f"actions/{proposed.action.pk}/decisions", verdict="approved", digest=proposed.action.digest)
    assert late.status_code == 409 and late.json()["state"] == "withdrawn"
    assert call(riley, f"actions/{proposed.action.pk}/withdrawal", reason="x y z").json()["type"] == "urn:handrail:problem:agents-withdraw"


@pytest.mark.parametrize("note", ["", "Write to Marta alone."])
def test_what_a_person_had_planned_anew_is_not_called_withdrawn_by_the_agent(cast, riley, proposed, note):
    by = person(cast.otto.pk)
    with log.holding(proposed.action.run_id) as held:
        kept = vault.keep(cast.workspace.pk, note.encode(), label="personal") if note else None
        assert decisions.withdraw_waiting(held, by=by, note=kept) == 1
    page = text(riley.get(proposed.url()))
    assert "Otto asked for another plan, so this was withdrawn. Nothing was sent." in page and (not note or f"“{note}”" in page)
    assert "The agent withdrew" not in page and "Somebody asked" not in page
    assert "You asked for another plan" in text(as_(cast.otto).get(proposed.url()))


def test_a_program_freezes_lifts_and_reads_what_is_frozen(cast, agent, proposed):
    ada = as_(cast.ada)
    until = (clock.now() + timedelta(hours=1)).isoformat()
    body = {"what": "agent", "agent": str(cast.agent.pk), "reason": WHY, "until": until}
    first, again = call(ada, "freezes", **body), call(ada, "freezes", **body)
    assert (first.status_code, again.status_code) == (201, 200)
    pk = first.json()["freeze"]["id"]
    assert [each["id"] for each in as_(cast.riley).get("/api/v1/freezes").json()["standing"]] == [pk]
    for client, status in ((as_(cast.riley), 403), (agent, 403), (as_(cast.olga), 404)):
        assert call(client, f"freezes/{pk}/lifting", reason="Let go.").status_code == status
    assert call(ada, f"freezes/{pk}/lifting", reason="Let go.").status_code == 201
    told = as_(cast.riley).get("/api/v1/freezes").json()
    assert told["standing"] == [] and told["past"][0]["lifted_why"] == "Let go."


def test_the_page_of_freezes_takes_the_same_queries_however_many_there_are(cast, proposed, django_assert_max_num_queries):
    for _ in range(3):
        frozen(cast, until=clock.now() + timedelta(hours=_ + 1))
    frozen(cast, "agent")
    otto = as_(cast.otto)
    with django_assert_max_num_queries(16):
        otto.get("/freezes")


def test_delivery_is_told_with_its_times_to_the_end(cast, riley, proposed):
    approve(cast, proposed)
    assert proposed.walk() == "succeeded"
    told = riley.get(f"/api/v1/actions/{proposed.action.pk}").json()
    assert [each["stage"] for each in told["delivery"]] == ["decided", "granted", "delivered", "redeemed", "executed", "verified"]
    at = [each["at"] for each in told["delivery"]]
    assert at == sorted(at)


def test_an_approval_that_nobody_used_in_time_is_told_as_lapsed(cast, riley, proposed):
    approve(cast, proposed)
    Grant.objects.update(expires_at=clock.now() - timedelta(seconds=1))
    told = riley.get(f"/api/v1/actions/{proposed.action.pk}").json()
    assert told["delivery"][-1]["stage"] == "lapsed"
    assert "nobody came for it" in text(riley.get(proposed.url()))


def test_what_would_run_and_is_not_what_was_approved_raises_a_block_and_an_alarm(cast, riley, proposed, caplog):
    approve(cast, proposed)
    other = propose_mail(cast, subject="Something else")
    ProposedAction.objects.filter(pk=proposed.action.pk).update(canonical=other.action.canonical)
    assert proposed.walk() == "parked" and sent == []
    block = Event.objects.get(run_id=proposed.run.pk, type="block.raised")
    assert "digest_mismatch" in block.body
    assert AuditEntry.objects.get(verb="digest_mismatch").subject_id == str(proposed.action.pk)
    assert any(record.levelname == "CRITICAL" for record in caplog.records)
    assert "Stopped: what would run is not what was approved" in text(riley.get(proposed.url()))
