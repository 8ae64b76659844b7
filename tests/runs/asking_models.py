"""Workflows that ask models, and a provider of them over HTTP, for tests."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from examples.provider.server import Provider
from runs.engine import providers
from runs.engine.models import script
from runs.engine.workflow import Answers, Channel, workflow
from tests.runs.workflows import look, note_it, say

PROMPTS = Path(__file__).parent / "prompts"
WORDS = "the-words-of-the-prompt"
KEYS = ("sk-test-first-0123456789", "sk-test-second-0123456789")


class Odd:
    """An endpoint that answers whatever it is told to: status, headers, body. `asked` counts."""

    def __init__(self) -> None:
        self.answers: tuple[int, Mapping[str, str], bytes] = (200, {}, b"{}")
        self.asked = 0

    def __enter__(self) -> "Odd":
        odd = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                odd.asked += 1
                status, named, body = odd.answers
                self.send_response(status)
                for name, value in {**named, "Content-Length": str(len(body)), "Content-Type": "application/json"}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Nothing on the screen of the tests."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Phrase(BaseModel):
    text: str


@script("test-phrase", version="1", title="Phrase it", words=PROMPTS, gives=Phrase)
def phrase(*, thing: str) -> dict[str, Any]:
    return {"text": f"Scripted: {thing}."}


@script("test-choose", version="1", title="Choose", words=PROMPTS)
def choose(*, turn: int, said: list[dict[str, Any]], tools: list[dict[str, Any]], thing: str) -> dict[str, Any]:
    return {"done": {"answer": "Scripted."}}


@workflow("test-asking", version=1)
def asking(run: Channel, thing: str, times: int = 1) -> None:
    run.plan("Phrase it")
    for _ in range(times):
        run.report(run.ask_model("test-phrase", thing=thing).text)


@workflow("test-choosing", version=1)
def choosing(run: Channel, thing: str) -> None:
    run.plan("Choose")
    came = run.agent("test-choose", tools=[look, note_it, say], until=lambda done: "answer" in done, turns=8, thing=thing)
    run.report(came["answer"])


class Said(BaseModel):
    answer: str
    cites: list[int] = []


@script("test-said", version="1", title="Answer", words=PROMPTS, gives=Said)
def said(*, question: str, known: str) -> dict[str, Any]:
    return {"answer": f"Scripted: {known}."}


@workflow("test-questioned", version=1)
def questioned(run: Channel) -> None:
    run.plan("Say it")
    run.propose(say, to=["a@example.org"], text="Tea.", answers=Answers("test-said", {"known": "There is tea."}))


@workflow("test-delegating", version=1)
def delegating(run: Channel, thing: str) -> None:
    run.plan("Phrase it")
    run.ask_model("test-phrase", thing=thing)
    run.report(run.child("test-asking", title="A part of it", thing=thing).state)


@contextmanager
def provider(settings: Any) -> Iterator[Provider]:
    """A provider with two models and two keys, configured."""
    played = Provider().start()
    settings.HANDRAIL_MODEL_URL, settings.HANDRAIL_MODEL_NAMES = played.url, ("large", "small")
    settings.HANDRAIL_MODEL_KEYS, settings.HANDRAIL_MODEL_PRICES = KEYS, {"large": (2_000_000, 8_000_000), "small": (100_000, 400_000)}
    settings.HANDRAIL_MODEL_SECONDS = 20
    providers.memory.forget()
    try:
        yield played
    finally:
        played.stop()
        providers.memory.forget()
