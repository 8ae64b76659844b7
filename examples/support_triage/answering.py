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
SAID_FIRST = ("amount", "status", "date", "method")
JOINED = {("status", "date"): " on ", ("date", "method"): " by ", ("status", "method"): " by "}
SENTENCE = re.compile(r"(?<=[^\W\d][.!?])\s+")  # not after the day of a date: “20. November”
WRAPPED = 56  # characters of a line that a mail program broke


def answer_to_question(question: str, ticket: Ticket, account: Mapping[str, Any], sources: Mapping[str, int]) -> tuple[str, list[int]]:
    """(text, the events it names). `sources`: the sequence numbers of the events that keep the ticket and the account."""
    words = {word.casefold() for word in WORD.findall(question)} - USUAL
    message = [(line, f"The message says: “{line[:LONGEST]}”") for line in _sentences(ticket.text)]
    named = {word.casefold() for word in WORD.findall(f"{ticket.subject} {ticket.text}") if any(each.isdecimal() for each in word)}
    found = [*_about(words, message, sources["ticket"]), *_about(words, _nearest(words, named, _facts(account)), sources["account"])]
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


def _nearest(words: set[str], named: set[str], facts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of what an account says, what shares most with the question: of two invoices the one that it names, else that of the message."""
    counted = [(each & words, each & named, fact) for fact in facts for each in [{word.casefold() for word in WORD.findall(fact[0])}]]
    most = max(((len(asked), len(told)) for asked, told, _ in counted), default=(0, 0))
    return [fact for asked, told, fact in counted if (len(asked), len(told)) == most]


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
    told = f"The account has {counted(len(paid))} payment{'' if len(paid) == 1 else 's'} for "
    if not paid:
        return told + _with_details(one, "number")
    return f"{told}{_short(one.get('number', 'an invoice'))}{_payments(paid)}"


def counted(number: int) -> str:
    return NUMBERS[number] if number < len(NUMBERS) else str(number)


def _payments(paid: list[Mapping[str, Any]]) -> str:
    """“, both €1,284.00, settled: PAY-88120, scheduled payment, and PAY-88121, retry after timeout”: once what is the same of all."""
    details = [_details(each, "id") for each in paid]
    shared = [pair for pair in details[0] if len(paid) > 1 and all(pair in each for each in details)]
    own = [
        _phrase([("id", _name(one, "id")), *(pair for pair in each if pair not in shared)]) for one, each in zip(paid, details, strict=True)
    ]
    all_of = f", {'both' if len(paid) == 2 else 'all'} {_phrase(shared)}" if shared else ""
    return f"{all_of}: {'; '.join(own[:-1])}{',' if ',' in own[0] else ''} and {own[-1]}" if len(own) > 1 else f": {own[0]}"


def _with_details(one: Mapping[str, Any], first: str) -> str:
    """“INV-20877 (€412.50, 20 Nov 2026)”"""
    details = _details(one, first)
    return f"{_name(one, first)} ({_phrase(details)})" if details else _name(one, first)


def _phrase(details: list[tuple[str, str]]) -> str:
    """“€1,284.00, settled on 24 Nov 2026 by card ending 4417”"""
    said = ""
    for (before, _), (key, text) in zip([("", ""), *details], details, strict=False):
        said += (JOINED.get((before, key), ", ") if said else "") + text
    return said


def _name(one: Mapping[str, Any], first: str) -> str:
    return _short(one.get(first, "")) or "one without a name"


def _details(one: Mapping[str, Any], first: str) -> list[tuple[str, str]]:
    """What else it says, by its keys, in the order in which people say it."""
    found = [(key, value) for key, value in one.items() if key not in (first, "currency") and isinstance(value, str | int | float)]
    told = [(key, _sum(value, str(one.get("currency", ""))) if key == "amount" else _short(value)) for key, value in found if value != ""]
    return sorted(told, key=lambda pair: SAID_FIRST.index(pair[0]) if pair[0] in SAID_FIRST else len(SAID_FIRST))


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
