"""Deciding. The only writer of decisions.

A decision names the digest that was on the screen. It stands by a guarded change of the action under the run's lock; the same
decision again is answered with the first one, any other is refused and told what stands.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from access import audit, rules
from access.errors import DatabaseTrouble, Forbidden, Refusal
from access.models import User
from access.rows import only
from access.rules import Actor
from approvals import exact, freezes, grants, groups, reasons, warned
from approvals.errors import (
    ActionClosed,
    AlreadyClaimed,
    AlreadyDecided,
    ApproveLocked,
    DigestChanged,
    NotInGroup,
    OthersApproved,
    ReasonNeeded,
    SelfApproval,
    WarningNotTicked,
)
from approvals.models import Decision, ProposedAction
from artifacts import vault
from artifacts.models import Payload
from config import clock
from runs import log, steps
from runs.lifecycle import State
from runs.log import Held
from runs.vocabulary import ActionDecided, ActionExpired, ActionWithdrawn, RunQueued, RunWaiting

Verdict = Literal["approved", "rejected"]
CLAIM_LASTS = timedelta(minutes=15)
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decided:
    """A decision that stands. `again`: it stood already, and this was a repeat of it."""

    decision: Decision
    action: ProposedAction
    again: bool


@dataclass(frozen=True)
class Yes:
    """This person may decide."""


@dataclass(frozen=True)
class No:
    """This person may not decide; `why` is a whole sentence, and `refusal` what they are told who try."""

    why: str
    refusal: type[Forbidden] = SelfApproval


def decide(
    action: ProposedAction,
    *,
    reviewer: Actor,
    verdict: Verdict,
    digest: str,
    reason: str = "",
    acks: Collection[str] = (),
    seen: Mapping[str, Any] | None = None,
    nth: int | None = None,
) -> Decided:
    """Approve or reject the exact action with this digest. `acks`: the codes of the warnings that were ticked.

    `nth`: the how manieth approval the reviewer was told that theirs is; OthersApproved if it is another by now, and does something else.
    """
    with log.holding(action.run_id) as run:
        action = locked(action.pk)
        first = only(Decision.objects.filter(action=action, reviewer_id=reviewer.user_id, round=action.round))
        if first is not None:
            said = _same(first, action, verdict, digest)
            _let_go(run, action, reviewer, first)
            return said
        _hold_group(action)
        _check(action, reviewer, verdict, digest, reason, acks)
        if verdict == "approved":
            freezes.check(run.row, action.tool)
            _check_nth(action, nth)
        decision = _write(run, action, reviewer, verdict, reason, seen or {})
        if verdict == "rejected":
            settle(run, action, "rejected", seq=decision.seq)
        elif approvals(action) >= action.policy.quorum:
            grants.give(run, action)
            settle(run, action, "approved", seq=decision.seq)
        else:
            release(action, by=reviewer)  # it waits for somebody else now
    return Decided(decision, action, again=False)


def may_decide(action: ProposedAction, actor: Actor, *, inside: Collection[UUID] | None = None) -> Yes | No:
    """Whether this person may decide on this action, and if not, why not. `inside`: the groups they are in, if that is known."""
    if actor.kind != "human" or not rules.can(actor, "approvals.decide", action.workspace_id, action.run.team_id):
        return No(f"Deciding needs the right “{rules.CAPABILITIES['approvals.decide']}”.")
    if part := _part(action, actor.user_id):
        return No(f"You {part}, so you can’t decide on it.")
    group = action.policy.group
    if group is None or (groups.has(group, actor.user_id) if inside is None else group.pk in inside):
        return Yes()
    closed = f"{group.name} was to decide on this, and that group is closed: nobody can. It can be proposed anew."
    return No(closed if group.closed_at else f"Only {group.name} decides on this, and you are not in it.", NotInGroup)


def may_read(action: ProposedAction, actor: Actor) -> Yes | No:
    """Whether this person sees the exact action: who may decide on it while it waits, and once it is closed who did.

    Who wrote it by an edit reads it too, though others decide on that. Anybody else sees it redacted, and reveals what they may.
    """
    able = rules.can(actor, "approvals.decide", action.workspace_id, action.run.team_id)
    if able and action.editor_id is not None and action.editor_id == actor.user_id:
        return Yes()
    may = may_decide(action, actor)
    if isinstance(may, No) or action.state == "waiting" and action.expires_at > clock.now() or _had_a_part(action, actor):
        return may
    return No("It is closed, and you did not decide on it.")


def _had_a_part(action: ProposedAction, actor: Actor) -> bool:
    """Whether this person decided on it, or edited it: what they read then they may read still."""
    newer = action.superseded_by
    edited = newer is not None and newer.editor_id == actor.user_id
    return edited or Decision.objects.filter(action=action, reviewer_id=actor.user_id).exists()


def who_may(action: ProposedAction) -> list[User]:
    """The people who may decide on this action, by name."""
    group = action.policy.group
    able = rules.holders(action.workspace_id, "approvals.decide", action.run.team_id)
    return [user for user in (able if group is None else groups.people(group, able)) if not _part(action, user.pk)]


def counted(action: ProposedAction, given: Iterable[tuple[UUID, int | None]], people: Iterable[User]) -> frozenset[UUID]:
    """Whose approvals count, of those `given`: (reviewer, version of the group then). `people`: who may decide on it now.

    An approval counts for as long as its giver may decide, and has been in the rule's group ever since; it stays in the record either way.
    """
    rows = list(given)
    if action.policy.quorum <= 1 or not rows:
        return frozenset(pk for pk, _ in rows)
    able, since = {user.pk for user in people}, groups.since(action.policy.group_id)
    return frozenset(pk for pk, version in rows if pk in able and since.get(pk, 0) <= (version or 0))


def claim(action: ProposedAction, *, by: Actor) -> None:
    """Say that you are on it, for a quarter of an hour. AlreadyClaimed if somebody else is.

    Only who may decide: what is claimed is not sent on to others, and to whom it is their own could hold it up for ever.
    """
    may = may_decide(action, by)
    if isinstance(may, No):
        raise may.refusal(may.why)
    now = clock.now()
    free = Q(claimed_by=None) | Q(claimed_until__lt=now) | Q(claimed_by=by.user_id)
    with transaction.atomic():
        taken = ProposedAction.objects.filter(free, pk=action.pk, state="waiting").update(
            claimed_by=by.user_id, claimed_until=now + CLAIM_LASTS
        )
        if taken != 1:
            raise AlreadyClaimed
        _record(by, "claimed", action)


def release(action: ProposedAction, *, by: Actor) -> None:
    """Give a claim back. Nothing happens if it is not yours."""
    with transaction.atomic():
        if ProposedAction.objects.filter(pk=action.pk, claimed_by=by.user_id).update(claimed_by=None, claimed_until=None):
            _record(by, "claim_released", action)


def _record(by: Actor, verb: str, action: ProposedAction) -> None:
    audit.record(by, verb, workspace_id=action.workspace_id, subject=("action", action.pk))


def expire_due() -> int:
    """Close what nobody decided in time. Gives how many; safe to run twice at once."""
    due = ProposedAction.objects.filter(state="waiting", expires_at__lte=clock.now()).values_list("pk", "run_id")
    return sum(_expired(pk, run_id) for pk, run_id in list(due.order_by("expires_at")[:200]))


def withdraw_open(run: Held, *, reason: Literal["agent", "cancelled", "ended"]) -> int:
    """Withdraw every action of a run that waits, or is approved and not redeemed. In the caller's transaction."""
    open_actions = ProposedAction.objects.filter(run_id=run.row.pk).filter(
        Q(state="waiting") | Q(state="approved", grant__redeemed_at=None, grant__voided_at=None)
    )
    return _withdraw(run, open_actions, by=log.ENGINE, reason=reason)


def withdraw_waiting(run: Held, *, by: Actor, note: Payload | None) -> int:
    """Withdraw every action of a run that nobody has decided on, because it plans anew. In the caller's transaction."""
    return _withdraw(run, ProposedAction.objects.filter(run_id=run.row.pk, state="waiting"), by=by, reason="revised", note=note)


def _withdraw(
    run: Held,
    actions: QuerySet[ProposedAction],
    *,
    by: Actor,
    reason: Literal["agent", "cancelled", "ended", "revised"],
    note: Payload | None = None,
) -> int:
    withdrawn = list(actions.order_by("proposed_at"))
    for action in withdrawn:
        seq = run.append(ActionWithdrawn(action=action.pk, reason=reason), actor=by, texts={"reason": note} if note else {})
        grants.void(action)
        close(action, "withdrawn", seq, before=(action.state,), why=note)
    return len(withdrawn)


def locked(pk: UUID) -> ProposedAction:
    """The action as it is now, with its row lock. Its run is held by the caller."""
    related = ("policy__group", "run", "run__agent", "superseded_by")
    return ProposedAction.objects.select_for_update(no_key=True, of=("self",)).select_related(*related).get(pk=pk)


def check_open(action: ProposedAction, by: Actor, digest: str) -> None:
    """Refuse, saying what stands, unless the action with this digest waits and this person may decide on it."""
    if digest != action.digest or action.state == "superseded":
        newer = action.superseded_by
        raise DigestChanged(digest=newer.digest if newer else action.digest, action=str(newer.pk if newer else action.pk))
    if action.state in ("approved", "rejected"):
        raise AlreadyDecided(f"It was {action.state}.", **stands(action))
    if action.state != "waiting":
        raise ActionClosed(f"It was {action.state}.", state=action.state)
    if action.expires_at <= clock.now():
        raise ActionClosed("Its time to decide is over.", state="expired")
    may = may_decide(action, by)
    if isinstance(may, No):
        raise may.refusal(may.why)


def settle(run: Held, action: ProposedAction, state: str, *, seq: int) -> None:
    """Move a waiting action to its outcome, once, and let its run go on."""
    close(action, state, seq, before=("waiting",))
    wake(run, action, "decision")


def wake(run: Held, action: ProposedAction, reason: Literal["decision", "answer"]) -> None:
    """Let a run that waits for this action be taken up by a worker."""
    if run.row.state == State.WAITING and run.row.workflow and _is_waited_for(run, action):
        run.move(State.QUEUED, RunQueued(reason=reason))
    elif run.row.state == State.WAITING and not run.row.workflow and action.state != "waiting":
        tell_agent_outside(run)
    elif run.row.state == State.COMPENSATING:
        run.change(wake_at=clock.now(), waiting={})  # an undo may have waited for it


def tell_agent_outside(run: Held) -> None:
    """Its agent may have put up several at once: the run waits for the next of them, or for none. In the caller's transaction.

    One that waits for a bigger budget waits on: nothing of this gives it one.
    """
    left = ProposedAction.objects.select_related("policy").filter(run_id=run.row.pk, state="waiting").order_by("proposed_at").first()
    if left is None:
        if not run.row.waits_on("budget"):
            steps.goes_on(run)
        return
    needs = max(left.policy.needs - approvals(left), 0)
    steps.waits(run, RunWaiting(on="decision", action=left.pk, until=left.expires_at, needs=needs))


def _is_waited_for(run: Held, action: ProposedAction) -> bool:
    """Whether the run waits for this action, or for one that it replaced while the run was still on its way to wait."""
    if run.row.waiting.get("also"):  # in several branches: whichever goes on finds out
        return True
    waited = run.row.waiting.get("action")
    while waited and str(waited) != str(action.pk):
        waited = only(ProposedAction.objects.filter(pk=waited).values_list("superseded_by_id", flat=True))
    return waited is not None


def supersede(run: Held, action: ProposedAction, newer: ProposedAction, *, seq: int) -> None:
    """Let a newer action wait in the place of this one, also for the run that waits for it."""
    close(action, "superseded", seq, before=("waiting",))
    ProposedAction.objects.filter(pk=action.pk).update(superseded_by=newer)
    if run.row.waiting.get("action") == str(action.pk):
        run.change(waiting=run.row.waiting | {"action": str(newer.pk), "until": log.stamp(newer.expires_at)})


def _same(first: Decision, action: ProposedAction, verdict: str, digest: str) -> Decided:
    if first.verdict == verdict and first.digest == digest:
        return Decided(first, action, again=True)
    raise AlreadyDecided(f"You {first.verdict} this already.", **stands(action))


def _let_go(run: Held, action: ProposedAction, reviewer: Actor, first: Decision) -> None:
    """Grant, at the repeat of an approval, what has enough by now and waits all the same.

    That comes of somebody who lost the right to decide and got it back: their approval counts again, and nobody has acted on that yet.
    """
    if first.verdict != "approved" or action.state != "waiting":
        return
    _hold_group(action)
    if isinstance(may_decide(action, reviewer), No) or approvals(action) < action.policy.quorum:
        return
    check_open(action, reviewer, first.digest)
    _check_approvable(action, [warn["code"] for warn in action.warnings])  # ticked when it was said first
    freezes.check(run.row, action.tool)
    grants.give(run, action)
    settle(run, action, "approved", seq=first.seq)


def _hold_group(action: ProposedAction) -> None:
    """Let the rule's group be as it is until this is committed, so that nobody decides who has just been taken out of it."""
    if action.policy.group_id is not None:
        action.policy.group = groups.held(action.policy.group_id)


def _check(action: ProposedAction, reviewer: Actor, verdict: str, digest: str, reason: str, acks: Collection[str]) -> None:
    check_open(action, reviewer, digest)
    if verdict == "approved":
        _check_approvable(action, acks)
    if verdict == "rejected" and (why := reasons.trouble(reason)):
        raise ReasonNeeded(why)


def _check_nth(action: ProposedAction, nth: int | None) -> None:
    if nth is None:
        return
    given, needs = approvals(action), action.policy.quorum
    if nth != given + 1:
        raise OthersApproved(f"Somebody else approved meanwhile: {given} of {needs} have by now.", approved=given, needed=needs)


def _check_approvable(action: ProposedAction, acks: Collection[str]) -> None:
    """Whoever approves, and by whatever way: nothing that is locked or unreadable, and no warning passed over."""
    if action.locked:
        raise ApproveLocked
    exact.check_attachments(action, exact.whole(action))
    if missing := warned.unticked(action.warnings, acks):
        raise WarningNotTicked("Tick the warning first. Nothing was decided.", acks=[warn.code for warn in missing])


def stands(action: ProposedAction) -> dict[str, Any]:
    """What stands, for who came too late."""
    last = action.decisions.select_related("reviewer").order_by("-decided_at").first()
    by = {"verdict": last.verdict, "by": last.reviewer.name, "at": log.stamp(last.decided_at)} if last else {}
    return {"state": action.state, "digest": action.digest} | by


def _write(run: Held, action: ProposedAction, reviewer: Actor, verdict: Verdict, reason: str, seen: Mapping[str, Any]) -> Decision:
    kept = vault.keep(action.workspace_id, reason.strip(), label="internal") if reason.strip() else None
    decision = Decision(
        action=action,
        reviewer_id=reviewer.user_id,
        round=action.round,
        group_version=action.policy.group.version if action.policy.group else None,
        verdict=verdict,
        digest=action.digest,
        policy=action.policy,
        reason=kept,
        seen=dict(seen),
        signed_in=reviewer.signed_in,
    )
    data = ActionDecided(action=action.pk, digest=action.digest, decision=decision.pk, verdict=verdict, round=action.round)
    decision.seq = run.append(data, actor=reviewer, texts={"reason": kept} if kept else {}, caused_by=action.proposed_seq)
    decision.save(force_insert=True)
    told = {"verdict": verdict, "digest": action.digest, "round": action.round, "seq": decision.seq}
    told |= {"why": str(kept.pk)} if kept else {}
    audit.record(reviewer, "decided", workspace_id=action.workspace_id, subject=("action", action.pk), **told)
    return decision


def approvals(action: ProposedAction) -> int:
    """How many approvals count for it now."""
    given = Decision.objects.filter(action=action, round=action.round, verdict="approved", digest=action.digest)
    rows = list(given.values_list("reviewer_id", "group_version"))
    return len(counted(action, rows, who_may(action) if rows and action.policy.quorum > 1 else ()))


def _part(action: ProposedAction, user_id: UUID | None) -> str:
    """What makes this person “self”, as the end of “You …”; empty if nothing does."""
    run = action.run
    if user_id == run.agent.owner_id:
        return "own the agent that proposed this"
    if user_id == run.owner_id:
        return "own this run"
    if run.starter_kind == "human" and str(user_id) == run.starter_id:
        return "started this run"
    if user_id is not None and user_id == action.editor_id and (action.is_tainted or not action.policy.editor_may_approve):
        return "edited this action"
    return ""


def _expired(pk: UUID, run_id: UUID) -> bool:
    try:
        return _expire(pk, run_id)
    except (DatabaseTrouble, Refusal) as error:  # one run that can't be locked now must not keep the others open
        logger.warning("not expired", extra={"action": str(pk), "error": type(error).__name__})
        return False


def _expire(pk: UUID, run_id: UUID) -> bool:
    with log.holding(run_id) as run:
        action = locked(pk)
        if action.state != "waiting" or action.expires_at > clock.now() or run.row.ended_at is not None:
            return False
        seq = run.append(ActionExpired(action=pk), actor=log.ENGINE)
        settle(run, action, "expired", seq=seq)
    return True


def close(action: ProposedAction, state: str, seq: int, *, before: tuple[str, ...], why: Payload | None = None) -> None:
    """Move an action to a state that it keeps, once: ActionClosed if it is in none of `before`. Its run is held by the caller."""
    now = clock.now()
    changed = {"state": state, "settled_at": now, "settled_seq": seq} | ({"closed_why": why} if why else {})
    moved = ProposedAction.objects.filter(pk=action.pk, state__in=before).update(**changed)
    if moved != 1:
        raise ActionClosed(state=action.state)
    action.state, action.settled_at, action.settled_seq = state, now, seq
