"""Reading from the outside: at once, as often as its policy allows, and once for all replays."""

import logging
import time
from typing import Any, NoReturn

import orjson

from config import clock
from runs import log
from runs.engine import effects, points
from runs.engine.journal import digest, edited
from runs.engine.outcomes import Parked, Waits
from runs.engine.retry import Again, Stop, decide
from runs.engine.tools import Call, Tool, ToolError
from runs.engine.values import json_text, read_back, wrap
from runs.engine.walk import Walk
from runs.log import Text
from runs.models import Event, JournalEntry
from runs.vocabulary import NotePosted, RunWaiting, StepFailed, StepRetrying, StepStarted, ToolEnded, ToolStarted

logger = logging.getLogger(__name__)
STOPPED = {  # why a step is not tried once more
    "final": "Trying again would not help.",
    "attempts": "It was tried as often as it may be.",
    "elapsed": "It was tried for as long as it may be.",
    "same_error": "It was the same error on the same input, so trying again would not help.",
}


def read(walk: Walk, tool: Tool, arguments: dict[str, Any]) -> Any:
    """What the tool gives for these arguments, or gave before."""
    step = walk.journal.next_step(tool.name)
    entry = walk.journal.find(step)
    arguments = edited(entry, arguments)
    if entry is not None and entry.state == "done":
        note_change(walk, entry, arguments)
        return read_back(entry)
    walk.check_budget()
    entry, plan_step = _begin(walk, tool, arguments, step), walk.plan_step(tool.title)
    call = Call(walk.id, step, key=f"{walk.ref}-{step}", deadline=tool.deadline, last_check=lambda: None)
    begun = time.monotonic()
    points.reached(f"asking-{step}", walk.id)
    try:
        with walk.lease.calling(tool.deadline + 5):
            result = tool(call, arguments)
    except ToolError as error:
        _failed(walk, tool, entry, error, effects.ms_since(begun))
    except Exception as error:  # a tool's own mistake is no reason to lose the run
        logger.exception("tool raised", extra={"run": str(walk.id), "step": step})
        _failed(walk, tool, entry, ToolError(f"The tool raised {type(error).__name__}."), effects.ms_since(begun))
    ms = effects.ms_since(begun)
    with walk.hold() as run:
        ended = ToolEnded(tool=tool.name, outcome="ok", ms=ms, step=step)
        seq = run.append(ended, actor=walk.agent, texts={"result": json_text(result, tool.label)})
        walk.journal.end(run, entry, result, label=tool.label, seq=seq)
        walk.count(run, ms)
        walk.completed(run, step, plan_step, ms)
    return wrap(result)


def note_change(walk: Walk, entry: JournalEntry, given: Any) -> None:
    """A replay that asks a completed read for something else: what it gave then is used, and that is told, once."""
    if entry.input_digest == digest(given):
        return
    said = f"The code changed at {entry.step}: it asks for something else now. What it gave before is used."
    with walk.hold() as run:
        run.append(NotePosted(), actor=log.ENGINE, texts={"note": Text(said)})
        walk.journal.asked(entry, given)


def _begin(walk: Walk, tool: Tool, arguments: dict[str, Any], step: str) -> JournalEntry:
    with walk.hold() as run:
        entry = walk.journal.begin(step, kind="step", given=arguments)
        effects.check_scope(run, tool, arguments, step)
        told = StepStarted(step=step, kind="tool", plan_step=walk.plan_step(tool.title), attempt=entry.attempts)
        run.append(told, actor=walk.agent)
        started = ToolStarted(tool=tool.name, tool_schema=tool.schema_version, effect=tool.effect, step=step)
        run.append(started, actor=walk.agent, texts={"arguments": json_text(arguments, tool.label)})
    return entry


def _failed(walk: Walk, tool: Tool, entry: JournalEntry, error: ToolError, ms: int) -> NoReturn:
    """Record a read's failure; then wait to try again, or park the run."""
    step, verdict = entry.step, _verdict(walk, tool, entry, error)
    detail = Text(str(error) or (type(error).__doc__ or ""), tool.label)
    with walk.hold() as run:
        ended = ToolEnded(tool=tool.name, outcome="error", ms=ms, step=step, error=error.kind)
        run.append(ended, actor=walk.agent)
        failed = StepFailed(step=step, attempt=entry.attempts, error=error.kind)
        run.append(failed, actor=walk.agent, texts={"detail": detail})
        walk.count(run, ms)
        if isinstance(verdict, Again):
            wait = int(verdict.wait * 1000)
            run.append(StepRetrying(step=step, attempt=entry.attempts + 1, wait_ms=wait), actor=log.ENGINE)
    if isinstance(verdict, Again):
        raise Waits(RunWaiting(on="retry"), wake_in=verdict.wait)
    raise Parked("retries_exhausted", step=step, detail=f"{tool.title}: {str(error).rstrip('.')}. {STOPPED[verdict.why]}")


def _verdict(walk: Walk, tool: Tool, entry: JournalEntry, error: ToolError) -> Again | Stop:
    return decide(
        tool.retry,
        attempt=entry.attempts,
        retryable=error.retryable,
        error=error.kind,
        before=last_trouble(walk, entry.step) if entry.attempts > 1 else "",
        elapsed=(clock.now() - entry.started_at).total_seconds(),
    )


def last_trouble(walk: Walk, step: str) -> str:
    """The error of the last attempt of a step that is in the log."""
    failed = Event.objects.filter(run_month=walk.month, run_id=walk.id, type="step.failed").order_by("-seq").values_list("body", flat=True)
    told = (orjson.loads(body)["data"] for body in failed[:20])
    return next((data["error"] for data in told if data["step"] == step), "")
