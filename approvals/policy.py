"""What using a tool takes: a workspace's rules in their order, of which the first that matches one action counts.

`judge` is pure; the rest reads and writes the rows. Deny by default: what no rule matches is refused, and so is what a rule can't tell.
A save makes a new version of the whole set; actions that were put up before keep the version they were judged by. A rule names its group by
id: renamed it is the same, closed it lets nothing through.
"""

import hashlib
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import DurationField, Field

from access import audit
from access.errors import BadInput, Refusal
from access.ids import uuid7
from access.models import User
from access.rules import Actor
from approvals import canonical, conditions, groups
from approvals.conditions import Case, Taint
from approvals.models import Policy, PolicySet
from artifacts import vault
from config import clock

__all__ = ["Case", "Judgement", "Outcome", "Taint", "in_force", "judge", "put_in_force", "rules", "set_rule"]

Outcome = Literal["automatic", "reviewers", "never"]
Why = Literal["", "unmatched", "never", "unclear", "no_plan", "no_group"]
MAX_RULES = 100
MIN_WHY, MAX_WHY = 3, 500
# what is of one version of a rule only, and not of what it says
_OF_THE_VERSION = frozenset(["id", "workspace", "policy_set", "position", "version", "created_at", "created_by"])


class PolicyChanged(Refusal):
    """The policy changed after it was drawn for you."""

    what_next = "Nothing was saved. What you typed is still here: try it again against the version that is in force now."


class WhyNeeded(BadInput):
    """Saving a policy needs a reason."""

    what_next = "Nothing was saved. Write at least one sentence; it goes into the history."


class TooManyRules(BadInput):
    """A policy has only so many rules."""

    what_next = "Nothing was saved. Put rules together, or take one out."


@dataclass(frozen=True)
class Judgement:
    """What the first rule that matches demands of one action: `needs` people, or nobody (automatic), or that it never runs, and `why`."""

    outcome: Outcome
    needs: int
    because_tainted: bool = False
    rule: Policy | None = None
    why: Why = ""


def judge(rules: Iterable[Policy], case: Case) -> Judgement:
    """The first rule whose conditions hold. With all three legs of the taint a person decides, whatever the rule says."""
    for rule in rules:
        if rule.tool not in ("", case.tool):
            continue
        match conditions.all_hold(rule.conditions, case):
            case "yes":
                return _demand(rule, case)
            case "unclear":
                return Judgement("never", 0, rule=rule, why="unclear")
    return Judgement("never", 0, why="unmatched")


def _demand(rule: Policy, case: Case) -> Judgement:
    if rule.outcome == "never":
        return Judgement("never", 0, rule=rule, why="never")
    if rule.group is not None and rule.group.closed_at is not None:
        return Judgement("never", 0, rule=rule, why="no_group")
    if rule.plan_first and not case.planned:
        return Judgement("never", 0, rule=rule, why="no_plan")
    if rule.outcome == "automatic" and not case.taint.lethal:
        return Judgement("automatic", 0, rule=rule)
    return Judgement("reviewers", rule.needs, because_tainted=rule.outcome == "automatic", rule=rule)


# the rows -----------------------------------------------------------------------------------------------------------------------------


def newest(workspace_id: UUID) -> PolicySet | None:
    """The version that is in force."""
    return PolicySet.objects.filter(workspace_id=workspace_id).order_by("-version").first()


def rules(workspace_id: UUID) -> list[Policy]:
    """The rules in force, in their order. One query."""
    of = PolicySet.objects.filter(workspace_id=workspace_id).order_by("-version").values("pk")[:1]
    return list(Policy.objects.filter(policy_set__in=of).select_related("group").order_by("position"))


def in_force(workspace_id: UUID, tool: str) -> Policy | None:
    """The rule in force that is of this tool alone and asks nothing more."""
    return next((rule for rule in rules(workspace_id) if rule.tool == tool and not rule.conditions), None)


def was_ruled(workspace_id: UUID, tool: str) -> bool:
    """Whether any version ever had a rule of this tool: then somebody said what using it takes, or took it out."""
    return Policy.objects.filter(workspace_id=workspace_id, tool=tool).exists()


def rule(workspace_id: UUID, **fields: Any) -> Policy:
    """A rule of a draft, not saved. `fields` are those of Policy."""
    return Policy(workspace_id=workspace_id, version=0, position=0, **fields)


def changed(of: Policy, **fields: Any) -> Policy:
    """The same rule with these fields, not saved: what it does not name stays, also what this file knows nothing of."""
    made = copy(of)
    made.pk, made._state = uuid7(), type(of._state)()
    if "group" in of._state.fields_cache:  # so that judging by it asks the database nothing
        made.group = of.group
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def content(rule: Policy) -> dict[str, Any]:
    """All that a rule says, as JSON values."""
    named = {field.name: field.value_from_object(rule) for field in rule._meta.concrete_fields if field.name not in _OF_THE_VERSION}
    return {name: _plain(value) for name, value in named.items()}


def drafted(workspace_id: UUID, contents: Sequence[dict[str, Any]]) -> list[Policy]:
    """Rules out of what `content` gave, not saved."""
    fields = {field.name: field for field in Policy._meta.concrete_fields}
    return [rule(workspace_id, **{fields[name].attname: _typed(fields[name], value) for name, value in each.items()}) for each in contents]


def _typed(field: Field, value: Any) -> Any:
    return timedelta(seconds=value) if isinstance(field, DurationField) else field.to_python(value)


def digest(rules: Sequence[Policy]) -> str:
    """What names a set of rules in their order: SHA-256 over all that they say."""
    return hashlib.sha256(canonical.canonical_json([content(each) for each in rules])).hexdigest()


def check_groups(workspace_id: UUID, drafted: Sequence[Policy], *, hold: bool = True) -> None:
    """Refuse what a draft asks of a group that could never be met. What stays as it is in force is let be: others may save meanwhile."""
    stands = {_asked(rule) for rule in rules(workspace_id)}
    groups.check(workspace_id, [rule for rule in drafted if _asked(rule) not in stands], hold=hold)


def _asked(rule: Policy) -> tuple[object, ...]:
    return rule.key, rule.group_id, rule.quorum, rule.outcome


def put_in_force(workspace_id: UUID, rules: Sequence[Policy], *, by: Actor, why: str | UUID, base: int) -> PolicySet:
    """Put a new version in force. `base`: the version that it was made from, 0 for none; PolicyChanged if another is in force by now.

    `why`: in words, or the payload of those that were kept when it was asked for. Whether a second admin is needed: see policy_changes.py.
    """
    why = check_why(why) if isinstance(why, str) else why
    with transaction.atomic():
        made = _write(workspace_id, rules, user_id=by.user_id, why=why, base=base)
        audit.record(by, "policy_saved", workspace_id=workspace_id, subject=("policy", made.pk), version=made.version, digest=made.digest)
    return made


def check_why(why: str) -> str:
    """The reason as it is kept; WhyNeeded says what is wrong with it."""
    why = why.strip()
    if not MIN_WHY <= len(why) <= MAX_WHY:
        raise WhyNeeded(f"The reason has {len(why)} characters; it needs {MIN_WHY} to {MAX_WHY}.")
    return why


def check(workspace_id: UUID, rules: Sequence[Policy], *, base: int) -> None:
    """Whether these could be put in force now: TooManyRules, PolicyChanged, or what is wrong with their groups."""
    if len(rules) > MAX_RULES:
        raise TooManyRules(f"{len(rules)} rules; at most {MAX_RULES} are taken.")
    current = newest(workspace_id)
    if (current.version if current else 0) != base:
        raise PolicyChanged(f"Version {current.version if current else 0} is in force; yours was made from version {base}.")
    check_groups(workspace_id, rules, hold=False)


def set_rule(
    workspace_id: UUID,
    tool: str,
    *,
    name: str,
    outcome: Outcome,
    by: User | None,
    quorum: int = 1,
    expires_after: timedelta = timedelta(hours=4),
    grant_lasts: timedelta = timedelta(hours=1),
    recall_delay: timedelta = timedelta(),
    **more: Any,
) -> Policy:
    """A new version in which this tool's own rule is this one. Actions that are waiting keep the version they were judged by."""
    base = newest(workspace_id)
    kept = rules(workspace_id)
    fields = {"name": name, "outcome": outcome, "quorum": quorum, "expires_after": expires_after, "grant_lasts": grant_lasts}
    fields |= {"recall_delay": recall_delay, **more}
    at = next((place for place, each in enumerate(kept) if each.tool == tool and not each.conditions), None)
    if at is None:
        kept.append(rule(workspace_id, tool=tool, **fields))
    else:
        kept[at] = changed(kept[at], **fields)
    _write(workspace_id, kept, user_id=by.pk if by else None, why="", base=base.version if base else 0)
    found = in_force(workspace_id, tool)
    assert found is not None
    return found


def add_last(workspace_id: UUID, added: Sequence[Policy], *, by: User | None, why: str = "") -> None:
    """A new version in which these rules are asked after all others. For the installation; people save what they have tried."""
    base = newest(workspace_id)
    _write(workspace_id, [*rules(workspace_id), *added], user_id=by.pk if by else None, why=why, base=base.version if base else 0)


def put_first(workspace_id: UUID, *first: Policy, by: User | None, why: str = "") -> None:
    """A new version in which these rules are asked before all others. For the installation; people save what they have tried."""
    base = newest(workspace_id)
    _write(workspace_id, [*first, *rules(workspace_id)], user_id=by.pk if by else None, why=why, base=base.version if base else 0)


def _write(workspace_id: UUID, rules: Sequence[Policy], *, user_id: UUID | None, why: str | UUID, base: int) -> PolicySet:
    if len(rules) > MAX_RULES:
        raise TooManyRules(f"{len(rules)} rules; at most {MAX_RULES} are taken.")
    current = newest(workspace_id)
    if (current.version if current else 0) != base:
        raise PolicyChanged(f"Version {current.version if current else 0} is in force; yours was made from version {base}.")
    kept = vault.keep(workspace_id, why, label="internal").pk if why and isinstance(why, str) else why or None
    made = PolicySet(workspace_id=workspace_id, version=base + 1, digest=digest(rules), why_id=kept, saved_by_id=user_id)
    try:
        with transaction.atomic():
            check_groups(workspace_id, rules)
            made.save(force_insert=True)
            Policy.objects.bulk_create(_placed(rules, made, user_id))
    except IntegrityError as error:
        raise PolicyChanged("Somebody else saved at the same moment.") from error
    return made


def _placed(rules: Sequence[Policy], made: PolicySet, user_id: UUID | None) -> list[Policy]:
    of = {"policy_set": made, "version": made.version, "created_at": clock.now(), "created_by_id": user_id}
    return [changed(each, position=place, **of) for place, each in enumerate(rules, 1)]


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return int(value.total_seconds())
    return str(value) if isinstance(value, UUID) else value
