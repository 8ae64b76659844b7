"""Answers a reviewer's question from what the run has read: the ticket and the account. By rules; it says what it found, and where."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from examples.support_triage.reading import Ticket

WORD = re.compile(r"[\w.+-]+@[\w.-]+|[A-Z]{2,}-[\w-]+|\w{4,}")
USUAL = frozenset("about because could does have reply should that their them they this what when where which will with would your".split())  # noqa: SIM905
FOUND, LONGEST = 3, 200
SENTENCE = re.compile(r"(?<=[^\W\d][.!?])\s+")  # not after the day of a date: “20. November”
WRAPPED = 56  # characters of a line that a mail program broke


def answer_to_question(question: str, ticket: Ticket, account: Mapping[str, Any], sources: Mapping[str, int]) -> tuple[str, list[int]]:
    """(text, the events it names). `sources`: the sequence numbers of the events that keep the ticket and the account."""
    words = {word.casefold() for word in WORD.findall(question)} - USUAL
    found = [
        *_about(words, _sentences(ticket.text), "The message says", sources["ticket"]),
        *_about(words, _facts(account), "The account says", sources["account"]),
    ]
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


def _about(words: set[str], lines: Iterable[str], who: str, seq: int) -> list[tuple[str, int]]:
    """The lines that share most with the question, in their order."""
    shared = [(len(words & {word.casefold() for word in WORD.findall(line)}), line) for line in lines]
    best = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])[:FOUND]
    kept = [line for count, line in shared if (count, line) in best]
    return [(f"{who}: “{line[:LONGEST]}” (#{seq}).", seq) for line in kept[:FOUND]]


def _facts(record: Any, name: str = "") -> list[str]:
    """Each group of plain values in a record as one line: “invoices: number INV-20931, amount 1284.00”."""
    if isinstance(record, list):
        return [line for each in record for line in _facts(each, name)]
    if not isinstance(record, dict):
        return []
    plain = ", ".join(f"{key} {value}" for key, value in record.items() if isinstance(value, str | int | float) and value != "")
    inner = [line for key, value in record.items() if isinstance(value, dict | list) for line in _facts(value, key)]
    return [f"{name}: {plain}" if name else plain, *inner] if plain else inner
