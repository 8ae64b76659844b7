"""The same effect in two runs of which one was forked from the other: the outside knows it under one key, whoever asks for it first."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from approvals import exact
from approvals.canonical import CanonicalAction
from approvals.errors import Unreadable
from approvals.models import Grant, ProposedAction
from artifacts import vault
from artifacts.models import Payload
from runs.engine import ledger
from runs.engine.tools import TOOLS
from runs.lifecycle import UNDOING
from runs.models import Run


def lock(run: Run, action: ProposedAction) -> None:
    """Lock the grants for this step in all runs of the lineage, in one order: of two at once, the second sees what the first did."""
    if run.lineage is not None and action.step and not ledger.is_undo(action.step):
        grants = Grant.objects.filter(action__run__lineage=run.lineage, action__tool=action.tool, action__step=action.step)
        list(grants.select_for_update(no_key=True, of=("self",)).order_by("pk").values_list("pk"))


def kept_key(run: Run, action: ProposedAction, what: CanonicalAction) -> UUID | None:
    """The key under which another run of the lineage did the very same at this step, and which stands; None if none did."""
    for other in elsewhere(run, action):
        if stands(other) and is_same(what, action, other):
            return other.grant.key or other.grant.pk
    return None


def elsewhere(run: Run, action: ProposedAction) -> list[ProposedAction]:
    """What other runs of the lineage did at this step, or may have done, the first first. No query for a run without forks."""
    if run.lineage is None or not action.step or ledger.is_undo(action.step):
        return []
    others = ProposedAction.objects.select_related("grant", "run", "subject").exclude(run_id=run.pk).exclude(grant__outcome="failed")
    same_step = others.filter(run__lineage=run.lineage, tool=action.tool, step=action.step, grant__redeemed_at__isnull=False)
    return list(same_step.order_by("grant__redeemed_at"))


@dataclass(frozen=True)
class Earlier:
    """What another run of the lineage, `by`, did at the step of an action. `same`: the very same; `stands`: it was not undone."""

    by: Run
    seq: int
    at: datetime
    subject: str  # a rendition
    same: bool
    stands: bool
    known: bool  # whether it happened; else nobody knows


def earlier(action: ProposedAction) -> tuple[Earlier, ...]:
    """What was done at this step before, for who decides on it. No query for a run without forks."""
    others = elsewhere(action.run, action)
    if not others:
        return ()
    mine = getattr(action, "grant", None)
    before = [each for each in others if mine is None or mine.redeemed_at is None or each.grant.redeemed_at < mine.redeemed_at]
    try:
        what = exact.whole(action)
    except Unreadable:
        return ()
    return tuple(
        Earlier(
            by=each.run,
            seq=each.settled_seq or each.proposed_seq,
            at=each.grant.executed_at or each.grant.redeemed_at,
            subject=each.subject.rendition or "Erased",
            same=is_same(what, action, each),
            stands=stands(each),
            known=each.grant.outcome == "executed",
        )
        for each in before
    )


def stands(other: ProposedAction) -> bool:
    """Whether what it did was not undone, and is not about to be."""
    tool, key = TOOLS.get(other.tool), other.grant.key
    # whose key it is can undo it, and says so in its log
    run = Grant.objects.select_related("action__run").get(pk=key).action.run if key else other.run
    if run.state in UNDOING and tool is not None and tool.can_undo:
        return False
    return not any(effect.undone for effect in ledger.effects(run) if effect.key == str(key or other.grant.pk))


def is_same(what: CanonicalAction, action: ProposedAction, other: ProposedAction) -> bool:
    """Whether both ask the outside for the very same: arguments, target and identity, and attachments byte for byte."""
    try:
        theirs = exact.whole(other)
    except Unreadable:
        return False
    asked = [(each.tool, dict(each.arguments), each.target, each.credential) for each in (what, theirs)]
    names = [[(file.name, file.media_type, file.size) for file in each.attachments] for each in (what, theirs)]
    return asked[0] == asked[1] and names[0] == names[1] and _contents(action) == _contents(other)


def _contents(action: ProposedAction) -> list[bytes | None]:
    kept = {str(payload.pk): payload for payload in Payload.objects.select_related("key").filter(pk__in=action.attachments)}
    return [vault.opened(kept[pk]) for pk in action.attachments]
