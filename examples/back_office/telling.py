"""What is told as evidence of what the back office's tools read: a few words, and a sentence. Pure."""

from collections.abc import Mapping
from typing import Any

NUMBERS = {1: "One", 2: "Two", 3: "Three", 4: "Four"}


def tell_customer(found: Mapping[str, Any]) -> tuple[str, str]:
    """“Halden Marine, customer 01371”, and on which terms."""
    record = found["record"]
    held = (("plan", "{} plan"), ("seats", "{} seats"), ("terms", "{} to pay"))
    told = [words.format(record[name]) for name, words in held if record.get(name)]
    return f"{record['name']}, customer {found['customer']}", ", ".join([*told, f"version {found['version']}"])


def tell_payments(found: Mapping[str, Any]) -> tuple[str, str]:
    """“Two settled payments, one invoice”, and which."""
    ids, sums = [each["payment"] for each in found["payments"]], {each["amount"] for each in found["payments"]}
    named = f"{', '.join(ids[:-1])} and {ids[-1]}" if len(ids) > 1 else "".join(ids)
    told = f"{named}, {sums.pop()}{' each' if len(ids) > 1 else ''}" if len(sums) == 1 else named
    return f"{NUMBERS.get(len(ids), len(ids))} settled payment{'' if len(ids) == 1 else 's'}, one invoice", told


def tell_refunds(found: Mapping[str, Any]) -> tuple[str, str]:
    """Whether anything went back of an invoice, and of which payments."""
    if not found["refunded"]:
        return "Nothing refunded before", f"0 refunds on {found['invoice']}"
    return "Refunded before", f"{', '.join(found['refunded'])}, on {found['invoice']}"
