"""Who is told what, when, and what becomes of it. The mail server and the web server are real ones on this machine."""

import base64
import hashlib
import hmac
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from time import monotonic, sleep

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from access import keys
from access.models import AuditEntry, Membership
from access.rules import SYSTEM, person
from approvals import asking, decisions
from approvals.models import Grant, ProposedAction
from approvals.notifications import preferences, quiet, sending, spreading, webhooks, wording
from approvals.notifications.models import Delivery, Message, Notice
from approvals.notifications.preferences import Wishes
from approvals.notifications.quiet import Quiet
from approvals.notifications.tasks import tidy
from config import clock
from runs import log
from runs.log import ENGINE
from runs.vocabulary import ActionUnknown, BlockRaised
from tests.approvals.mailing import Proposed, propose_mail, text
from tests.approvals.noticing import Clock, Hook, Mailbox, mail_server, tick, web_server
from tests.factories import end, make_run
from tests.together import together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
GATHERED = 6  # seconds after which what came together is sent


@pytest.fixture
def time_(monkeypatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def mailbox(settings) -> Iterator[Mailbox]:
    with mail_server(settings) as box:
        yield box


@pytest.fixture
def hook(settings) -> Iterator[Hook]:
    settings.HANDRAIL_PRIVATE_WEBHOOKS = True
    with web_server() as served:
        yield served


def approve(proposed: Proposed, who) -> None:
    decisions.decide(proposed.action, reviewer=person(who.pk), verdict="approved", digest=proposed.action.digest)


def told(time_: Clock) -> None:
    tick()
    time_.on(seconds=GATHERED)
    tick()


def test_who_may_decide_is_told_and_nobody_else_and_nothing_of_the_action_is_said(cast, proposed, time_, mailbox):
    told(time_)
    assert sorted(mail["To"] for mail in mailbox.mails) == ["riley@fernhill.example", "sam@fernhill.example"]
    (mail,) = mailbox.to("riley")
    said = mail.as_string()
    assert mail["Subject"] == "Send the reply: waits for you"
    assert f"https://handrail.test/actions/{proposed.action.pk}" in mail.get_body(("plain",)).get_content()
    assert f"https://handrail.test/actions/{proposed.action.pk}" in mail.get_body(("html",)).get_content()
    for word in ("Marta", "brightwater", "twice", "ZN-", "Oyelaran"):
        assert word not in said
    message = Message.objects.get(user=cast.riley)
    assert mail["Message-ID"] == f"<{message.pk}@handrail.test>" and mail["List-Unsubscribe"] == "<https://handrail.test/notifications>"
    assert message.state == "sent"
    told(time_)
    assert len(mailbox.mails) == 2, "told once"


def test_what_is_told_is_written_with_what_it_tells_or_not_at_all(cast, proposed):
    before = Notice.objects.count()
    with pytest.raises(ZeroDivisionError), log.holding(proposed.run.pk) as run:
        run.append(BlockRaised(block="x", reason="digest_mismatch", action=proposed.action.pk), actor=ENGINE)
        raise ZeroDivisionError
    assert Notice.objects.count() == before
    with log.holding(proposed.run.pk) as run:
        run.append(BlockRaised(block="x", reason="digest_mismatch", action=proposed.action.pk), actor=ENGINE)
    assert [notice.kind for notice in Notice.objects.order_by("-created_at")][:1] == ["alarm"]


def test_what_was_decided_meanwhile_is_not_sent(cast, proposed, time_, mailbox):
    tick()
    approve(proposed, cast.sam)
    time_.on(seconds=GATHERED)
    tick()
    assert mailbox.mails == []
    assert {message.state for message in Message.objects.all()} == {"dropped"}


def test_what_was_told_long_ago_is_forgotten_and_what_waits_is_not(cast, proposed, time_, mailbox, settings):
    settings.HANDRAIL_NOTICES_KEPT = 2
    told(time_)
    open_still = propose_mail(cast, title="Ticket ZN-2")
    told(time_)
    ProposedAction.objects.filter(pk=open_still.action.pk).update(expires_at=clock.now() + timedelta(days=9))
    approve(proposed, cast.sam)
    dead = Message.objects.create(workspace=cast.workspace, user=cast.sam, channel="mail", state="dead", settled_at=clock.now())
    tidy()
    assert Message.objects.filter(state="sent").count() == 4
    time_.on(hours=49)
    later = propose_mail(cast, title="Ticket ZN-3")
    tick()
    tidy()
    tidy()
    assert set(Message.objects.values_list("pk", "state")) == {(dead.pk, "dead")}
    assert set(Notice.objects.values_list("action", flat=True)) == {open_still.action.pk, later.action.pk}
    assert set(Delivery.objects.values_list("notice__action", "message")) == {(later.action.pk, None)}
    time_.on(seconds=GATHERED)
    tick()
    assert {mail["Subject"] for mail in mailbox.mails[4:]} == {"Send the reply: waits for you"}, "nothing is told twice"


@pytest.mark.sqlite_only
def test_what_is_to_be_forgotten_is_found_without_a_look_at_all_there_is(cast):
    with CaptureQueriesContext(connection) as queries:
        tidy()
    asked = [each["sql"] for each in queries if each["sql"].startswith("SELECT") and "ORDER BY" in each["sql"]]
    assert len(asked) == 2  # messages, and notices
    for sql, index in zip(asked, ("message_settled", "notice_spread"), strict=True):
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            plan = [step[3] for step in cursor.fetchall()]
        assert any(f"INDEX {index}" in step for step in plan) and not [step for step in plan if "TEMP B-TREE" in step], plan


def test_who_lost_the_right_meanwhile_is_not_told(cast, proposed, time_, mailbox):
    tick()
    Membership.objects.filter(user=cast.riley).update(deactivated_at=datetime.now(UTC))
    time_.on(seconds=GATHERED)
    tick()
    assert [mail["To"] for mail in mailbox.mails] == ["sam@fernhill.example"]


def test_a_long_name_in_a_header_is_cut_at_a_whole_character():
    assert wording.one_line(f"{'a' * 79}e\u0301 and more") == "a" * 79


def test_several_at_once_become_one_message(cast, time_, mailbox):
    for each in range(3):
        propose_mail(cast, title=f"Ticket ZN-{each}")
    told(time_)
    (mail,) = mailbox.to("sam")
    assert mail["Subject"] == "3 things wait for you"
    assert mail.get_body(("plain",)).get_content().count("/actions/") == 3


def test_quiet_hours_hold_and_then_group(cast, time_, mailbox):
    now = datetime.now(UTC)
    preferences.keep(person(cast.sam.pk), Wishes(quiet=Quiet(time(now.hour), time((now.hour + 9) % 24)), lets_through=True))
    grave, *others = [propose_mail(cast, title=f"Ticket ZN-{each}") for each in range(3)]
    ProposedAction.objects.update(risk=2, expires_at=now + timedelta(days=2))
    ProposedAction.objects.filter(pk=grave.action.pk).update(risk=3)
    Notice.objects.update(until=now + timedelta(days=2))
    told(time_)
    (mail,) = mailbox.to("sam")
    assert f"/actions/{grave.action.pk}" in mail.as_string(), "of high risk, so it is let through"
    assert mailbox.to("riley")[0]["Subject"] == "3 things wait for you"
    time_.on(hours=9)
    tick()
    _, mail = mailbox.to("sam")
    assert mail["Subject"] == "2 things wait for you" and all(f"/actions/{each.action.pk}" in mail.as_string() for each in others)


def test_a_mail_server_that_is_away_is_tried_again_and_then_given_up_for_an_operator(cast, proposed, time_, mailbox, client):
    mailbox.answer = "451 later"
    told(time_)
    assert Message.objects.get(user=cast.riley).state == "waiting" and mailbox.mails == []
    for _ in range(sending.POLICY.attempts):
        time_.on(hours=4, minutes=1)
        type(proposed.action).objects.update(expires_at=datetime.now(UTC) + time_.by + sending.LEASE * 1000)
        tick()
    message = Message.objects.filter(user=cast.riley).earliest("created_at")
    assert (message.state, message.trouble, message.attempts) == ("dead", "refused", sending.POLICY.attempts)
    client.force_login(cast.otto)
    page = text(client.get("/notifications/undelivered"))
    assert f"E-mail to Riley {proposed.run.called} Refused 8 No" in page
    mailbox.answer = "250 OK"
    assert client.post(f"/notifications/undelivered/{message.pk}").status_code == 303
    sending.send_due()
    assert [mail["Message-ID"] for mail in mailbox.to("riley")] == [f"<{message.pk}@handrail.test>"]
    assert AuditEntry.objects.filter(verb="notification_tried_again", actor_id=str(cast.otto.pk)).exists()


def test_an_address_that_is_refused_for_good_is_not_tried_again(cast, proposed, time_, mailbox):
    mailbox.answer = "RCPT 550 nobody here"
    told(time_)
    assert {(m.state, m.trouble, m.attempts) for m in Message.objects.all()} == {("dead", "address refused", 1)}


def test_a_name_cannot_put_anything_into_a_header(cast, time_, mailbox):
    from approvals.notifications import delegation

    type(cast.riley).objects.filter(pk=cast.riley.pk).update(name="Riley\r\nBcc: eve@evil.example\n\nHello\u202e")
    now = datetime.now(UTC)
    delegation.delegate(cast.workspace.pk, by=person(cast.riley.pk), to=cast.sam.pk, starts_at=now, ends_at=now + sending.LEASE)
    told(time_)
    (mail,) = mailbox.to("sam")
    assert mail["Subject"] == "You decide for Riley Bcc: eve@evil.example Hello" and mail["Bcc"] is None
    assert mailbox.envelopes[0][1] == ["sam@fernhill.example"]


def test_a_worker_that_died_after_sending_leaves_the_same_id_to_the_next(cast, proposed, time_, mailbox):
    tick()
    time_.on(seconds=GATHERED)
    sending.pack()
    message = Message.objects.get(user=cast.sam)
    claim = sending._claim(message.pk)
    sending._tried(claim.message)  # and here it dies
    assert sending._claim(message.pk) is None, "its lease runs"
    time_.on(seconds=sending.LEASE.total_seconds() + 1)
    tick()
    first, again = mailbox.to("sam")
    assert first["Message-ID"] == again["Message-ID"]
    settled = Message.objects.values().get(pk=message.pk)
    sending._settle(claim, sending.Failed("late", True))
    assert settled["state"] == "sent" and Message.objects.values().get(pk=message.pk) == settled, "a late worker changes nothing"


@pytest.mark.both_databases
def test_two_workers_at_once_send_each_thing_once(cast, time_, mailbox):
    for each in range(2):
        propose_mail(cast, title=f"Ticket ZN-{each}")
    together([spreading.spread] * 3)
    time_.on(seconds=GATHERED)
    together([sending.pack] * 3)
    together([sending.send_due] * 3)
    for name in ("riley", "sam"):
        links = [mail.get_body(("plain",)).get_content().count("/actions/") for mail in mailbox.to(name)]
        assert sum(links) == 2
    assert Delivery.objects.filter(message=None).count() == 0


def test_who_asked_and_who_operates_and_who_owns_are_told(cast, proposed, time_, mailbox):
    asked = asking.ask(proposed.action, by=person(cast.riley.pk), question="Why twice?", digest=proposed.action.digest)
    from runs.log import Text
    from runs.vocabulary import QuestionAnswered

    with log.holding(proposed.run.pk) as run:
        run.append(QuestionAnswered(question=asked.question), actor=ENGINE, texts={"answer": Text("Because.")})
    told(time_)
    assert any("The agent answered your question" in mail.as_string() for mail in mailbox.to("riley"))
    assert not any("answered" in mail.as_string() for mail in mailbox.to("sam"))
    approve(proposed, cast.sam)
    grant = Grant.objects.get(action=proposed.action)
    Grant.objects.filter(pk=grant.pk).update(redeemed_at=datetime.now(UTC), outcome="unknown", unknown_at=datetime.now(UTC))
    with log.holding(proposed.run.pk) as run:
        run.append(ActionUnknown(action=proposed.action.pk, grant=grant.pk, reason="dropped"), actor=ENGINE)
    told(time_)
    (mail,) = mailbox.to("otto")
    assert mail["Subject"] == "Send the reply: outcome unknown" and f"/actions/{proposed.action.pk}/outcome" in mail.as_string()
    preferences.keep(person(cast.priya.pk), Wishes({"ended": ("mail",)}))
    run = make_run(cast)
    end(run)
    told(time_)
    assert [mail["Subject"] for mail in mailbox.to("priya")] == [f"Run {run.ref} is done"]


def test_an_agents_own_blocks_alarm_nobody(cast, time_, client):
    run, token = make_run(cast), keys.make(cast.agent, name="test", by=SYSTEM)[1]
    data = {"block": "x", "reason": "digest_mismatch", "action": str(run.pk)}
    event = {"id": "a", "type": "block.raised", "data": data}
    headers = {"Authorization": f"Bearer {token}"}
    answer = client.post(f"/api/v1/runs/{run.pk}/events", event, content_type="application/json", headers=headers)
    assert answer.status_code == 201 and not Notice.objects.filter(kind="alarm").exists()


# webhooks ---------------------------------------------------------------------------------------------------------------------------


def verified(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As https://www.standardwebhooks.com says, written anew."""
    key = base64.b64decode(secret.split("_", 1)[1])
    signed = b".".join([headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body])
    right = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(each, right) for each in headers["webhook-signature"].split())


def test_a_webhook_is_posted_signed_and_a_new_secret_overlaps_the_old(cast, time_, hook):
    sam = person(cast.sam.pk)
    old = webhooks.set_up(cast.workspace.pk, by=sam, url=hook.url)
    assert webhooks.set_up(cast.workspace.pk, by=sam, url=hook.url) == "", "shown once"
    proposed = propose_mail(cast)
    told(time_)
    [(headers, body)] = hook.posts
    data = json.loads(body)
    assert verified(old, headers, body) and not verified(old, headers, body + b" ")
    assert headers["webhook-id"] == str(Message.objects.get(channel="webhook").pk)
    assert data["type"] == "handrail.notification" and data["data"]["items"][0]["link"].endswith(f"/actions/{proposed.action.pk}")
    assert b"brightwater" not in body and b"Marta" not in body
    webhooks.rotate(by=sam)
    new = webhooks.rotate(by=sam)  # a double click
    sending.send_test(sam, cast.workspace.pk, "webhook")
    sending.send_due()
    assert all(verified(secret, *hook.posts[-1]) for secret in (old, new))
    time_.on(hours=25)
    sending.send_test(sam, cast.workspace.pk, "webhook")
    sending.send_due()
    assert verified(new, *hook.posts[-1]) and not verified(old, *hook.posts[-1])


def test_a_test_that_is_on_its_way_is_not_sent_again_for_each_press(cast):
    sam = person(cast.sam.pk)
    assert sending.send_test(sam, cast.workspace.pk, "mail") == sending.send_test(sam, cast.workspace.pk, "mail")
    assert Message.objects.count() == 1


@pytest.mark.parametrize(("status", "state"), [(500, "waiting"), (429, "waiting"), (302, "dead"), (410, "dead"), (200, "sent")])
def test_what_a_webhook_answers_counts_and_a_redirect_is_not_followed(cast, hook, status, state):
    sam = person(cast.sam.pk)
    webhooks.set_up(cast.workspace.pk, by=sam, url=hook.url)
    hook.status, hook.headers, hook.body = status, {"Location": hook.url + "/elsewhere"}, b"x" * 3_000_000
    message = sending.send_test(sam, cast.workspace.pk, "webhook")
    sending.send_due()
    message.refresh_from_db()
    assert (message.state, len(hook.posts)) == (state, 1)


def test_an_answer_that_comes_byte_by_byte_holds_no_worker(cast, hook, monkeypatch):
    monkeypatch.setattr(webhooks, "SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        drip = threading.Thread(target=_drip, args=(server,), daemon=True)
        drip.start()
        sam = person(cast.sam.pk)
        webhooks.set_up(cast.workspace.pk, by=sam, url=f"http://127.0.0.1:{server.getsockname()[1]}/")
        message = sending.send_test(sam, cast.workspace.pk, "webhook")
        began = monotonic()
        sending.send_due()
        took = monotonic() - began
        drip.join(10)
    message.refresh_from_db()
    assert (message.state, message.trouble) == ("waiting", "not reached") and took < 10


def _drip(server: socket.socket) -> None:
    """A header that never ends, each byte well within the time of one read. It gives up after 20 seconds."""
    there, _ = server.accept()
    with there, suppress(OSError):
        there.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        for _ in range(200):
            there.sendall(b"x")
            sleep(0.1)


PRIVATE = [
    "127.0.0.1",
    "10.0.0.1",
    "169.254.169.254",
    "::1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "0.0.0.0",
    "fe80::1%eth0",
    "fec0::1",
    "::7f00:1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_such_an_address_is_no_public_one(address):
    assert not webhooks.is_public(address)


def test_nothing_is_posted_into_a_private_network(cast, hook, settings):
    sam = person(cast.sam.pk)
    webhooks.set_up(cast.workspace.pk, by=sam, url=hook.url.replace("http:", "https:").replace("127.0.0.1", "localhost"))
    settings.HANDRAIL_PRIVATE_WEBHOOKS = False
    message = sending.send_test(sam, cast.workspace.pk, "webhook")
    sending.send_due()
    message.refresh_from_db()
    assert (message.state, message.trouble, hook.posts) == ("dead", "address refused", [])


@pytest.mark.parametrize(
    "url",
    ["http://example.org/", "https://a:b@example.org/", "file:///etc/passwd", "https://", "https://x y/", "https://[/", "https://x/\0"],
)
def test_an_odd_address_is_not_kept(url):
    with pytest.raises(webhooks.OddAddress):
        webhooks.parsed(url)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8443", "[::1]", "10.1.2.3", "[fe80::1]", "localhost", "Hooks.LOCALHOST.", "[::ffff:192.168.0.1]"]
)
def test_an_address_that_says_itself_that_it_is_private_is_not_kept(host, settings):
    settings.HANDRAIL_PRIVATE_WEBHOOKS = False
    with pytest.raises(webhooks.OddAddress, match="private network"):
        webhooks.parsed(f"https://{host}/hook")
    settings.HANDRAIL_PRIVATE_WEBHOOKS = True
    webhooks.parsed(f"https://{host}/hook")


# quiet hours, pure ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "at", "over"),
    [
        (Quiet(), "2026-11-30T23:00+00:00", None),
        (Quiet(time(18, 30), time(8), zone="Europe/Lisbon"), "2026-11-30T23:00+00:00", "2026-12-01T08:00+00:00"),
        (Quiet(time(18, 30), time(8), zone="Europe/Lisbon"), "2026-12-01T08:00+00:00", None),
        (Quiet(time(12), time(13), zone="Asia/Tokyo"), "2026-12-01T03:30+00:00", "2026-12-01T04:00+00:00"),
        (Quiet(time(22), time(7), zone="Europe/Berlin"), "2026-03-28T23:00+00:00", "2026-03-29T05:00+00:00"),  # a night of 23 hours
        (
            Quiet(time(22), time(2, 30), zone="Europe/Berlin"),
            "2026-10-25T01:10+00:00",
            "2026-10-25T01:30+00:00",
        ),  # 2:10 for the second time
        (Quiet(weekends=True), "2026-12-05T10:00+00:00", "2026-12-07T00:00+00:00"),
        (Quiet(time(20), time(8), weekends=True), "2026-12-04T21:00+00:00", "2026-12-07T08:00+00:00"),  # Friday evening to Monday morning
        (Quiet(time(0), time(23, 59), weekends=True), "2026-12-02T10:00+00:00", "2026-12-02T23:59+00:00"),
        (Quiet(time(22), time(7), zone="Not/AZone"), "2026-12-01T23:00+00:00", "2026-12-02T07:00+00:00"),
    ],
)
def test_when_it_is_quiet_and_until_when(wanted, at, over):
    found = quiet.over(wanted, datetime.fromisoformat(at))
    assert found == (datetime.fromisoformat(over) if over else None)


def test_what_was_chosen_for_a_channel_that_is_not_set_up_is_kept_and_can_not_be_ticked(cast, mailbox):
    browser = Client()
    browser.force_login(cast.sam)
    page = browser.get("/notifications").content.decode()
    assert re.search(r'name="waits" value="webhook" aria-label="[^"]+" disabled', page), "there is no webhook"
    posted = re.findall(r'<input type="hidden" name="(\w+)" value="(webhook)">', page)
    assert ("waits", "webhook") in posted
    browser.post("/notifications", {name: [value] for name, value in posted} | {"zone": "UTC"})
    assert "webhook" in preferences.of(cast.sam.pk).channels["waits"]


def test_what_was_sent_alike_is_one_row_whatever_came_between(cast):
    for n, state in enumerate(("sent", "dropped", "sent", "sent")):
        moment = clock.now() - timedelta(minutes=n)
        alike = {"channel": "mail", "state": state, "test": True, "created_at": moment, "settled_at": moment}
        Message.objects.create(workspace=cast.workspace, user=cast.sam, **alike)
    browser = Client()
    browser.force_login(cast.sam)
    said = text(browser.get("/notifications"))
    assert "sent, 3 times, last at" in said and said.count("A test.") == 1, "what was told stands once over what became of it"


def test_a_person_keeps_what_they_chose_and_sees_the_secret_once(cast, hook, mailbox, django_assert_max_num_queries):
    browser = Client()
    browser.force_login(cast.sam)
    with django_assert_max_num_queries(16):
        assert "Your notifications" in text(browser.get("/notifications"))
    chosen = {"waits": ["webhook"], "zone": "Europe/Lisbon", "quiet_from": "18:30", "quiet_to": "08:00", "weekends": "on"}
    assert browser.post("/notifications", chosen).status_code == 303
    wishes = preferences.of(cast.sam.pk)
    assert wishes.channels["waits"] == ("webhook",) and wishes.channels["soon"] == () and not wishes.lets_through
    assert wishes.quiet == Quiet(time(18, 30), time(8), True, "Europe/Lisbon")
    assert "18:30 to 08:00, and all weekend" in text(browser.get("/notifications"))
    assert browser.post("/notifications", chosen | {"quiet_from": "18:47"}).status_code == 303
    assert "<option selected>18:47</option>" in browser.get("/notifications").content.decode(), "also what the list does not offer"
    assert browser.post("/notifications", chosen).status_code == 303
    for wrong in (
        {"quiet_from": "18:30", "quiet_to": ""},
        {"quiet_from": "6pm"},
        {"quiet_from": "18:30+02:00"},
        {"quiet_to": "08:00Z"},
        {"zone": "Mars/Base"},
        {"quiet_to": "18:30"},
    ):
        answer = browser.post("/notifications", chosen | wrong)
        assert answer.status_code == 422 and "Nothing was saved" in text(answer)
    answer = browser.post("/notifications/webhook", {"do": "set", "url": hook.url})
    assert "whsec_" in text(answer) and "whsec_" not in text(browser.get("/notifications"))
    assert browser.post("/notifications/webhook", {"do": "set", "url": "nonsense"}).status_code == 422
    assert browser.post("/notifications/test", {"channel": "mail"}).status_code == 303
    sending.send_due()
    assert mailbox.to("sam")[0]["Subject"].startswith("Test: ")
    assert "A test. E-mail sent" in text(browser.get("/notifications"))
    assert browser.post("/notifications/webhook", {"do": "remove"}).status_code == 303
    assert browser.post("/notifications/test", {"channel": "webhook"}).status_code == 422
