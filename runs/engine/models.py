"""Calls to language models. A model answers a named prompt; which model that is is a setting, and every call is recorded with it.

With no endpoint configured the answers come from scripts that workflows register, and the page says that they are scripted.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import connection

from runs.engine import conversation, prompts, providers
from runs.engine.conversation import Fitted, Function, Request, TooLarge, Turn
from runs.engine.lease import Claim
from runs.engine.prompts import Prompt, UnknownPrompt, named, script, titled
from runs.engine.providers import Candidate, Failed, Got
from runs.vocabulary import ModelCalled, ModelSwitched

__all__ = ["BY_SCRIPT", "Function", "Loop", "Tried", "Turn", "UnknownPrompt", "named", "script", "titled", "tries"]

BY_SCRIPT = 120.0  # seconds that a script may take
LETS_GO = 5.0  # seconds after an answer's time is over until the lease is let go of


@dataclass(frozen=True)
class Loop:
    """The tools that a model may choose from, and its turns so far. `about`: what it works on, apart from what the turns say."""

    functions: tuple[Function, ...]
    turns: tuple[Turn, ...]
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Tried:
    """One call: its event, what was sent, and the answer or why there is none. `switched`: who is asked next.

    Without a call: somebody who failed lately was passed over. `given`: the prompt's variables; `sent`: what went with them, and they
    themselves as they were sent if something had to be left out.
    """

    called: ModelCalled | None
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)
    sent: Mapping[str, Any] = field(default_factory=dict, repr=False)
    values: Mapping[str, Any] | None = field(default=None, repr=False)
    failed: Failed | None = None
    switched: ModelSwitched | None = None

    @property
    def tokens(self) -> int:
        return self.called.tokens_in + self.called.tokens_out if self.called else 0

    @property
    def cost_micro(self) -> int:
        return self.called.cost_micro if self.called else 0

    @property
    def ms(self) -> int:
        return self.called.ms if self.called else 0


@dataclass(frozen=True)
class _Asked:
    """What every call of one step has in common."""

    name: str
    prompt: Prompt
    given: Mapping[str, Any]
    fitted: Fitted
    step: str | None

    @property
    def sent(self) -> dict[str, Any]:
        return self.fitted.request.as_sent(whole=bool(self.fitted.left_out or self.fitted.shortened))


def tries(lease: Claim, prompt: str, variables: Mapping[str, Any], *, step: str | None = None, loop: Loop | None = None) -> Iterator[Tried]:
    """Ask one model after another until one answers; each call is given to the caller to be written down before the next is made.

    Holds no connection to the database while it waits. Failed if what would be asked does not fit.
    """
    asked = named(prompt)
    if not asked.words or not providers.endpoints(asked.at):
        yield _by_script(lease, prompt, asked, variables, step, loop)
        return
    what = _Asked(prompt, asked, variables, _fitted(asked, variables, loop), step)
    usual = providers.line(asked.at)
    waiting = providers.in_order(usual)
    if waiting[0] != usual[0]:
        yield Tried(None, switched=_switched(usual[0], waiting[0], providers.memory.why_last(usual[0]) or "error", step))
    while waiting:
        tried, waiting = _try(lease, what, waiting)
        yield tried
        if tried.values is not None:
            return


def _by_script(lease: Claim, name: str, prompt: Prompt, variables: Mapping[str, Any], step: str | None, loop: Loop | None) -> Tried:
    begun = time.monotonic()
    with lease.calling(BY_SCRIPT):
        values = dict(prompt.script(**variables))
    called = ModelCalled(
        model="scripted",
        scripted=True,
        prompt=name,
        prompt_version=prompt.version,
        prompt_digest=prompt.digest or None,
        step=step,
        ms=_ms(begun),
        finish="tool" if loop is not None and "done" not in values else "stop",
    )
    return Tried(called, variables, values=values)


def _fitted(prompt: Prompt, variables: Mapping[str, Any], loop: Loop | None) -> Fitted:
    """The request, as it fits into what one request may hold."""
    request = Request(prompt.words, variables, prompt.schema)
    if loop is not None:
        request = Request(prompt.words, loop.about, prompt.schema, "done", loop.functions, loop.turns)
    room = settings.HANDRAIL_MODEL_CONTEXT - settings.HANDRAIL_MODEL_OUTPUT
    try:
        return conversation.fit(request, max(room, settings.HANDRAIL_MODEL_CONTEXT // 2))
    except TooLarge as error:
        raise Failed("limit", f"What the model would be asked is too long. {error}", retryable=False) from None


def _try(lease: Claim, what: _Asked, waiting: list[Candidate]) -> tuple[Tried, list[Candidate]]:
    """Ask the first of those who wait. Gives what came of it, and who may be asked next."""
    candidate, rest = waiting[0], waiting[1:]
    begun = time.monotonic()
    try:
        got = _call(lease, candidate, what)
    except Failed as error:
        providers.memory.failed(candidate, error)
        rest = providers.left(rest, candidate, error)
        switched = _switched(candidate, rest[0], error.trouble, what.step) if rest else None
        called = _called(what, candidate, error.got or Got({}), _ms(begun), error)
        return Tried(called, what.given, what.sent, None, error, switched), rest
    providers.memory.answered(candidate)
    return Tried(_called(what, candidate, got, _ms(begun), None), what.given, what.sent, got.values), rest


def _call(lease: Claim, candidate: Candidate, what: _Asked) -> Got:
    from runs.engine import wire  # here, for it takes seconds to import

    seconds = settings.HANDRAIL_MODEL_SECONDS
    if not connection.in_atomic_block:
        connection.close()  # whoever waits for a model needs none, and many may wait
    with lease.calling(seconds + LETS_GO):
        got = wire.ask(candidate, what.fitted.request, output=settings.HANDRAIL_MODEL_OUTPUT, seconds=seconds)
    return _checked(what, got)


def _checked(what: _Asked, got: Got) -> Got:
    """An answer that fits what was asked for. A turn of a loop that calls a tool is checked where the tool is."""
    gives, in_loop = what.prompt.gives, bool(what.fitted.request.functions)
    given = got.values.get("done") if in_loop else got.values
    if given is None:
        return got
    try:
        fits = gives.model_validate(given).model_dump(mode="json") if gives else _text(given, in_loop)
    except ValueError as error:
        if in_loop:
            return got  # what the loop's `until` makes of it is told to the model
        raise Failed("invalid", f"its answer did not fit: {_misfits(error)}", got=_without(got)) from None
    return Got({"done": fits} if in_loop else fits, got.finish, got.tokens_in, got.tokens_out, got.version, got.estimated)


def _text(given: Any, in_loop: bool) -> dict[str, Any]:
    if not in_loop and not (isinstance(given, Mapping) and isinstance(given.get("text"), str)):
        raise ValueError("text: there is none")
    return dict(given)


def _misfits(error: ValueError) -> str:
    """What does not fit, by the names of its fields; never what was answered."""
    errors = getattr(error, "errors", None)
    if errors is None:
        return str(error)
    return "; ".join(f"{'.'.join(map(str, e['loc']))[:60]}: {e['msg'][:100]}" for e in errors(include_url=False, include_input=False)[:3])


def _without(got: Got) -> Got:
    return Got({}, got.finish, got.tokens_in, got.tokens_out, got.version, got.estimated)


# its events --------------------------------------------------------------------------------------------------------------------------


def _called(what: _Asked, candidate: Candidate, got: Got, ms: int, error: Failed | None) -> ModelCalled:
    cost = providers.cost(candidate, got.tokens_in, got.tokens_out)
    unknown = (cost is None and (error is None or error.got is not None)) or (error is not None and error.lost)
    request, fitted = what.fitted.request, what.fitted
    return ModelCalled(
        model=candidate.model,
        version=_as_version(got.version, candidate.secret),
        prompt=what.name,
        prompt_version=what.prompt.version,
        prompt_digest=what.prompt.digest or None,
        tools=tuple(each.told for each in request.functions[:64]) or None,
        endpoint=candidate.endpoint.name,
        key=candidate.key or None,
        step=what.step,
        tokens_in=got.tokens_in,
        tokens_out=got.tokens_out,
        estimated=got.estimated or None,
        cost_micro=cost or 0,
        cost_unknown=unknown or None,
        ms=ms,
        finish="error" if error and got.finish != "length" else got.finish,
        error=error.trouble if error else None,
        left_out=fitted.left_out or None,
        shortened=fitted.shortened or None,
    )


def _switched(was: Candidate, to: Candidate, reason: providers.Trouble, step: str | None) -> ModelSwitched:
    same = (was.endpoint, was.model) == (to.endpoint, to.model)
    keys = {"was_key": was.key, "key": to.key} if same else {}
    return ModelSwitched(was=was.model, to=to.model, reason=reason, endpoint=to.endpoint.name, step=step, **keys)


def _as_version(text: str, secret: str) -> str | None:
    """What a model calls itself, if the log can hold it, and it is not the key that it was asked with."""
    return text if prompts.VERSION.fullmatch(text) and not (secret and secret in text) else None


def _ms(begun: float) -> int:
    return round((time.monotonic() - begun) * 1000)
