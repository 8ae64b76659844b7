"""The outside world keeps what it says it keeps, does each keyed thing once, and bears bad callers."""

import re
import signal
import smtplib
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.examples.outside import COMMAND, ROOT, World

TICKETS = ROOT / "examples" / "support_triage" / "tickets"
PLAIN = (TICKETS / "duplicate-charge.eml").read_bytes()
MESSAGE = {"Content-Type": "message/rfc822"}


def file(world: World, raw: bytes = PLAIN, **headers: str) -> httpx.Response:
    return world.http.post("/tickets", content=raw, headers=MESSAGE | {name.replace("_", "-"): value for name, value in headers.items()})


def note(world: World, text: str = "Called back", account: str = "00932", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return world.http.post(f"/accounts/{account}/notes", json={"text": text}, headers=named)


@pytest.mark.parametrize("path", sorted(TICKETS.glob("*.eml")), ids=lambda path: path.stem)
def test_a_filed_message_comes_back_byte_for_byte(world, path: Path):
    ticket = file(world, path.read_bytes()).json()
    assert world.http.get(f"/tickets/{ticket['id']}/message").content == path.read_bytes()
    assert world.http.get(f"/tickets/{ticket['id']}").json() == ticket
    assert world.http.get(f"/accounts/{ticket['customer']}").json()["known"] == (path.stem != "your-statement")  # its sender is a stranger


def test_the_first_ticket_has_the_number_of_the_story(world):
    ticket = file(world).json()
    assert (ticket["id"], ticket["customer"], ticket["status"]) == ("ZN-4821", "00932", "open")
    assert world.http.get("/tickets").json() == {"tickets": [ticket], "total": 1}


def test_the_same_key_and_message_is_the_same_ticket(world):
    first, again = file(world, Idempotency_Key="k-1"), file(world, Idempotency_Key="k-1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert again.headers["Idempotent-Replay"] == "true"
    assert world.http.get("/tickets").json()["total"] == 1


def test_the_same_key_with_another_body_is_refused(world):
    file(world, Idempotency_Key="k-1")
    other = file(world, PLAIN + b"more\r\n", Idempotency_Key="k-1")
    assert other.status_code == 422
    assert other.headers["Content-Type"] == "application/problem+json"
    assert note(world, Idempotency_Key="k-1").status_code == 422
    assert world.http.get("/tickets").json()["total"] == 1


def test_what_is_no_message_becomes_no_ticket(world):
    assert file(world, b"not a message").status_code == 422
    assert world.http.post("/tickets", content=PLAIN, headers={"Content-Type": "text/plain"}).status_code == 415
    assert world.http.get("/tickets").json()["total"] == 0


def test_a_stranger_gets_an_empty_account_and_keeps_it(world):
    raw = b"From: Eve <eve@far-away.example>\r\nSubject: Hello\r\n\r\nHello"
    account = world.http.get(f"/accounts/{file(world, raw).json()['customer']}").json()
    assert (account["known"], account["invoices"], account["name"]) == (False, [], "far-away.example")
    assert account["contacts"] == [{"name": "Eve", "email": "eve@far-away.example"}]
    assert world.http.get("/accounts", params={"email": "EVE@far-away.example"}).json() == account


def test_a_colleague_of_a_customer_is_not_taken_for_the_customer(world):
    account = world.http.get("/accounts", params={"email": "someone@brightwater.example"}).json()
    assert not account["known"]
    assert account["invoices"] == []


def test_a_note_is_written_once_per_key(world):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: note(world, Idempotency_Key="note-1"), range(16)))
    assert sorted(answer.status_code for answer in answers) == [200] * 15 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(world.http.get("/accounts/00932/notes").json()["notes"]) == 1
    (effect,) = world.ledger()
    assert (effect["key"], effect["done"], effect["asked"]) == ("note-1", 1, 16)


def test_a_note_against_an_old_version_is_refused(world):
    version = world.http.get("/accounts/00932").json()["version"]
    assert note(world, If_Match=f'"{version}"').status_code == 201
    stale = note(world, If_Match=f'"{version}"', Idempotency_Key="late")
    assert stale.status_code == 412
    assert world.http.get("/effects", params={"key": "late"}).json()["found"] is False
    assert len(world.http.get("/accounts/00932/notes").json()["notes"]) == 1


def test_taking_a_note_back_twice_takes_it_back_once(world):
    path = f"/accounts/00932/notes/{note(world).json()['id']}"
    first, second = world.http.delete(path), world.http.delete(path)
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()
    assert first.json()["removed_at"]
    assert [(effect["kind"], effect["done"]) for effect in world.ledger()] == [("crm.note", 1), ("crm.note.remove", 1)]


def test_a_note_that_was_taken_back_is_not_written_again_by_its_key(world):
    written = note(world, Idempotency_Key="note-1").json()
    world.http.delete(f"/accounts/00932/notes/{written['id']}", headers={"Idempotency-Key": "undo-1"})
    assert note(world, Idempotency_Key="note-1").json()["id"] == written["id"]
    (kept,) = world.http.get("/accounts/00932/notes").json()["notes"]
    assert kept["removed_at"]


def test_a_status_change_tells_what_was_before(world):
    file(world)
    moved = world.http.post("/tickets/ZN-4821/status", json={"status": "answered"}, headers={"Idempotency-Key": "s-1"}).json()
    assert (moved["status"], moved["previous_status"], moved["version"]) == ("answered", "open", 2)
    assert world.http.get("/effects", params={"key": "s-1"}).json()["answer"]["previous_status"] == "open"
    assert world.http.post("/tickets/ZN-4821/status", json={"status": "lost"}).status_code == 400


def test_an_effect_is_found_by_its_key_or_said_not_to_be_there(world):
    note(world, Idempotency_Key="n-1")
    found = world.http.get("/effects", params={"key": "n-1"}).json()
    assert (found["found"], found["kind"], found["target"], found["done"]) == (True, "crm.note", "accounts/00932/notes/N-1", 1)
    assert world.http.get("/effects", params={"key": "n-2"}).json()["found"] is False
    assert world.http.get("/effects").status_code == 400


@pytest.mark.parametrize(
    ("where", "send", "kind"),
    [
        ("crm.note", lambda world: note(world, Idempotency_Key="f-1"), "crm.note"),
        ("ticket.file", lambda world: file(world, Idempotency_Key="f-1"), "ticket.file"),
    ],
)
def test_a_dropped_answer_means_done_and_not_told(world, where, send, kind):
    world.plant(where)
    with pytest.raises(httpx.RemoteProtocolError):
        send(world)
    assert world.http.get("/effects", params={"key": "f-1"}).json()["done"] == 1
    assert send(world).status_code == 200  # the fault is used up, and the key tells it was done
    assert [(effect["kind"], effect["done"]) for effect in world.ledger()] == [(kind, 1)]
    (fault,) = world.http.get("/faults").json()["faults"]
    assert (fault["used"], fault["left"]) == (1, 0)


def faulty(world, where: str, fault: str, **options) -> None:
    assert world.http.post("/faults", json={"where": where, "fault": fault, "options": options}).status_code == 201


@pytest.mark.parametrize(("fault", "done"), [("fail_before", 0), ("refuse_key", 0), ("fail_after", 1)])
def test_an_error_says_nothing_of_whether_it_was_done(world, fault, done):
    faulty(world, "crm.note", fault)
    assert note(world, Idempotency_Key="f-2").status_code in (401, 500)
    assert world.http.get("/effects", params={"key": "f-2"}).json().get("done", 0) == done


def test_half_an_answer_is_none(world):
    faulty(world, "crm.note", "half_answer")
    with pytest.raises(httpx.RemoteProtocolError):
        note(world, Idempotency_Key="f-3")
    assert world.http.get("/effects", params={"key": "f-3"}).json()["done"] == 1


def test_a_changed_answer_has_other_names_for_its_fields(world):
    faulty(world, "crm.note", "change_schema", rename={"id": "number"})
    answer = note(world).json()
    assert "number" in answer and "id" not in answer


def test_a_late_answer_comes_late(world):
    hasty = httpx.Timeout(20, read=0.5)
    faulty(world, "crm.note", "delay", seconds=2)
    with pytest.raises(httpx.ReadTimeout):
        world.http.post("/accounts/00932/notes", json={"text": "x"}, headers={"Idempotency-Key": "f-4"}, timeout=hasty)
    assert _eventually(lambda: world.http.get("/effects", params={"key": "f-4"}).json().get("done") == 1)


@pytest.mark.parametrize(
    ("where", "fault", "options"),
    [
        ("crm.note", "delay", {"seconds": "x"}),
        ("crm.note", "delay", {"seconds": 1e9}),
        ("crm.note", "change_schema", {}),
        ("smtp", "half_answer", {}),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(world, where, fault, options):
    assert world.http.post("/faults", json={"where": where, "fault": fault, "options": options}).status_code == 400
    assert world.http.get("/faults").json()["faults"] == []


def test_a_fault_waits_for_a_request_that_does_something(world):
    world.plant("crm.note")
    assert note(world, account="99999").status_code == 404
    assert world.http.get("/faults").json()["faults"][0]["used"] == 0


def test_faults_can_be_cleared(world):
    world.plant("crm.note")
    world.plant("smtp")
    first = world.http.get("/faults").json()["faults"][0]["id"]
    assert world.http.delete(f"/faults/{first}").json() == {"cleared": 1}
    assert world.http.delete("/faults").json() == {"cleared": 1}
    assert world.http.get("/faults").json() == {"faults": []}
    assert note(world).status_code == 201


def test_an_unknown_fault_names_the_known_ones(world):
    answer = world.http.post("/faults", json={"where": "moon", "fault": "drop_answer"})
    assert answer.status_code == 400
    assert "crm.note" in answer.json()["detail"]


def test_a_ticket_is_answered_when_a_reply_to_it_reaches_who_wrote_it(world):
    ticket = file(world).json()
    for to, status in (("somebody@else.example", "open"), (ticket["sender"].upper(), "answered"), (ticket["sender"], "answered")):
        reply = f"From: a@fernhill.example\r\nIn-Reply-To: {ticket['message_id']}\r\nMessage-ID: <{to}>\r\n\r\nHello\r\n"
        with smtplib.SMTP(*world.smtp) as server:
            server.sendmail("a@fernhill.example", [to], reply)
        assert world.http.get(f"/tickets/{ticket['id']}").json()["status"] == status


def test_what_was_answered_survives_a_kill(tmp_path):
    first = World(tmp_path)
    file(first, Idempotency_Key="k-1")
    note(first, Idempotency_Key="n-1")
    first.stop(signal.SIGKILL)
    second = World(tmp_path)
    assert file(second, Idempotency_Key="k-1").status_code == 200
    assert note(second, Idempotency_Key="n-1").status_code == 200
    assert [effect["done"] for effect in second.ledger()] == [1, 1]
    second.stop()


def test_a_stop_is_prompt_even_with_open_connections(world):
    with socket.create_connection(("127.0.0.1", world.http_port)) as half, socket.create_connection(world.smtp):
        half.sendall(b"POST /tickets HTTP/1.1\r\nContent-Length: 5\r\n\r\n12")
        started = time.monotonic()
        assert world.stop() == ""
        assert world.process.returncode == 0
    assert time.monotonic() - started < 10  # its patience would be twenty


def test_a_crowd_that_says_nothing_stops_neither_the_desk_nor_its_stop(world):
    crowd = [socket.create_connection(("127.0.0.1", world.http_port)) for _ in range(80)]
    assert raw_exchange(world, b"GET /health HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 503 ")
    for connection in crowd:
        connection.close()
    assert _eventually(lambda: raw_exchange(world, b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 200 "))
    crowd = [socket.create_connection(("127.0.0.1", world.http_port)) for _ in range(80)]
    started = time.monotonic()
    assert world.stop() == ""
    assert time.monotonic() - started < 10
    for connection in crowd:
        connection.close()


def _eventually(holds, seconds: float = 40) -> bool:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
    return True


@pytest.mark.parametrize("option", ["--http-port", "--smtp-port"])
def test_a_busy_port_gives_one_clear_line(world, tmp_path, option):
    ports = {"--http-port": "0", "--smtp-port": "0", option: str(world.http_port)}
    command = [*COMMAND, "--data", str(tmp_path / "other"), *(word for pair in ports.items() for word in pair)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20)
    assert done.returncode == 1
    assert done.stderr == f"desk: port {world.http_port} is in use; choose another with {option}.\n"


def test_too_large_a_body_is_refused_and_nothing_kept(world):
    answer = file(world, PLAIN + b"x" * (12 * 1024 * 1024))
    assert answer.status_code == 413
    assert world.http.get("/tickets").json()["total"] == 0


def raw_exchange(world: World, *pieces: bytes, pause: float = 0.0) -> bytes:
    with socket.create_connection(("127.0.0.1", world.http_port), timeout=10) as connection:
        for piece in pieces:
            try:
                connection.sendall(piece)
            except OSError:
                break
            threading.Event().wait(pause)
        received = b""
        try:
            while piece := connection.recv(65536):
                received += piece
        except ConnectionResetError:
            pass
        return received


NOTE = b"POST /accounts/00932/notes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (NOTE + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345", b"400"),
        (NOTE + b"Content-Length: -5\r\n\r\n", b"400"),
        (NOTE + b"Content-Length: 99999999999999999999\r\n\r\n", b"413"),
        (NOTE + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"411"),
        (NOTE + b"Connection: close\r\nContent-Length: 4\r\n\r\n[[[[", b"400"),
        (NOTE + b"Connection: close\r\nContent-Length: 2\r\n\r\n[]", b"400"),
        (NOTE + b'Connection: close\r\nContent-Length: 15\r\n\r\n{"text": "\\u0000"}', b"400"),
        (b"NONSENSE\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 300 + b"\r\n", b"431"),
        (b"GET /nowhere HTTP/1.1\r\nConnection: close\r\n\r\n", b"404"),
        (b"DELETE /tickets HTTP/1.1\r\nConnection: close\r\n\r\n", b"405"),
        (b"BREW /tickets HTTP/1.1\r\n\r\n", b"501"),
    ],
)
def test_a_malformed_request_gets_a_clear_no_and_changes_nothing(world, request_bytes, status):
    answer = raw_exchange(world, request_bytes)
    assert re.search(rb"(?m)^HTTP/1\.[01] " + status, answer)
    assert b"application/problem+json" in answer
    assert world.ledger() == []


def test_a_half_sent_body_is_given_up_and_changes_nothing(hasty):
    assert b" 408 " in raw_exchange(hasty, NOTE + b'Content-Length: 20\r\n\r\n{"text": "')
    assert hasty.ledger() == []


def test_a_body_that_ends_early_changes_nothing(world):
    with socket.create_connection(("127.0.0.1", world.http_port), timeout=10) as connection:
        connection.sendall(NOTE + b'Content-Length: 20\r\n\r\n{"text": "')
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    assert world.ledger() == []


def test_a_trickle_does_not_buy_time(hasty):
    started = time.monotonic()
    raw_exchange(hasty, *[bytes([byte]) for byte in NOTE], pause=0.1)
    assert time.monotonic() - started < 6  # all of it would take more than eight
    assert hasty.ledger() == []


HOSTILE = (
    b"From: =?utf-8?Q?=3Cscript=3Ealert=281=29=3C/script=3E?= <eve@x.example>\r\n"
    b"Subject: <img src=x onerror=alert(1)> {{ 7*7 }}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"\r\n</div><script>alert(2)</script> {% raw %} \x1b[31m"
)


def test_hostile_text_stays_text_on_every_page(world):
    ticket = file(world, HOSTILE).json()
    note(world, "<script>alert(3)</script>", account=ticket["customer"])
    pages = ["/", "/mailbox", "/crm", "/crm/tickets", f"/crm/tickets/{ticket['id']}", f"/crm/accounts/{ticket['customer']}", "/crm/ledger"]
    for page in pages:
        answer = world.http.get(page)
        assert answer.status_code == 200, page
        assert "<script" not in answer.text
        assert "<img src=x" not in answer.text
        assert "style=" not in answer.text
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; img-src 'self'")
        assert "unsafe" not in policy
    assert "{{ 7*7 }}" in world.http.get(f"/crm/tickets/{ticket['id']}").text
    assert "&lt;script&gt;alert(3)" in world.http.get(f"/crm/accounts/{ticket['customer']}").text


def test_a_person_can_see_the_note_and_the_ticket(world):
    file(world)
    note(world, "Refund of 1284.00 EUR due.")
    assert "Refund of 1284.00 EUR due." in world.http.get("/crm/accounts/00932").text
    assert "Refund of 1284.00 EUR due." in world.http.get("/crm").text
    assert "We&#39;ve been charged twice" in world.http.get("/crm/tickets/ZN-4821").text
    missing = world.http.get("/crm/tickets/ZN-1")
    assert missing.status_code == 404
    assert "There is no ticket ZN-1." in missing.text


def test_an_attachment_is_a_download_of_unknown_type(world):
    file(world, (TICKETS / "wrong-vat-number.eml").read_bytes())
    answer = world.http.get("/crm/tickets/ZN-4821/files/0")
    assert answer.content.startswith(b"%PDF-")
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == "attachment; filename*=UTF-8''INV-21077.pdf"
    assert world.http.get("/crm/tickets/ZN-4821/files/1").status_code == 404


def test_the_desk_knows_nothing_of_handrail():
    rooms = re.compile(r"^\s*(?:from|import) (?:config|access|artifacts|runs|approvals|django)\b", re.M)
    for path in (ROOT / "examples" / "support_triage" / "desk").rglob("*.py"):
        assert not rooms.search(path.read_text()), path


def test_a_fault_of_the_mail_server_can_wait_for_a_message_to_somebody(world) -> None:
    faulty(world, "smtp", "drop_answer", to="b@else.example")

    def sent(to: str) -> None:
        with smtplib.SMTP(*world.smtp) as server:
            server.sendmail("a@fernhill.example", [to], f"Message-ID: <{to}>\r\n\r\nHello\r\n")

    sent("a@else.example")
    with pytest.raises(smtplib.SMTPServerDisconnected):
        sent("b@else.example")
    assert world.http.get("/faults").json()["faults"][0]["left"] == 0


def test_a_full_mailbox_refuses_a_message_and_takes_it_when_it_is_sent_again(world) -> None:
    faulty(world, "smtp", "mailbox_full", to="b@else.example")
    message = "Message-ID: <full@fernhill.example>\r\n\r\nHello\r\n"
    with smtplib.SMTP(*world.smtp) as server:
        with pytest.raises(smtplib.SMTPRecipientsRefused) as refused:
            server.sendmail("a@fernhill.example", ["b@else.example"], message)
        assert refused.value.recipients == {"b@else.example": (552, b"5.2.2 The mailbox is full")}
        assert world.ledger() == [], "nothing was kept"
        assert server.sendmail("a@fernhill.example", ["b@else.example"], message) == {}
    assert [effect["done"] for effect in world.ledger()] == [1]
    assert world.http.get("/faults").json()["faults"][0]["left"] == 0
