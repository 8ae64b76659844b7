"""The desk tells who subscribed of every change of a ticket: signed, until it is acknowledged, and twice if it is told to misbehave."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson
import pytest

from examples.support_triage.desk import hooks
from examples.support_triage.desk.store import Store
from runs import standard_webhooks
from tests.examples.outside import World
from tests.waiting import until

SECRET = standard_webhooks.new_secret()
MESSAGE = b"From: marta.oyelaran@brightwater.example\r\nTo: support@fernhill.example\r\nSubject: Hello\r\n\r\nHello.\r\n"


class Listener(ThreadingHTTPServer):
    """Takes webhooks. `statuses`: what the next ones are answered with, before 204."""

    def __init__(self) -> None:
        self.came: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        super().__init__(("127.0.0.1", 0), Take)


class Take(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.came.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(self.server.statuses.pop() if self.server.statuses else 204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def listener() -> Iterator[Listener]:
    server = Listener()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def desk(tmp_path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.stop()


def test_what_was_due_by_the_clock_of_another_start_of_the_machine_is_told_at_once(tmp_path, listener):
    store = Store(tmp_path)
    with store.changing() as db:
        hooks.subscribe(db, url=f"http://127.0.0.1:{listener.server_port}/", ticket="", secret=SECRET)
        hooks.tell(db, "ticket.changed", {"ticket": "ZN-1"}, about="ZN-1")
        db.execute("UPDATE delivery SET due = due + 1000000")
    sender = hooks.Sender(store)
    running = threading.Thread(target=sender.run, daemon=True)
    running.start()
    until(lambda: listener.came, what="what is due")
    sender.stop()
    running.join()
    store.close()


def test_a_change_is_told_signed_until_it_is_acknowledged_and_twice_if_it_misbehaves(desk, listener):
    ticket = desk.http.post("/tickets", content=MESSAGE, headers={"Content-Type": "message/rfc822"}).json()["id"]
    url = f"http://127.0.0.1:{listener.server_port}/"
    assert desk.http.post("/hooks", json={"url": url, "secret": "x!"}).status_code == 400
    desk.http.post("/hooks", json={"url": url, "secret": SECRET, "ticket": "ZN-1"}).raise_for_status()
    desk.http.post("/hooks", json={"url": url, "secret": SECRET, "ticket": ticket}).raise_for_status()
    listener.statuses = [500]
    desk.http.post(f"/tickets/{ticket}/status", json={"status": "closed"}).raise_for_status()
    until(lambda: len(listener.came) == 2, what="the second try")
    first, second = listener.came
    assert first[0]["webhook-id"] == second[0]["webhook-id"] and first[1] == second[1]
    told = standard_webhooks.headers(first[0])
    assert standard_webhooks.signature(SECRET, told.id, told.stamp, first[1]) in told.signatures
    assert orjson.loads(first[1])["data"] == {"ticket": ticket, "status": "closed", "previous_status": "open"}
    desk.http.post("/faults", json={"where": "webhook", "fault": "webhook_twice", "options": {"ids": "new"}}).raise_for_status()
    desk.http.post(f"/tickets/{ticket}/status", json={"status": "open"}).raise_for_status()
    until(lambda: len(listener.came) == 4, what="both")
    assert len({headers["webhook-id"] for headers, _ in listener.came[2:]}) == 2
    assert desk.http.post("/faults", json={"where": "smtp", "fault": "webhook_twice"}).status_code == 400
