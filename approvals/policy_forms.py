"""What a form says of one rule, and the draft of the whole set that this makes. Nothing here writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import zip_longest
from typing import Any
from uuid import UUID

from django.http import QueryDict

from access import characters, hiding
from access.errors import BadInput
from access.ids import as_uuid, uuid7
from access.templatetags.handrail import spell
from approvals import conditions, edit_form, money, policy
from approvals.models import Policy, ReviewerGroup
from approvals.notifications.pages import zones
from runs.engine.tools import TOOLS

BLANK = 2  # rows for more conditions that a form shows
EXPIRES = (900, 1800, 3600, 7200, 10800, 14400, 28800, 86400, 259200)
LASTS = (600, 1800, 3600, 14400, 86400)
RECALL = (60, 300, 900, 3600)  # or not at all
PARTS = ("what", "path", "test", "value")


class RuleRefused(BadInput):
    """This rule can't be kept."""

    what_next = "Nothing was saved. Mend what is said here."


@dataclass(frozen=True)
class Typed:
    """A rule as its form has it: all text, fit or not."""

    fields: Mapping[str, str]
    conditions: tuple[Mapping[str, str], ...]

    @property
    def rows(self) -> list[Mapping[str, str]]:
        """The conditions, and blank ones after them."""
        blank = min(BLANK, conditions.MAX_CONDITIONS - len(self.conditions))
        return [*self.conditions, *({} for _ in range(blank))]


def choices(row: Mapping[str, str], tool: str) -> Mapping[str, str]:
    """What the value of a condition can be, with its words; empty where nobody can tell, or it may be several or a part of one."""
    what, test = row.get("what", ""), row.get("test", "")
    if what in conditions.VALUES:
        return conditions.VALUES[what]
    if what not in conditions.OF_PATHS or test not in ("is", "is_not") or tool not in TOOLS:
        return {}
    schema = TOOLS[tool].arguments.model_json_schema()
    found = edit_form.resolved(schema.get("properties", {}).get(conditions.short(row.get("path", "").strip()), {}), schema)
    known = ["true", "false"] if found.get("type") == "boolean" else found.get("enum", ())
    return {each: each for each in known if isinstance(each, str)}


def of(rule: Policy | None, places: int) -> Typed:
    """The form of a rule as it is; of a new one, which goes last."""
    if rule is None:
        empty = {
            "key": str(uuid7()),
            "place": str(places + 1),
            "need": "one",
            "quorum": "2",
            "expires": "14400",
            "lasts": "3600",
            "zone": "UTC",
        }
        return Typed(empty, ())
    need = {"automatic": "automatic", "never": "never"}.get(rule.outcome, "one" if rule.quorum <= 1 else "several")
    fields = {
        "key": str(rule.key),
        "place": str(rule.position),
        "name": rule.name,
        "tool": rule.tool,
        "need": need,
        "quorum": str(max(rule.quorum, 2)),
        "expires": str(int(rule.expires_after.total_seconds())),
        "lasts": str(int(rule.grant_lasts.total_seconds())),
        "a_day": "" if rule.a_day is None else str(rule.a_day),
        "a_day_amount": rule.a_day_amount,
        "editor": "1" if rule.editor_may_approve else "",
        "plan": "1" if rule.plan_first else "",
        "from": str(rule.group_id or ""),
        "recall": str(int(rule.recall_delay.total_seconds()) or ""),
        "zone": rule.day_zone,
    }
    return Typed(fields, tuple(rule.conditions))


def typed(data: QueryDict) -> Typed:
    """The form as it was sent."""
    lists = [data.getlist(name)[: conditions.MAX_CONDITIONS + BLANK] for name in PARTS]
    given = [dict(zip(PARTS, (text[:400] for text in row), strict=True)) for row in zip_longest(*lists, fillvalue="")]
    rows = [row for number, row in enumerate(given, 1) if data.get("drop") != str(number)]
    names = ("key", "place", "name", "tool", "need", "quorum", "expires", "lasts", "a_day", "a_day_amount", "editor", "plan", "from")
    names += ("recall", "zone", "out", "why")
    fields = {name: data.get(name, "")[:2000] for name in names}
    kept = {"out": ""} if data.get("keep") else {}
    # one that says something and not what it asks about is refused: without it the rule would be of more than somebody meant
    return Typed(fields | kept, tuple(row for row in rows if any(row[name].strip() for name in ("what", "path", "value"))))


def draft(typed: Typed, current: Sequence[Policy], workspace_id: UUID) -> list[Policy]:
    """The set with this rule in it, where it says; or without it, if it is taken out. RuleRefused, ConditionRefused say what is unfit."""
    key = _key(typed.fields["key"])
    old = next((rule for rule in current if rule.key == key), None)
    rest = [rule for rule in current if rule is not old]
    if typed.fields.get("out"):
        return rest
    fields = _fields(typed) | {"group": _group(typed, workspace_id)}
    rule = policy.changed(old, **fields) if old else policy.rule(workspace_id, key=key, **fields)
    place = min(max(_number(typed.fields["place"], "Its place", 1, policy.MAX_RULES), 1), len(rest) + 1)
    return [*rest[: place - 1], rule, *rest[place - 1 :]]


def times(seconds: Sequence[int], now: str) -> list[tuple[str, str]]:
    """What may be chosen, with what is chosen now among it."""
    known = sorted({*seconds, *([int(now)] if now.isascii() and now.isdigit() and len(now) < 9 else [])})
    return [(str(each), spell(each)) for each in known]


def _fields(typed: Typed) -> dict[str, Any]:
    said = typed.fields
    name = " ".join(said["name"].split())
    if not 1 <= characters.seen_length(name) <= len(name) <= 120 or "\0" in name:
        raise RuleRefused("Its name has 1 to 120 characters.")
    if characters.has_hidden(name):
        raise RuleRefused("Its name has a character that nobody can see.")
    if odd := characters.passing(name):
        raise RuleRefused(f"Its name has {odd}: it would be read as another rule.")
    if held := hiding.detectors.holds(name):
        raise RuleRefused(f"Its name holds what looks like {held}, and everybody sees it.")
    if len(said["tool"]) > 60 or "\0" in said["tool"] or said["need"] not in ("automatic", "one", "several", "never"):
        raise RuleRefused("Choose a tool, and what it needs.")
    several = said["need"] == "several"
    return {
        "name": name,
        "tool": said["tool"],
        "conditions": conditions.checked(typed.conditions),
        "outcome": "reviewers" if said["need"] in ("one", "several") else said["need"],
        "quorum": _number(said["quorum"], "How many people", 2, 20) if several else 1,
        "expires_after": timedelta(seconds=_number(said["expires"], "Expires after", 60, 30 * 86400)),
        "grant_lasts": timedelta(seconds=_number(said["lasts"], "Grant lasts", 60, 30 * 86400)),
        "a_day": _number(said["a_day"], "At most a day", 1, 1_000_000) if said["a_day"].strip() else None,
        "a_day_amount": _amount(said["a_day_amount"].strip()),
        "day_zone": _zone(said["zone"]),
        "recall_delay": timedelta(seconds=_number(said["recall"], "Can be recalled for", 1, 86400))
        if said["recall"].strip()
        else timedelta(),
        "editor_may_approve": bool(said["editor"]),
        "plan_first": bool(said["plan"]),
    }


def _group(typed: Typed, workspace_id: UUID) -> ReviewerGroup | None:
    """Whom it asks; nobody where it never allows anything."""
    said = typed.fields.get("from", "")
    if not said or typed.fields["need"] == "never":
        return None
    found = ReviewerGroup.objects.filter(workspace_id=workspace_id, pk=as_uuid(said)).first()
    if found is None:
        raise RuleRefused("Choose a group of this workspace, or all who may decide.")
    return found


def _zone(text: str) -> str:
    if not text:
        return "UTC"
    if text not in zones():
        raise RuleRefused("Days begin in: choose a place.")
    return text


def _number(text: str, what: str, least: int, most: int) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= most):
        raise RuleRefused(f"{what}: write a whole number from {least} to {most}.")
    return int(text)


def _amount(text: str) -> str:
    number, _, currency = text.partition(" ")
    in_letters = len(currency) == 3 and currency.isascii() and currency.isalpha() and currency.isupper()
    if text and (money.read(number) is None or number.startswith("-") or not in_letters):
        raise RuleRefused("At most in money a day: write a number and a currency, such as 500 EUR.")
    return text


def _key(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise RuleRefused("This form names no rule. Open the rule again.") from None
