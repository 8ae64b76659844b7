"""Grant → redemption → receipt. One use, over the very bytes that were approved.

A redeemed grant never returns to the pool: its outcome is executed, failed, or unknown until a look-up or a person says.
"""

import hashlib
from typing import Any, Literal
from uuid import UUID

import orjson

from access import rules
from access.errors import BadInput
from access.rules import Actor
from approvals import canonical, exact
from approvals.errors import NotUnknown, NotYours
from approvals.models import Decision, Grant, ProposedAction
from artifacts import vault
from artifacts.models import Payload
from config import clock
from runs import log
from runs.engine.gates import NotGranted, Redemption, Spent
from runs.engine.tools import TOOLS, File
from runs.lifecycle import State
from runs.log import Held
from runs.vocabulary import (
    ActionExecuted,
    ActionRedeemed,
    ActionResolved,
    ActionUnknown,
    ActionVerified,
    BlockRaised,
    RunQueued,
)

OPEN_OUTCOMES = ("none", "unknown")
Saying = Literal["happened", "did_not_happen", "look_again"]


def redeem(run: Held, action_id: UUID, *, token: int, worker: str) -> Redemption | Spent | NotGranted:
    """Take the grant's one use. If an earlier worker of this run took it, its redemption goes on under the new token."""
    action = ProposedAction.objects.select_related("run").get(pk=action_id, run_id=run.row.pk)
    grant = Grant.objects.select_for_update(no_key=True).filter(action=action).first()
    if grant is None:
        return NotGranted("it was not approved")
    if grant.outcome not in OPEN_OUTCOMES:
        return Spent(grant.outcome, _receipt(grant), action.settled_seq)
    stored = exact.stored_bytes(action)
    if hashlib.sha256(stored).hexdigest() != grant.digest:
        run.append(BlockRaised(block=f"digest-{action.pk}", reason="digest_mismatch", action=action.pk), actor=log.ENGINE)
        return NotGranted("what would run is not what was approved")
    if action.tool not in TOOLS:
        return NotGranted("its tool is not loaded here")
    fresh = grant.redeemed_at is None
    if not _take(grant, token, worker, fresh):
        return NotGranted(_why_not(grant))
    if fresh:
        data = ActionRedeemed(action=action.pk, grant=grant.pk, digest=grant.digest, token=token, worker=worker)
        run.append(data, actor=log.ENGINE)
    return _redemption(action, grant, canonical.parse(stored), fresh)


def executed(run: Held, redemption: Redemption, *, result: Any, label: str, found: bool) -> int:
    """It happened: keep the receipt, and compare what ran with what was approved."""
    receipt = vault.keep(run.row.workspace_id, orjson.dumps(result), label=label, media_type="application/json")
    now = clock.now()
    _settle(redemption, outcome="executed", executed_at=now, verified_at=now, receipt=receipt, unknown_at=None)
    data = ActionExecuted(action=redemption.action_id, grant=redemption.grant_id, digest=redemption.digest, ok=True, found=found)
    seq = run.append(data, actor=log.ENGINE, texts={"receipt": receipt})
    how: Literal["digest", "look_up"] = "look_up" if found else "digest"
    verified = ActionVerified(action=redemption.action_id, grant=redemption.grant_id, digest=redemption.digest, how=how)
    run.append(verified, actor=log.ENGINE)
    return seq


def failed(run: Held, redemption: Redemption, *, detail: str) -> int:
    """It surely did not happen, and the grant is spent."""
    receipt = vault.keep(run.row.workspace_id, orjson.dumps({"error": detail}), label="internal", media_type="application/json")
    _settle(redemption, outcome="failed", receipt=receipt, unknown_at=None)
    data = ActionExecuted(action=redemption.action_id, grant=redemption.grant_id, digest=redemption.digest, ok=False)
    return run.append(data, actor=log.ENGINE, texts={"receipt": receipt})


def unknown(run: Held, redemption: Redemption, *, reason: Literal["worker_lost", "deadline", "dropped", "silent"]) -> int:
    """Nobody can tell: a person must."""
    grant = Grant.objects.get(pk=redemption.grant_id)
    if grant.outcome == "unknown":
        return run.row.seq
    _settle(redemption, outcome="unknown", unknown_at=clock.now())
    data = ActionUnknown(action=redemption.action_id, grant=redemption.grant_id, reason=reason)
    return run.append(data, actor=log.ENGINE)


def resolve(action: ProposedAction, *, by: Actor, outcome: Saying, note: str = "", reference: str = "") -> None:
    """A person says what became of an action with an unknown outcome. Who decided on it, owns it or started it may not."""
    if outcome != "look_again" and len(note.strip()) < 3:
        raise BadInput("Say what you saw, in at least one sentence.")
    if outcome == "happened" and not reference.strip():
        raise BadInput("Name the reference under which it happened.")
    with log.holding(action.run_id) as run:
        action = ProposedAction.objects.select_related("run__agent").get(pk=action.pk)
        grant = Grant.objects.select_for_update(no_key=True).get(action=action)
        if grant.outcome != "unknown":
            raise NotUnknown(state=grant.outcome)
        may = may_resolve(action, by)
        if may:
            raise NotYours(may)
        _say(run, action, grant, by, outcome, note, reference)


def may_resolve(action: ProposedAction, actor: Actor) -> str:
    """Why this person may not say what happened; empty if they may."""
    if actor.kind != "human" or not rules.can(actor, "runs.recover", action.workspace_id):
        return "This needs the right “Say what happened to an action with an unknown outcome, recover stuck runs”."
    if Decision.objects.filter(action=action, reviewer_id=actor.user_id).exists():
        return "You decided on this action, so you can’t say what became of it."
    if actor.user_id in (action.run.owner_id, action.run.agent.owner_id):
        return "You own this run, so you can’t say what became of it."
    return ""


def in_flight(run_id: UUID) -> list[UUID]:
    """Actions of a run that were redeemed and have no known outcome."""
    grants = Grant.objects.filter(action__run_id=run_id, redeemed_at__isnull=False, outcome__in=OPEN_OUTCOMES)
    return list(grants.values_list("action_id", flat=True))


def effects_done(run_id: UUID) -> int:
    return Grant.objects.filter(action__run_id=run_id, outcome="executed").exclude(action__effect="read").count()


def _take(grant: Grant, token: int, worker: str, fresh: bool) -> bool:
    """The one conditional update that makes a grant good for one use."""
    rows = Grant.objects.filter(pk=grant.pk, digest=grant.digest, voided_at=None, outcome__in=OPEN_OUTCOMES)
    if not fresh:
        return rows.filter(redeemed_at__isnull=False).update(token=token, redeemed_by=worker) == 1
    now = clock.now()
    open_rows = rows.filter(redeemed_at=None, expires_at__gt=now, action__state="approved")
    return open_rows.update(redeemed_at=now, redeemed_by=worker, token=token) == 1


def _why_not(grant: Grant) -> str:
    if grant.voided_at is not None:
        return "it was taken back"
    return "it has expired" if grant.expires_at <= clock.now() else "it is not open"


def _redemption(action: ProposedAction, grant: Grant, what: canonical.CanonicalAction, fresh: bool) -> Redemption:
    payloads = {payload.pk: payload for payload in Payload.objects.select_related("key").filter(pk__in=action.attachments)}
    files = [
        File(named.name, named.media_type, vault.open_bytes(payloads[UUID(pk)]))
        for named, pk in zip(what.attachments, action.attachments, strict=True)
    ]
    redeemed_at = grant.redeemed_at or clock.now()
    return Redemption(action.pk, grant.pk, grant.digest, action.tool, what.arguments, files, redeemed_at, fresh)


def _settle(redemption: Redemption, **fields: Any) -> None:
    rows = Grant.objects.filter(pk=redemption.grant_id, digest=redemption.digest, redeemed_at__isnull=False, outcome__in=OPEN_OUTCOMES)
    if rows.update(**fields) != 1:
        raise NotUnknown("Its outcome is known already.")


def _receipt(grant: Grant) -> Any:
    if grant.receipt_id is None:
        return None
    return orjson.loads(vault.open_bytes(Payload.objects.select_related("key").get(pk=grant.receipt_id)))


def _say(run: Held, action: ProposedAction, grant: Grant, by: Actor, outcome: Saying, note: str, reference: str) -> None:
    texts = {
        name: vault.keep(action.workspace_id, text.strip()[:4000], label="internal")
        for name, text in (("note", note), ("reference", reference))
        if text.strip()
    }
    run.append(ActionResolved(action=action.pk, grant=grant.pk, outcome=outcome), actor=by, texts=texts)
    if outcome == "happened":
        receipt = vault.keep(
            action.workspace_id, orjson.dumps({"reference": reference.strip()}), label="internal", media_type="application/json"
        )
        Grant.objects.filter(pk=grant.pk).update(outcome="executed", executed_at=clock.now(), receipt=receipt)
    elif outcome == "did_not_happen":
        Grant.objects.filter(pk=grant.pk).update(outcome="failed")
    if run.row.state == State.WAITING and run.row.workflow:
        run.move(State.QUEUED, RunQueued(reason="outcome"))
    elif run.row.state == State.CANCELLING:
        from runs import signals

        signals.finish_cancelling(run)
