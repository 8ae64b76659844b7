"""What a request asks for, read by fixed rules. Pure; whatever the text says stays text, and fills in names, numbers and amounts only."""

import re
from typing import Any

JOBS = {
    "refund": "Refund a payment",
    "customer": "Change a customer",
    "prices": "Change prices",
    "note": "Note for the help desk",
    "report": "Pack a report",
    "access": "Take access away",
}
_WORDS = {
    "refund": r"refund",
    "access": r"\baccess\b",
    "prices": r"\bprices?\b",
    "report": r"\breport\b|\barchive\b",
    "note": r"\bnote\b",
    "customer": r"\bmoved\b|\baddress\b|\bcontact\b|\brecord of\b",
}


def job_of(subject: str, text: str) -> str | None:
    """Which of the six jobs it is, the subject first; None if none."""
    for words in (subject, text[:5000]):
        if found := next((job for job, pattern in _WORDS.items() if re.search(pattern, words, re.IGNORECASE)), None):
            return found
    return None


def read(job: str, text: str) -> dict[str, Any]:
    """The parts that a job needs, as the text has them; what it does not say is empty. `reason` says in one line what was asked."""
    lines = {m[1].strip().lower(): m[2].strip() for m in re.finditer(r"(?m)^([A-Z][A-Za-z -]{1,30}): (.{1,200})$", text)}
    found: dict[str, Any] = {"customer": _first(r"\bcustomer (\d{5})\b", text)}
    return found | _READERS[job](lines, text)


def closest(question: str, text: str) -> str:
    """The line of the text that shares the most words with the question; empty if none shares one of four letters or more."""
    words = set(re.findall(r"\w{4,}", question[:2000].lower()))
    shared = [(len(words & set(re.findall(r"\w{4,}", line.lower()))), line.strip()[:300]) for line in text.splitlines()]
    count, line = max(shared, default=(0, ""), key=lambda pair: pair[0])
    return line if count else ""


def _first(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.IGNORECASE)
    return match[1] if match else ""


def _customer(lines: dict[str, str], text: str) -> dict[str, Any]:
    said = {name.replace(" ", "_"): _value(value) for name, value in lines.items() if name not in ("from", "subject", "why")}
    named = [name.replace("_", " ") for name in said]
    told = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else "".join(named) or "nothing"
    reason = f"The sender says: “{lines['why']}”" if "why" in lines else f"The sender says what is new of the customer: {told}."
    return {"fields": said, "reason": reason}


def _value(text: str) -> str | bool:
    return {"yes": True, "no": False}.get(text.lower(), text)


def _refund(lines: dict[str, str], text: str) -> dict[str, Any]:
    payment, amount = _first(r"\b(PAY-\d{1,9})\b", text), _first(r"\bEUR ([\d,]+(?:\.\d\d)?)", text).replace(",", "")
    words = {"why": lines.get("reason", "Duplicate")[:60], "statement": lines.get("statement", "FERNHILL REFUND")[:35]}
    return {"payment": payment, "amount": amount, "currency": "EUR", "reason": f"The sender asks for the whole of {payment} back."} | words


def _prices(lines: dict[str, str], text: str) -> dict[str, Any]:
    percent, below = _first(r"by (\d{1,2}) ?%", text), _first(r"below EUR ([\d,]+(?:\.\d\d)?)", text).replace(",", "")
    category = lines.get("category", "")
    cents = round(float(below or 0) * 100)
    return {
        "percent": int(percent or 0),
        "category": category,
        "below_cents": cents,
        "reason": f"Prices of {category} go up by {percent} %.",
    }


def _note(lines: dict[str, str], text: str) -> dict[str, Any]:
    return {"note": lines.get("note", ""), "reason": "The help desk should know when this customer writes again."}


def _report(lines: dict[str, str], text: str) -> dict[str, Any]:
    return {"file": lines.get("file", ""), "reason": "The month is closed, so its report is packed."}


def _access(lines: dict[str, str], text: str) -> dict[str, Any]:
    systems = [each.strip() for each in lines.get("systems", "").split(",") if each.strip()]
    return {"person": lines.get("person", ""), "systems": systems, "on": lines.get("day", ""), "reason": "The person leaves that day."}


_READERS = {"customer": _customer, "refund": _refund, "prices": _prices, "note": _note, "report": _report, "access": _access}
