"""Exact actions over HTTP: people decide, once, on what they saw; whoever proposed waits for the answer."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from access import keys
from access.models import Agent
from access.rules import SYSTEM
from approvals import policy
from approvals.models import Decision, Grant, ProposedAction
from artifacts import vault
from artifacts.models import Payload
from tests import proving
from tests.approvals.mailing import propose_mail, sent

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def proposed(cast):
    sent.clear()
    return propose_mail(cast)


def signed_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def decide(client: Client, action: ProposedAction, **body: Any):
    given = {"verdict": "approved", "digest": action.digest} | body
    return client.post(f"/api/v1/actions/{action.pk}/decisions", given, content_type="application/json")


def key_of(agent: Agent) -> dict[str, str]:
    _, token = keys.make(agent, name="test", by=SYSTEM)
    return {"Authorization": f"Bearer {token}"}


def test_a_decision_is_one_and_the_same_again_is_answered_with_it(cast, proposed):
    riley = signed_in(cast.riley)
    first, again = decide(riley, proposed.action), decide(riley, proposed.action)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["decision"] == first.json()["decision"] and again.json()["again"]
    assert first.json()["action"]["state"] == "approved"
    assert Decision.objects.count() == Grant.objects.count() == 1


def test_an_approval_that_would_do_more_than_was_meant_is_refused_over_the_api_too(cast):
    sent.clear()
    policy.set_rule(cast.workspace.pk, "send_mail", name="Two", outcome="reviewers", by=None, quorum=2)
    action = propose_mail(cast).action
    riley, sam = signed_in(cast.riley), signed_in(cast.sam)
    seen = [client.get(f"/api/v1/actions/{action.pk}").json()["reviewers"]["approved"] for client in (riley, sam)]
    assert decide(riley, action, nth=seen[0] + 1).status_code == 201
    answer = decide(sam, action, nth=seen[1] + 1)
    told = answer.json()
    assert (answer.status_code, told["type"].rpartition(":")[2], told["approved"], told["needed"]) == (409, "others-approved", 1, 2)
    assert Decision.objects.count() == 1 and not Grant.objects.exists()
    assert decide(riley, action, nth=1).status_code == 200, "the same again"
    assert decide(sam, action, nth=2).json()["action"]["state"] == "approved"
    assert decide(sam, action, nth=0).status_code == 422


def test_another_decision_is_told_what_stands(cast, proposed):
    decide(signed_in(cast.riley), proposed.action)
    for client, verdict in ((signed_in(cast.sam), "approved"), (signed_in(cast.riley), "rejected")):
        answer = decide(client, proposed.action, verdict=verdict, reason="I see it differently.")
        assert answer.status_code == 409 and answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["state"] == "approved"


def test_a_digest_that_was_not_on_the_screen_is_refused_with_the_one_that_is(cast, proposed):
    answer = decide(signed_in(cast.riley), proposed.action, digest="0" * 64)
    assert answer.status_code == 409
    assert answer.json()["type"] == "urn:handrail:problem:digest-changed" and answer.json()["digest"] == proposed.action.digest
    assert Decision.objects.count() == 0


@pytest.mark.parametrize(
    "body",
    [
        *({"verdict": "maybe"}, {"digest": "xyz"}, {"digest": None}, {"verdict": "rejected"}, {"extra": 1}, {"reason": "x" * 5000}),
        *({"acks": "all"}, {"acks": ["x"] * 101}, {"seen": {"made_up": 1}}, {"seen": {"seconds": -1}}, {"seen": {"opened": "all"}}),
    ],
)
def test_a_decision_that_is_not_whole_decides_nothing(cast, proposed, body):
    answer = decide(signed_in(cast.riley), proposed.action, **body)
    assert answer.status_code == 422 and answer.headers["Content-Type"] == "application/problem+json"
    assert Decision.objects.count() == 0


def test_a_warning_that_needs_a_tick_holds_back_an_approval_over_the_api_too(cast):
    warned = propose_mail(cast, cc=["accounts@f\u0435rnhill.example"])
    riley = proving.shown(signed_in(cast.riley))  # it is of high risk, so that it asks who it is before anything else
    for acks in ([], ["made_up"]):
        refused = decide(riley, warned.action, acks=acks)
        assert refused.status_code == 422 and refused.json()["type"] == "urn:handrail:problem:warning-not-ticked"
        assert refused.json()["acks"] == ["lookalike_domain"] and Decision.objects.count() == 0
    assert decide(riley, warned.action, acks=["lookalike_domain", "made_up"]).status_code == 201
    assert Decision.objects.get().seen["acknowledged"] == ["lookalike_domain"]


def test_a_rejection_needs_no_tick(cast):
    warned = propose_mail(cast, cc=["accounts@f\u0435rnhill.example"])
    assert decide(signed_in(cast.riley), warned.action, verdict="rejected", reason="A look-alike.").status_code == 201


@pytest.mark.parametrize("which", ["erased", "altered", "another file", "gone from the list", "the action itself"])
def test_what_cannot_be_read_as_it_was_proposed_is_approved_by_nobody(cast, which):
    mail, other = propose_mail(cast, file="a,b\n1,2\n"), propose_mail(cast, file="a,b\n1,3\n", name="Ewa")
    rows, file = ProposedAction.objects.filter(pk=mail.action.pk), Payload.objects.get(pk=mail.action.attachments[0])
    if which == "erased":
        vault.erase(file, by=cast.ada)
    elif which in ("altered", "the action itself"):
        kept = file if which == "altered" else mail.action.canonical
        *whole, last = bytes(kept.content)
        Payload.objects.filter(pk=kept.pk).update(content=bytes([*whole, last ^ 1]))
    else:
        rows.update(attachments=other.action.attachments if which == "another file" else [])
    riley = signed_in(cast.riley)
    refused = decide(riley, mail.action)
    assert refused.status_code == 409 and refused.json()["type"] == "urn:handrail:problem:unreadable"
    page = riley.post(mail.url("decision"), {"verdict": "approved", "digest": mail.action.digest})
    assert page.status_code == 409 and "It can’t be approved." in page.content.decode()
    assert Decision.objects.count() == Grant.objects.count() == 0
    assert decide(riley, mail.action, verdict="rejected", reason="Its file is broken.").status_code == 201


def test_what_was_looked_at_is_kept_as_the_card_knows_it_and_never_as_sent(cast):
    mail = propose_mail(cast, file="a,b\n1,2\n")
    decide(signed_in(cast.riley), mail.action, seen={"seconds": 41, "opened": ["/folded", "/made/up"]})
    seen = Decision.objects.get().seen
    assert (seen["seconds"], seen["opened"], seen["acknowledged"]) == (41, ["/folded"], [])


def test_who_may_not_decide_is_told_so_or_nothing(cast, proposed):
    for user, status in ((cast.morgan, 403), (cast.otto, 403), (cast.ada, 403), (cast.olga, 404)):
        assert decide(signed_in(user), proposed.action).status_code == status
    assert decide(Client(), proposed.action).status_code == 401
    agent = Client(headers=key_of(cast.agent))
    assert decide(agent, proposed.action).json()["type"] == "urn:handrail:problem:people-decide"
    forged = Client(enforce_csrf_checks=True)
    forged.force_login(cast.riley)
    assert decide(forged, proposed.action).json()["type"] == "urn:handrail:problem:forged-request"
    assert Decision.objects.count() == 0


def test_a_form_of_a_browser_is_told_to_be_json(cast):
    riley = Client(enforce_csrf_checks=True)
    riley.force_login(cast.riley)
    riley.get("/runs")
    token = next(cookie.value for name, cookie in riley.cookies.items() if name.endswith("csrf"))
    for path in ("/api/v1/runs", "/api/v1/freezes"):
        answer = riley.post(path, {"title": "x", "csrfmiddlewaretoken": token}, headers={"Origin": "http://testserver"})
        assert answer.status_code == 415 and answer.json()["title"], answer.content


def test_an_action_is_seen_by_people_who_see_approvals_and_by_its_agent(cast, proposed):
    address = f"/api/v1/actions/{proposed.action.pk}"
    for client, status in (
        (signed_in(cast.morgan), 200),
        (Client(headers=key_of(cast.agent)), 200),
        (signed_in(cast.olga), 404),
        (Client(headers=key_of(cast.other_agent)), 404),
        (Client(), 401),
    ):
        assert client.get(address).status_code == status
    told = signed_in(cast.riley).get(address).json()
    assert told["state"] == "waiting" and told["digest"] == proposed.action.digest and told["grant"] is None
    assert told["decisions"] == []


def test_whoever_waits_is_answered_when_it_is_decided(cast, proposed):
    agent, address = Client(headers=key_of(cast.agent)), f"/api/v1/actions/{proposed.action.pk}"
    assert agent.get(address, {"wait": 1}).json()["state"] == "waiting"
    deciding = threading.Timer(1, lambda: (decide(signed_in(cast.riley), proposed.action), connection.close()))
    deciding.start()
    began = time.monotonic()
    told = agent.get(address, {"wait": 30}).json()
    deciding.join()
    assert told["state"] == "approved" and time.monotonic() - began < 20
    assert told["decisions"][0]["by"]["name"] == "Riley" and told["grant"]["outcome"] == "none"


def test_of_twenty_decisions_at_once_one_stands(cast, proposed):
    """The same reviewer with the same verdict is answered with the first; every other is told what stands."""
    people = [signed_in(cast.riley), signed_in(cast.sam)]
    tries = [(who, verdict) for who in (0, 1) for verdict in ("approved", "rejected") for _ in range(5)]
    random.Random(7).shuffle(tries)

    def one(given: tuple[int, str]) -> tuple[int, str, int, dict[str, Any]]:
        who, verdict = given
        client = Client()
        client.cookies = people[who].cookies
        try:
            answer = decide(client, proposed.action, verdict=verdict, reason="Because.")
            return who, verdict, answer.status_code, answer.json()
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, tries))
    assert Decision.objects.count() == 1
    stands = Decision.objects.get()
    winner = (0 if stands.reviewer_id == cast.riley.pk else 1, stands.verdict)
    assert Grant.objects.count() == (1 if stands.verdict == "approved" else 0)
    assert sorted(status for who, verdict, status, _ in answers if (who, verdict) == winner) == [200, 200, 200, 200, 201]
    others = [(status, body) for who, verdict, status, body in answers if (who, verdict) != winner]
    assert len(others) == 15 and all(status == 409 and body["state"] == stands.verdict for status, body in others)
