"""Money that moves: how much, to whom, within which limits, and what was paid to the same account before."""

from decimal import Decimal
from typing import Any

from approvals import money
from approvals.canonical import CanonicalAction, pointer
from approvals.cards.drawing import attachments, reaching, rest, run_and_how, sum_of, warns_at
from approvals.cards.parts import Amount, Card, Field, Setting, Share

# names under which tools carry the parts of a payment
AMOUNT, CURRENCY = ("amount",), ("currency",)
ACCOUNT = ("account", "customer", "payee")
WHOLE = 1000  # of the bar that shows the share
SEEN = 8  # of it at least, for what is there at all


def draw(action: CanonicalAction, setting: Setting) -> Card:
    """The amount in large figures, every argument by its title, and beside them what was found out: limits and earlier payments."""
    left = dict(action.arguments)
    name = next((each for each in AMOUNT if each in left), "")
    currency = currency_of(action)
    amount = _amount(setting, name, left.pop(name), currency) if name else None
    told = [each for each in rest(setting, left) if each.name in CURRENCY and amount and _is_told(each)]  # the amount bears its sign
    fields = reaching(action, setting, [each for each in rest(setting, left) if each not in told])
    how = run_and_how(action)
    return Card(
        kind="payment",
        icon="undo",
        heading="" if amount else setting.title,
        tool=action.tool,
        amount=amount,
        fields=tuple(fields),
        letter=None,
        files=attachments(action, setting),
        folded=(*told, *how["folded"]),
        lines=how["lines"],
        raw=dict(action.arguments),
        unit="payment",
        verb="run",
        facts=sum_of((len(action.arguments), "argument")),
        known=tuple(_known(setting, amount, currency)),
        earlier=tuple(setting.earlier),
        times=setting.times,
    )


def currency_of(action: CanonicalAction) -> Any:
    return next((action.arguments[each] for each in CURRENCY if each in action.arguments), "")


def account_of(action: CanonicalAction) -> str:
    """To whose account it goes, as the action names it; empty if it does not say."""
    return next((str(action.arguments[each]) for each in ACCOUNT if action.arguments.get(each)), "")


def amount_of(action: CanonicalAction) -> tuple[Decimal | None, str]:
    """The sum that it moves, None if that can't be read for certain, and how it is written. Empty if it names none."""
    value = next((action.arguments[each] for each in AMOUNT if each in action.arguments), None)
    amount, currency = money.read(value), currency_of(action)
    return amount, money.spell(amount, currency) if amount is not None else "" if value is None else f"{value} {currency}".strip()


def _amount(setting: Setting, name: str, value: Any, currency: Any) -> Amount:
    path, number = pointer("arguments", name), money.read(value)
    # what is not surely a number stands as it was written
    text = f"{value} {currency}".strip() if number is None or setting.masked else money.spell(number, currency)
    share, said = _share(setting, number, currency) if number is not None else ((), "")
    return Amount(path, name, value, text, share=share, said=said, warns=warns_at(setting, path))


def _is_told(currency: Field) -> bool:
    return currency.known and not currency.warns and isinstance(currency.value, str) and currency.value in money.SIGNS


def _share(setting: Setting, number: Decimal, currency: Any) -> tuple[tuple[Share, ...], str]:
    """What this takes of what was paid, as pieces of a bar and in words. Nothing if it is not known, or does not fit; of all, no bar."""
    paid, left = (money.read(text) for text in (setting.looked.paid, setting.looked.left)) if setting.looked else (None, None)
    if paid is None or left is None or not 0 < number <= left <= paid:
        return (), ""
    if number == paid:
        return (), "All that was paid; nothing is left to give back after this."
    before, this = (round(part / paid * WHOLE) for part in (paid - left, number))
    before, this = max(before, SEEN * int(paid > left)), max(this, SEEN)
    before = min(before, WHOLE - this)
    pieces = (Share("before", 0, before), Share("left", before, WHOLE - before - this), Share("this", WHOLE - this, this))
    said = (
        f"Of {money.spell(paid, currency)} paid, {money.spell(paid - left, currency)} went back before"
        f" and this takes {money.spell(number, currency)}."
    )
    return tuple(piece for piece in pieces if piece.wide), said


def _known(setting: Setting, amount: Amount | None, currency: Any) -> list[tuple[str, str]]:
    """What the house itself knows: the limits of this tool, and what it paid today."""
    found = []
    limit, today = setting.limit, money.read(setting.today)
    if limit is None or currency != limit.currency:
        return found
    if limit.each:
        found.append(("Limit", f"{money.spell(Decimal(limit.each), limit.currency)} each"))
    if limit.a_day and today is not None:
        of = money.spell(Decimal(limit.a_day), limit.currency)
        found.append(("Paid today", f"{money.spell(today, limit.currency)} of {of}"))
    return found
