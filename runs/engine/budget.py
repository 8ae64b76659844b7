"""The budgets of a run: tokens, cost, working time and steps. What is used of them stands on the run's row."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from runs.log import ENGINE, Held
from runs.models import Run
from runs.vocabulary import BudgetWarned

Name = Literal["tokens", "cost_micro", "working_ms", "steps"]
NAMES: tuple[Name, ...] = get_args(Name)
WARN = 80  # percent


@dataclass(frozen=True)
class Spent:
    """How much of one budget is used."""

    budget: Name
    used: int
    limit: int


def use(run: Held, **more: int) -> None:
    """Add to what a run has used, and warn once of each budget that is nearly used up by it. In the caller's transaction."""
    before = used(run.row)
    run.change(**{name: before[name] + more[name] for name in NAMES if more.get(name)})
    for spent in near(run.row.budgets, before, used(run.row)):
        run.append(BudgetWarned(budget=spent.budget, used=spent.used, limit=spent.limit), actor=ENGINE)


def warn(run: Held, before: Mapping[str, int]) -> None:
    """Warn of each budget that is nearly used up by now, because its limit was `before` another. In the caller's transaction."""
    so_far = used(run.row)
    for name in NAMES:
        limit, was = run.row.budgets.get(name), before.get(name)
        if limit and limit != was and is_near(so_far[name], limit) and not (was and is_near(so_far[name], was)):
            run.append(BudgetWarned(budget=name, used=so_far[name], limit=limit), actor=ENGINE)


def is_near(spent: int, limit: int) -> bool:
    return limit * WARN <= spent * 100


def used(run: Run) -> Mapping[Name, int]:
    """What a run has used so far. Its steps are those that use a tool or a model, or ask for an action."""
    return {name: getattr(run, name) for name in NAMES}


def near(budgets: Mapping[str, int], before: Mapping[Name, int], after: Mapping[Name, int]) -> Iterator[Spent]:
    """The budgets that a step brought over WARN percent."""
    for name in NAMES:
        limit = budgets.get(name)
        if limit and is_near(after[name], limit) and not is_near(before[name], limit):
            yield Spent(name, after[name], limit)


def over(budgets: Mapping[str, int], so_far: Mapping[Name, int]) -> Spent | None:
    """The first budget that is used up: nothing new begins then."""
    spent = (Spent(name, so_far[name], budgets[name]) for name in NAMES if budgets.get(name))
    return next((each for each in spent if each.used >= each.limit), None)
