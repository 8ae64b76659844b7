"""Asking a model, as one step of a run: what it was asked and what each call came to is written down, and a replay gives the same answer.

An answer is written in the transaction that completes its step. A worker that is lost before has the model asked anew, as another attempt
of the same step, which its log shows; one that is lost after it, never.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import orjson

from access.rules import Actor
from config import clock
from runs import log
from runs.engine import models, points, reads
from runs.engine.journal import edited
from runs.engine.models import Loop, Tried
from runs.engine.outcomes import Interrupted, Parked, Waits
from runs.engine.providers import Failed
from runs.engine.retry import Again, Retry, Stop, decide
from runs.engine.values import json_text, read_back, wrap
from runs.engine.walk import Walk
from runs.log import Held, Text
from runs.models import Event, JournalEntry
from runs.vocabulary import ModelSwitched, RunWaiting, StepFailed, StepRetrying, StepStarted

AGAIN = Retry(attempts=6, first=2, factor=3, longest=120, elapsed=6 * 3600)


def ask(walk: Walk, prompt: str, variables: Mapping[str, Any], loop: Loop | None = None) -> Any:
    """The answer to a prompt, or what it was before. Waits to try again, or parks the run, if no model gives any."""
    step = walk.journal.next_step(f"model.{prompt}")
    entry = walk.journal.find(step)
    variables = edited(entry, dict(variables))
    loop = replace(loop, about={name: variables[name] for name in loop.about}) if loop else None
    given = [prompt, variables]
    if entry is not None and entry.state == "done":
        reads.note_change(walk, entry, given)
        return read_back(entry)
    walk.check_budget()
    plan_step = walk.plan_step(models.named(prompt).title)
    with walk.hold() as run:
        entry = walk.journal.begin(run, step, kind="model", given=given)
        run.append(StepStarted(step=step, kind="model", plan_step=plan_step, attempt=entry.attempts), actor=walk.agent)
    points.reached(f"asking-{step}", walk.id)
    failures: list[tuple[str, Failed]] = []
    try:
        for tried in models.tries(walk.lease, prompt, variables, step=step, loop=loop):
            if tried.values is not None:
                points.reached("model-answered", walk.id)
                return _done(walk, entry, tried, plan_step)
            _tell(walk, tried)
            if tried.called and tried.failed:
                which = f", key {tried.called.key}" if tried.failed.key and tried.called.key else ""
                failures.append((f"{tried.called.model}{which}", tried.failed))
    except Failed as error:  # nobody was asked
        failures.append(("", error))
    return _no_answer(walk, entry, failures)


def _done(walk: Walk, entry: JournalEntry, tried: Tried, plan_step: int | None) -> Any:
    """Write the answer down. It is paid for, so that it is kept also when somebody paused or cancelled the run meanwhile."""
    values = dict(tried.values or {})
    with walk.hold(settling=True) as run:
        seq = tell(run, walk.agent, tried)
        walk.journal.end(run, entry, values, label="personal", seq=seq)
        walk.count(run, tried.ms, tried.tokens, tried.cost_micro)
        walk.completed(run, entry.step, plan_step, tried.ms)
    return wrap(values)


def tell(run: Held, agent: Actor, tried: Tried, caused_by: int | None = None) -> int:
    """The event of a call, with what was sent, which nobody is shown, and what came back. In the caller's transaction."""
    texts = {"input": json_text(tried.given, "secret")}
    if tried.sent:
        texts["sent"] = json_text(tried.sent, "secret")
    if tried.values is not None:
        texts["output"] = json_text(tried.values, "personal")
    return run.append(tried.called, actor=agent, texts=texts, caused_by=caused_by)


def _tell(walk: Walk, tried: Tried) -> None:
    """Write down a call that gave nothing, and who is asked next."""
    with walk.hold(settling=True) as run:
        if tried.called:
            tell(run, walk.agent, tried)
            walk.count(run, tried.ms, tried.tokens, tried.cost_micro)
        if tried.switched and (tried.called or not _told(walk, tried.switched)):
            run.append(tried.switched, actor=log.ENGINE)
        stopped = run.row.state != walk.lease.works
    if stopped:
        raise Interrupted(run.row.state)
    walk.check_budget()


def _told(walk: Walk, switched: ModelSwitched) -> bool:
    """Whether the log says already that it goes on with this one."""
    bodies = Event.objects.filter(run_month=walk.month, run_id=walk.id, type=switched.type).values_list("body", flat=True)
    earlier = (orjson.loads(body)["data"] for body in bodies)
    return any(all(data.get(name) == getattr(switched, name) for name in ("was", "to", "endpoint", "key")) for data in earlier)


def _no_answer(walk: Walk, entry: JournalEntry, failures: list[tuple[str, Failed]]) -> NoReturn:
    """No model gave an answer: wait to try again if that may help, else people must look."""
    passing = [error for _, error in failures if error.retryable]
    main = passing[0] if passing else failures[-1][1]
    verdict = _verdict(walk, entry, main)
    wait = max(verdict.wait, min(error.wait for error in passing)) if isinstance(verdict, Again) else 0.0
    detail = "; ".join(f"{model}: {error.detail}" if model else error.detail for model, error in failures)
    with walk.hold() as run:
        failed = StepFailed(step=entry.step, attempt=entry.attempts, error=main.trouble)
        run.append(failed, actor=walk.agent, texts={"detail": Text(detail)})
        if isinstance(verdict, Again):
            again = StepRetrying(step=entry.step, attempt=entry.attempts + 1, wait_ms=int(wait * 1000))
            run.append(again, actor=log.ENGINE)
    if isinstance(verdict, Again):
        raise Waits(RunWaiting(on="retry"), wake_in=wait)
    raise Parked("retries_exhausted", step=entry.step, detail=f"No model answered. {detail.rstrip('.')}. {_why(verdict, failures)}")


def _verdict(walk: Walk, entry: JournalEntry, error: Failed) -> Again | Stop:
    before = reads.last_trouble(walk, entry.step) if entry.attempts > 1 else ""
    elapsed = (clock.now() - entry.started_at).total_seconds()
    return decide(AGAIN, attempt=entry.attempts, retryable=error.retryable, error=error.trouble, before=before, elapsed=elapsed)


def _why(verdict: Stop, failures: list[tuple[str, Failed]]) -> str:
    if all(error.key for _, error in failures):
        return "Every key was refused. Set one that is taken, start the workers anew, and try again."
    return reads.STOPPED[verdict.why]
