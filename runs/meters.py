"""How much of its budgets a run has used, as its page says it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from access.templatetags.handrail import spell
from runs.models import Run
from runs.story.people import amount

HOT = 80  # percent of a budget from which it is nearly used
METERS = (("tokens", "Tokens"), ("cost_micro", "Cost"), ("working_ms", "Working time"))


@dataclass(frozen=True)
class Meter:
    """How much of a budget is used; without a limit only how much."""

    name: str
    used: str
    limit: str = ""
    percent: int = 0
    blind: str = ""  # why the limit does not count all of it
    idle: bool = False  # nothing of it is used, and nothing more is to be said

    @property
    def shade(self) -> str:
        return " full" if self.percent >= 100 else " hot" if self.percent >= HOT else ""


def meters_of(run: Run, *, unpriced: bool, without_price: Sequence[str] = ()) -> list[Meter]:
    """A meter for each budget. `unpriced`: whether calls were made whose cost nobody knows. `without_price`: models it may ask yet."""
    used = {"tokens": run.tokens, "cost_micro": run.cost_micro, "working_ms": run.working_ms}
    meters = [_meter(name, word, used[name], run.budgets.get(name)) for name, word in METERS]
    if unpriced:
        meters[1] = replace(meters[1], used=f"At least {meters[1].used}" if run.cost_micro else "Not known")
    if meters[1].limit:
        meters[1] = replace(meters[1], blind=_blind(unpriced, without_price))
    return [
        replace(meter, idle=name != "working_ms" and _is_idle(meter, used[name])) for (name, _), meter in zip(METERS, meters, strict=True)
    ]


def _is_idle(meter: Meter, used: int) -> bool:
    return not used and not meter.blind and meter.used != "Not known"


def _blind(unpriced: bool, without_price: Sequence[str]) -> str:
    if without_price:
        return f"{no_price(without_price)}: this limit can’t count it. One of tokens can."
    return "Not all of it is known: this limit may come too late. One of tokens counts all." if unpriced else ""


def no_price(models: Sequence[str]) -> str:
    """“large, small and 2 more have no price here”; empty of none."""
    if not models:
        return ""
    more = f" and {len(models) - 2} more" if len(models) > 2 else ""
    return f"{(', ' if more else ' and ').join(models[:2])}{more} {'has' if len(models) == 1 else 'have'} no price here"


def _meter(budget: str, word: str, used: int, limit: int | None) -> Meter:
    so_far = shown(budget, used)
    if not limit:
        return Meter(word, so_far)
    return Meter(word, so_far, shown(budget, limit), min(100, round(100 * used / limit)))


def shown(budget: str, number: int) -> str:
    """A number of a budget, as short as a meter needs it: 184 k."""
    if budget == "working_ms":
        return spell(number / 1000)
    if budget == "tokens" and number >= 10_000:
        return f"{number / 1000:,.0f} k"
    return amount(budget, number)
