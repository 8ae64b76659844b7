"""Updates: tracked changes of a run that give their result at once. For people: an agent never widens its own limits."""

from collections.abc import Mapping
from typing import Any, ClassVar

from access import audit
from access.errors import BadInput, Forbidden, Refusal
from access.rules import Actor
from runs import log, steps
from runs.engine import budget
from runs.errors import RunEnded
from runs.lifecycle import State
from runs.log import Held, Text
from runs.models import Run
from runs.vocabulary import BudgetChanged, RunQueued

MOST = 2**53 - 1


class Changed(Refusal):
    """Somebody else has changed the limits meanwhile."""

    what_next: ClassVar[str] = "Nothing was changed. Look at them as they are now, and set them again."


class PeopleSet(Forbidden):
    """Only people set the limits of a run."""

    what_next: ClassVar[str] = "Nothing was changed. Ask the run's owner, or who may steer it."


def set_budgets(run: Run, budgets: Mapping[str, int], *, by: Actor, note: str = "", before: Mapping[str, int] | None = None) -> Run:
    """Set a run's limits; what is left out has none. A run that waits for a bigger budget goes on, if it is big enough now.

    `budgets`: tokens, cost_micro (millionths of a euro), working_ms, steps → a number above 0. RunEnded once it has ended. `before`: what
    whoever asks takes them to be; Changed if they are not that any more.
    """
    if by.kind != "human":
        raise PeopleSet
    wrong = [name for name, limit in budgets.items() if name not in budget.NAMES or not isinstance(limit, int) or not 0 < limit <= MOST]
    if wrong:
        raise BadInput(f"“{wrong[0][:40]}” is no limit that a run has, or its number makes no sense.", budgets=list(budget.NAMES))
    with log.holding(run.pk) as held:
        if held.row.ended_at is not None:
            raise RunEnded(f"The run ended as {held.row.state}.", state=held.row.state, seq=held.row.seq)
        if before is not None and dict(before) != held.row.budgets:
            raise Changed
        if dict(budgets) != held.row.budgets:
            _set(held, dict(budgets), by, note.strip())
    return held.row


def _set(held: Held, budgets: dict[str, int], by: Actor, note: str) -> None:
    held.append(BudgetChanged(**budgets), actor=by, texts={"note": Text(note)} if note else {})
    before = held.row.budgets
    held.change(budgets=budgets)
    budget.warn(held, before)
    more: dict[str, Any] = dict(budgets)
    audit.record(by, "budgets_set", workspace_id=held.row.workspace_id, subject=("run", held.row.pk), **more)
    if held.row.state == State.WAITING and held.row.waits_on("budget") and enough(held.row):
        if held.row.workflow:
            held.move(State.QUEUED, RunQueued(reason="budget"))
        else:
            steps.goes_on(held)


def enough(run: Run) -> bool:
    """Whether the run may begin something new within its limits."""
    return budget.over(run.budgets, budget.used(run)) is None
