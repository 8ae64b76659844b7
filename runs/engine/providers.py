"""Who answers: the endpoints that are configured, in the order in which they are asked, and what asking them costs.

A key is known by its place in its setting, and by that alone: no log, page or error has more of it.
"""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Literal

from django.conf import settings

from runs.engine.prompts import MAIN

Trouble = Literal["timeout", "refused", "unavailable", "invalid", "not_found", "limit", "error"]
FALLBACK, PLAYED = "fallback", "played"
RESTS = 60.0  # seconds that a model which was not there is asked last
REFUSED = 60.0  # seconds that a key which was refused is tried last
LONGEST_REST = 900.0
PLAYED_MODELS, PLAYED_KEYS = ("played-large", "played-small"), ("played-key-1", "played-key-2")  # of the demo's own provider


@dataclass(frozen=True)
class Endpoint:
    """An address that speaks as OpenAI's API does."""

    name: str
    url: str
    models: Sequence[str]
    keys: Sequence[str] = field(repr=False)


@dataclass(frozen=True)
class Candidate:
    """A model at an endpoint, asked with one of its keys. `key` counts from 1; 0 where there is none."""

    endpoint: Endpoint
    model: str
    key: int

    @property
    def secret(self) -> str:
        return self.endpoint.keys[self.key - 1] if self.key else ""

    @property
    def price(self) -> tuple[int, int] | None:
        """Millionths of a euro for a million tokens, in and out; None if nobody has said what it costs."""
        return settings.HANDRAIL_MODEL_PRICES.get(self.model) if self.endpoint.name != PLAYED else (0, 0)


@dataclass(frozen=True)
class Got:
    """What a model answered: JSON values. `estimated`: it did not say how many tokens it took."""

    values: Mapping[str, object]
    finish: Literal["stop", "length", "tool"] = "stop"
    tokens_in: int = 0
    tokens_out: int = 0
    version: str = ""  # of the model, as it says itself
    estimated: bool = False


class Failed(Exception):
    """A model gave no answer that can be used.

    `detail` is in our words: what a provider says may hold what was asked, or a part of a key. `lost`: it may have worked, and cost.
    """

    def __init__(
        self,
        trouble: Trouble,
        detail: str,
        *,
        retryable: bool = True,
        key: bool = False,
        wait: float = 0.0,
        lost: bool = False,
        got: Got | None = None,
    ) -> None:
        self.trouble, self.detail, self.retryable, self.key = trouble, detail, retryable, key
        self.wait, self.lost, self.got = wait, lost, got
        super().__init__(detail)


def endpoints(at: str) -> list[Endpoint]:
    """The endpoints that a prompt may be sent to, in order; none if nothing is configured."""
    if at == PLAYED:
        url = settings.HANDRAIL_PLAYED_URL
        return [Endpoint(PLAYED, url, PLAYED_MODELS, PLAYED_KEYS)] if url else []
    main = (MAIN, settings.HANDRAIL_MODEL_URL, settings.HANDRAIL_MODEL_NAMES, settings.HANDRAIL_MODEL_KEYS)
    other = (
        FALLBACK,
        settings.HANDRAIL_MODEL_FALLBACK_URL,
        settings.HANDRAIL_MODEL_FALLBACK_NAMES,
        settings.HANDRAIL_MODEL_FALLBACK_KEYS,
    )
    return [Endpoint(*each) for each in (main, other) if each[1]]


def line(at: str) -> list[Candidate]:
    """All that may be asked, in order: each model with its endpoint's first key, then with the next."""
    return [
        Candidate(endpoint, model, key)
        for endpoint in endpoints(at)
        for model in endpoint.models
        for key in (range(1, len(endpoint.keys) + 1) if endpoint.keys else (0,))
    ]


def unpriced() -> list[str]:
    """The models that may be asked here and have no price: a limit of cost can't count what they cost."""
    return list(dict.fromkeys(each.model for each in line(MAIN) if each.price is None))


def left(waiting: Sequence[Candidate], failed: Candidate, error: Failed) -> list[Candidate]:
    """Who may be asked next: a key that was refused opens no other model of its endpoint, another trouble is the model's own."""
    if error.key:
        return [each for each in waiting if (each.endpoint, each.key) != (failed.endpoint, failed.key)]
    return [each for each in waiting if (each.endpoint, each.model) != (failed.endpoint, failed.model)]


def cost(candidate: Candidate, tokens_in: int, tokens_out: int) -> int | None:
    """Millionths of a euro, rounded up; None if its price is not known."""
    price = candidate.price
    return None if price is None else -(-(tokens_in * price[0] + tokens_out * price[1]) // 1_000_000)


class Memory:
    """What this process has seen fail lately, so that a run does not wait for it at every step. Forgotten with the process."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, ...], tuple[float, Trouble]] = {}
        self._lock = Lock()

    def failed(self, candidate: Candidate, error: Failed) -> None:
        if error.key and candidate.key:
            self._keep(_of_key(candidate), REFUSED, error.trouble)
        elif error.trouble in ("limit", "unavailable", "timeout") and error.retryable:
            self._keep(_of_model(candidate), min(error.wait or RESTS, LONGEST_REST), error.trouble)

    def why_last(self, candidate: Candidate) -> Trouble | None:
        """Why it is asked last, if it is: what its model did, or its key."""
        with self._lock:
            kept = [self._until[what] for what in (_of_model(candidate), _of_key(candidate)) if what in self._until]
        return next((trouble for until, trouble in kept if until > time.monotonic()), None)

    def answered(self, candidate: Candidate) -> None:
        with self._lock:
            for what in (_of_key(candidate), _of_model(candidate)):
                self._until.pop(what, None)

    def forget(self) -> None:
        with self._lock:
            self._until.clear()

    def _keep(self, what: tuple[str, ...], seconds: float, trouble: Trouble) -> None:
        with self._lock:
            self._until[what] = time.monotonic() + seconds, trouble


def _of_key(candidate: Candidate) -> tuple[str, ...]:
    return ("key", candidate.endpoint.url, hashlib.sha256(candidate.secret.encode()).hexdigest())


def _of_model(candidate: Candidate) -> tuple[str, ...]:
    return ("model", candidate.endpoint.url, candidate.model)


memory = Memory()


def in_order(waiting: Sequence[Candidate]) -> list[Candidate]:
    """Those that failed lately come last."""
    return sorted(waiting, key=lambda candidate: memory.why_last(candidate) is not None)
