"""Replaying a run without the world: its workflow's code is run against what is recorded, and asks nobody for anything.

Tools, models, people and the clock are answered from the journal. What stands in no journal stops the replay, and is told. Nothing is
written: the walk has a token that nobody ever held, and its journal begins nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal
from uuid import UUID

import orjson

from access.errors import Refusal
from access.rows import only
from artifacts import vault
from artifacts.redaction import redact
from runs.engine import forking, workflow
from runs.engine.channel import Channel
from runs.engine.gates import Answer
from runs.engine.journal import Journal, digest
from runs.engine.lease import Claim
from runs.engine.outcomes import Outcome, Parked
from runs.engine.tools import Tool
from runs.engine.walk import Walk
from runs.errors import StaleToken
from runs.lifecycle import State
from runs.models import Event, JournalEntry, Run
from runs.story import titles
from runs.story.shapes import Step

NOBODYS = -1  # a fencing token that no worker ever held: whatever would be written under it is refused
LONGEST = 2_000  # entries of the journal that a page replays; of a longer one the command does
What = Literal["input", "added", "removed", "raised"]
End = Literal["ended", "open", "stopped"]


class NotReplayable(Refusal):
    """This run can't be replayed here."""

    what_next: ClassVar[str] = "Nothing was asked of the outside, and nothing was changed."


class Stopped(Outcome):
    """The record has no answer to what the code asks now."""


@dataclass(frozen=True)
class Change:
    """One name of an input, as it was and as it would be: renditions. Empty if it was not there, or all of it is hidden."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Shown:
    """A rendition and its label."""

    text: str
    label: str


@dataclass(frozen=True)
class Difference:
    """Where the code would do something else than it did: with other input, a step that is not recorded, one that it asks for no more."""

    step: str
    what: What
    seq: int  # the event that tells of the recorded step; 0 if there is none
    changes: tuple[Change, ...] = ()
    detail: str = ""

    @property
    def title(self) -> str:
        """The step in people's words."""
        return titles.of_step(Step(self.step)) if self.step else "The start"


@dataclass(frozen=True)
class Replay:
    """What came of it. `end`: the code came to its end; to where the record ends and the run itself is; or it was stopped before."""

    version: int
    asked: int  # recorded steps that it asked for
    recorded: int
    end: End
    differences: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        return not self.differences


def replay(run: Run, *, version: int = 0, most: int = 0) -> Replay:
    """Whether this version of the run's workflow, or its own, would do the same. `most`: refuse a longer journal. NotReplayable."""
    if not run.workflow:
        raise NotReplayable("An agent outside works on it: its code is not here.")
    known = workflow.loaded(run.workflow, version or run.workflow_version)
    if known is None:
        raise NotReplayable(f"{run.workflow} version {version or run.workflow_version} is not loaded here.")
    if most and (length := run.journal.count()) > most:
        raise NotReplayable(f"It has {length} recorded steps; `manage.py replay {run.ref}` replays it.")
    record = Record(run)
    end = _walked(run, known, record)
    left = [entry for entry in record.entries if entry.step not in record.seen]
    if end != "open":
        record.found += [Difference(entry.step, "removed", entry.seq) for entry in left]
    shown = Renditions(run, record)
    return Replay(known.version, len(record.seen), len(record.entries), end, tuple(shown.of(found) for found in record.found))


def _walked(run: Run, known: workflow.Workflow, record: "Record") -> End:
    """Run the code as far as the record goes."""
    arguments = orjson.loads(vault.open_bytes(run.input)) if run.input else {}
    try:
        known.function(Replayed(run, record), **arguments)
    except Stopped:
        return _where(run, record)
    except StaleToken:  # something of it would have been written
        record.found.append(Difference(record.last, "added", 0))
        return "stopped"
    except Parked as parked:
        return _as_parked(run, record, parked)
    except Exception as error:  # the workflow's own code
        return _as_parked(run, record, Parked("error", step=None, detail=f"Its code failed ({type(error).__name__})."))
    return "ended"


def _where(run: Run, record: "Record") -> End:
    """Whether the replay came to where the run itself is: to a step that goes on, or to the last of a run that has not come to its end."""
    if record.at.other_action:
        return "stopped"
    here = record.get(record.last)
    waits = here is not None and here.state != "done"
    rest = [entry for entry in record.entries if entry.step not in record.seen and entry is not here]
    if waits or (not rest and run.state != State.SUCCEEDED):
        record.seen |= {record.last} if here else set()
        return "open"
    record.found.append(Difference(record.last, "added", 0))
    return "stopped"


def _as_parked(run: Run, record: "Record", now: Parked) -> End:
    """The code stops with a trouble; the run itself may be stopped by the same, at the same place."""
    told = Event.objects.filter(run_month=run.month, run_id=run.pk, type="run.parked").order_by("-seq").values_list("body", flat=True)
    last = next((orjson.loads(body)["data"] for body in told[:1]), {})
    rest = [entry for entry in record.entries if entry.step not in record.seen and entry.state == "done"]
    if run.state == State.PARKED and (last.get("reason"), last.get("step")) == (now.reason, now.step) and not rest:
        return "open"
    record.found.append(Difference(record.last, "raised", 0, detail=_rendition(now.detail, "personal")))
    return "stopped"


@dataclass
class _At:
    """Where a replay is. The branches of a run are copies of its record, and have this in common."""

    step: str = ""
    other_action: bool = False  # it would propose another action, whose answer nobody knows


class Record(Journal):
    """A journal that is read only. What is not in it, or not completed, ends the replay."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.pk, NOBODYS)
        self.entries = forking.entries_of(run)
        self.seen: set[str] = set()
        self.at = _At()
        self.found: list[Difference] = []
        self.now: dict[str, Mapping[str, Any]] = {}  # step → what it would be asked, by name

    @property
    def last(self) -> str:
        """The step that was asked for last, on whichever branch."""
        return self.at.step

    def get(self, step: str) -> JournalEntry | None:
        return super().find(step)

    def find(self, step: str) -> JournalEntry | None:
        self.at.step, entry = step, super().find(step)
        if entry is None or entry.state != "done":
            raise Stopped(step)
        self.seen.add(step)
        return entry

    def begin(self, held: Any, step: str, **_: Any) -> JournalEntry:
        self.at.step = step
        raise Stopped(step)

    def asked(self, held: Any, entry: JournalEntry, given: Any) -> None:
        """A completed read or model call would be asked for something else; what it gave is used all the same."""
        self.differs(entry, given[1] if entry.kind == "model" else given)

    def differs(self, entry: JournalEntry, given: Any) -> None:
        self.now[entry.step] = given if isinstance(given, Mapping) else {"input": given}
        self.found.append(Difference(entry.step, "input", entry.seq))


class _Silent:
    """A run that nothing is written into."""

    def __init__(self, run: Run) -> None:
        self.row = run

    def append(self, *_: Any, **__: Any) -> int:
        return self.row.seq


class Unheld(Walk):
    """A walk that holds nothing."""

    @contextmanager
    def hold(self, *, settling: bool = False) -> Iterator[Any]:
        yield _Silent(self.row)

    def check_budget(self) -> None:
        """A replay uses nothing."""


class Replayed(Channel):
    """The run as its workflow sees it, answered from the record."""

    threads = 0  # one branch after the other

    def __init__(self, run: Run, record: Record) -> None:
        claim = Claim(run.pk, NOBODYS, "replay")
        super().__init__(run, claim, record)
        self._record_of, self._walk = record, Unheld(run, claim, record)

    def step(self, tool: Tool, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().step(tool, *args, **kwargs)
        except Parked as parked:
            raise self._other_action(parked, tool, args, kwargs) from None

    def propose(self, tool: Tool, *args: Any, **kwargs: Any) -> Answer:
        try:
            return super().propose(tool, *args, **kwargs)
        except Parked as parked:
            more = ("attachments", "reason", "answers", "patience")
            raise self._other_action(parked, tool, args, {name: kwargs[name] for name in kwargs if name not in more}) from None

    def _other_action(self, parked: Parked, tool: Tool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Outcome:
        """The record has no answer to another action than the one that people answered."""
        record = self._record_of
        if parked.reason != "code_changed" or parked.step is None:
            return parked
        asked = record.get(parked.step)
        assert asked is not None  # its answer is what the code asked for
        record.differs(asked, tool.checked(*args, **kwargs))
        record.at.other_action = True
        return Stopped(parked.step)

    def _record(self, name: str, given: Any, write: Any) -> Any:
        result, record = super()._record(name, given, write), self._record_of
        entry = record.get(record.last)
        if entry is not None and entry.input_digest != digest(given):
            record.differs(entry, _named(name, given))
        return result


ROLES: Mapping[str, tuple[str, ...]] = {
    "note": ("note",),
    "milestone": ("title", "detail"),
    "report": ("title", "body"),
    "block": ("block", "detail"),
    "artifact": ("name", "content"),
}


def _named(kind: str, given: Any) -> dict[str, Any]:
    """What is told once, by the names that its texts have in the log."""
    values = given if isinstance(given, list) else [given]
    if kind == "plan":
        return {f"step_{number}": step for number, step in enumerate(values[:-1], 1)} | {"note": values[-1]}
    return dict(zip(ROLES.get(kind, ("input",)), values, strict=False))


@dataclass(frozen=True)
class Renditions:
    """What may be shown of recorded and of new input."""

    run: Run
    record: Record

    def of(self, found: Difference) -> Difference:
        """A difference with the names that differ, each as it may be shown before and after."""
        now, entry = self.record.now.get(found.step), self.record.get(found.step)
        if now is None or entry is None:
            return found
        recorded, before = self._asked(entry) if entry.kind in forking.INPUTS else ({}, self._told(entry))
        names = [name for name in {**before, **now} if name not in recorded or recorded[name] != now.get(name)]
        changes = [Change(name, before[name].text if name in before else "", _after(name, now, before)) for name in names]
        return Difference(
            found.step, found.what, found.seq, tuple(each for each in changes if recorded or not each.before or each.before != each.after)
        )

    def _asked(self, entry: JournalEntry) -> tuple[dict[str, Any], dict[str, Shown]]:
        """What a step was asked, by name, and what may be shown of that."""
        found = forking.recorded_input(self.run, entry)
        if found is None:
            return {}, {}
        asked, label = found[0], found[1].label
        names = forking.changeable(entry, asked)
        return {name: asked[name] for name in names}, {name: Shown(_rendition(asked[name], label), label) for name in names}

    def _told(self, entry: JournalEntry) -> dict[str, Shown]:
        """The texts of the event that something was told with."""
        told = only(Event.objects.filter(run_month=self.run.month, run_id=self.run.pk, seq=entry.seq).values_list("payloads", flat=True))
        kept = vault.shown(UUID(pk) for pk in (told or {}).values())
        return {role: Shown(kept[UUID(pk)].text, kept[UUID(pk)].label) for role, pk in (told or {}).items() if UUID(pk) in kept}


def _after(name: str, now: Mapping[str, Any], before: Mapping[str, Shown]) -> str:
    if name not in now or name == "content":  # of an artifact only the fingerprint is told
        return ""
    return _rendition(now[name], before[name].label if name in before else "personal")


def _rendition(value: Any, label: str) -> str:
    """A value as everybody may see it; nothing of what is secret as a whole, such as a prompt."""
    if label == "secret":
        return ""
    if isinstance(value, str):
        return redact(value.encode(), media_type="text/plain", label=label).text
    return redact(orjson.dumps(value), media_type="application/json", label=label).text
