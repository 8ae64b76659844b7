"""Whether what an answer says stands in the events that it names for it. Pure: it is given the text and what may be shown of the events.

An agent names an event behind what it takes from there: “The account has two payments (#15).” Of such a sentence those values are looked
for that can be found word by word: what is quoted, numbers of things, sums, days and addresses. Whether the sentence is true nobody can
look up; whether it cites what is not there, or nothing at all, can be.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Literal

State = Literal["stands", "missing", "hidden", "plain", "unsourced"]
Kind = Literal["words", "address", "sum", "number", "day", "name"]
EVENT = re.compile(r"(?<![\w&#/])#(\d{1,9})\b")
MOST, LONGEST = 12, 90  # rows under an answer, and characters of a quotation in one
MOST_EVENTS, MOST_VALUES = 12, 40  # of one answer, that are looked at and looked for
_QUOTED = re.compile(r"“([^“”]{3,})”|\"([^\"]{3,})\"")
_VALUE = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"  # an address
    r"|\b[A-Z]{2,10}-\w{0,40}?\d\w*"  # the number of a thing
    r"|[€£$]\s?\d[\d,]*(?:\.\d+)?"  # a sum
    r"|\b\d{1,2}\.? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{4}\b"  # a day
    r"|\b\d{4}-\d\d-\d\d\b"
    r"|(?<!#)\b\d{4,}\b"
)
_ENDS = re.compile(r"(?<=[^\W\d][.!?])\s+|(?<=[)%”][.!?])\s+|(?<=\d{3}[.!?])\s+|\n+")  # not after the day of a date: “20. November”
_WORDS = re.compile(r"\w+")
_FEW = 3  # words of a sentence that need no source: “Yes, I did.”


@dataclass(frozen=True)
class Claim:
    """What an answer says with one event for it, or with none (`seq` 0).

    stands: all of it is there. missing: it is not. hidden: it is not in the part that may be shown. plain: a sentence of which nothing can
    be looked for. unsourced: a sentence that names no event.
    """

    state: State
    seq: int
    values: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """What may be shown of an event. `partly`: some of it is hidden, or cut off."""

    text: str
    partly: bool = False

    @cached_property
    def plain(self) -> str:
        return _plain(self.text)


def claims(answer: str, sources: Mapping[int, Source], *, upto: int, cites: Sequence[int] = ()) -> tuple[Claim, ...]:
    """What the answer says, sentence by sentence. Only events below `upto` count as named; `sources` holds those that could be read.

    `cites`: events that come with the answer; those that it does not write at a sentence are for all sentences without one.
    """
    found: list[Claim] = []
    written = {int(each) for each in EVENT.findall(answer)}
    for_all = [seq for seq in cites if seq not in written]
    values_left = MOST_VALUES
    for sentence in _sentences(answer):
        named = [seq for seq in dict.fromkeys(int(each) for each in EVENT.findall(sentence)) if 0 < seq < upto] or for_all
        bare = EVENT.sub("", sentence)
        if not named and len(_WORDS.findall(bare)) > _FEW:
            found.append(Claim("unsourced", 0, (_short(bare),)))
        values = _values(bare)[:values_left] if named else []
        values_left -= len(values)
        found.extend(_of_one(values, named, sources) if named else ())
    found.extend(Claim("plain", seq, ()) for seq in for_all if all(each.seq != seq for each in found))
    return _first(list(_joined(found)))


def standing(said: str, text: str) -> list[str]:
    """Those values of what is said that stand in a text, in their order."""
    plain = _plain(text)
    return [value for value in _values(said)[:MOST_VALUES] if _stands(value, plain)]


def _first(rows: list[Claim]) -> tuple[Claim, ...]:
    """As many as are shown: of more than that those first for which nothing is there."""
    first = sorted(range(len(rows)), key=lambda at: _SHOWN.index(rows[at].state))[:MOST]
    return tuple(rows[at] for at in sorted(first))


_SHOWN: tuple[State, ...] = ("missing", "unsourced", "hidden", "stands", "plain")


def _of_one(values: list[str], named: list[int], sources: Mapping[int, Source]) -> Iterable[Claim]:
    """A sentence that names several events may take one thing from each."""
    left = list(values)
    for seq in named:
        here = [value for value in left if seq in sources and _stands(value, sources[seq].plain)]
        left = [value for value in left if value not in here]
        if here:
            yield Claim("stands", seq, tuple(here))
        elif not values or seq not in sources:
            yield Claim("plain", seq, ())
    if left:
        partly = any(seq not in sources or sources[seq].partly for seq in named)
        yield Claim("hidden" if partly else "missing", named[-1], tuple(left))


def _sentences(answer: str) -> Iterable[str]:
    """Cut at the ends of sentences, not at those within a quotation."""
    whole = _QUOTED.sub(lambda quoted: "“" + "x" * (len(quoted[0]) - 2) + "”", answer)
    begin = 0
    for end in [*(match.span() for match in _ENDS.finditer(whole)), (len(answer), len(answer))]:
        if answer[begin : end[0]].strip():
            yield answer[begin : end[0]].strip()
        begin = end[1]


def _values(sentence: str) -> list[str]:
    """In the order in which they are written. A value within a quotation is part of it."""
    quoted = [match[1] or match[2] for match in _QUOTED.finditer(sentence)]
    others = _VALUE.findall(_QUOTED.sub(" ", sentence))
    return list(dict.fromkeys([*(f"“{each}”" for each in quoted), *others]))


def _stands(value: str, text: str) -> bool:
    """Whether the value stands in a plain text as itself, and not as a part of another: €284.00 does not in €1,284.00."""
    kind = _kind(value)
    before, after = _EDGES[kind]
    return any(
        not before.search(text, max(0, at - _BEFORE), at) and not after.match(text, at + len(form)) and not _other_currency(value, text, at)
        for form in {_plain(each) for each in _forms(value, kind)} - {""}
        for at in _places(form, text)
    )


def _places(form: str, text: str) -> Iterable[int]:
    at = text.find(form)
    while at >= 0:
        yield at
        at = text.find(form, at + 1)


def _kind(value: str) -> Kind:
    if value.startswith("“"):
        return "words"
    if "@" in value:
        return "address"
    if value[0] in _CURRENCIES:
        return "sum"
    return "number" if value.isdigit() else "day" if value[0].isdigit() else "name"


_CURRENCIES = "€£$"
_BEFORE = 2  # characters in front of a value, by which it may be a part of another
# what must not stand right before a value, and right behind it; of plain texts, which have no capitals
_EDGES: Mapping[Kind, tuple[re.Pattern[str], re.Pattern[str]]] = {
    "words": (re.compile(r"\w\Z"), re.compile(r"\w")),
    "address": (re.compile(r"[\w.+@-]\Z"), re.compile(r"[\w@-]|\.\w")),
    "sum": (re.compile(r"(?:[\w-]|\d[.,])\Z"), re.compile(r"\w|[.,]\d")),
    "number": (re.compile(r"(?:[\w-]|\d[.,])\Z"), re.compile(r"\w|[.,]\d|-[^\W\d]")),
    "day": (re.compile(r"[\w-]\Z"), re.compile(r"\d|-\d")),
    "name": (re.compile(r"[\w-]\Z"), re.compile(r"\w|-\w")),
}


def _other_currency(value: str, text: str, at: int) -> bool:
    mark = text[max(0, at - _BEFORE) : at].strip()[-1:]
    return value[0] in _CURRENCIES and mark != "" and mark in _CURRENCIES and mark != value[0]


def _forms(value: str, kind: Kind) -> Iterable[str]:
    """The ways in which a record may write it: “€1,284.00” as 1284.0, “24 Nov 2026” as 2026-11-24."""
    if kind == "words":
        yield value[1:-1]
        yield value[1:-1].rstrip(".!?…")
        return
    yield value
    if kind == "sum":
        bare = value[1:].strip()
        yield bare
        with suppress(InvalidOperation):
            yield from _amounts(Decimal(bare.replace(",", "")))
    for written in ("%d %b %Y", "%d %B %Y") if kind == "day" else ():
        with suppress(ValueError):
            yield datetime.strptime(value.replace(". ", " "), written).date().isoformat()


def _amounts(amount: Decimal) -> Iterable[str]:
    for places in (0, 1, 2):
        if amount == round(amount, places):
            yield f"{amount:.{places}f}"
            yield f"{amount:,.{places}f}"


def _plain(text: str) -> str:
    """Without what a mail program or JSON adds: folded lines, quotation marks, capitals."""
    return " ".join(text.replace("\\n", " ").translate(_QUOTES).casefold().split())


_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " "})


def _joined(found: list[Claim]) -> Iterable[Claim]:
    """What several sentences take from one event, in one row."""
    rows: dict[tuple[State, int, tuple[str, ...]], Claim] = {}
    for each in found:
        key = (each.state, each.seq, () if each.seq else each.values)
        before = rows[key].values if key in rows else ()
        rows[key] = Claim(each.state, each.seq, tuple(dict.fromkeys((*before, *each.values))))
    stood = {each.seq for each in rows.values() if each.state != "plain"}
    for claim in rows.values():
        if claim.state != "plain" or claim.seq not in stood:
            yield Claim(claim.state, claim.seq, tuple(_short(value) for value in claim.values))


def _short(value: str) -> str:
    if len(value) <= LONGEST:
        return value
    begins = value[:LONGEST]
    whole = begins.rfind(". ")  # a whole sentence tells more than the first words of the next
    cut = (begins[:whole] if whole > LONGEST // 3 else begins.rsplit(" ", 1)[0]).rstrip(" ,;:.")
    return f"{cut}…”" if value.startswith("“") else f"{cut}…"
