"""What a run has already done, step by step. A replayed workflow takes its answers from here; only what is missing runs.

A step's identity is branch path + name + occurrence, such as `read_ticket#1`.

A run of any length takes the same memory: entries are read page by page, in the order in which they began, which is the order in which a
replay asks for them. Kept are those that were read and not asked for yet, AHEAD at most, and those of steps that are under way.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

from access import inserting
from access.inserting import Statement
from access.rows import copied, made, only
from artifacts import vault
from artifacts.models import Payload
from config import clock
from runs.engine import budget, points
from runs.engine.outcomes import Parked
from runs.log import Held, Text
from runs.models import JournalEntry

MOST = 100_000  # entries of one run: what asks for more is a loop that no budget ends
STEPS = ("step", "model", "propose", "perform")  # kinds of entries that a budget of steps counts
PAGE = 200
AHEAD = 1000  # entries
SMALL = 32 * 1024  # bytes of a result that is read with its page; a larger one is read when it is asked for
COLUMNS = {  # of an entry, and their types in PostgreSQL
    "run_id": "uuid",
    "step": "text",
    "kind": "text",
    "position": "bigint",
    "state": "text",
    "input_digest": "text",
    "result_id": "uuid",
    "action_id": "uuid",
    "attempts": "bigint",
    "token": "bigint",
    "started_at": "timestamptz",
    "ended_at": "timestamptz",
    "seq": "bigint",
}
KEY = ("run_id", "step")


class Journal:
    """The journal of one run as one worker sees it. Writes go through `begin` and `end` under the run's lock."""

    def __init__(self, run_id: UUID, token: int, branch: str = "") -> None:
        self.run_id, self.token, self._branch = run_id, token, branch
        self._recorded = _Recorded(run_id)
        self._occurrences: Counter[str] = Counter()

    def on(self, branch: str) -> "Journal":
        """The same journal, on another path: what is written by one is known to the other."""
        other = copy(self)
        other._branch, other._occurrences = self._branch + branch, Counter()
        return other

    def next_step(self, name: str) -> str:
        """The identity of the next step of this name on this path."""
        self._occurrences[name] += 1
        return f"{self._branch}{name}#{self._occurrences[name]}"

    def find(self, step: str) -> JournalEntry | None:
        """What is written down of a step; None if it never began."""
        return self._recorded.find(step)

    def performing(self, action_id: UUID) -> JournalEntry:
        """The step that does what this exact action says."""
        return JournalEntry.objects.get(run_id=self.run_id, action_id=action_id, kind="perform")

    def draft(self, step: str, *, kind: str, given: Any, action_id: UUID | None = None) -> JournalEntry:
        """A step that starts, or starts again, as it will be written down."""
        entry = self.find(step)
        entry = copied(entry) if entry else made(JournalEntry, run_id=self.run_id, step=step, kind=kind, position=0, attempts=0)
        entry.input_digest, entry.token, entry.action_id = digest(given), self.token, action_id or entry.action_id
        entry.attempts += 1
        return entry

    def begin(self, held: Held, step: str, *, kind: str, given: Any, action_id: UUID | None = None) -> JournalEntry:
        """Write down that a step starts, or starts again. In the caller's transaction."""
        entry = self.draft(step, kind=kind, given=given, action_id=action_id)
        self.began(held, entry)
        return entry

    def began(self, held: Held, entry: JournalEntry) -> None:
        """Write down what `draft` gave, in the caller's transaction."""
        if not entry.position:
            self._place(held, entry)
        self._recorded.under_way[entry.step] = entry
        _write(held, entry)
        points.reached(f"begin-{entry.step}", self.run_id)

    def became(self, held: Held, entry: JournalEntry, action_id: UUID) -> None:
        """Write down which exact action a step became, in the caller's transaction."""
        entry.action_id = action_id
        _write(held, entry)

    def asked(self, held: Held, entry: JournalEntry, given: Any) -> None:
        """Write down that a completed step is asked for something else now, in the caller's transaction."""
        entry.input_digest = digest(given)
        _write(held, entry)

    def end(self, held: Held, entry: JournalEntry, result: Any, *, label: str, seq: int, kept: Payload | None = None) -> None:
        """Write down what a step gave, in the caller's transaction: its result is then final. `kept`: its payload, if there is one."""
        entry.result = kept or held.keep(Text(orjson.dumps(result), label, "application/json"))
        entry.state, entry.ended_at, entry.token, entry.seq = "done", clock.now(), self.token, seq
        self._recorded.under_way.pop(entry.step, None)
        _write(held, entry)
        points.reached(f"end-{entry.step}", self.run_id)

    def _place(self, held: Held, entry: JournalEntry) -> None:
        entry.position = self._recorded.next_position()
        if entry.position > MOST and not entry.step.startswith("undo-"):
            raise Parked("error", step=entry.step, detail=f"It has come to {MOST} steps: its workflow may go on for ever.")
        if entry.kind in STEPS:
            budget.use(held, steps=1)


class _Recorded:
    """The entries of a run as far as they are in memory. Branches that are walked at once share it."""

    def __init__(self, run_id: UUID) -> None:
        self.run_id = run_id
        self.under_way: dict[str, JournalEntry] = {}
        self._ahead: dict[str, JournalEntry] = {}
        self._given: dict[str, JournalEntry] = {}
        self._read_to, self._all_read, self._all_kept = 0, False, True
        self._last: int | None = None  # position
        self._lock = threading.RLock()

    def find(self, step: str) -> JournalEntry | None:
        with self._lock:
            found = self.under_way.get(step) or self._given.get(step) or self._ahead.pop(step, None)
            if found is None and not self._all_read:
                self._read_page()
                found = self._ahead.pop(step, None)
            if found is None and not (self._all_read and self._all_kept):
                found = only(JournalEntry.objects.select_related("result__key").filter(run_id=self.run_id, step=step))
            if found is not None:
                self._give(step, found)
        return found

    def _give(self, step: str, found: JournalEntry) -> None:
        if found.state != "done":
            self.under_way[step] = found
            return
        self._given[step] = found
        if len(self._given) > PAGE:
            del self._given[next(iter(self._given))]

    def next_position(self) -> int:
        with self._lock:
            if self._last is None:
                latest = JournalEntry.objects.filter(run_id=self.run_id).order_by("-position").values_list("position", flat=True)
                self._last = latest.first() or 0
            self._last += 1
            return self._last

    def _read_page(self) -> None:
        rows = list(JournalEntry.objects.filter(run_id=self.run_id, position__gt=self._read_to).order_by("position")[:PAGE])
        self._all_read = len(rows) < PAGE
        page = _Page()
        for entry in rows:
            self._read_to = entry.position
            if entry.step not in self.under_way:
                self._ahead[entry.step] = entry
                page.add(entry)
        while len(self._ahead) > AHEAD:  # a workflow whose code changed asks for them no more; if it does, they are read one by one
            self._all_kept = False
            del self._ahead[next(iter(self._ahead))]


@dataclass
class _Page:
    """The small results of a page of entries, read together when the first of them is asked for."""

    ids: list[UUID] = field(default_factory=list)
    read: dict[UUID, Payload] | None = None

    def add(self, entry: JournalEntry) -> None:
        if entry.result_id is not None:
            self.ids.append(entry.result_id)
            vars(entry)["_page"] = self

    def take(self, pk: UUID) -> Payload | None:
        if self.read is None:
            small = Payload.objects.select_related("key").filter(pk__in=self.ids, size__lte=SMALL)
            self.read = {payload.pk: payload for payload in small}
        return self.read.pop(pk, None)


@dataclass
class _Entries:
    """Entries on their way into the database, with the events of their transaction."""

    entries: dict[str, JournalEntry] = field(default_factory=dict)

    def statement(self) -> Statement:
        rows = [[getattr(entry, name) for name in COLUMNS] for entry in self.entries.values()]
        inserted, values = inserting.insertion("runs_journalentry", COLUMNS, rows)
        return inserted + AGAIN, values

    def write(self) -> None:
        changing = [name.removesuffix("_id") if name == "result_id" else name for name in COLUMNS if name not in KEY]
        rows = [JournalEntry(**{name: getattr(entry, name) for name in COLUMNS}) for entry in self.entries.values()]
        JournalEntry.objects.bulk_create(rows, update_conflicts=True, unique_fields=["run", "step"], update_fields=changing)


AGAIN = f" ON CONFLICT (run_id, step) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in COLUMNS if name not in KEY)}"


def _write(held: Held, entry: JournalEntry) -> None:
    rows = held.rows.setdefault("journal", _Entries())
    rows.entries[entry.step] = entry


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
            edits_id=entry.edits_id,
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
    if entry.result_id is None:
        return None
    page: _Page | None = getattr(entry, "_page", None)
    kept = page.take(entry.result_id) if page else None
    if kept is None and not JournalEntry._meta.get_field("result").is_cached(entry):
        kept = Payload.objects.select_related("key").get(pk=entry.result_id)  # a large one, which does not stay with the entry
    return orjson.loads(vault.open_bytes(kept or entry.result))


def digest(given: Any) -> str:
    """A fingerprint of a step's input, for telling whether a replay asks for the same."""
    return hashlib.sha256(orjson.dumps(given, option=orjson.OPT_SORT_KEYS)).hexdigest()
