"""What the tools know after each call to the outside: it was done, it was refused, it can't have been, or it may have been."""

import json
import socket
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.support_triage.client import Desk, NoAnswer, NotReached, Refused, UnsendableMessage, send_mail
from tests.examples.outside import ROOT, World

PLAIN = (ROOT / "examples" / "support_triage" / "tickets" / "duplicate-charge.eml").read_bytes()
REPLY = (
    "From: Fernhill Support <support@fernhill.example>\r\nTo: marta.oyelaran@brightwater.example\r\n"
    "Subject: Your duplicate charge\r\nMessage-ID: <em-7Q4K-31@fernhill.example>\r\n"
    "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
    "Hello Marta,\r\n\r\n.a line that begins with a dot\r\n.\r\n..\r\nGrüße, 1.284,00 €\r\n"
).encode()
MESSAGE_ID = "<em-7Q4K-31@fernhill.example>"
ENVELOPE = {"sender": "support@fernhill.example", "recipients": ["marta.oyelaran@brightwater.example", "accounts@brightwater.example"]}


def send(world: World, message: bytes = REPLY, timeout: float = 10, **more) -> str:
    return send_mail(message, host=world.smtp[0], port=world.smtp[1], timeout=timeout, **(ENVELOPE | more))


def mailbox(world: World) -> list[dict]:
    return world.http.get("/mail").json()["mail"]


@pytest.fixture
def desk(world):
    with Desk(world.url) as client:
        yield client


def test_a_ticket_and_its_account_are_read(desk):
    filed = desk.file_ticket(PLAIN, "k-1")
    assert desk.file_ticket(PLAIN, "k-1") == filed
    ticket = desk.read_ticket(filed["id"])
    assert (ticket.record, ticket.raw) == (filed, PLAIN)
    account = desk.account_for(ticket.record["sender"])
    assert (account["id"], account["name"], account["known"]) == ("00932", "Brightwater Logistics", True)
    assert [payment["id"] for payment in account["invoices"][0]["payments"]] == ["PAY-88120", "PAY-88121"]


def test_a_note_is_added_looked_up_and_taken_back(desk):
    version = desk.account_for("marta.oyelaran@brightwater.example")["version"]
    note = desk.add_note("00932", "Refund due – 1.284,00 €", "crm-1", version=version)
    assert desk.effect("crm-1")["answer"]["id"] == note["id"]
    assert desk.effect("crm-2")["found"] is False
    assert desk.remove_note("00932", note["id"], "undo-1")["removed_at"]
    assert [kept["removed_at"] is None for kept in desk.notes("00932")] == [False]
    with pytest.raises(Refused) as refused:
        desk.add_note("00932", "late", "crm-3", version=version)
    assert refused.value.code == 412


def test_a_status_is_set(desk):
    desk.file_ticket(PLAIN, "k-1")
    assert desk.set_ticket_status("ZN-4821", "answered", "s-1")["previous_status"] == "open"


def test_a_name_from_outside_stays_one_part_of_the_path(desk):
    for name in ("../faults", "a/b", "?x=1", "#", "%2e%2e", "..", ""):
        with pytest.raises(Refused):
            desk.read_ticket(name)


def test_a_lost_answer_is_neither_a_yes_nor_a_no(world, desk):
    world.plant("crm.note")
    with pytest.raises(NoAnswer):
        desk.add_note("00932", "Refund due", "crm-1")
    assert desk.effect("crm-1")["found"] is True
    desk.add_note("00932", "Refund due", "crm-1")
    assert len(desk.notes("00932")) == 1


def test_a_desk_that_is_not_there_was_never_asked(world, desk):
    world.stop()
    with pytest.raises(NotReached):
        desk.add_note("00932", "Refund due", "crm-1")


def test_a_desk_that_did_not_wait_for_the_whole_request_was_not_reached():
    hasty = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with scripted_server(hasty, then=lambda connection: connection.recv(65536)) as port, pytest.raises(NotReached):
        Desk(f"http://127.0.0.1:{port}").add_note("00932", "Refund due", "crm-1")


def test_a_message_arrives_once_byte_for_byte_with_its_envelope(world):
    accepted = send(world)
    assert accepted.startswith("250 ")
    (delivery,) = mailbox(world)
    assert (delivery["sender"], delivery["recipients"]) == (ENVELOPE["sender"], ENVELOPE["recipients"])
    assert (delivery["message_id"], delivery["copies"]) == (MESSAGE_ID, 1)
    assert world.http.get(f"/mail/{delivery['number']}/raw").content == REPLY
    assert world.http.get("/mail", params={"message_id": MESSAGE_ID.strip("<>")}).json()["mail"] == [delivery]
    assert world.http.get(f"/mail/{delivery['number']}").json() == delivery


def test_the_same_message_twice_is_two_deliveries_that_everybody_can_see(world):
    send(world)
    send(world)
    assert [delivery["copies"] for delivery in mailbox(world)] == [2, 2]
    (effect,) = world.ledger()
    assert (effect["key"], effect["kind"], effect["done"], effect["deliveries"]) == (MESSAGE_ID, "smtp", 2, [1, 2])
    assert "Delivered 2 times" in world.http.get("/mailbox").text


def test_whoever_stops_before_the_last_byte_has_sent_nothing(world):
    class Revoked(Exception):
        pass

    def stop():
        raise Revoked

    with pytest.raises(Revoked):
        send(world, before_last_byte=stop)
    send(world, REPLY.replace(b"em-7Q4K-31", b"em-7Q4K-32"))  # the server has dealt with the first connection by now
    assert [delivery["message_id"] for delivery in mailbox(world)] == ["<em-7Q4K-32@fernhill.example>"]
    with Desk(world.url) as desk:
        assert desk.effect(MESSAGE_ID)["found"] is False


def test_the_message_is_not_kept_before_the_last_byte(world):
    seen = []
    send(world, before_last_byte=lambda: seen.append(mailbox(world)))
    assert seen == [[]]
    assert len(mailbox(world)) == 1


def test_a_sender_who_waits_too_long_with_the_last_byte_has_sent_nothing(hasty):
    done = threading.Event()
    with pytest.raises(NoAnswer):
        send(hasty, before_last_byte=lambda: done.wait(1.5))
    assert mailbox(hasty) == []


def test_no_time_left_after_the_check_means_not_sent(world):
    done = threading.Event()
    with pytest.raises(NotReached):
        send(world, timeout=0.5, before_last_byte=lambda: done.wait(0.6))
    assert mailbox(world) == []


def test_a_lost_acceptance_may_have_been_one_and_can_be_looked_up(world, desk):
    world.plant("smtp")
    with pytest.raises(NoAnswer):
        send(world)
    found = desk.effect(MESSAGE_ID)
    assert (found["found"], found["kind"], found["done"], found["deliveries"]) == (True, "smtp", 1, [1])
    assert len(mailbox(world)) == 1


def test_a_mail_server_that_is_not_there_was_never_asked(world):
    world.stop()
    with pytest.raises(NotReached):
        send(world)


@pytest.mark.parametrize(
    "message",
    [
        b"From: a@b.example\n\nlone line feeds\n",
        b"From: a@b.example\r\n\r\nsmuggled\n.\r\nMAIL FROM:<x@y.example>\r\n",
        b"From: a@b.example\r\n\r\nlone\rreturn\r\n",
        b"From: a@b.example\r\n\r\nno end",
        b"From: a@b.example\r\n\r\n" + b"x" * 1000 + b"\r\n",
        b"",
    ],
)
def test_what_could_not_arrive_as_it_is_is_not_sent(world, message):
    with pytest.raises(UnsendableMessage):
        send(world, message)
    assert mailbox(world) == []


@pytest.mark.parametrize("address", ["a@b>\r\nRCPT TO:<c@d", "a b@c.example", "nobody", "", "a@b@c", "x" * 400 + "@b.example"])
def test_an_address_cannot_bring_a_command(world, address):
    with pytest.raises(UnsendableMessage):
        send(world, recipients=[address])
    with pytest.raises(UnsendableMessage):
        send(world, sender=address)
    with pytest.raises(UnsendableMessage):
        send(world, recipients=[])
    assert mailbox(world) == []


def test_addresses_of_other_scripts_arrive(world):
    send(world, recipients=["jürgen@möbelwerk.example"])
    assert mailbox(world)[0]["recipients"] == ["jürgen@möbelwerk.example"]


def test_too_large_a_message_is_refused(world):
    with pytest.raises(Refused) as refused:
        send(world, REPLY + (b"x" * 996 + b"\r\n") * 13_000)
    assert refused.value.code == 552
    assert mailbox(world) == []


@contextmanager
def scripted_server(*lines: bytes, then=lambda connection: None):
    """A mail server of a few lines: it says them one per command, then does `then`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            with connection:
                try:
                    for line in lines:
                        connection.sendall(line)
                        if line is not lines[-1]:
                            connection.recv(65536)
                    then(connection)
                except OSError:
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(10)


def scripted_send(port: int, timeout: float = 5, recipients=("a@b.example",)) -> str:
    return send_mail(REPLY, sender="s@f.example", recipients=recipients, host="127.0.0.1", port=port, timeout=timeout)


OK = b"250 OK\r\n"


class Refusing(BaseHTTPRequestHandler):
    """A desk that refuses, and says so much that the key it quotes is not at the beginning."""

    said = b""

    def do_GET(self) -> None:
        self.send_response(403)
        self.send_header("Content-Length", str(len(self.said)))
        self.end_headers()
        self.wfile.write(self.said)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("wrapped", [lambda text: json.dumps({"detail": text}), str], ids=["problem", "text"])
def test_the_reason_of_a_refusal_is_given_whole_so_that_no_half_of_a_secret_is_shown(wrapped, monkeypatch):
    reason = "x" * 490 + " sk-live-4hT9xQ2mW7vB1nC8"
    monkeypatch.setattr(Refusing, "said", wrapped(reason).encode())
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            with Desk(f"http://127.0.0.1:{server.server_port}") as desk, pytest.raises(Refused) as refused:
                desk.read_ticket("ZN-1")
        finally:
            server.shutdown()
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([b"554 go away\r\n"], 554),
        ([b"220 hi\r\n", OK, b"451 later\r\n"], 451),
        ([b"220 hi\r\n", OK, OK, b"550 no such user\r\n"], 550),
        ([b"220 hi\r\n", b"250-first\r\n250 last\r\n", OK, OK, b"354 go\r\n", b"552 too much\r\n"], 552),
    ],
)
def test_a_no_of_the_server_is_a_no_at_any_step(lines, code):
    with scripted_server(*lines) as port, pytest.raises(Refused) as refused:
        scripted_send(port)
    assert refused.value.code == code


def test_one_refused_recipient_refuses_the_whole():
    with scripted_server(b"220 hi\r\n", OK, OK, OK, b"550 no such user\r\n") as port, pytest.raises(Refused):
        scripted_send(port, recipients=("a@b.example", "nobody@b.example"))


@pytest.mark.parametrize(
    "lines",
    [
        [b""],
        [b"220 hi\r\n", b"nonsense\r\n"],
        [b"220 hi\r\n", OK, b"250 no end"],
        [b"220 hi\r\n", b"2" * 20_000],
        [b"220 hi\r\n", b"250-a\r\n" * 200],
    ],
)
def test_a_server_that_talks_nonsense_has_accepted_nothing(lines):
    with scripted_server(*lines) as port, pytest.raises(NotReached):
        scripted_send(port)


@pytest.mark.parametrize("last", [b"", b"nonsense\r\n", b"250-more\r\n"])
def test_no_understandable_word_after_the_end_leaves_it_open(last):
    with scripted_server(b"220 hi\r\n", OK, OK, OK, b"354 go\r\n", last) as port, pytest.raises(NoAnswer):
        scripted_send(port)


def test_a_server_that_trickles_cannot_hold_a_sender(world):
    def trickle(connection):
        for _ in range(100):
            connection.sendall(b"2")
            threading.Event().wait(0.1)

    started = time.monotonic()
    with scripted_server(b"", then=trickle) as port, pytest.raises(NotReached):
        scripted_send(port, timeout=1)
    assert time.monotonic() - started < 5


@given(st.lists(st.binary(max_size=40).filter(lambda line: b"\r" not in line and b"\n" not in line), max_size=20))
def test_any_lines_are_undone_by_the_receiver_as_they_were_stuffed(lines):
    from examples.support_triage.client import _stuffed

    message = b"".join(line + b"\r\n" for line in [b"Subject: x", *lines])
    received = [line[1:] if line.startswith(b".") else line for line in _stuffed(message).split(b"\r\n")]
    assert b"\r\n".join(received) == message
    assert b"\r\n.\r\n" not in _stuffed(message)
