"""What a rule asks of an action, condition by condition. Pure.

A condition is {"what", "test", "value", "path"}, all text, as a form has it; `path` only of arguments, a JSONPath without filters.
It holds, it does not, or that is unclear: an amount that can't be read, a comparison of what can't be compared. Nobody guesses then.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from jsonpath import JSONPathEnvironment
from jsonpath.exceptions import JSONPathError
from jsonpath.path import JSONPath
from jsonpath.segments import JSONPathChildSegment
from jsonpath.selectors import IndexSelector, NameSelector, SliceSelector, WildcardSelector

from access.errors import BadInput
from approvals import money

Holds = Literal["yes", "no", "unclear"]
Condition = Mapping[str, str]
MAX_CONDITIONS, MAX_TEXT, MAX_FOUND = 8, 200, 1000
LABELS = ("public", "internal", "personal", "secret")
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class ConditionRefused(BadInput):
    """A condition can't be understood."""

    what_next = "Nothing was saved. Mend what is said here."


@dataclass(frozen=True)
class Taint:
    """The three legs that together let data out: what the run has read, and whether this tool sends."""

    read_private: bool
    read_untrusted: bool
    sends_out: bool

    @property
    def lethal(self) -> bool:
        return self.read_private and self.read_untrusted and self.sends_out


@dataclass(frozen=True)
class Case:
    """All that a rule may ask about. `outside`: some recipient is; `new`: some was never written to; `planned`: the run has a plan."""

    agent: str
    tool: str
    effect: str
    label: str
    taint: Taint
    at: datetime
    arguments: Mapping[str, Any]
    recipients: int = 0
    outside: bool = False
    new: bool = False
    planned: bool = True


# what may be asked, by which tests, and how each is said
WHATS: Mapping[str, str] = {
    "argument": "some value of",
    "every": "every value of",
    "amount": "its amount",
    "recipients": "its recipients",
    "effect": "its effect",
    "label": "its label",
    "leg": "the run",
    "agent": "its agent",
    "time": "the time",
}
OF_PATHS = ("argument", "every")
TESTS: Mapping[str, str] = {
    "is": "is",
    "is_not": "is not",
    "one_of": "is one of",
    "at_least": "is at least",
    "at_most": "is at most",
    "more": "is more than",
    "less": "is less than",
    "contains": "contains",
    "starts": "starts with",
    "ends": "ends with",
    "there": "is there",
    "absent": "is not there",
    "within": "is within",
    "outside": "is not within",
}
_ORDER = ("at_least", "at_most", "more", "less")
_OF_ARGUMENTS = ("is", "is_not", "one_of", *_ORDER, "contains", "starts", "ends", "there", "absent")
FITS: Mapping[str, tuple[str, ...]] = {
    "argument": _OF_ARGUMENTS,
    "every": _OF_ARGUMENTS[:-2],
    "amount": _ORDER,
    "recipients": ("is",),
    "effect": ("is", "is_not"),
    "label": ("is", "at_least", "at_most"),
    "leg": ("is", "is_not"),
    "agent": ("is", "is_not", "one_of"),
    "time": ("within", "outside"),
}
VALUES: Mapping[str, Mapping[str, str]] = {
    "recipients": {
        "outside": "outside, at least one",
        "inside": "inside, all of them",
        "new": "new, at least one",
        "known": "known, all of them",
    },
    "effect": {"read": "reading", "write": "a change", "send": "a send"},
    "label": {label: label for label in LABELS},
    "leg": {"private": "one that read private data", "untrusted": "one that read outside text", "sends": "about to send something out"},
}


def checked(conditions: Iterable[Condition]) -> list[dict[str, str]]:
    """The same conditions, each understood, or ConditionRefused with the number of the one that is not."""
    found = [{name: str(each.get(name, "")).strip() for name in ("what", "test", "value", "path")} for each in conditions]
    for each in found:
        each["path"] = _spelled(each["path"]) if each["what"] in OF_PATHS else ""
    if len(found) > MAX_CONDITIONS:
        raise ConditionRefused(f"A rule has at most {MAX_CONDITIONS} conditions.")
    for number, each in enumerate(found, 1):
        if wrong := _wrong(each):
            raise ConditionRefused(f"Condition {number}: {wrong}")
    return [{name: text for name, text in each.items() if text} for each in found]


def said(condition: Condition) -> str:
    """The condition as a person reads it: “some value of to[*] is 417”, “account is 417”, “its amount is more than €1,000”."""
    what, path = condition["what"], condition.get("path", "")
    subject = "" if what == "argument" and _ONE.fullmatch(path) else WHATS[what]
    return " ".join(word for word in (subject, short(path), TESTS[condition["test"]], _value(what, condition.get("value", ""))) if word)


def _value(what: str, value: str) -> str:
    figure, _, currency = value.partition(" ")
    if what == "amount" and (amount := money.read(figure)) is not None:
        return money.spell(amount, currency).removesuffix(".00")
    return VALUES.get(what, {}).get(value, value)


def short(path: str) -> str:
    """A path as people read and may type it: “account” for `$.account`, where nothing else can be meant."""
    return path[2:] if path.startswith("$.") and _SHORT.fullmatch(path[2:]) else path


def all_hold(conditions: Sequence[Condition], case: Case) -> Holds:
    """Whether every one holds. One that surely does not is enough to say no, whatever else is unclear."""
    found = {holds(each, case) for each in conditions}
    return "no" if "no" in found else "unclear" if "unclear" in found else "yes"


def holds(condition: Condition, case: Case) -> Holds:
    return _HOLDS[condition["what"]](condition, case)


# each kind --------------------------------------------------------------------------------------------------------------------------


def _argument(condition: Condition, case: Case) -> Holds:
    found = _found(condition["path"], case.arguments)
    if condition["test"] in ("there", "absent"):
        return _word(bool(found) == (condition["test"] == "there"))
    told = _told(condition, found)
    if condition["test"] == "is_not":  # some value is not it: the rule would hold for nearly anything, so none may be
        return _every(told) if told else "yes"
    return "yes" if "yes" in told else "unclear" if "unclear" in told else "no"


def _every_argument(condition: Condition, case: Case) -> Holds:
    told = _told(condition, _found(condition["path"], case.arguments))
    return _every(told) if told else "no"


def _told(condition: Condition, found: Sequence[Any]) -> list[Holds]:
    """What is so of each value. Of more values than are looked at, one is unclear: what nobody looked at must not let an action go."""
    told = [_compared(condition["test"], value, condition["value"]) for value in found[:MAX_FOUND]]
    return told if len(found) <= MAX_FOUND else [*told, "unclear"]


def _amount(condition: Condition, case: Case) -> Holds:
    if "amount" not in case.arguments:
        return "no"
    number, wanted = money.read(case.arguments["amount"]), _sum(condition["value"])
    if number is None or wanted is None or case.arguments.get("currency") != wanted[1]:
        return "unclear"
    return _word(_ordered(condition["test"], abs(number), wanted[0]))  # as the limits of a day count it: what is below zero moves money too


def _recipients(condition: Condition, case: Case) -> Holds:
    match condition["value"]:
        case "outside":
            return _word(case.outside)
        case "new":
            return _word(case.new)
        case "inside":
            return _word(case.recipients > 0 and not case.outside)
        case _:
            return _word(case.recipients > 0 and not case.new)


def _effect(condition: Condition, case: Case) -> Holds:
    return _word((case.effect == condition["value"]) == (condition["test"] == "is"))


def _label(condition: Condition, case: Case) -> Holds:
    if case.label not in LABELS:
        return "unclear"
    has, wanted = LABELS.index(case.label), LABELS.index(condition["value"])
    return _word(has == wanted if condition["test"] == "is" else _ordered(condition["test"], has, wanted))


def _leg(condition: Condition, case: Case) -> Holds:
    legs = {"private": case.taint.read_private, "untrusted": case.taint.read_untrusted, "sends": case.taint.sends_out}
    return _word(legs[condition["value"]] == (condition["test"] == "is"))


def _agent(condition: Condition, case: Case) -> Holds:
    named = case.agent in _list(condition["value"]) if condition["test"] == "one_of" else case.agent == condition["value"]
    return _word(named != (condition["test"] == "is_not"))


def _time(condition: Condition, case: Case) -> Holds:
    span = _span(condition["value"])
    if span is None:
        return "unclear"
    return _word(span.has(case.at) == (condition["test"] == "within"))


_HOLDS: Mapping[str, Callable[[Condition, Case], Holds]] = {
    "argument": _argument,
    "every": _every_argument,
    "amount": _amount,
    "recipients": _recipients,
    "effect": _effect,
    "label": _label,
    "leg": _leg,
    "agent": _agent,
    "time": _time,
}


# values -----------------------------------------------------------------------------------------------------------------------------


def _compared(test: str, value: Any, wanted: str) -> Holds:
    """One value of an argument. `is` is exact; contains, starts and ends do not tell capitals apart."""
    if isinstance(value, dict | list):
        return "unclear"
    if test in ("is", "is_not", "one_of"):
        same = any(_same(value, each) for each in (_list(wanted) if test == "one_of" else (wanted,)))
        return _word(same != (test == "is_not"))
    if test in _ORDER:
        number, limit = money.read(value), money.read(wanted)
        return "unclear" if number is None or limit is None else _word(_ordered(test, number, limit))
    if not isinstance(value, str):
        return "unclear"
    text, part = value.casefold(), wanted.casefold()
    return _word({"contains": part in text, "starts": text.startswith(part), "ends": text.endswith(part)}[test])


def _same(value: Any, wanted: str) -> bool:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value] == wanted
    if isinstance(value, str):
        return value == wanted
    number, other = money.read(value), money.read(wanted)
    return number is not None and number == other


def _ordered(test: str, one: Any, other: Any) -> bool:
    return {"at_least": one >= other, "at_most": one <= other, "more": one > other, "less": one < other}[test]


def _every(told: Sequence[Holds]) -> Holds:
    return "no" if "no" in told else "unclear" if "unclear" in told else "yes"


def _word(holds: bool) -> Holds:
    return "yes" if holds else "no"


def _list(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


_SUM = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,4})?) ([A-Z]{3})", re.ASCII)


def _sum(text: str) -> tuple[Decimal, str] | None:
    """The number and currency of “500 EUR”."""
    found = _SUM.fullmatch(text)
    return (Decimal(found[1]), found[2]) if found else None


# paths: names, indexes, slices and wildcards. No filters, no functions, no descent: a rule's work stays bounded ---------------

_paths = JSONPathEnvironment(strict=True)


@lru_cache(maxsize=1000)
def _path(text: str) -> JSONPath | None:
    """The path, if it is one that may stand in a rule."""
    try:
        compiled = _paths.compile(text) if text.startswith("$") else None
    except (JSONPathError, ValueError, RecursionError):
        return None
    return compiled if isinstance(compiled, JSONPath) and all(_plain(segment) for segment in compiled.segments) else None


def _plain(segment: Any) -> bool:
    kinds = (NameSelector, IndexSelector, SliceSelector, WildcardSelector)
    # one selector each: `["a", "a"]` again and again would double the work each time
    return isinstance(segment, JSONPathChildSegment) and len(segment.selectors) == 1 and isinstance(segment.selectors[0], kinds)


_SHORT = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[(?:\d{1,6}|\*)\])*", re.ASCII)
_ONE = re.compile(r"\$\.[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\d{1,6}\])*", re.ASCII)  # a path at which there is one value or none


def _spelled(path: str) -> str:
    """The JSONPath of what was typed, which may be its short form."""
    return f"$.{path}" if _SHORT.fullmatch(path) else path


def _found(text: str, arguments: Mapping[str, Any]) -> list[Any]:
    path = _path(text)
    return path.findall(arguments) if path else []


# times ------------------------------------------------------------------------------------------------------------------------------

_TIME = re.compile(r"(?:([a-z]{3}(?:[-,][a-z]{3})*) )?([0-2][0-9]:[0-5][0-9])-([0-2][0-9]:[0-5][0-9]) ([A-Za-z0-9_+/-]{1,60})", re.ASCII)


@dataclass(frozen=True)
class _Span:
    """From one time of day to another, on some days, where somebody lives. Past midnight it belongs to the day on which it began."""

    days: frozenset[int]
    start: time
    end: time
    zone: ZoneInfo

    def has(self, at: datetime) -> bool:
        local = at.astimezone(self.zone)
        now, today = local.time().replace(tzinfo=None), local.weekday()
        if self.start < self.end:
            return today in self.days and self.start <= now < self.end
        return (today in self.days and now >= self.start) or ((today - 1) % 7 in self.days and now < self.end)


@lru_cache(maxsize=1000)
def _span(text: str) -> _Span | None:
    """“mon-fri 09:00-17:00 Europe/Berlin”; without days, every day."""
    found = _TIME.fullmatch(text[:3].lower() + text[3:])
    try:
        return _Span(_days(found[1]), time.fromisoformat(found[2]), time.fromisoformat(found[3]), ZoneInfo(found[4])) if found else None
    except (ValueError, ZoneInfoNotFoundError, OSError):
        return None


def _days(text: str | None) -> frozenset[int]:
    if text is None:
        return frozenset(range(7))
    days: set[int] = set()
    for part in text.split(","):
        first, *last = (DAYS.index(each) for each in part.split("-"))
        end = last[0] if last else first
        days |= {day % 7 for day in range(first, (end if end >= first else end + 7) + 1)}
    return frozenset(days)


# what is wrong with one -------------------------------------------------------------------------------------------------------------


def _wrong(each: Condition) -> str:
    what, test, value = each["what"], each["test"], each["value"]
    if not what:
        return "choose what it asks about, or leave all of it empty."
    if what not in WHATS:
        return "it asks about nothing that is known."
    if test not in FITS[what]:
        return f"“{TESTS.get(test, test)[:40]}” can’t be asked of {WHATS[what]}."
    if max(len(value), len(each["path"])) > MAX_TEXT:
        return f"it is longer than {MAX_TEXT} characters."
    if "\0" in value + each["path"]:
        return "it has a character that no text can have."
    if what in ("argument", "every") and _path(each["path"]) is None:
        return "write the path as JSONPath of names, numbers and [*], such as account or to[*]. Filters are not taken."
    if not (_list(value) if test == "one_of" else value) and test not in ("there", "absent"):
        return "it compares with nothing."
    return _wrong_value(what, test, value)


def _wrong_value(what: str, test: str, value: str) -> str:
    if what in VALUES and value not in VALUES[what]:
        return f"it takes one of {', '.join(VALUES[what])}."
    if what == "amount" and _sum(value) is None:
        return "write the amount as a number and a currency, such as 500 EUR."
    if what == "time" and _span(value) is None:
        return "write the time as mon-fri 09:00-17:00 Europe/Berlin."
    if what in ("argument", "every") and test in _ORDER and money.read(value) is None:
        return "it compares with a number, written with digits and at most one point."
    return ""
