"""Which actions may be decided together, and why one may not. Pure: facts in, sentences out.

Together go only actions of one tool, one version of one policy and one risk, that take one person each, warn of nothing, send nothing
outside, and are held by nobody else. An amount far beyond the others is decided alone as well.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from statistics import median
from uuid import UUID

FAR = 2  # an amount beyond so many times the middle one is not like the others


@dataclass(frozen=True)
class Facts:
    """What of one action decides whether it may go with others. `warning` is the first one's words, `holder` who else is on it."""

    id: UUID
    schema: int
    policy: UUID
    policy_words: str
    needs: int
    risk: int
    risk_word: str
    warning: str = ""
    locked: bool = False
    holder: str = ""
    tainted: bool = False
    outside: tuple[str, ...] = ()
    broken: str = ""
    money: tuple[Decimal, str] | None = None  # amount and currency; one below zero moves as much
    money_words: str = ""
    editor: str = ""  # who edited it


def why_alone(given: Iterable[Facts], like: Facts) -> Mapping[UUID, str]:
    """For each action that can't go with those like `like`: why, as a sentence."""
    each = list(given)
    found = {one.id: why for one in each if (why := _by_itself(one) or _unlike(one, like))}
    return found | _beyond([one for one in each if one.id not in found], like)


def _by_itself(one: Facts) -> str:
    """Why an action is never decided with others, whatever they are."""
    if one.broken:
        return one.broken
    if one.tainted:
        return "It sends data out of a run that has read private and outside text."
    if one.needs > 1:
        return f"It takes {one.needs} people: its policy is {one.policy_words}."
    if one.warning or one.locked:
        return one.warning or "A warning locks it."
    if one.outside:
        return f"It goes outside, to {one.outside[0]}{f' and {len(one.outside) - 1} more' if len(one.outside) > 1 else ''}."
    if one.money is None and one.money_words:
        return "Its amount can’t be read."
    if one.editor:
        return f"{one.editor} edited it, so it is read for itself."
    return f"{one.holder} is on it." if one.holder else ""


def _unlike(one: Facts, like: Facts) -> str:
    if one.policy != like.policy:
        return f"Its policy is {one.policy_words}, not {like.policy_words}."
    if one.schema != like.schema:
        return f"It was proposed for version {one.schema} of the tool, not {like.schema}."
    return f"Its risk is {one.risk_word.lower()}, not {like.risk_word.lower()}." if one.risk != like.risk else ""


def _beyond(those: list[Facts], like: Facts) -> dict[UUID, str]:
    """Amounts in another currency, or far from the middle one."""
    sums = [one.money for one in those if one.money]
    if not sums:
        return {}
    currency = like.money[1] if like.money else sums[0][1]
    middle = median(abs(amount) for amount, each in sums if each == currency) if any(each == currency for _, each in sums) else Decimal()
    found = {}
    for one in those:
        if one.money is None:
            found[one.id] = "It names no amount, and the others do."
        elif one.money[1] != currency:
            found[one.id] = f"{one.money_words} is in another currency than the others."
        elif abs(one.money[0]) > FAR * middle:
            found[one.id] = f"{one.money_words} is more than {FAR} times what the others move."
    return found
