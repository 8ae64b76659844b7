"""Reading from the outside: at once, as often as its policy allows, and once for all replays."""

import logging
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any, NoReturn

import orjson

from access.rows import copied
from artifacts import redaction_policies
from config import clock
from runs import log
from runs.engine import effects, points
from runs.engine.journal import digest, edited
from runs.engine.outcomes import Parked, Waits
from runs.engine.retry import Again, Stop, decide
from runs.engine.tools import Call, Tool, ToolError
from runs.engine.values import json_text, read_back, wrap
from runs.engine.walk import Walk
from runs.log import Held, Text
from runs.models import Event, JournalEntry
from runs.vocabulary import NotePosted, RunWaiting, StepFailed, StepRetrying, StepStarted, ToolEnded, ToolStarted

logger = logging.getLogger(__name__)
STOPPED = {  # why a step is not tried once more
    "final": "Trying again would not help.",
    "attempts": "Its attempts are used up.",
    "elapsed": "Its time for trying is used up.",
    "same_error": "It was the same error on the same input, so trying again would not help.",
}
HOPELESS = (STOPPED["final"], STOPPED["same_error"])  # the ends of what is told of a step that fails the same way if nothing else changes


def read(walk: Walk, tool: Tool, arguments: dict[str, Any]) -> Any:
    """What the tool gives for these arguments, or gave before."""
    step = walk.journal.next_step(tool.name)
    entry = walk.journal.find(step)
    arguments = edited(entry, arguments)
    if entry is not None and entry.state == "done":
        note_change(walk, entry, arguments)
        return read_back(entry)
    walk.check_budget()
    walk.check_at_work()
    effects.check_scope(walk.row, tool, arguments, step)
    beginning = _Beginning(walk, tool, arguments, walk.journal.draft(step, kind="step", given=arguments))
    points.reached(f"asking-{step}", walk.id)
    try:
        with walk.lease.calling(tool.deadline + 5), walk.lease.telling(step, beginning.tell):
            result = tool(Call(walk.id, step, key=f"{walk.ref}-{step}", deadline=tool.deadline, last_check=lambda: None), arguments)
    except ToolError as error:
        _failed(beginning, error)
    except Exception as error:  # a tool's own mistake is no reason to lose the run
        logger.exception("tool raised", extra={"run": str(walk.id), "step": step})
        _failed(beginning, ToolError(f"The tool’s code failed ({type(error).__name__})."))
    _completed(beginning, result)
    return wrap(result)


@dataclass
class _Beginning:
    """A read that has begun. It is written down with its end, in one transaction, or by itself if it takes longer than a moment."""

    walk: Walk
    tool: Tool
    arguments: dict[str, Any]
    entry: JournalEntry
    at: datetime = field(default_factory=clock.now)
    begun: float = field(default_factory=time.monotonic)
    _told: bool = False
    _lock: Lock = field(default_factory=Lock)

    @property
    def plan_step(self) -> int | None:
        return self.walk.plan_step(self.tool.title)

    @property
    def ms(self) -> int:
        return effects.ms_since(self.begun)

    def tell(self) -> None:
        """Write it down now, in a transaction of its own."""
        with self._lock:
            if not self._told:
                entry = copied(self.entry)
                with self.walk.hold() as run:
                    self._write(run, entry)
                self.entry, self._told = entry, True

    def told(self, run: Held) -> JournalEntry:
        """Write it down in the caller's transaction, if it is not yet."""
        if self._told:
            return self.entry
        entry = copied(self.entry)
        self._write(run, entry)
        return entry

    def over(self) -> AbstractContextManager[Any]:
        """Nobody else writes it down from here on."""
        return self._lock

    def _write(self, run: Held, entry: JournalEntry) -> None:
        walk, tool, step = self.walk, self.tool, entry.step
        walk.journal.began(run, entry)
        started = StepStarted(step=step, kind="tool", plan_step=self.plan_step, attempt=entry.attempts)
        run.append(started, actor=walk.agent, at=self.at)
        asked = ToolStarted(tool=tool.name, tool_schema=tool.schema_version, effect=tool.effect, step=step)
        run.append(asked, actor=walk.agent, texts={"arguments": json_text(self.arguments, tool.label)}, at=self.at)


def _completed(beginning: _Beginning, result: Any) -> None:
    walk, tool, ms = beginning.walk, beginning.tool, beginning.ms

    def write(run: Held) -> None:
        entry = beginning.told(run)
        with redaction_policies.about("tool.ended", tool.name):
            kept = run.keep(json_text(result, tool.label))  # one copy: whoever erases what the log says, erases it
        ended = ToolEnded(tool=tool.name, outcome="ok", ms=ms, step=entry.step)
        seq = run.append(ended, actor=walk.agent, texts={"result": kept})
        walk.journal.end(run, entry, result, label=tool.label, seq=seq, kept=kept)
        walk.count(run, ms)
        walk.completed(run, entry.step, beginning.plan_step, ms)

    with beginning.over():
        walk.write(write)


def note_change(walk: Walk, entry: JournalEntry, given: Any) -> None:
    """A replay that asks a completed read for something else: what it gave then is used, and that is told, once."""
    if entry.input_digest == digest(given):
        return
    said = f"The code changed at {entry.step}: it asks for something else now. What it gave before is used."
    with walk.hold() as run:
        run.append(NotePosted(), actor=log.ENGINE, texts={"note": Text(said)})
        walk.journal.asked(run, entry, given)


def _failed(beginning: _Beginning, error: ToolError) -> NoReturn:
    """Record a read's failure; then wait to try again, or park the run."""
    walk, tool, ms = beginning.walk, beginning.tool, beginning.ms
    detail = Text(error.said, tool.label)
    with beginning.over(), walk.hold() as run:
        entry = beginning.told(run)
        step, verdict = entry.step, _verdict(walk, tool, entry, error)
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
    raise Parked("retries_exhausted", step=step, detail=f"{tool.title}: {error.said.rstrip('.')}. {STOPPED[verdict.why]}")


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
