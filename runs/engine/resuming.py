"""Resuming a run from the middle: an earlier step is done anew in the same run, where all that came after it can be done anew too.

What can be done anew: reads, model calls, and what the run tells and keeps. What was proposed or done outside, and a child run, can't be:
from before those a run is forked, and from before its latest entries. What people said since then (answers, context) is kept.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import reduce
from operator import or_
from typing import NamedTuple
from uuid import UUID

from django.db.models import Q, Subquery

from runs.engine import journal, ledger
from runs.models import JournalEntry

AGAIN = ("step", "model", "artifact", "note", "milestone", "plan", "report", "block")
KEPT = ("context", "ask", "wait", "timer", "now")
LATEST = 200  # entries of a run that are looked at; it may have 100,000


class Row(NamedTuple):
    """A journal entry. `seq`: the event to cite for it; `action`: what it was about, if it was about one."""

    step: str
    kind: str
    state: str
    seq: int = 0
    ended_at: datetime | None = None
    action_id: UUID | None = None


def rows(run_ids: Sequence[UUID]) -> dict[UUID, list[Row]]:
    """The latest entries of the journals of some runs, in order. One query."""
    found: dict[UUID, list[Row]] = {run_id: [] for run_id in run_ids}
    if not found:
        return found
    entries = JournalEntry.objects.filter(reduce(or_, map(_latest, found))).order_by("run_id", "position")
    for run_id, *row in entries.values_list("run_id", *Row._fields):
        found[run_id].append(Row(*row))
    return found


def _latest(run_id: UUID) -> Q:
    last = JournalEntry.objects.filter(run_id=run_id).order_by("-position").values("position")[:1]
    return Q(run_id=run_id, position__gt=Subquery(last) - LATEST)


def steps(entries: Sequence[Row]) -> list[str]:
    """The completed steps from which a run can be resumed, in order."""
    return [each.step for each in _tail(entries) if each.kind in ("step", "model") and each.state == "done"][::-1]


def again(run_id: UUID, step: str) -> bool:
    """Have a step and what came after it done anew, in the caller's transaction, under the run's lock. False if that can't be."""
    entries = rows([run_id])[run_id]
    if step not in steps(entries):
        return False
    names = [each.step for each in entries]
    after = entries[names.index(step) :]
    journal.forget(run_id, [each.step for each in after if each.kind in AGAIN])
    return True


def _tail(entries: Sequence[Row]) -> Iterator[Row]:
    """The entries after the last that can't be made again, the newest first."""
    for entry in reversed(entries):
        if entry.kind not in (*AGAIN, *KEPT) or ledger.is_undo(entry.step):
            return
        yield entry
