"""What a run did outside, as its log has it, and what of that was undone."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

import orjson
from django.db.models import QuerySet

from access.rows import only
from artifacts.models import Payload
from runs import log
from runs.lifecycle import State
from runs.log import Held, Text
from runs.models import Event, Run
from runs.vocabulary import EffectDone, EffectUndone

TOLD = ("effect.done", "effect.undone", "effect.undo_failed")
CHILDREN = ("child.started", "child.ended")
# how a step begins that undoes an effect: the event that tells of it, after those that tell of the child run whose log that is in
BRANCH = re.compile(r"undo-((?:[0-9]+-)*[0-9]+)/")
UNDO = "undo-effect"  # the workflow of a run that undoes one effect of its parent, which has ended; its parent_step names the event
Told = tuple[int, Mapping[str, Any], Mapping[str, str]]  # an event: its number, its parsed body, its payloads by role


@dataclass(frozen=True)
class Effect:
    """One thing that was done outside. `key` is its idempotency key, the id of its grant; `seq` the event of `run` that says so."""

    key: str
    tool: str
    seq: int
    can_undo: bool
    action: UUID | None
    state: Literal["done", "undone", "failed"] = "done"  # failed: it could not be undone, so far
    subject: str | None = None  # a payload's id
    run: UUID | None = None  # a child run, whose log it is in; None: the run itself
    path: tuple[int, ...] = ()  # of a child's: the events that tell that it was started

    @property
    def undone(self) -> bool:
        return self.state == "undone"

    @property
    def branch(self) -> str:
        """Where the steps of its undoing stand in the journal."""
        return f"undo-{'-'.join(map(str, (*self.path, self.seq)))}/"


def effects(run: Run | Held) -> list[Effect]:
    """All that the run did outside, in order. Of a held run also what this transaction has told so far."""
    row = run.row if isinstance(run, Held) else run
    return _later(row, fold(_told(run, TOLD)))


def undone_after(row: Run) -> frozenset[int]:
    """The events of an ended run whose effects a run of their own has undone since. No query for a run that goes on."""
    if row.ended_at is None:
        return frozenset()
    done = Event.objects.filter(run__in=undoings(row), type="effect.done").values_list("run__parent_step", flat=True)
    return frozenset(map(undoes, done))


def counted_undone_after(runs: Iterable[Run]) -> Mapping[UUID, int]:
    """How many effects of each of these runs were undone by runs of their own after its end. One query, or none."""
    ended = [run.pk for run in runs if run.ended_at is not None]
    if not ended:
        return {}
    undoing = Event.objects.filter(
        type="effect.done", run__parent_id__in=ended, run__workflow=UNDO, run__parent_step__startswith=f"{UNDO}-"
    )
    done = set(undoing.values_list("run__parent_id", "run__parent_step"))
    return Counter(run for run, _ in {(run, undoes(step)) for run, step in done})


def undoings(row: Run) -> QuerySet[Run]:
    """The runs that people had started to undo an effect of this one."""
    return Run.objects.filter(parent_id=row.pk, workflow=UNDO, parent_step__startswith=f"{UNDO}-")


def undoes(parent_step: str) -> int:
    """The event of the effect that such a run undoes: `undo-effect-17#1` → 17."""
    return int(parent_step.removeprefix(f"{UNDO}-").partition("#")[0])


def _later(row: Run, found: list[Effect]) -> list[Effect]:
    if not any(effect.can_undo for effect in found):
        return found
    after, above = undone_after(row), _undone_above(row)
    return [replace(effect, state="undone") if effect.seq in after or effect.key in above else effect for effect in found]


def _undone_above(row: Run) -> frozenset[str]:
    """The keys of what the runs that this one is a part of have undone: their logs say so, not this one's. A query for each."""
    found: set[str] = set()
    while row.parent_id is not None:
        row = Run.objects.get(pk=row.parent_id)
        told = Event.objects.filter(run_month=row.month, run_id=row.pk, type="effect.undone").values_list("body", flat=True)
        found.update(orjson.loads(body)["data"]["key"] for body in told)
    return frozenset(found)


def family_effects(run: Run | Held) -> list[Effect]:
    """The same, with what those of its child runs did that succeeded; in the order in which it is undone: the last first."""
    row = run.row if isinstance(run, Held) else run
    told = list(_told(run, (*TOLD, *CHILDREN)))
    undone = {body["data"]["key"] for _, body, _ in told if body["type"] == "effect.undone"}
    found = [(effect.seq, [effect]) for effect in _later(row, fold(told))]
    found += [(ended, list(_of_child(child, started, undone))) for child, started, ended in _children(row, told)]
    return [effect for _, some in sorted(found, key=lambda each: each[0], reverse=True) for effect in some]


def fold(told: Iterable[Told]) -> list[Effect]:
    """What these events say that was done outside, in order, and what became of it."""
    found: dict[str, Effect] = {}
    for seq, body, payloads in told:
        data, kind = body["data"], body["type"]
        if kind == "effect.done":
            action = UUID(data["action"]) if "action" in data else None
            found[data["key"]] = Effect(data["key"], data["tool"], seq, data["can_undo"], action, subject=payloads.get("subject"))
        elif kind in TOLD and data["key"] in found:
            found[data["key"]] = replace(found[data["key"]], state="undone" if kind == "effect.undone" else "failed")
    return list(found.values())


def is_undo(step: str) -> bool:
    """Whether a step undoes something."""
    return BRANCH.match(step) is not None


def tell(
    run: Held,
    *,
    tool: str,
    key: str,
    can_undo: bool,
    action: UUID,
    step: str | None,
    texts: Mapping[str, Text | Payload],
    caused_by: int | None = None,
) -> int:
    """Write into the log that it happened: something was done outside, or undone if the step stands in the branch of an undoing."""
    branch = BRANCH.match(step or "")
    path = tuple(map(int, branch[1].split("-"))) if branch else ()
    if undone := _undone_by(run.row, path):
        return run.append(EffectUndone(key=undone), actor=log.ENGINE, caused_by=path[0])
    done = EffectDone(tool=tool, key=key, can_undo=can_undo, action=action, step=step)
    return run.append(done, actor=log.ENGINE, texts=texts, caused_by=caused_by)


def _told(run: Run | Held, types: tuple[str, ...]) -> Iterator[Told]:
    row = run.row if isinstance(run, Held) else run
    kept = Event.objects.filter(run_month=row.month, run_id=row.pk, type__in=types).order_by("seq").values_list("seq", "body", "payloads")
    for seq, body, payloads in kept.iterator():
        yield seq, orjson.loads(body), payloads
    for event in run.pending if isinstance(run, Held) else ():
        if event.type in types:
            yield event.seq, orjson.loads(event.body), event.payloads


def _children(row: Run, told: Iterable[Told]) -> Iterator[tuple[Run, int, int]]:
    """Its child runs that succeeded, each with the events that tell that it was started, and that it had ended (or else the former)."""
    started: dict[str, int] = {}
    ended: dict[str, int] = {}
    for seq, body, _ in told:
        if body["type"] in CHILDREN:
            (started if body["type"] == "child.started" else ended)[body["data"]["run"]] = seq
    for child in Run.objects.filter(pk__in=list(started), parent_id=row.pk, state=State.SUCCEEDED) if started else ():
        at = started[str(child.pk)]
        yield child, at, ended.get(str(child.pk), at)


def _of_child(child: Run, started: int, undone: set[str]) -> Iterator[Effect]:
    """What a child did, as its parent undoes it."""
    for effect in family_effects(child):
        state: Any = "undone" if effect.key in undone else effect.state
        yield replace(effect, run=effect.run or child.pk, path=(started, *effect.path), state=state)


def starts(row: Run, seqs: Collection[int]) -> list[str]:
    """The steps of a run that started the child runs of which these events tell."""
    told = Event.objects.filter(run_month=row.month, run_id=row.pk, seq__in=seqs, type="child.started").values_list("body", flat=True)
    made = [orjson.loads(body)["data"]["run"] for body in told]
    return list(Run.objects.filter(pk__in=made).values_list("parent_step", flat=True))


def _undone_by(row: Run, path: tuple[int, ...]) -> str | None:
    """The key of the effect that the last event of the path tells of; those before it lead to the child run in whose log that is."""
    for at, seq in enumerate(path, 1):
        type_ = "effect.done" if at == len(path) else "child.started"
        told = only(Event.objects.filter(run_month=row.month, run_id=row.pk, seq=seq, type=type_).values_list("body", flat=True))
        if told is None:
            return None
        data = orjson.loads(told)["data"]
        if at == len(path):
            return str(data["key"])
        row = Run.objects.get(pk=data["run"])
    return None
