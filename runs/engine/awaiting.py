"""Waiting for something from outside the run: a webhook, or a person's signal. Nothing stays in memory, and a replay gets the same.

What came before the wait began is not missed: a webhook that nobody wanted is kept, and a note of a person's waits to be read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from access.rows import only
from config import clock
from runs import log, signals
from runs.engine import reads
from runs.engine.journal import digest
from runs.engine.outcomes import Parked, Waits
from runs.engine.values import Record, read_back, wrap
from runs.engine.walk import Walk
from runs.models import JournalEntry, ReceivedWebhook, WebhookSource, WebhookWait
from runs.vocabulary import RunWaiting, StepStarted

SIGNAL = "signal"


@dataclass(frozen=True)
class Arrived:
    """It came. `seq`: the event to cite; `body`: what it said."""

    seq: int
    source: str
    delivery: str
    body: Record


@dataclass(frozen=True)
class TimedOut:
    """It did not come in time."""

    seq: int
    source: str


def wait_for(
    walk: Walk, name: str, match: Mapping[str, Any], timeout: timedelta | None, plan_step: int | None = None
) -> Arrived | TimedOut:
    """A webhook of the source of this name with these values in its body, or for "signal" what a person adds."""
    step, given = walk.journal.next_step(f"wait.{name}"), {"name": name, "match": dict(match)}
    entry = walk.journal.find(step)
    if entry is not None and entry.state == "done":
        reads.note_change(walk, entry, given)
        return _given(name, read_back(entry))
    if entry is None:
        entry = _begin(walk, step, name, given, plan_step)
    elif entry.input_digest != digest(given):
        raise Parked(
            "code_changed", step=step, detail=f"The code changed at {step}: it waits for something else than it began to wait for."
        )
    until = entry.started_at + timeout if timeout is not None else None
    came = _signalled(walk, entry, plan_step) if name == SIGNAL else _fed(walk, entry, plan_step)
    if came is None and until is not None and until <= clock.now():
        came = _give_up(walk, entry, plan_step)
    if came is not None:
        return _given(name, came)
    on: Any = SIGNAL if name == SIGNAL else "webhook"
    waiting = RunWaiting(on=on, source=None if name == SIGNAL else name, step=step, until=until)
    raise Waits(waiting, wake_in=(until - clock.now()).total_seconds() if until else None)


def came_meanwhile(run: log.Held, waiting: RunWaiting) -> bool:
    """Whether it came while the worker was still on its way to wait. In the caller's transaction."""
    from runs import webhooks  # which knows the workflows, whose channel this is a part of

    if waiting.on == SIGNAL:
        return signals.unread(run, "context")
    return waiting.step is not None and webhooks.fed(run, waiting.step)


def _begin(walk: Walk, step: str, name: str, given: dict[str, Any], plan_step: int | None) -> JournalEntry:
    from runs import webhooks
    from runs.engine import workflow

    with walk.hold() as run:
        if name != SIGNAL:
            source = only(WebhookSource.objects.filter(workspace_id=run.row.workspace_id, name=name, closed_at=None))
            if source is None:
                raise Parked("error", step=step, detail=f"It waits for a webhook of {name[:60]}, and there is no such source.")
            webhooks.open_wait(run, source, step, given["match"])
        elif "context" not in workflow.reads(run.row.workflow, run.row.workflow_version):
            raise Parked("error", step=step, detail='It waits for what people add, and its workflow does not declare reads=("context",).')
        run.append(StepStarted(step=step, kind="wait", plan_step=plan_step), actor=walk.agent)
        return walk.journal.begin(run, step, kind="wait", given=given)


def _fed(walk: Walk, entry: JournalEntry, plan_step: int | None) -> Record | None:
    from runs import webhooks

    with walk.hold() as run:
        if not webhooks.fed(run, entry.step):
            if webhooks.never(run, entry.step):
                raise Parked("error", step=entry.step, detail="It waits for a webhook of a source that was closed.")
            return None
        wait = WebhookWait.objects.get(run_id=walk.id, step=entry.step)
        webhook = ReceivedWebhook.objects.select_related("body__key").get(pk=wait.webhook_id)
        result = {"seq": wait.seq, "delivery": webhook.delivery, "body": webhooks.body_of(webhook)}
        walk.journal.end(run, entry, result, label="personal", seq=wait.seq)
        walk.completed(run, entry.step, plan_step, 0)
    return wrap(result)


def _signalled(walk: Walk, entry: JournalEntry, plan_step: int | None) -> Record | None:
    with walk.hold() as run:
        notes = signals.take(run, "context")
        if not notes:
            return None
        result = {"seq": run.row.seq, "delivery": "", "body": {"kind": "context", "notes": notes}}
        walk.journal.end(run, entry, result, label="personal", seq=run.row.seq)
        walk.completed(run, entry.step, plan_step, 0)
    return wrap(result)


def _give_up(walk: Walk, entry: JournalEntry, plan_step: int | None) -> Record | None:
    """Its time is over. None if it came in the last moment: it is looked at again."""
    from runs import webhooks

    with walk.hold() as run:
        wait = only(WebhookWait.objects.filter(run_id=walk.id, step=entry.step))
        if wait is not None and not webhooks.close(wait):
            return None
        result = {"seq": run.row.seq, "timed_out": True}
        walk.journal.end(run, entry, result, label="internal", seq=run.row.seq)
        walk.completed(run, entry.step, plan_step, 0)
    return wrap(result)


def _given(name: str, result: Record) -> Arrived | TimedOut:
    if result.get("timed_out"):
        return TimedOut(result["seq"], name)
    return Arrived(result["seq"], name, result["delivery"], wrap(result["body"]))
