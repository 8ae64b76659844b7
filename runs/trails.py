"""What led to a stuck run, in a few lines: the steps that it completed last, and what failed. Pure, but for what a clock says."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from config import clock
from runs.engine.ledger import Told
from runs.engine.resuming import Row
from runs.recovery import Parking
from runs.story import titles
from runs.story.shapes import Step
from runs.story.wire import moment
from runs.story.work import TROUBLE

TRAIL, DONE = 3, 3  # failures, and completed steps before them, that are told
STEPS = ("step", "model", "perform")  # kinds of journal entries that are told
FAILURES = ("step.failed", "effect.undo_failed", "action.unknown", "action.executed")


@dataclass(frozen=True)
class Actions:
    """Of a run's actions: the tool of each by its id and by the event at which it was redeemed, and what each is called: a payload's id."""

    tools: Mapping[int | str, str]
    subjects: Mapping[str, str]

    def redeemed_before(self, seq: int) -> str:
        """The tool of what was redeemed last before an event: the one that its step is about, where that does what was approved."""
        return next((tool for at, tool in reversed(self.tools.items()) if isinstance(at, int) and at < seq), "")


@dataclass(frozen=True)
class Mark:
    """One line of what led here: the same failure, or the same kind of step done, one or more times. `seq` and `at` are of the last,
    `first` of the first. `words` may hold a rendition."""

    seq: int
    words: str
    at: datetime
    first: int
    times: int = 1
    state: str = "failed"  # or done


def actions(lines: Sequence[Told]) -> Actions:
    """What these events tell of the run's actions; called by name only where one of them failed."""
    tools: dict[int | str, str] = {}
    subjects: dict[str, str] = {}
    failed = {body["data"].get("action") for _, body, _ in lines if body["type"] in FAILURES}
    for seq, body, payloads in lines:
        data = body["data"]
        if body["type"] == "action.proposed":
            tools[data["action"]] = data["tool"]
            if data["action"] in failed and "subject" in payloads:
                subjects[data["action"]] = payloads["subject"]
        elif body["type"] == "action.redeemed":
            tools[seq] = tools.get(data["action"], "")
    return Actions(tools, subjects)


def failures(lines: Sequence[Told], parked: int, known: Actions, text: Callable[[str | None], str]) -> tuple[Mark, ...]:
    """The last failures before it got stuck, in words; attempts that failed in the same way are one line. `text`: of a payload's id."""
    marks = [
        Mark(seq, _failure(body, known, seq, text), moment(body["at"]) or clock.now(), seq)
        for seq, body, _ in lines
        if seq < parked and body["type"] in FAILURES and not body["data"].get("ok", False)
    ]
    return tuple(_merged(marks))[-TRAIL:]


def led(failed: Sequence[Mark], where: Parking, journal: Sequence[Row], known: Actions) -> tuple[Mark, ...]:
    """What led here: the last completed steps, then what failed; where no failure is told, that it stopped."""
    done = [
        Mark(each.seq, f"“{step_title(each.step, known.tools.get(str(each.action_id), ''))}” done", each.ended_at, each.seq, state="done")
        for each in journal
        if each.kind in STEPS and each.state == "done" and each.seq and each.ended_at
    ]
    before = tuple(_merged(sorted(done, key=lambda mark: mark.seq)))[-DONE:]
    after = tuple(failed) or (Mark(where.seq, "Stopped here", moment(where.at) or clock.now(), where.seq),)
    return tuple(sorted((*before, *after), key=lambda mark: mark.seq))


def broke_in(where: Parking, journal: Sequence[Row]) -> str:
    """The step at whose beginning the workflow's own code failed, if it had begun one."""
    last = next((each for each in reversed(journal) if each.kind in STEPS), None)
    return step_title(last.step) if where.reason == "error" and not where.step and last and last.state != "done" else ""


def step_title(step: str, approved: str = "") -> str:
    """A step in people's words. `approved`: the tool of what was approved, which a step that does it may not say itself."""
    kind = step.rpartition("/")[2].partition("#")[0]
    title = titles.of_step(Step(step, approved if kind == "perform" else ""))
    return "The approved action" if title == titles.APPROVED else title


def _merged(marks: Iterable[Mark]) -> Iterator[Mark]:
    held: Mark | None = None
    for mark in marks:
        if held and held.words == mark.words:
            held = replace(mark, first=held.first, times=held.times + 1)
            continue
        if held:
            yield held
        held = mark
    if held:
        yield held


def _failure(body: Any, known: Actions, seq: int, text: Callable[[str | None], str]) -> str:
    data = body["data"]
    match body["type"]:
        case "step.failed":
            return f"“{step_title(data['step'], known.redeemed_before(seq))}” failed: {TROUBLE.get(data['error'], data['error'])}"
        case "effect.undo_failed":
            return f"Could not be undone: {TROUBLE.get(data['reason'], data['reason'])}"
    subject = text(known.subjects.get(data["action"]))
    if body["type"] == "action.unknown":
        return f"“{subject}”: its answer was lost" if subject else "The answer of the outside was lost"
    return f"“{subject}” was not done" if subject else "The outside did not do it"
