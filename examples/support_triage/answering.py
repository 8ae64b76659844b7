"""Answers a reviewer's question from what the run has read: the ticket and the account. By rules; it says what it found, and where."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from examples.support_triage.drafting import money
from examples.support_triage.reading import Ticket

WORD = re.compile(r"[\w.+-]+@[\w.-]+|[A-Z]{2,}-[\w-]+|\w{4,}")
USUAL = frozenset("about because could does have reply should that their them they this what when where which will with would your".split())  # noqa: SIM905
FOUND, LONGEST = 3, 200
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
# what an account says of itself, by its keys
ITSELF = {
    "id": "The account’s number is",
    "name": "The account belongs to",
    "language": "The account’s language is",
    "plan": "The account’s plan is",
    "vat_number": "The account’s VAT number is",
    "refunds_to": "The account takes refunds to its",
}
SENTENCE = re.compile(r"(?<=[^\W\d][.!?])\s+")  # not after the day of a date: “20. November”
WRAPPED = 56  # characters of a line that a mail program broke


def answer_to_question(question: str, ticket: Ticket, account: Mapping[str, Any], sources: Mapping[str, int]) -> tuple[str, list[int]]:
    """(text, the events it names). `sources`: the sequence numbers of the events that keep the ticket and the account."""
    words = {word.casefold() for word in WORD.findall(question)} - USUAL
    message = [(line, f"The message says: “{line[:LONGEST]}”") for line in _sentences(ticket.text)]
    found = [*_about(words, message, sources["ticket"]), *_about(words, _nearest(words, _facts(account)), sources["account"])]
    if not found:
        ticket_at, account_at = sources["ticket"], sources["account"]
        return f"I find nothing about that in the message (#{ticket_at}) or the account (#{account_at}), and I know no more.", []
    return " ".join(text for text, _ in found), list(dict.fromkeys(seq for _, seq in found))


def _sentences(text: str) -> list[str]:
    """What a message says, sentence by sentence; a line that its mail program broke goes on in the next."""
    lines: list[str] = []
    goes_on = False
    for line in (" ".join(each.split()) for each in text.splitlines()):
        if line and goes_on:
            lines[-1] += f" {line}"
        elif line:
            lines.append(line)
        goes_on = len(line) >= WRAPPED
    return [sentence for line in lines for sentence in SENTENCE.split(line)]


def _about(words: set[str], facts: Iterable[tuple[str, str]], seq: int) -> list[tuple[str, int]]:
    """The sentences about what shares most with the question, in their order. A fact: what it is known by, and its sentence."""
    shared = [(len(words & {word.casefold() for word in WORD.findall(known_by)}), told) for known_by, told in facts]
    best = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])[:FOUND]
    return [(f"{told} (#{seq}).", seq) for told in [told for count, told in shared if (count, told) in best][:FOUND]]


def _nearest(words: set[str], facts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of what an account says, what shares most with the question: of two invoices the one that it names."""
    counted = [(len(words & {word.casefold() for word in WORD.findall(known_by)}), (known_by, told)) for known_by, told in facts]
    most = max((count for count, _ in counted), default=0)
    return [fact for count, fact in counted if count == most]


def _facts(account: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in account.items():
        named, each = _spaced(key), [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
        if isinstance(value, str | int | float) and value != "":
            yield f"{named} {value}", f"{ITSELF.get(key, f'Under {named} the account says')} {_short(value)}"
        for one in each:
            yield f"{named} {_known_by(one)}", _listed(key, one)


def _listed(key: str, one: Mapping[str, Any]) -> str:
    """What an account lists, in a sentence: a contact, an invoice with its payments, or something else."""
    if key == "contacts":
        return f"The account names {_with_details(one, 'name')} as a contact"
    if key != "invoices":
        return f"Under {_spaced(key)} the account lists {_with_details(one, next(iter(one), ''))}"
    paid = [each for each in one.get("payments") or () if isinstance(each, Mapping)]
    count = NUMBERS[len(paid)] if len(paid) < len(NUMBERS) else str(len(paid))
    told = f"The account has {count} payment{'' if len(paid) == 1 else 's'} for "
    if not paid:
        return told + _with_details(one, "number")
    return f"{told}{_short(one.get('number', 'an invoice'))}: {_joined([_with_details(each, 'id') for each in paid])}"


def _with_details(one: Mapping[str, Any], first: str) -> str:
    """“PAY-88120 (24 Nov 2026, €1,284.00, settled)”"""
    details = []
    for key, value in one.items():
        if key not in (first, "currency") and isinstance(value, str | int | float) and value != "":
            details.append(_sum(value, str(one.get("currency", ""))) if key == "amount" else _short(value))
    name = _short(one.get(first, "")) or "one without a name"
    return f"{name} ({', '.join(details)})" if details else name


def _sum(value: Any, currency: str) -> str:
    with suppress(InvalidOperation):
        amount = Decimal(str(value))
        if amount.is_finite():
            return money(amount, currency, "en").strip()
    return _short(value)


def _short(value: Any) -> str:
    """A value on one line, a day as people write it."""
    text = " ".join(str(value).split())[:LONGEST]
    with suppress(ValueError):
        day = date.fromisoformat(text) if "-" in text else None
        return f"{day.day} {day:%b %Y}" if day else text
    return text


def _joined(texts: list[str]) -> str:
    return f"{', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else texts[0]


def _known_by(value: Any) -> str:
    """All that it says, keys and values."""
    if isinstance(value, Mapping):
        return " ".join(f"{_spaced(key)} {_known_by(each)}" for key, each in value.items())
    return " ".join(_known_by(each) for each in value) if isinstance(value, list) else str(value)


def _spaced(key: str) -> str:
    return key.replace("_", " ")
