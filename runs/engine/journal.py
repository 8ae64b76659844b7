"""What a run has already done, step by step. A replayed workflow takes its answers from here; only what is missing runs.

A step's identity is branch path + name + occurrence, such as `read_ticket#1`.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Any
from uuid import UUID

import orjson

from artifacts import vault
from artifacts.models import Payload
from config import clock
from runs.engine import points
from runs.engine.outcomes import Parked
from runs.log import Held
from runs.models import JournalEntry

MOST = 10_000  # entries of one run: what asks for more is a loop that no budget ends
STEPS = ("step", "model", "propose", "perform")  # kinds of entries that a budget of steps counts


class Journal:
    """The journal of one run as one worker sees it. Reads once at the start; writes go through `begin` and `end` under the run's lock."""

    def __init__(self, run_id: UUID, token: int, branch: str = "") -> None:
        self.run_id, self.token, self._branch = run_id, token, branch
        rows = JournalEntry.objects.filter(run_id=run_id).select_related("result__key").order_by("position")
        self._entries = {entry.step: entry for entry in rows}
        self._occurrences: Counter[str] = Counter()

    def on(self, branch: str) -> "Journal":
        """The same journal, on another path: what is written by one is known to the other."""
        other = copy(self)
        other._branch, other._occurrences = branch, Counter()
        return other

    def next_step(self, name: str) -> str:
        """The identity of the next step of this name on this path."""
        self._occurrences[name] += 1
        return f"{self._branch}{name}#{self._occurrences[name]}"

    def find(self, step: str) -> JournalEntry | None:
        return self._entries.get(step)

    def performing(self, action_id: UUID) -> JournalEntry:
        """The step that does what this exact action says."""
        return next(entry for entry in self._entries.values() if entry.action_id == action_id and entry.kind == "perform")

    def steps(self) -> int:
        """How many steps it has: what uses a tool or a model, or asks for an action."""
        return sum(entry.kind in STEPS for entry in self._entries.values())

    def done(self) -> list[JournalEntry]:
        return [entry for entry in self._entries.values() if entry.state == "done"]

    def begin(self, step: str, *, kind: str, given: Any, action_id: UUID | None = None) -> JournalEntry:
        """Write down that a step starts, or starts again. In the caller's transaction."""
        entry = self._entries.get(step)
        if entry is None:
            if len(self._entries) >= MOST and not self._branch:
                raise Parked("error", step=step, detail=f"It has come to {MOST} steps: its workflow may go on for ever.")
            entry = JournalEntry(run_id=self.run_id, step=step, kind=kind, position=len(self._entries) + 1, attempts=0)
        entry.input_digest, entry.token, entry.action_id = digest(given), self.token, action_id or entry.action_id
        entry.attempts += 1
        entry.save()
        self._entries[step] = entry
        points.reached(f"begin-{step}", self.run_id)
        return entry

    def became(self, entry: JournalEntry, action_id: UUID) -> None:
        """Write down which exact action a step became, in the caller's transaction."""
        entry.action_id = action_id
        entry.save(update_fields=["action_id"])

    def asked(self, entry: JournalEntry, given: Any) -> None:
        """Write down that a completed step is asked for something else now, in the caller's transaction."""
        entry.input_digest = digest(given)
        entry.save(update_fields=["input_digest"])

    def end(self, held: Held, entry: JournalEntry, result: Any, *, label: str, seq: int) -> None:
        """Write down what a step gave, in the caller's transaction: its result is then final."""
        entry.result = vault.keep(held.row.workspace_id, orjson.dumps(result), label=label, media_type="application/json")
        entry.state, entry.ended_at, entry.token, entry.seq = "done", clock.now(), self.token, seq
        entry.save()
        points.reached(f"end-{entry.step}", self.run_id)


def steps_of(run_id: UUID) -> int:
    """How many steps a run has begun."""
    return JournalEntry.objects.filter(run_id=run_id, kind__in=STEPS).count()


def afresh(run_id: UUID, step: str) -> None:
    """Let a step that was not completed be tried anew, as often as it may be. In the caller's transaction, under the run's lock."""
    JournalEntry.objects.filter(run_id=run_id, step=step, state="started").update(attempts=0, started_at=clock.now())


def take_over(run_id: UUID, entries: Sequence[JournalEntry], seqs: Mapping[str, int], results: Mapping[str, Payload]) -> None:
    """Give a run that is being forked the completed steps of another, in the caller's transaction.

    `seqs`: the events of its own log to cite for them, by step; `results`: of the steps whose results name such events.
    """
    JournalEntry.objects.bulk_create(
        JournalEntry(
            run_id=run_id,
            step=entry.step,
            kind=entry.kind,
            position=entry.position,
            state=entry.state,
            input_digest=entry.input_digest,
            result=results.get(entry.step, entry.result),
            action_id=entry.action_id,
            attempts=entry.attempts,
            token=0,
            started_at=entry.started_at,
            ended_at=entry.ended_at,
            seq=seqs[entry.step],
        )
        for entry in entries
    )


def ask_otherwise(run_id: UUID, entry: JournalEntry, edits: Payload) -> None:
    """Have a step of a run that is being forked asked for something else than its code says, when it comes to it."""
    JournalEntry.objects.create(
        run_id=run_id, step=entry.step, kind=entry.kind, position=entry.position, input_digest="", edits=edits, attempts=0, token=0
    )


def edited(entry: JournalEntry | None, given: dict[str, Any]) -> dict[str, Any]:
    """What a step is asked: as its code says, but for what whoever forked the run there has changed."""
    if entry is None or entry.edits_id is None:
        return given
    return given | orjson.loads(vault.open_bytes(entry.edits))


def forget(run_id: UUID, steps: Collection[str]) -> int:
    """Have these steps done anew, in the caller's transaction, under the run's lock. Gives how many there were."""
    return JournalEntry.objects.filter(run_id=run_id, step__in=steps).delete()[0]


def result_of(entry: JournalEntry) -> Any:
    """What a finished step gave."""
    return orjson.loads(vault.open_bytes(entry.result)) if entry.result else None


def digest(given: Any) -> str:
    """A fingerprint of a step's input, for telling whether a replay asks for the same."""
    return hashlib.sha256(orjson.dumps(given, option=orjson.OPT_SORT_KEYS)).hexdigest()
