"""The HTTP side: sockets, limits and time-outs, around a function from Request to Answer."""

import contextlib
import io
import json
import socket
import socketserver
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

MAX_BODY = 12 * 1024 * 1024
_MAX_AT_ONCE = 64
_SAFE = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'"
    "; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Request:
    """One whole request: header names in lower case, the last value of a repeated query name."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """One whole answer."""

    status: int
    body: bytes = b""
    media_type: str = "text/plain; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)
    half: bool = False  # it breaks off in the middle of its body


class Dropped(Exception):
    """Close the connection; send nothing."""


def of_own_page(request: Request) -> bool:
    """Whether a form was sent by a page of the desk: a browser says so, and over plain HTTP some say no more than from which address.

    What is no browser may send what it likes.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    return site == "same-origin" or (site is None and origin in (None, f"http://{request.headers.get('host')}"))


def json_answer(status: int, value: Any, **headers: str) -> Answer:
    """`value` as JSON."""
    return Answer(status, json.dumps(value, ensure_ascii=False).encode(), "application/json", headers)


def problem(status: int, title: str, detail: str) -> Answer:
    """An RFC 9457 problem."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return Answer(status, json.dumps(body, ensure_ascii=False).encode(), "application/problem+json")


class Server(ThreadingHTTPServer):
    """Listens from the start; `serve_forever` answers. Raises OSError when the port can't be had."""

    daemon_threads = True  # a stop need not wait for slow clients: what was answered is on the disk
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], answer: Callable[[Request], Answer], patience: float) -> None:
        self.answer = answer
        self.patience = patience
        self._places = threading.BoundedSemaphore(_MAX_AT_ONCE)
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # Not HTTPServer's: that one asks the name server for the host's full name, which can hang without a network.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(timeout=0.1):  # no longer: the next in the queue, and a stop, wait for this
            super().process_request(request, client_address)
            return
        with contextlib.suppress(OSError):
            request.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # a client that went away is no news
            traceback.print_exc()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "Desk"
    sys_version = ""
    server: Server

    def setup(self) -> None:
        super().setup()
        self._clock = _Clock(self.connection, self.server.patience)
        self.rfile = io.BufferedReader(self._clock)

    def handle_one_request(self) -> None:
        self._clock.restart()
        super().handle_one_request()

    def do_GET(self) -> None:
        try:
            answer = self._answer()
        except Dropped:
            self.close_connection = True
            return
        self.connection.settimeout(self.server.patience)
        self._send(answer)

    do_HEAD = do_POST = do_DELETE = do_PUT = do_PATCH = do_GET

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        # The base class calls this for requests it can't even parse.
        self.close_connection = True
        self.command = self.command if hasattr(self, "command") else ""
        self._send(problem(int(code), message or "Malformed request", explain or "The request could not be read."))

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def _answer(self) -> Answer:
        body = self._body()
        if isinstance(body, Answer):
            self.close_connection = True  # what is left of the body would be taken for the next request
            return body
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(url.query, keep_blank_values=True, max_num_fields=50))
        try:
            return self.server.answer(Request("GET" if self.command == "HEAD" else self.command, url.path, query, headers, body))
        except Dropped:
            raise
        except Exception:
            traceback.print_exc()
            return problem(500, "The desk failed", "Whether anything was changed can be looked up at /effects.")

    def _body(self) -> bytes | Answer:
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers:
            return problem(411, "Length required", "Send the body in one piece, with a Content-Length.")
        if not lengths:
            return b""
        if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
            return problem(400, "Malformed request", "Content-Length is one whole number.")
        if len(lengths[0]) > 12 or int(lengths[0]) > MAX_BODY:
            return problem(413, "Too large", f"A body has at most {MAX_BODY // 1024 // 1024} MB. Nothing was kept.")
        try:
            body = self.rfile.read(int(lengths[0]))
        except TimeoutError:
            return problem(408, "Too slow", f"The request did not arrive within {self.server.patience:g} s. Nothing was kept.")
        if len(body) < int(lengths[0]):
            raise Dropped
        return body

    def _send(self, answer: Answer) -> None:
        self.request_version = self.protocol_version  # even to a request that names none: an answer without headers helps nobody
        self.send_response(answer.status)
        fixed = {"Content-Type": answer.media_type, "Content-Length": str(len(answer.body)), **_SAFE}
        for name, value in {**fixed, **answer.headers}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if answer.half:
            self.close_connection = True
            self.wfile.write(answer.body[: len(answer.body) // 2])
        elif self.command != "HEAD":
            self.wfile.write(answer.body)
        if answer.status == 413:
            self._hear_out()

    def _hear_out(self) -> None:
        # A client still busy sending would see a reset instead of the answer, so what it sends is read and thrown away for a while.
        try:
            self.connection.shutdown(socket.SHUT_WR)
            while self.rfile.read1(65536):
                pass
        except OSError:
            pass


class _Clock(io.RawIOBase):
    """Reads a socket; all reads of one request share its time, so that sending a byte now and then doesn't help."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._seconds = seconds
        self.restart()

    def restart(self) -> None:
        self._until = time.monotonic() + self._seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("too slow")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)
