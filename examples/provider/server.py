"""A provider of language models that is none: it speaks as OpenAI's API does, answers by fixed rules, and fails when it is told to.

POST /v1/chat/completions   an answer
GET POST DELETE /faults     what goes wrong next: {"fault", "times", "model", "key", "seconds"}
POST /answers               what is answered next, instead of what the rules say: a list of {"values"} or {"call": {"tool", "arguments"}}
GET /calls                  what was asked so far, in order: {"model", "key", "status", "tools", "messages"}
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from . import playing

MAX_BODY = 12 * 1024 * 1024
FAULTS = (
    "limit",  # 429, with Retry-After of `seconds`
    "fail",  # 500
    "refuse_key",  # 401
    "hang",  # nothing comes for `seconds`, then the connection ends
    "slow",  # it answers after `seconds`
    "cut",  # the connection ends in the middle of the answer
    "length",  # finish_reason length, with half an answer
    "malformed",  # 200, and no JSON
    "odd",  # JSON that does not fit what was asked for
    "invent",  # it calls a tool that does not exist
    "words",  # it says something, where it should have called a tool
    "too_long",  # 400: more than its context
)
ERRORS = {"limit": (429, "rate_limit_exceeded"), "fail": (500, "server_error"), "refuse_key": (401, "invalid_api_key")}
ERRORS |= {"too_long": (400, "context_length_exceeded")}


@dataclass
class Fault:
    """What goes wrong, how often, and with whom: an empty model or key means each."""

    fault: str
    times: int = 1
    model: str = ""
    key: str = ""
    seconds: float = 0.0


@dataclass
class Asked:
    """One request."""

    model: str
    key: str
    body: dict[str, Any] = field(repr=False)
    status: int = 0

    def told(self) -> dict[str, Any]:
        tools = [tool["function"]["name"] for tool in self.body.get("tools", ())]
        return {"model": self.model, "key": self.key, "status": self.status, "tools": tools, "messages": self.body["messages"]}


class Provider:
    """Listens from the start; `start` answers, in threads of its own. Raises OSError when the port can't be had."""

    def __init__(self, port: int = 0) -> None:
        self.faults: list[Fault] = []
        self.answers: list[dict[str, Any]] = []
        self.calls: list[Asked] = []
        self.while_asked: Callable[[], None] = lambda: None  # for tests in the same process: runs while somebody waits for an answer
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), type("Bound", (_Handler,), {"provider": self}))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def start(self) -> "Provider":
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def stop(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    def fail(self, fault: str, times: int = 1, **more: Any) -> None:
        if fault not in FAULTS:
            raise ValueError(f"{fault}: not one of {', '.join(FAULTS)}")
        with self._lock:
            self.faults.append(Fault(fault, times, **more))

    def wait(self, seconds: float) -> None:
        """For so long, or until it is stopped."""
        self._over.wait(seconds)

    def asked(self, asked: Asked) -> tuple[Fault | None, dict[str, Any] | None]:
        """Count it; what goes wrong with it, and what it is answered if somebody said so."""
        with self._lock:
            self.calls.append(asked)
            fault = next((each for each in self.faults if each.model in ("", asked.model) and each.key in ("", asked.key)), None)
            if fault:
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
            fails = fault is not None and fault.fault not in ("slow", "length")
            return fault, self.answers.pop(0) if self.answers and not fails else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    provider: Provider

    def do_GET(self) -> None:
        if self.path == "/faults":
            return self._send(200, [asdict(fault) for fault in self.provider.faults])
        if self.path == "/calls":
            return self._send(200, [asked.told() for asked in self.provider.calls])
        return self._send(404, {"error": {"message": "There is nothing here.", "code": "not_found"}})

    def do_DELETE(self) -> None:
        if self.path == "/faults":
            self.provider.faults.clear()
        self._send(200, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(min(int(self.headers.get("Content-Length") or 0), MAX_BODY)) or b"{}")
        if self.path == "/faults":
            self.provider.fail(**body)
            return self._send(200, {})
        if self.path == "/answers":
            self.provider.answers.extend(body)
            return self._send(200, {})
        if self.path == "/v1/chat/completions":
            return self._complete(Asked(body["model"], self.headers.get("Authorization", "").removeprefix("Bearer "), body))
        return self._send(404, {"error": {"message": "There is nothing here.", "code": "not_found"}})

    def log_message(self, *_: object) -> None:
        """It keeps its own account: GET /calls."""

    # an answer ---------------------------------------------------------------------------------------------------------------------

    def _complete(self, asked: Asked) -> None:
        fault, preset = self.provider.asked(asked)
        self.provider.while_asked()
        what = fault.fault if fault else ""
        if what in ERRORS:
            asked.status, code = ERRORS[what]
            headers = {"Retry-After": f"{fault.seconds:g}"} if fault.seconds else {}
            # as real ones do, it says a part of the key: none of this may get into a log
            message = f"Something about {asked.key[:8]}… and {json.dumps(asked.body)[:200]}"
            return self._send(asked.status, {"error": {"message": message, "type": code, "code": code}}, **headers)
        if what in ("hang", "slow"):
            self.provider.wait(fault.seconds)
        if what == "hang":
            return self._end()
        asked.status = 200
        if what == "malformed":
            return self._raw(200, b"<html>Bad gateway, with a status of its own", "text/html")
        whole = playing.completion(asked.body, preset, what)
        if what == "cut":
            text = json.dumps(whole).encode()
            self._raw(200, text[: len(text) // 2], "application/json", length=len(text))
            return self._end()
        return self._send(200, whole)

    def _send(self, status: int, value: Any, **headers: str) -> None:
        self._raw(status, json.dumps(value).encode(), "application/json", headers=headers)

    def _raw(self, status: int, body: bytes, media_type: str, *, length: int | None = None, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": media_type, "Content-Length": str(length or len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _end(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        time.sleep(0)
        self.connection.close()
