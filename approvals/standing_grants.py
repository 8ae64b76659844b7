"""Standing grants: “approve the like for an hour, at most 20”. Said beforehand by somebody who may decide, of one tool and its arguments.

It stands in for one approval of its owner, never for more. A person decides as always where a rule asks several people, where the run has
read private data and outside text and would send, where there is a warning to be looked at, after an edit, in a run of the owner's own, and
of something frozen. Each use spends the budget in one statement, has a record of its own, and grants one action once.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import orjson
from django.core import signing
from django.db import transaction
from django.db.models import F, Q, QuerySet

from access import audit, rules
from access.errors import BadInput, Forbidden, Refusal
from access.ids import uuid7
from access.models import Workspace
from access.rows import only
from access.rules import Actor
from approvals import cases, conditions, decisions, freezes, groups, trying
from approvals.canonical import CanonicalAction, canonical_json
from approvals.conditions import Case
from approvals.decisions import Yes
from approvals.limits import beyond_rule
from approvals.models import ProposedAction, StandingGrant, StandingUse
from approvals.policy import Judgement
from artifacts import vault
from artifacts.redaction import plain, redact
from config import clock
from runs import log
from runs.engine.tools import TOOLS
from runs.log import Held
from runs.models import Run
from runs.vocabulary import ActionCovered

MAX_BUDGET, MAX_LASTS = 100, timedelta(hours=24)
MAX_OPEN = 50  # that stand in a workspace at once


class StandingRefused(BadInput):
    """This standing grant can't be made."""

    what_next = "Nothing was granted. Mend what is said here."


class AlreadyRevoked(Refusal):
    """This standing grant is over already."""

    what_next = "Nothing was changed."


class BackTestFirst(Refusal):
    """This standing grant was not tried yet, as it is now."""

    what_next = "Nothing was granted. Try it, read what it would have covered, and make it then."


@dataclass(frozen=True)
class Wanted:
    """A standing grant before it is made."""

    workspace_id: UUID
    tool: str
    conditions: tuple[Mapping[str, str], ...]
    budget: int
    lasts: timedelta


@dataclass(frozen=True)
class BackTest:
    """Which of the last actions of the tool it would have covered."""

    of: int
    covered: tuple[trying.Differs, ...]


def wanted(workspace_id: UUID, *, tool: str, asks: Iterable[Mapping[str, str]], budget: int, lasts: timedelta) -> Wanted:
    """Checked, or StandingRefused, ConditionRefused."""
    if tool not in TOOLS:
        raise StandingRefused("Name one tool that is registered here.")
    if not 1 <= budget <= MAX_BUDGET:
        raise StandingRefused(f"It covers 1 to {MAX_BUDGET} actions.")
    if not timedelta(minutes=1) <= lasts <= MAX_LASTS:
        raise StandingRefused("It lasts from one minute to 24 hours.")
    return Wanted(workspace_id, tool, tuple(conditions.checked(asks)), budget, lasts)


def back_test(of: Wanted, owner: Actor) -> BackTest:
    """What it would have covered of the last actions of its tool, had it stood all that time without a budget. Eight queries at most."""
    seen = rules.within(owner, ProposedAction, "approvals.view")
    actions = trying.last(of.workspace_id, of.tool, related=("run__agent", "policy__group"), within=seen)
    known, inside = cases.read(actions), groups.of(owner.user_id)
    matches = [action for action in actions if action.pk in known and _would_cover(of.conditions, action, known[action.pk], owner, inside)]
    return BackTest(len(known), trying.rows(matches))


def token(of: Wanted, by: Actor) -> str:
    """Says that this person was shown the back-test of exactly this, and names the one grant that may be made of it."""
    return signing.dumps([*_named(of, by), str(uuid7())], salt="standing-tried")


def make(of: Wanted, *, by: Actor, shown: str, made_from: ProposedAction | None = None) -> StandingGrant:
    """Let it stand from now. BackTestFirst if its back-test was not shown to this person. A double click gives the first."""
    if by.kind != "human" or not rules.can_some(by, "approvals.decide", of.workspace_id):
        raise Forbidden("Only somebody who may decide on actions can approve the like.")
    try:
        *named, pk = signing.loads(shown, salt="standing-tried", max_age=trying.GOOD_FOR)
    except signing.BadSignature:
        raise BackTestFirst from None
    if named != _named(of, by):
        raise BackTestFirst
    with transaction.atomic():
        Workspace.objects.select_for_update(no_key=True).get(pk=of.workspace_id)  # one at a time, so that they can be counted
        if first := only(StandingGrant.objects.filter(pk=pk)):
            return first
        if standing(of.workspace_id).count() >= MAX_OPEN:
            raise StandingRefused(f"{MAX_OPEN} stand already. Revoke one first.")
        made = StandingGrant.objects.create(
            id=UUID(pk),
            workspace_id=of.workspace_id,
            owner_id=by.user_id,
            tool=of.tool,
            conditions=[_bare(each) for each in of.conditions],
            kept=vault.keep(of.workspace_id, _asks_json(of), label=_label(of.tool), media_type="application/json"),
            budget=of.budget,
            expires_at=clock.now() + of.lasts,
            made_from=made_from if made_from and _is_like(made_from, of) else None,
        )
        audit.record(by, "standing_grant_made", workspace_id=of.workspace_id, subject=("standing_grant", made.pk), budget=of.budget)
    return made


def _is_like(action: ProposedAction, of: Wanted) -> bool:
    """Whether it can be said to be made from this action: whoever makes it may have chosen another tool since."""
    return (action.workspace_id, action.tool) == (of.workspace_id, of.tool)


def revoke(grant: StandingGrant, *, by: Actor) -> None:
    """Let it cover nothing more. What it covered stays granted. By its owner, or who may change policies."""
    if by.user_id != grant.owner_id and not rules.can(by, "policies.manage", grant.workspace_id):
        raise Forbidden("Its owner revokes it, or who may change policies. Nothing was changed.")
    with transaction.atomic():
        open_one = StandingGrant.objects.filter(pk=grant.pk, revoked_at=None, expires_at__gt=clock.now())
        if open_one.update(revoked_at=clock.now(), revoked_by=by.user_id) != 1:
            raise AlreadyRevoked
        audit.record(by, "standing_grant_revoked", workspace_id=grant.workspace_id, subject=("standing_grant", grant.pk))


def standing(workspace_id: UUID) -> QuerySet[StandingGrant]:
    """Those that can still cover something."""
    return StandingGrant.objects.filter(_open(), workspace_id=workspace_id)


def covering(run: Run, judgement: Judgement, case: Case) -> list[StandingGrant]:
    """Those that match what is about to be proposed, oldest first, if one person's approval is what it takes. Spends nothing."""
    if judgement.outcome != "reviewers" or judgement.needs != 1 or case.taint.lethal:
        return []
    found = list(standing(run.workspace_id).filter(tool=case.tool).select_related("kept__key").order_by("made_at"))
    found = [each for each in found if (said := whole(each)) is not None and conditions.all_hold(said, case) == "yes"]
    return [] if found and freezes.in_the_way(run, case.tool) else found


def spend(found: Sequence[StandingGrant], action: ProposedAction, what: CanonicalAction) -> StandingGrant | None:
    """Take one use of the first whose owner may decide on this action. In the caller's transaction, with what limits it held."""
    return next((each for each in fit(found, action, what) if _spent(each)), None)


def fit(found: Sequence[StandingGrant], action: ProposedAction, what: CanonicalAction) -> Iterator[StandingGrant]:
    """Those of which one use could be taken for this action. Takes none."""
    if not found or _warned(action) or beyond_rule(action.policy, what):
        return
    yield from (each for each in found if isinstance(decisions.may_decide(action, rules.person(each.owner_id)), Yes))


def record(run: Held, action: ProposedAction, grant: StandingGrant) -> StandingUse:
    """Write down that this action was covered. It is approved from then on."""
    number = StandingGrant.objects.values_list("used", flat=True).get(pk=grant.pk)
    data = ActionCovered(action=action.pk, digest=action.digest, standing=grant.pk, owner=grant.owner_id, number=number)
    seq = run.append(data, actor=log.ENGINE, caused_by=action.proposed_seq)
    use = StandingUse.objects.create(grant=grant, action=action, digest=action.digest, policy=action.policy, number=number, seq=seq)
    decisions.settle(run, action, "approved", seq=seq)
    return use


def asks(grant: StandingGrant, actor: Actor) -> list[dict[str, str]]:
    """Its conditions as this person may see them: their values are arguments of actions, in full only for who may decide there."""
    said = whole(grant)
    if said is None or actor.user_id == grant.owner_id or rules.can(actor, "approvals.decide", grant.workspace_id):
        return list(grant.conditions) if said is None else said
    label = _label(grant.tool)
    return [_masked(each, label) if "path" in each and "value" in each else each for each in said]


def whole(grant: StandingGrant) -> list[dict[str, str]] | None:
    """Its conditions with all that they compare with, out of the vault. None once that was erased: then it covers nothing."""
    if grant.kept is None:
        return list(grant.conditions)
    stored = vault.opened(grant.kept)
    return None if stored is None else orjson.loads(stored)


def _bare(condition: Mapping[str, str]) -> dict[str, str]:
    """A condition without the value of an argument."""
    return {name: text for name, text in condition.items() if name != "value" or "path" not in condition}


def _label(tool: str) -> str:
    label = TOOLS[tool].label if tool in TOOLS else "secret"
    return "personal" if label in ("public", "internal") else label


def _masked(condition: dict[str, str], label: str) -> dict[str, str]:
    return condition | {"value": plain(redact(condition["value"].encode(), media_type="text/plain", label=label).text)}


def suggested(action: ProposedAction, arguments: Mapping[str, object]) -> list[dict[str, str]]:
    """Conditions of the like of an action: each plain argument as it is, for its maker to take out or widen."""
    plain = {name: value for name, value in arguments.items() if isinstance(value, str | int | float | bool) and name.isidentifier()}
    short = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in plain.items()}
    fits = [(name, text) for name, text in short.items() if text and len(text) <= conditions.MAX_TEXT and "\n" not in text]
    fixed = TOOLS[action.tool].fixed if action.tool in TOOLS else ()
    kept = [(name, text) for name, text in fits if name not in fixed][: conditions.MAX_CONDITIONS]
    return [{"what": "argument", "path": f"$.{name}", "test": "is", "value": text} for name, text in kept]


def why_never(action: ProposedAction) -> str:
    """Why no standing grant ever covers what is like this action, as a sentence; empty if one may."""
    if action.policy.needs > 1:
        return f"Its like can’t be approved beforehand: it takes {action.policy.needs} people."
    if action.judged_on and action.is_tainted:
        return "Its like can’t be approved beforehand: its run may have read private data and outside text, and it sends data out."
    return ""


def allowed_by(action: ProposedAction) -> str:
    """What approved an action that nobody decided on, as a sentence. No query for what a rule granted the moment it was proposed."""
    uses = StandingUse.objects.filter(action=action).values_list("grant__owner__name", flat=True)
    name = uses.first() if action.settled_seq != action.proposed_seq else None
    return f"A standing grant of {name} allowed this." if name else "A policy allowed this, without a person."


def _spent(grant: StandingGrant) -> bool:
    return StandingGrant.objects.filter(_open(), pk=grant.pk).update(used=F("used") + 1) == 1


def _open() -> Q:
    return Q(revoked_at=None, expires_at__gt=clock.now(), used__lt=F("budget"))


def _would_cover(asks: Sequence[Mapping[str, str]], action: ProposedAction, case: Case, owner: Actor, inside: Collection[UUID]) -> bool:
    """By the rule that it was judged by then, and by who may decide now."""
    asked = action.policy.outcome == "reviewers" and action.policy.quorum <= 1
    fit = asked and not case.taint.lethal and not _warned(action)
    return fit and conditions.all_hold(asks, case) == "yes" and isinstance(decisions.may_decide(action, owner, inside=inside), Yes)


def _warned(action: ProposedAction) -> bool:
    """Whether there is anything about it that a person should look at: more than a note."""
    return action.locked or any(warning["severity"] in ("warn", "lock") for warning in action.warnings)


def _named(of: Wanted, by: Actor) -> list[object]:
    return [str(of.workspace_id), of.tool, _asks_json(of).decode(), of.budget, int(of.lasts.total_seconds()), by.id]


def _asks_json(of: Wanted) -> bytes:
    return canonical_json([dict(each) for each in of.conditions])
