"""Saving a policy where a second admin confirms it: what is asked for, what it is in words, and how it comes into force."""

from collections.abc import Sequence
from uuid import UUID

from django.urls import reverse

from access import rules, second_admin
from access.change_models import AskedChange
from access.rows import only
from access.rules import Actor
from access.second_admin import Kind, Part
from approvals import policy
from approvals.models import Policy, PolicySet
from approvals.policy_words import Line, lines

KIND = "policies"


def register() -> None:
    second_admin.register(
        KIND, Kind("policies.manage", "the approval policies", _parts, _done, lambda change: reverse("approvals:policies"))
    )


def ask(workspace_id: UUID, drafted: Sequence[Policy], *, by: Actor, why: str, base: int) -> PolicySet | AskedChange:
    """Put a version in force; or ask for it, where a second admin is needed. PolicyChanged, WhyNeeded, ChangeWaits."""
    if not second_admin.is_needed(workspace_id, KIND):
        return policy.put_in_force(workspace_id, drafted, by=by, why=why, base=base)
    policy.check(workspace_id, drafted, base=base)
    wanted = {"rules": [policy.content(each) for each in drafted], "digest": policy.digest(drafted)}
    return second_admin.ask(workspace_id, KIND, wanted=wanted, by=by, why=policy.check_why(why), base=base)


def _done(change: AskedChange, by: Actor) -> str:
    drafted = policy.drafted(change.workspace_id, change.wanted["rules"])
    if policy.digest(drafted) != change.wanted["digest"]:  # a rule says more or less in this version of the code
        raise policy.PolicyChanged("What was asked for can’t be read any more.")
    made = policy.put_in_force(change.workspace_id, drafted, by=rules.person(change.asked_by_id), why=change.why, base=change.base)
    return f"Version {made.version} is in force."


def _parts(change: AskedChange) -> list[Part]:
    """Each rule that comes, goes, or says something else than in the version that it was made from."""
    before = only(PolicySet.objects.filter(workspace_id=change.workspace_id, version=change.base))
    was = lines(list(before.rules.select_related("group").order_by("position"))) if before else []
    drafted = policy.drafted(change.workspace_id, change.wanted["rules"])
    for place, each in enumerate(drafted, 1):
        each.position = place
    will = lines(drafted)
    old, new = {each.rule.key: each for each in was}, {each.rule.key: each for each in will}
    changed = [(old.get(key), new.get(key)) for key in [*new, *(key for key in old if key not in new)]]
    moved = [each.rule.key for each in was if each.rule.key in new] != [each.rule.key for each in will if each.rule.key in old]
    return [
        Part(f"Rule “{(now or then).rule.name}”", _said(then), _said(now))
        for then, now in changed
        if then is None or now is None or policy.content(then.rule) != policy.content(now.rule) or moved and _place(then) != _place(now)
    ]


def _place(line: Line) -> int:
    return line.rule.position


def _said(line: Line | None) -> str:
    """“Number 2: Send the reply, and amount above 100. One reviewer. Expires after 4 hours.”"""
    if line is None:
        return ""
    asked = ", and ".join([line.tool, *line.conditions])
    expires = f"Expires after {line.expires}." if line.expires else ""
    more = f"{', '.join(line.more)}.".capitalize() if line.more else ""
    return " ".join(part for part in (f"Number {line.rule.position}, {line.rule.name}: {asked}.", f"{line.needs}.", expires, more) if part)


def confirmed(workspace_id: UUID) -> dict[int, str]:
    """Who confirmed each version that took two: number → name."""
    return second_admin.confirmed(workspace_id, KIND)
