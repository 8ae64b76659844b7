"""Deciding in the browser, as requests: two steps, one decision, every refusal in place, and nothing decided by looking."""

import re
from datetime import timedelta

import pytest

from access.rules import person
from approvals import decisions
from approvals.models import Decision, ProposedAction
from config import clock
from runs.models import Run
from tests.approvals.mailing import propose_mail, rules, sent, text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
HTMX = {"HX-Request": "true", "HX-Target": "panel"}


def post(client, proposed, verdict="approved", headers=None, **more):
    given = {"verdict": verdict, "digest": proposed.action.digest} | more
    return client.post(proposed.url("decision"), given, headers=headers)


def test_approving_is_two_steps_and_the_first_decides_nothing(riley, proposed):
    page = riley.get(proposed.url())
    assert 'name="do" value="approve"' in page.content.decode()
    assert 'name="verdict"' not in page.content.decode()
    armed = riley.get(proposed.url(), {"do": "approve"})
    assert "Approve and send" in text(armed) and "and send 1 e-mail to 2 recipients?" in text(armed)
    assert proposed.again().state == "waiting"
    assert Decision.objects.count() == 0
    done = post(riley, proposed)
    assert (done.status_code, done["Location"]) == (303, proposed.url())
    assert proposed.again().state == "approved"
    assert "You approved exactly this." in text(riley.get(proposed.url()))


@pytest.mark.parametrize("method", ["get", "head"])
@pytest.mark.parametrize("path", ["", "?do=approve", "?do=reject", "?verdict=approved", "/decision", "/claim", "/release"])
def test_looking_never_decides(riley, proposed, method, path):
    query = f"?verdict=approved&digest={proposed.action.digest}" if path == "/decision" else ""
    getattr(riley, method)(proposed.url() + path + query)
    action = proposed.again()
    assert (action.state, action.claimed_by) == ("waiting", None)
    assert Decision.objects.count() == 0


def test_the_panel_comes_back_with_the_outcome_and_the_next_row(cast, riley, proposed):
    other = propose_mail(cast, name="Ewa")
    response = post(riley, proposed, headers=HTMX)
    html = response.content.decode()
    assert response.status_code == 200 and html.lstrip().startswith("<title>")
    assert "You approved exactly this." in text(response)
    assert f'data-next="row-{other.action.pk}"' in html
    assert '<section hx-swap-oob="morph" class="queue" id="queue" aria-labelledby="queue-t" data-count="1">' in html
    assert '<span hx-swap-oob="morph" id="inbox-count"' in html


def test_a_double_click_is_one_decision_answered_twice(riley, proposed):
    first, second = post(riley, proposed), post(riley, proposed)
    assert (first.status_code, second.status_code) == (303, 303)
    assert Decision.objects.count() == 1
    assert post(riley, proposed, headers=HTMX).status_code == 200


def test_a_rejection_without_a_reason_is_asked_again_and_nothing_is_recorded(riley, proposed):
    response = post(riley, proposed, "rejected", reason=" ")
    assert response.status_code == 422
    assert "Write at least one sentence. The agent reads it." in text(response)
    assert 'aria-invalid="true"' in response.content.decode()
    assert proposed.again().state == "waiting"


def test_a_rejection_with_a_reason_stands_and_is_shown(riley, proposed):
    assert post(riley, proposed, "rejected", reason="Attach the <b>statement</b>.").status_code == 303
    page = riley.get(proposed.url())
    assert "You rejected this." in text(page)
    assert "Attach the &lt;b&gt;statement&lt;/b&gt;." in page.content.decode()


def test_list_and_page_say_that_a_rejected_run_did_nothing(cast, riley, proposed):
    post(riley, proposed, verdict="rejected", reason="Not like this.")
    assert proposed.walk() == "succeeded"
    rows = riley.get("/runs")
    assert "A reviewer rejected it" in text(rows)
    page = riley.get(f"/runs/{proposed.run.pk}")
    assert "Ended, nothing done" in text(page)
    for response in (rows, page):  # not in the green of something done
        assert re.search(r'class="st[^"]*" data-s="cancelled"', response.content.decode())


def test_a_rejection_says_what_follows_by_where_its_run_is_and_not_what_the_agent_may_do(riley, proposed):
    post(riley, proposed, verdict="rejected", reason="Not like this.")
    assert "its workflow says whether it goes on or ends" in text(riley.get(proposed.url()))
    run = Run.objects.filter(pk=proposed.run.pk)
    for state, says in (("paused", "once somebody resumes it"), ("parked", "until an operator chooses"), ("compensating", "being undone")):
        run.update(state=state)
        assert says in text(riley.get(proposed.url()))
    run.update(state="paused")
    ProposedAction.objects.filter(pk=proposed.action.pk).update(executor="agent")  # it asks all the same
    assert "gets the reason when it asks" in text(riley.get(proposed.url()))
    ProposedAction.objects.filter(pk=proposed.action.pk).update(executor="handrail")
    run.update(state="queued")
    assert proposed.walk() == "succeeded"
    page = text(riley.get(proposed.url()))
    assert "Nothing was sent. The run has ended." in page and "The agent has the reason" not in page


def test_who_comes_too_late_is_told_who_decided_and_keeps_what_was_typed(cast, riley, proposed):
    decisions.decide(proposed.action, reviewer=person(cast.sam.pk), verdict="approved", digest=proposed.action.digest)
    response = post(riley, proposed, "rejected", headers=HTMX, reason="I would change the amount.")
    assert response.status_code == 409
    assert "Your rejection was not recorded." in text(response)
    assert "Sam approved this." in text(response)
    assert "I would change the amount." in response.content.decode()
    assert [decision.reviewer_id for decision in Decision.objects.all()] == [cast.sam.pk]


def test_an_old_digest_is_refused_and_what_changed_is_shown(cast, riley, proposed):
    newer = propose_mail(cast, cc=[], body="Hello Marta,\n\nit was charged once.\n")
    ProposedAction.objects.filter(pk=newer.action.pk).update(run=proposed.run)
    ProposedAction.objects.filter(pk=proposed.action.pk).update(state="superseded", superseded_by=newer.action, settled_at=clock.now())
    response = post(riley, proposed, "rejected", headers=HTMX, reason="Too much.")
    html = response.content.decode()
    assert response.status_code == 409
    assert response["HX-Replace-Url"] == newer.url()
    assert "Your rejection was not recorded." in text(response) and "Nothing was decided." in text(response)
    assert "<del><bdi>twice</bdi></del>" in html and "<ins><bdi>once</bdi></ins>" in html
    assert f'name="digest" value="{newer.action.digest}"' in html and "Too much." in html
    assert Decision.objects.count() == 0


def test_a_digest_that_never_was_is_refused(riley, proposed):
    response = riley.post(proposed.url("decision"), {"verdict": "approved", "digest": "0" * 64})
    assert response.status_code == 409
    assert "The action changed after it was drawn for you." in text(response)
    assert Decision.objects.count() == 0


@pytest.mark.parametrize(
    "given", [{}, {"verdict": "approved"}, {"verdict": "perhaps", "digest": "0" * 64}, {"verdict": "approved", "digest": "x"}]
)
def test_an_incomplete_form_decides_nothing(riley, proposed, given):
    response = riley.post(proposed.url("decision"), given)
    assert response.status_code == 422
    assert "Nothing was decided." in text(response)
    assert Decision.objects.count() == 0


def test_a_reason_that_is_too_long_is_kept_and_refused(riley, proposed):
    response = post(riley, proposed, "rejected", reason="x" * 4001)
    assert response.status_code == 422 and "The reason is too long." in text(response)
    assert Decision.objects.count() == 0


def test_what_ran_out_cannot_be_decided(riley, proposed):
    ProposedAction.objects.filter(pk=proposed.action.pk).update(expires_at=clock.now() - timedelta(seconds=1))
    response = post(riley, proposed, headers=HTMX)
    assert response.status_code == 409
    assert "Your approval was not recorded." in text(response)
    assert "Nobody decided in time, so nothing was sent." in text(response)


def test_the_owner_sees_why_they_may_not_decide_and_gets_no_bar(cast, client, proposed):
    cast.agent.owner = cast.sam
    cast.agent.save()
    client.force_login(cast.sam)
    page = client.get(proposed.url())
    assert 'name="do"' not in page.content.decode()
    assert "You own the agent that proposed this, so you can’t decide on it." in text(page)
    assert post(client, proposed, headers=HTMX).status_code == 403
    assert Decision.objects.count() == 0


def test_who_may_only_look_is_refused_with_the_right_that_it_needs(cast, client, proposed):
    client.force_login(cast.morgan)
    assert client.get(proposed.url()).status_code == 200
    refused = post(client, proposed)
    assert refused.status_code == 403
    assert Decision.objects.count() == 0


def test_another_workspace_finds_nothing(cast, client, proposed):
    client.force_login(cast.olga)
    for path in ("", "/attachments/0"):
        assert client.get(proposed.url() + path).status_code == 404
    for verb in ("decision", "claim", "release"):
        assert client.post(proposed.url(verb), {"verdict": "approved", "digest": proposed.action.digest}).status_code == 404
    assert Decision.objects.count() == 0


def test_who_is_not_signed_in_is_sent_to_sign_in(client, proposed):
    response = client.get(proposed.url())
    assert response.status_code == 302 and response["Location"].startswith("/sign-in?next=")
    assert post(client, proposed).status_code == 302
    assert Decision.objects.count() == 0


def test_a_form_from_elsewhere_decides_nothing(cast, proposed):
    from django.test import Client

    strict = Client(enforce_csrf_checks=True)
    strict.force_login(cast.riley)
    assert post(strict, proposed).status_code == 403
    assert Decision.objects.count() == 0


def test_two_of_two_are_counted_and_the_second_runs_it(cast, client):
    rules(cast.workspace.pk, quorum=2)
    proposed = propose_mail(cast)
    client.force_login(cast.riley)
    assert "0 of 2 approved" in text(client.get(proposed.url()))
    client.post(proposed.url("claim"))
    post(client, proposed)
    assert proposed.again().claimed_by is None, "who has approved is on it no more"
    page = client.get(proposed.url())
    assert "1 of 2 approved" in text(page) and 'name="do"' not in page.content.decode()
    assert "You have decided. It waits for another reviewer." in text(page)
    client.force_login(cast.sam)
    assert "Your approval is the second. The e-mail is sent as soon as you approve." in text(client.get(proposed.url()))
    post(client, proposed)
    assert proposed.again().state == "approved"


def test_an_approval_that_has_become_the_last_one_meanwhile_is_not_recorded(cast, client):
    rules(cast.workspace.pk, quorum=2)
    proposed = propose_mail(cast)
    client.force_login(cast.riley)
    armed = client.get(proposed.url(), {"do": "approve"}).content.decode()
    assert 'name="nth" value="1"' in armed
    decisions.decide(proposed.action, reviewer=person(cast.sam.pk), verdict="approved", digest=proposed.action.digest)
    late = post(client, proposed, nth="1")
    assert late.status_code == 409
    assert "Your approval was not recorded. Somebody else approved meanwhile: 1 of 2 have by now." in text(late)
    assert "Your approval is the second. The e-mail is sent as soon as you approve." in text(late)
    assert (proposed.again().state, Decision.objects.count()) == ("waiting", 1)
    assert post(client, proposed, nth="x").status_code == 422
    post(client, proposed, nth="2")
    assert proposed.again().state == "approved"


def test_what_was_seen_is_kept_with_the_decision(cast, riley):
    proposed = propose_mail(cast, file="a,b\n1,2\n")
    post(riley, proposed, seconds="41", opened=["/folded", "/attachments/0", "/made/up"], ack=["made_up"])
    seen = Decision.objects.get().seen
    assert (seen["seconds"], seen["opened"], seen["acknowledged"]) == (41, ["/attachments/0", "/folded"], [])
    assert seen["shown"] + seen["folded"] == 13


@pytest.mark.parametrize("seconds", ["", "-1", "1e9", "٣", "9" * 30])
def test_an_odd_count_of_seconds_is_no_reason_to_refuse(riley, proposed, seconds):
    assert post(riley, proposed, seconds=seconds).status_code == 303
    assert Decision.objects.get().seen["seconds"] is None


def test_a_claim_is_seen_and_given_back(cast, client, proposed):
    client.force_login(cast.sam)
    assert client.post(proposed.url("claim")).status_code == 303
    assert "Claimed by you." in text(client.get(proposed.url()))
    client.force_login(cast.riley)
    assert "Sam is on it." in text(client.get(proposed.url()))
    assert client.post(proposed.url("claim"), headers={"HX-Request": "true"}).status_code == 409
    client.force_login(cast.sam)
    reply = client.post(proposed.url("release"), headers={"HX-Request": "true"})
    assert "Claimed by you." not in text(reply) and "Claim" in text(reply)
    assert proposed.again().claimed_by is None


def test_delivery_is_told_as_far_as_it_is_known(riley, proposed):
    post(riley, proposed)
    assert "It is not sent yet" in text(riley.get(proposed.url()))
    assert proposed.walk() == "succeeded"
    page = text(riley.get(proposed.url()))
    assert "It was sent, once, and what ran is what was approved." in page
    for word in ("Approved by Riley", "Granted, good for one use", "Redeemed, its one use", "Executed", "What ran is what was approved"):
        assert word in page
    assert len(sent) == 1


def test_the_character_by_which_an_address_passes_for_another_is_marked_and_named(cast, riley):
    page = riley.get(propose_mail(cast, cc=["accounts@fernhi1l.example"]).url())
    assert 'accounts@fernhi</bdi><span class="glyph" title="Digit one, U+0031">1</span><bdi>l.example</bdi>' in page.content.decode()
    assert "Character 7 of its name is “1” (Digit one, U+0031), where that one has “l”." in text(page)


def test_a_warning_that_needs_a_tick_holds_approve_back_on_the_server_too(cast, riley):
    proposed = propose_mail(cast, cc=["accounts@f\u0435rnhill.example"])
    page = riley.get(proposed.url())
    assert "This is not fernhill.example." in text(page) and "Look-alike" in text(page)
    assert "Tick to approve" in text(page)
    assert "Tick the warning first." in text(riley.get(proposed.url(), {"do": "approve"}))
    assert post(riley, proposed).status_code == 422
    assert proposed.again().state == "waiting"
    assert "Approve and send" in text(riley.get(proposed.url(), {"do": "approve", "ack": "lookalike_domain"}))
    assert post(riley, proposed, ack=["lookalike_domain"]).status_code == 303
    assert Decision.objects.get().seen["acknowledged"] == ["lookalike_domain"]


def test_a_secret_cannot_be_approved_and_can_be_rejected(cast, riley):
    proposed = propose_mail(cast, body="Use sk-live-4eC39HqLyjWDarjtT1zdp7dc to sign in.\n")
    page = riley.get(proposed.url(), {"do": "approve"})
    assert "A secret is in this value." in text(page) and "Approve is locked" in text(page)
    assert "Approve and send" not in text(page)
    assert post(riley, proposed, headers=HTMX).status_code == 409
    assert Decision.objects.count() == 0
    assert post(riley, proposed, "rejected", reason="It holds a key.").status_code == 303
