"""Sums of money as actions carry them: a decimal number and a currency. Pure; what cannot be read for certain is not read."""

import re
from decimal import Decimal
from typing import Any

SIGNS = {"EUR": "€", "GBP": "£", "USD": "US$", "BRL": "R$", "JPY": "¥", "INR": "₹"}
_PLAIN = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,4})?", re.ASCII)


def read(amount: Any) -> Decimal | None:
    """The number, if it is written as one: digits with at most one point, and no sign but a minus. `1,284` or `１２` are not."""
    if isinstance(amount, bool) or not isinstance(amount, str | int | float):
        return None
    text = amount if isinstance(amount, str) else repr(amount)
    return Decimal(text) if _PLAIN.fullmatch(text) else None


def spell(amount: Decimal, currency: Any) -> str:
    """“€1,284.00”: grouped, with every digit that the number has."""
    places = max(2, -int(amount.as_tuple().exponent))
    figures, minus = f"{abs(amount):,.{places}f}", "−" if amount < 0 else ""
    if not isinstance(currency, str) or not currency:
        return f"{minus}{figures}"
    return f"{minus}{SIGNS[currency]}{figures}" if currency in SIGNS else f"{minus}{figures} {currency}"
