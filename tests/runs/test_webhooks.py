"""Webhooks that come in: verified, stored before they are acknowledged, and applied once, whatever else goes on."""

import tracemalloc
from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, InterfaceError
from django.test import Client

from access.errors import BadInput
from access.models import User
from access.rules import SYSTEM
from approvals import policy
from artifacts import storing, vault
from artifacts.models import Payload
from config import clock
from runs import reading, signals, standard_webhooks, webhook_places, webhooks
from runs.engine import executor, sweep
from runs.engine.channel import Channel
from runs.models import Event, JournalEntry, ReceivedWebhook, Run, WebhookPlace, WebhookSource, WebhookWait
from runs.verification import Whole, verify
from tests.approvals.mailing import text
from tests.factories import actor
from tests.runs import workflows
from tests.runs.test_engine import start, types, walk
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)
TEA = {"type": "changed", "data": {"thing": "tea", "now": "cold"}}


class Sender:
    """Somebody outside who sends signed webhooks."""

    def __init__(self, cast, workflow: str = "") -> None:
        self.source, self.secret = webhooks.make_source(cast.agent, "desk", workflow=workflow, by=SYSTEM)

    @classmethod
    def of(cls, source: WebhookSource, secret: str) -> "Sender":
        sender = cls.__new__(cls)
        sender.source, sender.secret = source, secret
        return sender

    def signed(self, body: bytes, id: str, *, stamp: int | None = None, secret: str = "") -> dict[str, str]:
        stamp = int(clock.now().timestamp()) if stamp is None else stamp
        signed = standard_webhooks.signature(secret or self.secret, id, stamp, body)
        return {"webhook-id": id, "webhook-timestamp": str(stamp), "webhook-signature": signed}

    def send(self, said: Any = TEA, id: str = "msg_1", *, headers: dict[str, str] | None = None, **more: Any) -> Any:
        body = said if isinstance(said, bytes) else orjson.dumps(said)
        headers = self.signed(body, id, **more) | (headers or {})
        return Client().post(f"/api/v1/webhooks/{self.source.pk}", body, content_type="application/json", headers=headers)


@pytest.fixture
def desk(cast) -> Sender:
    workflows.reset()
    return Sender(cast)


@pytest.fixture
def waiting(cast, desk) -> Run:
    run = start(cast, "test-hooked", {"thing": "tea"}, scope={})
    assert walk(run) == "waiting" and (run.waiting["on"], run.waiting["source"]) == ("webhook", "desk")
    return run


def report(run: Run) -> str:
    payloads = Event.objects.get(run=run, type="report.published").payloads
    return vault.shown(payloads.values()).popitem()[1].text


# coming in ------------------------------------------------------------------------------------------------------------------------------


def test_a_signed_webhook_is_stored_and_feeds_the_run_that_waits_for_it(desk, waiting, cast, sign_in):
    assert "Waiting for a webhook from desk" in text(sign_in(cast.riley).get(f"/runs/{waiting.pk}"))
    answer = desk.send()
    assert answer.status_code == 201 and answer.json()["duplicate"] is False
    assert Run.objects.get(pk=waiting.pk).state == "queued"
    assert walk(waiting) == "succeeded" and report(waiting) == "It is cold"
    assert types(waiting).count("webhook.received") == 1 and isinstance(verify(waiting), Whole)
    assert ReceivedWebhook.objects.get().run_id == waiting.pk
    assert "A webhook came from desk" in text(sign_in(cast.riley).get(f"/runs/{waiting.pk}"))


def test_what_is_not_signed_by_the_source_just_now_is_refused_and_nothing_is_kept(desk):
    now = int(clock.now().timestamp())
    body = orjson.dumps(TEA)
    refused = [
        desk.send(secret=standard_webhooks.new_secret()),
        desk.send(stamp=now - 400),
        desk.send(stamp=now + 400),
        desk.send(b'{"type": "changed"}', headers=desk.signed(body, "msg_1")),
        desk.send(headers={"webhook-id": "msg_2"}),
        desk.send(headers={"webhook-timestamp": str(now - 1)}),
        desk.send(headers={"webhook-signature": "v1,AAAA v2,BBBB v1a,x"}),
        desk.send(headers={"webhook-signature": ""}),
        desk.send(id="a.1"),
        desk.send(headers={"webhook-timestamp": "soon"}),
        Client().post(f"/api/v1/webhooks/{desk.source.pk}", TEA, content_type="application/json"),
        Client().post("/api/v1/webhooks/nothing", TEA, content_type="application/json"),
    ]
    assert {answer.status_code for answer in refused} == {401} and ReceivedWebhook.objects.count() == 0
    assert {answer.headers["Content-Type"] for answer in refused} == {"application/problem+json"}
    assert desk.send(b"x" * (webhooks.MAX_BODY + 1)).status_code == 413 and ReceivedWebhook.objects.count() == 0
    others = desk.signed(body, "msg_1")["webhook-signature"]
    assert desk.send(headers={"webhook-signature": f"v1,AAAA {others}"}).status_code == 201, "one of several is enough"


def test_a_source_that_sends_too_many_is_told_when_to_go_on_and_nothing_of_it_is_kept(desk, cast, settings, monkeypatch):
    settings.HANDRAIL_WEBHOOKS_A_MINUTE = 3
    assert [desk.send({"n": n}, id=f"msg_{n}").status_code for n in range(3)] == [201] * 3
    kept = Payload.objects.count(), ReceivedWebhook.objects.count()
    answer = desk.send({"n": 4}, id="msg_4")
    assert (answer.status_code, answer.headers["Content-Type"]) == (429, "application/problem+json")
    assert answer.json()["type"].endswith(":too-many-webhooks") and 0 < int(answer.headers["Retry-After"]) <= 60
    assert desk.send({"n": 0}, id="msg_0").status_code == 200, "what is there already is no more"
    till = webhooks.make_source(cast.agent, "till", by=SYSTEM)
    other = Sender.of(*till)
    assert (Payload.objects.count() - 2, ReceivedWebhook.objects.count()) == kept, "but for the other source's secret and key"
    assert other.send({"n": 4}).status_code == 201, "each source has a limit of its own"
    later = clock.now() + timedelta(seconds=int(answer.headers["Retry-After"]))
    monkeypatch.setattr(clock, "now", lambda: later)
    assert desk.send({"n": 4}, id="msg_4").status_code == 201


def test_of_many_at_once_no_more_are_kept_than_a_source_may_send(desk, settings):
    settings.HANDRAIL_WEBHOOKS_A_MINUTE = 3
    answers = together([lambda n=n: desk.send({"n": n}, id=f"msg_{n}") for n in range(8)])
    assert sorted(answer.status_code for answer in answers) == [201] * 3 + [429] * 5


def test_what_is_not_stored_is_not_sealed(desk, settings, monkeypatch):
    settings.HANDRAIL_WEBHOOKS_A_MINUTE = 1
    assert desk.send().status_code == 201
    monkeypatch.setattr(vault, "sealed", None)
    assert desk.send().status_code == 200
    assert [desk.send({"n": 1}, id=id).status_code for id in ("msg_1", "msg_2")] == [409, 429]


@pytest.mark.parametrize(("first", "second", "status"), [("msg_1", TEA, 200), ("msg_1", {"n": 1}, 409), ("msg_2", TEA, 429)])
def test_one_that_another_overtakes_while_it_is_sealed_leaves_no_file(desk, settings, monkeypatch, first, second, status):
    settings.HANDRAIL_PAYLOAD_INLINE, settings.HANDRAIL_WEBHOOKS_A_MINUTE = 1, 1
    removed: list[str] = []
    files: list[str] = []

    def overtaken(*contents: Any, real: Any = vault.sealed) -> list[Payload]:
        monkeypatch.setattr(vault, "sealed", real)
        made = real(*contents)
        files.extend(each.stored for each in made)
        assert desk.send(second, id=first).status_code == 201
        return made

    monkeypatch.setattr(storing, "remove", lambda name, real=storing.remove: removed.append(name) or real(name))
    monkeypatch.setattr(vault, "sealed", overtaken)
    assert desk.send().status_code == status and ReceivedWebhook.objects.count() == 1
    assert len(files) == 1 and removed == files


def test_the_signature_is_that_of_the_specification():
    """Its example, with a secret of its own libraries' tests."""
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    signed = standard_webhooks.signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_old_secret_holds_beside_the_new_one_for_a_day(desk, cast):
    fresh = webhooks.rotate(desk.source, by=SYSTEM)
    again = webhooks.rotate(desk.source, by=SYSTEM)  # a second press
    assert desk.send(id="old").status_code == 201 and desk.send(b"{}", id="new", secret=again).status_code == 201
    assert desk.send(b"[]", id="lost", secret=fresh).status_code == 401, "nobody has it"
    WebhookSource.objects.update(old_until=clock.now())
    assert desk.send(b"[1]", id="late").status_code == 401
    assert vault.shown([desk.source.secret_id])[desk.source.secret_id].text.find("whsec_") == -1
    webhooks.close_source(desk.source, by=SYSTEM)
    assert desk.send(b"[2]", id="closed", secret=again).status_code == 401


# once -----------------------------------------------------------------------------------------------------------------------------------


def test_the_same_again_by_its_id_or_its_content_is_one(desk, waiting):
    assert desk.send().status_code == 201
    assert desk.send().status_code == 200 and desk.send().json()["duplicate"] is True
    assert desk.send(id="msg_2").json()["duplicate"] is True, "the same content"
    answer = desk.send(TEA | {"more": 1})
    assert answer.status_code == 409 and answer.json()["type"].endswith(":webhook-reused")
    assert sorted(ReceivedWebhook.objects.values_list("state", flat=True)) == ["applied", "repeated"]
    ReceivedWebhook.objects.update(received_at=clock.now() - timedelta(hours=25))
    assert desk.send(id="msg_3").json()["duplicate"] is False, "a day later it is another one"


def test_how_often_it_came_is_told_and_the_wait_is_a_step_of_the_plan(desk, waiting, cast, sign_in):
    for again in ("msg_1", "msg_1", "msg_2"):
        desk.send(id=again)
    assert "1 came, 3 times in all: what came again changed nothing" in text(sign_in(cast.ada).get("/webhooks"))
    assert walk(waiting) == "succeeded"
    [step] = reading.story(waiting).plan.steps
    assert step.state == "done", "it was come to and is over"


def test_of_the_same_webhook_twenty_times_at_once_one_feeds_the_run(desk, waiting):
    answers = together([lambda n=n: desk.send(id="msg_1" if n % 2 else f"other_{n}") for n in range(20)])
    assert {answer.status_code for answer in answers} <= {200, 201}, answers
    assert sum(answer.status_code == 201 for answer in answers) == 1
    assert types(waiting).count("webhook.received") == 1 and types(waiting).count("run.queued") == 1
    assert walk(waiting) == "succeeded"


def test_of_the_same_webhook_twenty_times_at_once_one_starts_a_run(cast):
    workflows.reset()
    desk = Sender(cast, workflow="test-hooked")
    begin = {"type": "begin", "thing": "coffee"}
    answers = together([lambda n=n: desk.send(begin, id="msg_1" if n % 2 else f"other_{n}") for n in range(20)])
    assert {answer.status_code for answer in answers} <= {200, 201}, answers
    together([lambda: webhooks.apply(ReceivedWebhook.objects.get(state="applied").pk) for _ in range(5)])
    [run] = Run.objects.all()
    assert (run.workflow, run.agent_id) == ("test-hooked", cast.agent.pk) and types(run).count("webhook.received") == 1
    assert walk(run) == "waiting"
    assert desk.send({"type": "changed", "data": {"thing": "coffee", "now": "hot"}}, id="msg_2").status_code == 201
    assert walk(run) == "succeeded" and report(run) == "It is hot"


def test_a_webhook_is_for_one_run_the_one_that_has_waited_longest(desk, waiting, cast):
    other = start(cast, "test-hooked", {"thing": "tea"}, scope={})
    walk(other)
    desk.send()
    assert [Run.objects.get(pk=run.pk).state for run in (waiting, other)] == ["queued", "waiting"]
    desk.send(TEA | {"again": True}, id="msg_2")
    assert Run.objects.get(pk=other.pk).state == "queued"


# before, too late, never ----------------------------------------------------------------------------------------------------------------


def test_what_came_before_the_wait_began_is_not_lost(desk, cast):
    run = start(cast, "test-hooked", {"thing": "tea"}, scope={})
    desk.send()
    desk.send({"type": "changed", "data": {"thing": "milk"}}, id="msg_2")
    assert set(ReceivedWebhook.objects.values_list("state", flat=True)) == {"received"}
    assert walk(run) == "succeeded" and report(run) == "It is cold"
    assert ReceivedWebhook.objects.get(delivery="msg_2").state == "received"


def test_what_comes_while_the_worker_is_on_its_way_to_wait_is_not_missed(desk, cast, monkeypatch):
    run = start(cast, "test-hooked", {"thing": "tea"}, scope={})
    real = executor._wait

    def late(held, outcome):
        desk.send()
        return real(held, outcome)

    monkeypatch.setattr(executor, "_wait", late)
    walk(run)
    assert run.state == "queued" and types(run).count("webhook.received") == 1


def test_what_was_stored_by_a_process_that_was_lost_is_applied_by_the_sweep(desk, waiting, monkeypatch):
    monkeypatch.setattr(webhooks, "apply_soon", lambda _: None)
    assert desk.send().status_code == 201
    monkeypatch.undo()
    assert Run.objects.get(pk=waiting.pk).state == "waiting"
    monkeypatch.setattr(webhooks, "LEFT", timedelta(0))
    together([sweep.sweep, sweep.sweep])
    assert Run.objects.get(pk=waiting.pk).state == "queued" and types(waiting).count("webhook.received") == 1


def test_the_wait_ends_when_its_time_is_over_and_a_replay_gets_the_same(desk, waiting):
    JournalEntry.objects.filter(run=waiting, kind="wait").update(started_at=clock.now() - timedelta(hours=2))
    Run.objects.filter(pk=waiting.pk).update(wake_at=clock.now())
    sweep.sweep()
    assert walk(waiting) == "succeeded" and report(waiting) == "Nothing came"
    desk.send()
    assert ReceivedWebhook.objects.get().state == "received" and WebhookWait.objects.get().webhook_id is None


@pytest.mark.parametrize("trouble", [DatabaseError, InterfaceError])
@pytest.mark.parametrize("where", ["apply", "_read"])
def test_a_database_that_goes_away_makes_nothing_a_dead_letter(desk, monkeypatch, where, trouble):
    desk.send()
    ReceivedWebhook.objects.update(received_at=clock.now() - webhooks.UNMATCHED, tried_at=None)

    def away(*_: Any, **__: Any) -> None:
        raise trouble("away")

    monkeypatch.setattr(webhooks, where, away)
    sweep.sweep()
    assert ReceivedWebhook.objects.get().state == "received"
    monkeypatch.undo()
    sweep.sweep()
    assert ReceivedWebhook.objects.get().state == "dead"


def test_the_run_that_a_webhook_starts_begins_with_it_or_not_at_all(cast, monkeypatch):
    workflows.reset()
    desk = Sender(cast, workflow="test-hooked")

    def away(*_: Any, **__: Any) -> None:
        raise DatabaseError("away")

    monkeypatch.setattr(webhooks, "_tell", away)
    assert desk.send({"type": "begin", "thing": "tea"}).status_code == 201
    assert not Run.objects.exists() and ReceivedWebhook.objects.get().state == "received"
    monkeypatch.undo()
    monkeypatch.setattr(webhooks, "LEFT", timedelta(0))
    sweep.sweep()
    assert ReceivedWebhook.objects.get().state == "applied" and types(Run.objects.get())[:2] == ["run.created", "webhook.received"]


def test_the_one_that_fits_is_found_behind_a_thousand_others_and_no_other_is_opened(desk, cast, settings, monkeypatch):
    settings.HANDRAIL_WEBHOOKS_A_MINUTE = 10_000
    run = start(cast, "test-hooked", {"thing": "tea"}, scope={})
    for n in range(3):
        desk.send({"type": "changed", "data": {"thing": f"milk {n}", "now": "cold"}}, id=f"other_{n}")
    one = ReceivedWebhook.objects.first()
    same = {"source": desk.source, "body": one.body, "received_at": one.received_at, "all_places": True}
    ReceivedWebhook.objects.bulk_create(ReceivedWebhook(delivery=f"more_{n}", digest=f"{n}", **same) for n in range(1000))
    desk.send()
    read: list[str] = []
    monkeypatch.setattr(webhooks, "_read", lambda webhook, real=webhooks._read: read.append(webhook.delivery) or real(webhook))
    assert walk(run) == "succeeded" and report(run) == "It is cold"
    assert set(read) == {"msg_1"}


def test_what_has_more_in_it_than_is_kept_by_its_place_is_found_all_the_same(desk, cast):
    run = start(cast, "test-hooked", {"thing": "tea"}, scope={})
    desk.send({str(n): n for n in range(webhook_places.MOST)} | TEA, id="long")
    assert not ReceivedWebhook.objects.get().all_places and WebhookPlace.objects.count() == webhook_places.MOST
    assert walk(run) == "succeeded" and report(run) == "It is cold"


def test_no_more_are_opened_for_a_run_that_waits_than_the_newest_that_their_hashes_do_not_tell(desk, monkeypatch):
    monkeypatch.setattr(webhook_places, "OPENED", 3)
    for n in range(4):
        desk.send({"type": "long", "list": [n]}, id=f"msg_{n}")
        desk.send({"type": "other", "n": n}, id=f"other_{n}")

    def opened(match: dict[str, Any]) -> list[str]:
        source = WebhookSource.objects.get()
        return [webhook.delivery for webhook in webhook_places.candidates(source, match, ReceivedWebhook.objects.all())]

    assert opened({"type": "long", "list": [1]}) == ["msg_1", "msg_2", "msg_3"], "a value narrows them, and a list has to be looked for"
    assert opened({"list": [1]}) == ["other_2", "msg_3", "other_3"]
    ReceivedWebhook.objects.filter(delivery__startswith="other").update(all_places=False)
    assert opened({"type": "long"}) == ["msg_0", "msg_1", "other_1", "msg_2", "other_2", "msg_3", "other_3"]
    WebhookSource.objects.update(places_key=None)
    assert len(opened({"type": "long"})) == 3 and opened({})[0] == "msg_0", "whatever comes first is taken unseen"


def test_many_small_things_below_a_long_name_take_no_more_room_than_the_body_does():
    body = {"k" * 100_000: {f"{at:x}": {} if at % 2 else at for at in range(10_000)}}
    tracemalloc.start()
    try:
        places = webhook_places.of(b"key", body)
        assert not places.all_there and len(places.tokens) == webhook_places.ROOM // 100_000
        assert tracemalloc.get_traced_memory()[1] < 2 * webhooks.MAX_BODY
    finally:
        tracemalloc.stop()


def test_each_place_is_named_by_all_that_it_stands_in():
    body = {"a": {"b": {"c": 1}, "d": 2, "e.f": 3, "g": {}}, "h": {"": {"i": 4}}, "": 5, "j": [6], "k": {"l": {}}, "m": None}
    places = {"a.b.c": 1, "a.d": 2, "h..i": 4, "": 5, "m": None}
    assert webhook_places.of(b"key", body).tokens == {webhook_places._token(b"key", place, value) for place, value in places.items()}
    assert all(webhook_places.fits({place: value}, body) for place, value in places.items())


def test_what_stands_where_is_kept_as_keyed_hashes_and_only_until_somebody_has_it(desk, cast):
    run = start(cast, "test-hooked", {"thing": "tea"}, scope={})
    desk.send()
    kept = set(WebhookPlace.objects.values_list("token", flat=True))
    assert len(kept) == 3 and all(len(token) == 22 for token in kept)
    other = webhooks.make_source(cast.agent, "till", by=SYSTEM)[0]
    assert not kept & webhook_places.of(webhook_places.key_of(other), TEA).tokens, "each source has a key of its own"
    walk(run)
    assert not WebhookPlace.objects.exists()
    desk.send({"type": "other"}, id="msg_2")
    ReceivedWebhook.objects.filter(delivery="msg_2").update(state="dead")
    webhooks.resolve(ReceivedWebhook.objects.get(delivery="msg_2"), "discard", by=actor(cast.otto))
    assert not WebhookPlace.objects.exists()


def test_a_source_from_before_there_were_such_hashes_gets_a_key_and_loses_nothing(desk, cast):
    run = start(cast, "test-hooked", {"thing": "tea"}, scope={})
    other = start(cast, "test-hooked", {"thing": "milk"}, scope={})
    desk.send()
    WebhookPlace.objects.all().delete()
    ReceivedWebhook.objects.update(all_places=False)
    WebhookSource.objects.update(places_key=None)
    assert walk(run) == "succeeded"
    desk.send({"type": "changed", "data": {"thing": "milk", "now": "warm"}}, id="msg_2")
    assert WebhookSource.objects.get().places_key_id and walk(other) == "succeeded"


@pytest.mark.parametrize("value", [1, 1.0, True, False, 0, -0.0, None, "", "1", "True", 2**53 + 1, 1e300, 0.1, "é"])
@pytest.mark.parametrize("wanted", [1, 1.0, True, 0, 0.0, None, "", "1", "True", "None", 2**53 + 1, 2**53, 1e300, 0.1, "é"])
def test_by_its_hash_is_found_what_fits_and_nothing_else(value, wanted):
    one, other = (webhook_places.of(b"key", {"a": {"b": each}}).tokens for each in (value, wanted))
    assert (one == other) == webhooks.fits({"a.b": wanted}, {"a": {"b": value}})


def test_the_sweep_gives_no_run_what_came_before_it_began(desk, cast):
    desk.send()
    ReceivedWebhook.objects.update(received_at=clock.now() - webhooks.UNMATCHED, tried_at=None)
    run = start(cast, "test-hooked", {"thing": "tea"}, scope={})
    walk(run)
    sweep.sweep()
    assert Run.objects.get(pk=run.pk).state == "waiting" and ReceivedWebhook.objects.get().state == "dead"


def test_a_run_whose_source_is_closed_is_stuck_with_that_said(desk, waiting):
    webhooks.close_source(desk.source, by=SYSTEM)
    assert walk(waiting) == "parked"
    detail = Event.objects.filter(run=waiting, type="run.parked").get().payloads["detail"]
    assert vault.shown([detail]).popitem()[1].text == "It waits for a webhook of a source that was closed."


def test_no_source_has_the_name_by_which_a_workflow_waits_for_people(cast):
    with pytest.raises(BadInput, match="signal"):
        webhooks.make_source(cast.agent, "signal", by=SYSTEM)


def test_a_webhook_wakes_a_run_that_waits_for_it_in_a_branch_of_a_branch(desk, cast):
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    run = start(cast, "test-branches-of-branches", {}, scope={})
    assert walk(run) == "waiting" and run.waiting["on"] == "decision" and run.waiting["also"] == ["webhook", "decision"]
    desk.send()
    assert Run.objects.get(pk=run.pk).state == "queued"


@pytest.mark.parametrize("depth", [260, 900])
def test_what_is_nested_too_deep_is_a_dead_letter_and_sticks_no_run(desk, waiting, depth):
    desk.send(b'{"type":"changed","data":{"thing":"tea","now":"cold","x":' + b"[" * depth + b"]" * depth + b"}}")
    assert ReceivedWebhook.objects.get().why == "invalid" and Run.objects.get(pk=waiting.pk).state == "waiting"


def test_true_is_not_one():
    assert webhooks.fits({"a": 1}, {"a": 1}) and not webhooks.fits({"a": True}, {"a": 1}) and not webhooks.fits({"a": 0}, {"a": False})


def test_no_run_is_started_for_an_owner_who_was_deactivated(cast):
    workflows.reset()
    desk = Sender(cast, workflow="test-hooked")
    User.objects.filter(pk=cast.agent.owner_id).update(is_active=False)
    desk.send({"type": "begin", "thing": "tea"})
    assert not Run.objects.exists() and ReceivedWebhook.objects.get().state == "received"


def test_a_run_that_is_cancelled_takes_none(desk, waiting, cast):
    signals.send(waiting, kind="cancel", key="c", by=actor(cast.otto))
    desk.send()
    assert ReceivedWebhook.objects.get().state == "received"


def test_a_wait_for_a_source_that_is_not_there_parks_the_run_with_that_said(cast):
    workflows.reset()
    run = start(cast, "test-hooked", {"thing": "tea"}, scope={})
    assert walk(run) == "parked"


def test_a_wait_whose_code_changed_meanwhile_parks_the_run_with_the_step_named(desk, waiting, monkeypatch):
    real = Channel.wait_for
    monkeypatch.setattr(Channel, "wait_for", lambda self, name, **more: real(self, name, **more | {"match": {"type": "other"}}))
    Run.objects.filter(pk=waiting.pk).update(wake_at=clock.now())
    sweep.sweep()
    assert walk(waiting) == "parked" and "wait.desk#1" in Event.objects.filter(run=waiting, type="run.parked").get().body


def test_a_run_waits_for_what_a_person_adds(cast):
    workflows.reset()
    run = start(cast, "test-told", {}, scope={})
    assert walk(run) == "waiting" and run.waiting["on"] == "signal"
    signals.send(run, kind="context", key="k", by=actor(cast.otto), note="It is Tuesday.")
    assert walk(run) == "succeeded" and report(run) == "It is Tuesday."


# dead letters ---------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def dead(desk) -> ReceivedWebhook:
    desk.send()
    ReceivedWebhook.objects.update(received_at=clock.now() - webhooks.UNMATCHED, tried_at=clock.now())
    sweep.sweep()
    made = ReceivedWebhook.objects.get()
    assert (made.state, made.why) == ("dead", "unmatched")
    return made


def test_what_nobody_came_for_waits_on_the_recovery_page_and_is_discarded_once(dead, cast, sign_in):
    otto = sign_in(cast.otto)
    page = text(otto.get("/recovery"))
    assert "Webhook from desk" in page and "msg_1" in page and "No run waited for it" in page and "cold" not in page
    done = otto.post(f"/recovery/webhooks/{dead.pk}", {"choice": "discard"}, follow=True)
    assert "Discarded." in text(done) and ReceivedWebhook.objects.get().state == "discarded"
    again = otto.post(f"/recovery/webhooks/{dead.pk}", {"choice": "apply"}, follow=True)
    assert "Somebody has chosen already" in text(again)


def test_it_is_applied_again_when_somebody_waits(dead, desk, cast, sign_in):
    otto = sign_in(cast.otto)
    assert "Still nobody" in text(otto.post(f"/recovery/webhooks/{dead.pk}", {"choice": "apply"}, follow=True))
    run = start(cast, "test-hooked", {"thing": "tea"}, scope={})
    walk(run)
    assert run.state == "waiting", "it came before that run was begun"
    assert "Applied." in text(otto.post(f"/recovery/webhooks/{dead.pk}", {"choice": "apply"}, follow=True))
    assert Run.objects.get(pk=run.pk).state == "queued"


def test_what_can_not_be_read_or_fails_is_a_dead_letter_and_was_acknowledged(cast):
    desk = Sender(cast, workflow="test-hooked")
    assert desk.send(b"not json").status_code == 201
    assert desk.send({"type": "fail"}, id="msg_2").status_code == 201
    assert dict(ReceivedWebhook.objects.values_list("delivery", "why")) == {"msg_1": "invalid", "msg_2": "failed"}
    assert set(ReceivedWebhook.objects.values_list("state", flat=True)) == {"dead"}


def test_the_command_makes_a_source_and_prints_its_secret_once(cast, capsys):
    workflows.reset()
    call_command("webhooksource", "till", agent="support-triage", workspace="fernhill", workflow="test-hooked")
    address, secret = capsys.readouterr().out.split()
    source = WebhookSource.objects.get(name="till")
    assert address.endswith(f"/api/v1/webhooks/{source.pk}") and vault.open_bytes(source.secret).decode() == secret
    call_command("webhooksource", "till", rotate=True)
    assert capsys.readouterr().out.split()[1] != secret
    call_command("webhooksource", "till", close=True)
    for wrong in ({"agent": "support-triage", "workspace": "fernhill"}, {"rotate": True}, {"agent": "nobody"}):
        with pytest.raises(CommandError, match="Nothing was changed"):
            call_command("webhooksource", "till", **wrong)


def test_an_admin_makes_a_source_on_the_page_and_sees_its_secret_once(cast, sign_in, django_assert_max_num_queries):
    ada = sign_in(cast.ada)
    assert "Webhooks in" in text(ada.get("/runs")) and "Webhooks in" not in text(sign_in(cast.otto).get("/runs"))
    assert "Choose whose runs" in text(ada.post("/webhooks", {"name": "till", "agent": "x"})) and not WebhookSource.objects.exists()
    assert "A name has up to" in text(ada.post("/webhooks", {"name": "a b", "agent": str(cast.agent.pk)}))
    page = text(ada.post("/webhooks", {"name": "till", "agent": str(cast.agent.pk), "workflow": "test-hooked"}))
    source = WebhookSource.objects.get()
    secret = vault.open_bytes(source.secret).decode()
    assert secret in page and f"/api/v1/webhooks/{source.pk}" in page
    with django_assert_max_num_queries(9):
        assert secret not in text(ada.get("/webhooks"))
    again = ada.post("/webhooks", {"name": "till", "agent": str(cast.agent.pk)})
    assert again.status_code == 409 and "till is there already" in text(again) and 'value="till"' in again.content.decode()
    assert "never again" in text(ada.post(f"/webhooks/{source.pk}", {"do": "rotate"}))
    assert "Closed" in text(ada.post(f"/webhooks/{source.pk}", {"do": "close"}, follow=True))
    assert ada.post(f"/webhooks/{source.pk}", {"do": "rotate"}, follow=True).status_code == 200
    source.refresh_from_db()
    assert source.closed_at is not None and vault.open_bytes(source.secret).decode() != secret


def test_many_sources_are_listed_a_page_at_a_time_and_a_new_secret_on_the_page_of_its_own(cast, sign_in, django_assert_max_num_queries):
    for n in range(30):
        webhooks.make_source(cast.agent, f"till-{n:02}", by=actor(cast.ada))
    ada = sign_in(cast.ada)
    with django_assert_max_num_queries(9):
        first = ada.get("/webhooks")
    assert 'rel="next" href="/webhooks?page=2"' in first.content.decode()
    assert "1 to 25 of 30" in text(first) and "till-24" in text(first) and "till-25" not in text(first)
    assert "till-25" in text(ada.get("/webhooks?page=2"))
    made = text(ada.post("/webhooks", {"name": "till-30", "agent": str(cast.agent.pk)}))
    assert "26 to 31 of 31" in made and vault.open_bytes(WebhookSource.objects.get(name="till-30").secret).decode() in made
    anew = ada.post(f"/webhooks/{WebhookSource.objects.get(name='till-29').pk}", {"do": "rotate"}).content.decode()
    assert "never again" in anew and 'rel="prev" href="/webhooks?page=1"' in anew
