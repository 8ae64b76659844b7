"""What the tests of notifications share: a clock that moves, a real mail server, a real web server that is posted to."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from approvals.notifications import chasing, sending, spreading
from config import clock
from tests.stack import free_ports


class Clock:
    """Every clock of this process, moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.by = timedelta()
        monkeypatch.setattr(clock, "offset", lambda: self.by)

    def on(self, **by: float) -> None:
        self.by += timedelta(**by)


class Mailbox:
    """A mail server on this machine. `answer` is what it says to a message, and to a recipient if it begins so."""

    def __init__(self, port: int) -> None:
        self.port, self.mails, self.answer = port, [], "250 OK"
        self.envelopes: list[tuple[str, list[str]]] = []

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]) -> str:
        if self.answer.startswith("RCPT "):
            return self.answer.removeprefix("RCPT ")
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.answer.startswith("250"):
            self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
            self.envelopes.append((envelope.mail_from, envelope.rcpt_tos))
        return self.answer

    def to(self, name: str) -> list[EmailMessage]:
        return [mail for mail in self.mails if name in mail["To"]]


@contextmanager
def mail_server(settings: Any) -> Iterator[Mailbox]:
    """One that the settings name."""
    box = Mailbox(free_ports(1))
    controller = Controller(box, hostname="127.0.0.1", port=box.port)
    controller.start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.HANDRAIL_MAIL = "127.0.0.1", box.port, True
    try:
        yield box
    finally:
        controller.stop()


@dataclass
class Hook:
    """A web server that is posted to."""

    port: int = 0
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    posts: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


@contextmanager
def web_server() -> Iterator[Hook]:
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            hook.posts.append(({name.lower(): value for name, value in self.headers.items()}, content))
            self.send_response(hook.status)
            for name, value in hook.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(hook.body)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    hook.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def tick() -> None:
    """What the worker does every few seconds."""
    chasing.remind_due()
    chasing.escalate_due()
    spreading.spread()
    sending.pack()
    sending.send_due()
