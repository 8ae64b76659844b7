"""How the tools talk to the outside: one request, one answer, a hard end, and a word for how much is known when it goes wrong.

Nothing here tries twice. Whether trying again is safe depends on what is known, which the three errors tell apart.
"""

import contextlib
import json
import re
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

MAX_ANSWER = 16 * 1024 * 1024


class OutsideError(Exception):
    """Talking to the outside went wrong. Only the three below are raised."""


class NotReached(OutsideError):
    """Nothing was handed over, so nothing can have happened. Asking again is safe."""


class Refused(OutsideError):
    """The outside said no and changed nothing. `code` is its HTTP or SMTP status."""

    def __init__(self, code: int, reason: str, words: str = "{code}: {reason}") -> None:
        super().__init__(words.format(code=code, reason=reason))
        self.code = code
        self.reason = reason


class NoAnswer(OutsideError):
    """It was asked and didn't answer, or not so that it could be understood: it may have happened. Look it up by its key."""


@dataclass(frozen=True)
class FiledTicket:
    """A ticket of the help desk: what the desk says about it, and the customer's message byte for byte."""

    record: dict[str, Any]
    raw: bytes


class Desk:
    """The help desk and CRM at `base_url`. Each call ends within about `timeout` seconds and raises an OutsideError or returns."""

    def __init__(self, base_url: str, timeout: float = 10.0) -> None:
        self._timeout = timeout
        # A fresh connection each time: one that the other side closed meanwhile would turn a plain call into one of unknown outcome.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._http = httpx.Client(base_url=base_url, timeout=timeout, limits=limits, trust_env=False)

    def __enter__(self) -> "Desk":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def file_ticket(self, raw: bytes, key: str) -> dict[str, Any]:
        """Open a ticket for the message `raw`; the same key gives the same ticket."""
        headers = {"Content-Type": "message/rfc822", "Idempotency-Key": key}
        return self._json("POST", "/tickets", content=raw, headers=headers)

    def read_ticket(self, ticket: str) -> FiledTicket:
        """The ticket `ticket` ("ZN-4821")."""
        record = self._json("GET", f"/tickets/{_part(ticket)}")
        return FiledTicket(record, self._ask("GET", f"/tickets/{_part(ticket)}/message"))

    def set_ticket_status(self, ticket: str, status: str, key: str) -> dict[str, Any]:
        """Move the ticket to open, in_progress, answered or closed; the answer holds `previous_status`."""
        return self._json("POST", f"/tickets/{_part(ticket)}/status", json={"status": status}, headers={"Idempotency-Key": key})

    def account_for(self, email: str) -> dict[str, Any]:
        """The account that `email` belongs to: id, name, known, version, contacts, plan, vat_number, refunds_to, invoices."""
        return self._json("GET", "/accounts", params={"email": email})

    def account(self, account: str) -> dict[str, Any]:
        """The account of this number, as `account_for` gives it."""
        return self._json("GET", f"/accounts/{_part(account)}")

    def notes(self, account: str) -> list[dict[str, Any]]:
        """The notes on an account, oldest first, removed ones with a `removed_at`."""
        return self._json("GET", f"/accounts/{_part(account)}/notes")["notes"]

    def add_note(self, account: str, text: str, key: str, version: int | None = None) -> dict[str, Any]:
        """Write a note: id, text, version, created_at. Refused (412) when the account is no longer at `version`."""
        headers = {"Idempotency-Key": key} | ({} if version is None else {"If-Match": f'"{version}"'})
        return self._json("POST", f"/accounts/{_part(account)}/notes", json={"text": text}, headers=headers)

    def remove_note(self, account: str, note: str, key: str | None = None) -> dict[str, Any]:
        """Take a note back; a note taken back before stays so."""
        headers = {"Idempotency-Key": key} if key else {}
        return self._json("DELETE", f"/accounts/{_part(account)}/notes/{_part(note)}", headers=headers)

    def terms(self, account: str) -> dict[str, Any]:
        """How many days an account has to pay: account, name, days."""
        return self._json("GET", f"/accounts/{_part(account)}/terms")

    def set_terms(self, account: str, days: int, key: str) -> dict[str, Any]:
        """Give an account so many days to pay: account, name, days, and how many it had `before`."""
        return self._json("PUT", f"/accounts/{_part(account)}/terms", json={"days": days}, headers={"Idempotency-Key": key})

    def effect(self, key: str) -> dict[str, Any]:
        """What was done under `key`, or under a Message-ID with its brackets: `found`, then kind, target, asked, done, first_at."""
        return self._json("GET", "/effects", params={"key": key})

    def _json(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        body = self._ask(method, path, **request)
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise NoAnswer(f"{path} answered with something else than JSON.") from error
        if not isinstance(value, dict):
            raise NoAnswer(f"{path} answered with something else than an object.")
        return value

    def _ask(self, method: str, path: str, **request: Any) -> bytes:
        until = time.monotonic() + self._timeout
        try:
            with self._http.stream(method, path, **request) as response:
                body = b""
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > MAX_ANSWER or time.monotonic() > until:
                        raise NoAnswer(f"{path} went on for too long.")
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise NotReached(f"{self._http.base_url} can't be reached: {error}") from error
        except httpx.HTTPError as error:
            raise NoAnswer(f"{path} was asked and gave no answer: {error or type(error).__name__}") from error
        if response.is_success:
            return body
        if response.status_code >= 500:
            unknown = "" if method == "GET" else "; what it did before is not known"  # a read does nothing
            raise NoAnswer(f"The desk answered {path} with {response.status_code}{unknown}.")
        if response.status_code == 408:  # it had not heard the whole request when its patience ended: a caller that stood still, say
            raise NotReached(f"{path} did not get the whole request in time: {_reason(body)}")
        raise Refused(response.status_code, _reason(body), "Refused. {reason} (HTTP {code})")


class UnsendableMessage(ValueError):
    """The message or an address can't go over SMTP exactly as it is, and nothing is ever sent otherwise."""


def send_mail(
    message: bytes,
    *,
    sender: str,
    recipients: Sequence[str],
    host: str,
    port: int,
    timeout: float,
    before_last_byte: Callable[[], None] = lambda: None,
) -> str:
    """Hand `message` over once, to all recipients or to none, and return the server's word of acceptance.

    The bytes arrive as they are. `before_last_byte` is called when all but the end of the message is on its way: if it raises, the
    connection is closed, the server has no whole message, and the exception goes on. Everything together takes at most `timeout`
    seconds. Raises UnsendableMessage, NotReached (nothing was accepted), Refused, or NoAnswer (it may have been accepted).
    """
    body = _stuffed(message)
    utf8 = not all(address.isascii() for address in (sender, *recipients))
    options = (" BODY=8BITMIME" if utf8 or not message.isascii() else "") + (" SMTPUTF8" if utf8 else "")
    for address in (sender, *recipients):
        _check_address(address)
    if not recipients:
        raise UnsendableMessage("The message has no recipient.")
    with _Dialogue(host, port, timeout) as dialogue:
        dialogue.expect("220")
        dialogue.say("EHLO fernhill.example", "250")
        dialogue.say(f"MAIL FROM:<{sender}>{options}", "250")
        for recipient in recipients:
            dialogue.say(f"RCPT TO:<{recipient}>", "25")
        dialogue.say("DATA", "354")
        dialogue.write(body[:-2])
        before_last_byte()
        return dialogue.finish(b"\r\n.\r\n")


def _stuffed(message: bytes) -> bytes:
    # Mending line ends would send other bytes than were approved, and some servers take a lone line feed for the message's end.
    if re.search(rb"(?<!\r)\n|\r(?!\n)", message) or not message.endswith(b"\r\n"):
        raise UnsendableMessage("Each line of a message ends with CR LF, and so does the last.")
    if any(len(line) > 998 for line in message.split(b"\r\n")):
        raise UnsendableMessage("A line of a message has at most 998 bytes.")
    return re.sub(rb"(?m)^\.", b"..", message)


def _check_address(address: str) -> None:
    if not re.fullmatch(r"[^\s<>@\x00-\x1f\x7f]+@[^\s<>@\x00-\x1f\x7f]+", address) or len(address.encode("utf-8", "replace")) > 320:
        raise UnsendableMessage(f"{address!r} is no address that mail can be sent to.")


class _Dialogue:
    """One SMTP connection whose every step shares one deadline. Up to `finish`, whatever fails means that nothing was accepted."""

    def __init__(self, host: str, port: int, timeout: float) -> None:
        self._until = time.monotonic() + timeout
        self._unread = b""
        try:
            self._socket = socket.create_connection((host, port), timeout=timeout)
        except OSError as error:
            raise NotReached(f"The mail server {host}:{port} can't be reached: {error}") from error

    def __enter__(self) -> "_Dialogue":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def say(self, line: str, expected: str) -> None:
        """Send a command and read the reply. Raises Refused, NotReached."""
        self.write(line.encode("utf-8") + b"\r\n")
        self.expect(expected)

    def write(self, data: bytes) -> None:
        """Send bytes. Raises NotReached."""
        try:
            self._send(data)
        except OSError as error:
            raise NotReached(f"The mail server went away before the message was complete: {error}") from error

    def expect(self, expected: str) -> None:
        """Read a reply whose code begins with `expected`. Raises Refused, NotReached."""
        try:
            code, text = self._reply()
        except (OSError, ValueError) as error:
            raise NotReached(f"The mail server stopped answering before the message was complete: {error}") from error
        if not code.startswith(expected):
            raise Refused(int(code), text)

    def finish(self, end: bytes) -> str:
        """Send the bytes that complete the message; the acceptance. Raises Refused, NotReached when it was too late to begin, NoAnswer."""
        if self._left() <= 0:
            raise NotReached("The time was up before the message was complete.")
        try:
            self._send(end)
            code, text = self._reply()
        except (OSError, ValueError) as error:
            raise NoAnswer(f"The mail server had the whole message and gave no answer: {error}") from error
        if not code.startswith("25"):
            raise Refused(int(code), text)
        self._leave()
        return f"{code} {text}"

    def _leave(self) -> None:
        with contextlib.suppress(OSError):  # only manners: the message is accepted
            self._send(b"QUIT\r\n")

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _send(self, data: bytes) -> None:
        self._arm()
        self._socket.sendall(data)  # its time-out is for the whole of it

    def _reply(self) -> tuple[str, str]:
        lines: list[str] = []
        while True:
            line = self._line()
            if not re.match(r"[2-5]\d\d(?:[ -]|$)", line) or len(lines) == 100:
                raise ValueError(f"it said {line[:80]!r}")
            lines.append(line[4:])
            if line[3:4] != "-":
                return line[:3], " ".join(lines).strip()

    def _line(self) -> str:
        while b"\n" not in self._unread:
            if len(self._unread) > 10_000:
                raise ValueError("a reply without an end")
            self._arm()
            received = self._socket.recv(4096)
            if not received:
                raise ConnectionError("connection closed")
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    def _arm(self) -> None:
        left = self._left()
        if left <= 0:
            raise TimeoutError("timed out")
        self._socket.settimeout(left)


def _part(value: str) -> str:
    # A name from outside stays one part of the path, whatever it holds.
    return quote(value, safe="") if value not in (".", "..") else "%2E" * len(value)


def _reason(body: bytes) -> str:
    """All that it says: whoever shows it hides what must be hidden before cutting it, as half a secret passes for none."""
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, RecursionError, TypeError, KeyError):
        return body.decode("utf-8", "replace")
