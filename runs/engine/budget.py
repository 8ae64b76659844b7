"""The budgets of a run: tokens, cost, working time and steps. Pure: what is used and what may be says what is told, and when it stops."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from runs.models import Run

Name = Literal["tokens", "cost_micro", "working_ms", "steps"]
NAMES: tuple[Name, ...] = ("tokens", "cost_micro", "working_ms", "steps")
WARN = 80  # percent


@dataclass(frozen=True)
class Spent:
    """How much of one budget is used."""

    budget: Name
    used: int
    limit: int


def used(run: Run, steps: int) -> Mapping[Name, int]:
    """What a run has used so far; its steps are counted in its journal."""
    return {"tokens": run.tokens, "cost_micro": run.cost_micro, "working_ms": run.working_ms, "steps": steps}


def near(budgets: Mapping[str, int], before: Mapping[Name, int], after: Mapping[Name, int]) -> Iterator[Spent]:
    """The budgets that a step brought over WARN percent."""
    for name in NAMES:
        limit = budgets.get(name)
        if limit and before[name] * 100 < limit * WARN <= after[name] * 100:
            yield Spent(name, after[name], limit)


def over(budgets: Mapping[str, int], so_far: Mapping[Name, int]) -> Spent | None:
    """The first budget that is used up: nothing new begins then."""
    spent = (Spent(name, so_far[name], budgets[name]) for name in NAMES if budgets.get(name))
    return next((each for each in spent if each.used >= each.limit), None)
