"""Rules as people read them. Pure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from access.templatetags.handrail import spell
from approvals import conditions, trying
from approvals.models import Policy
from approvals.policy import Judgement
from runs.engine.tools import TOOLS

MARKS = 3
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Line:
    """One rule in words."""

    rule: Policy
    tool: str
    conditions: tuple[str, ...]
    needs: str
    people: int
    more: tuple[str, ...]
    expires: str
    matched: int = 0

    @property
    def plain(self) -> tuple[str, ...]:
        """Its conditions with an argument’s plain name: “it sets the invoice e-mail” for `$.after.invoice_email`, “any “to” ends with .pt”
        for `$.to[*]`. Its rule has the path."""
        return tuple(_plain(of, said) for of, said in zip(self.rule.conditions, self.conditions, strict=True))

    @property
    def covers(self) -> str:
        """“Refund a payment if its amount is more than €1,000”: a currency that the sum names is not said before it."""
        kept = self.rule.conditions
        told = {each.get("value", "").partition(" ")[2] for each in kept if each["what"] == "amount"}
        when = [said for of, said in zip(kept, self.plain, strict=True) if not (_is_currency(of) and of["value"] in told)]
        return f"{self.tool} if {' and '.join(when)}" if when else self.tool

    @property
    def drawn(self) -> range:
        """A mark for each person, as far as they can be told apart at a glance."""
        return range(min(self.people, MARKS))


def _plain(condition: Mapping[str, str], said: str) -> str:
    path = conditions.short(condition.get("path", ""))
    if not (names := _NAME.findall(path)):
        return said
    name = names[-1].replace("_", " ").replace("email", "e-mail")
    if condition["test"] == "there":
        return f"it sets the {name}" if names[0] == "after" else f"it names the {name}"
    for many, each in (("some value of", "any"), ("every value of", "every")):
        said = said.replace(f"{many} {path}", f"{each} “{name}”")
    return said.replace(path, name)


def _is_currency(condition: Mapping[str, str]) -> bool:
    return condition["what"] == "argument" and condition.get("path") == "$.currency" and condition["test"] == "is"


def lines(rules: Sequence[Policy], matched: Mapping[UUID, int] | None = None) -> list[Line]:
    """`matched`: how many actions a rule was the first to match, by its key."""
    return [_line(rule, (matched or {}).get(rule.key, 0)) for rule in rules]


def tool_name(name: str) -> str:
    return TOOLS[name].title if name in TOOLS else name or "Any registered tool"


def choices(chosen: str) -> list[tuple[str, str]]:
    """The tools that may be chosen, name and words. What is chosen stays among them, also if its code is not loaded here."""
    often = Counter(tool.title for tool in TOOLS.values())
    named = {name: tool.title if often[tool.title] == 1 else f"{tool.title} ({name})" for name, tool in TOOLS.items()}
    if chosen and chosen not in named:
        named[chosen] = f"{chosen}, not loaded here"
    return sorted(named.items(), key=lambda each: each[1])


def _line(rule: Policy, matched: int) -> Line:
    people = rule.quorum if rule.outcome == "reviewers" else 0
    needs = trying.said(Judgement(rule.outcome, max(people, 1) if rule.outcome == "reviewers" else 0, rule=rule))
    said = tuple(conditions.said(each) for each in rule.conditions)
    expires = spell(rule.expires_after.total_seconds()) if rule.outcome != "never" else ""
    return Line(rule, tool_name(rule.tool), said, needs, people, tuple(_more(rule)), expires, matched)


def _more(rule: Policy) -> list[str]:
    told = {
        f"{rule.group}, where a person decides": rule.group is not None and rule.outcome == "automatic",
        f"{rule.group} is closed: refused": rule.group is not None and rule.group.closed_at is not None,
        "a plan first": rule.plan_first,
        f"at most {rule.a_day} a day": rule.a_day is not None,
        f"at most {rule.a_day_amount} a day": bool(rule.a_day_amount),
        f"days begin in {rule.day_zone}": rule.day_zone != "UTC" and (rule.a_day is not None or bool(rule.a_day_amount)),
        f"can be recalled for {spell(rule.recall_delay.total_seconds())}": bool(rule.recall_delay),
        "its editor may approve": rule.editor_may_approve,
    }
    return [words for words, there in told.items() if there]
