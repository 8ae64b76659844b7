"""Grant → redemption → receipt. One use, over the very bytes that were approved.

A redeemed grant never returns to the pool: its outcome is executed, failed, or unknown until a look-up or a person says.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import orjson
from django.db.models import Q

from access import audit, rules
from access.errors import BadInput
from access.models import User
from access.rows import only
from access.rules import Actor
from approvals import canonical, exact, freezes, lineage, mismatch
from approvals.errors import BeingLookedUp, NoteNeeded, NotUnknown, NotYours, ReferenceNeeded
from approvals.models import Decision, Grant, ProposedAction
from artifacts import redaction_policies, vault
from artifacts.models import Payload
from config import clock
from runs import log
from runs.engine import gates, lease, ledger
from runs.engine.gates import NotGranted, Redemption, Spent
from runs.engine.tools import TOOLS, File
from runs.lifecycle import State
from runs.log import Held, Text
from runs.models import Event
from runs.vocabulary import (
    ActionExecuted,
    ActionRedeemed,
    ActionResolved,
    ActionUnknown,
    ActionVerified,
    RunQueued,
)

OPEN_OUTCOMES = ("none", "unknown")
Saying = Literal["happened", "did_not_happen", "look_again"]
MAX_NOTE, MAX_REFERENCE = 4000, 300
STANDS = {"none": "It is being run now.", "executed": "It happened.", "failed": "It did not happen."}


@dataclass(frozen=True)
class Resolved:
    """What a person said about an unknown outcome. `again`: it was said already, and this was a repeat of it."""

    seq: int  # the event that says so
    outcome: Saying
    again: bool


@dataclass(frozen=True)
class Said:
    """What somebody said about an unknown outcome, as the log has it. `by` is a person’s id."""

    seq: int
    outcome: str
    by: str
    at: datetime


def redeem(run: Held, action_id: UUID, *, token: int, worker: str) -> Redemption | Spent | NotGranted | gates.Frozen:
    """Take the grant's one use. If an earlier worker of this run took it, its redemption goes on under the new token.

    While it is frozen nothing is taken, nor gone on with what an earlier worker may not have sent; of a run that is being cancelled it is
    found out all the same what became of it, for that sends nothing.
    """
    action = ProposedAction.objects.select_related("run").get(pk=action_id, run_id=run.row.pk)
    lineage.lock(run.row, action)
    grant = only(Grant.objects.select_for_update(no_key=True).filter(action=action))
    if grant is None:
        return NotGranted("it was not approved")
    if grant.outcome not in OPEN_OUTCOMES:
        return Spent(grant.outcome, _receipt(grant), action.settled_seq)
    stored = exact.stored_bytes(action)
    if hashlib.sha256(stored).hexdigest() != grant.digest:
        mismatch.tell(run, action, by=log.ENGINE, grant=str(grant.pk))
        return NotGranted("what would run is not what was approved")
    fresh = grant.redeemed_at is None
    if (fresh or run.row.state != State.CANCELLING) and (frozen := freezes.in_the_way(run.row, action.tool)):
        return gates.Frozen(action.tool, frozen.reason, frozen.until)
    if why := _not_loaded(action, fresh):
        return NotGranted(why)
    what = canonical.parse(stored)
    if fresh:
        grant.key = lineage.kept_key(run.row, action, what)
    if not _take(grant, token, worker, fresh):
        return NotGranted(_why_not(grant), lapsed=_lapsed(grant))
    if fresh:
        data = ActionRedeemed(action=action.pk, grant=grant.pk, digest=grant.digest, token=token, worker=worker)
        run.append(data, actor=log.ENGINE)
    return _redemption(action, grant, what, fresh)


def executed(run: Held, redemption: Redemption, *, result: Any, label: str, found: bool) -> int:
    """It happened: keep the receipt, and compare what ran with what was approved."""
    with redaction_policies.about(ActionExecuted.type, redemption.tool):
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


def ask_what_became(run: Held, action_id: UUID) -> int:
    """Nobody here can look it up: its tool is not loaded, or what was approved can't be read any more."""
    grant = Grant.objects.select_related("action").get(action_id=action_id, action__run_id=run.row.pk)
    taken = Redemption(action_id, grant.pk, grant.digest, grant.action.tool, {}, (), grant.redeemed_at or clock.now(), fresh=False)
    return unknown(run, taken, reason="worker_lost")


def resolve(action: ProposedAction, *, by: Actor, outcome: Saying, note: str = "", reference: str = "") -> Resolved:
    """A person says what became of an action with an unknown outcome, or has it looked up again. Who took part in it may not.

    The same said again by the same person is answered with the first; anything else is refused and told what stands.
    """
    with log.holding(action.run_id) as run:
        action = ProposedAction.objects.select_related("run__agent", "subject").get(pk=action.pk)
        if why := may_resolve(action, by):
            raise NotYours(why)
        note, reference = _proof(outcome, note, reference)
        grant = only(Grant.objects.select_for_update(no_key=True).filter(action=action))
        if first := _same_again(run, action, grant, by, outcome):
            return first
        if grant is None or grant.outcome != "unknown":
            raise _known(action, grant)
        if action.executor == "agent" and outcome == "look_again":
            raise BadInput("An agent outside ran this, and Handrail can’t look it up.")
        if run.row.workflow and run.row.state in (State.QUEUED, State.RUNNING):
            raise BeingLookedUp(state="unknown")
        said = Resolved(_say(run, action, grant, by, outcome, note, reference), outcome, again=False)
        audit.record(by, "outcome_said", workspace_id=action.workspace_id, subject=("action", action.pk), outcome=outcome)
        return said


def may_resolve(action: ProposedAction, actor: Actor) -> str:
    """Why this person may not say what happened; empty if they may."""
    if actor.kind != "human" or not rules.can(actor, "runs.recover", action.workspace_id, action.run.team_id):
        return f"This needs the right “{rules.CAPABILITIES['runs.recover']}”."
    part = _part(action, actor.user_id, _decided(action))
    return f"You {part}, so you can’t say what became of it." if part else ""


def who_may_resolve(action: ProposedAction) -> list[User]:
    """The people who may say what became of this action, by name."""
    decided = _decided(action)
    able = rules.holders(action.workspace_id, "runs.recover", action.run.team_id)
    return [user for user in able if not _part(action, user.pk, decided)]


def _decided(action: ProposedAction) -> set[UUID]:
    return set(Decision.objects.filter(action=action).values_list("reviewer_id", flat=True))


def _part(action: ProposedAction, user_id: UUID | None, decided: set[UUID]) -> str:
    """What part this person had in the action, as the end of “You …”; empty if none."""
    if user_id in decided:
        return "decided on this action"
    if user_id == action.run.agent.owner_id:
        return "own the agent that proposed this"
    return "own this run" if user_id == action.run.owner_id else ""


def last_said(action: ProposedAction) -> Said | None:
    """What a person said last about an unknown outcome of this action. Newest first, so that one page of the log is enough."""
    rows = Event.objects.filter(run_month=action.run.month, run_id=action.run_id, type="action.resolved").order_by("-seq")
    for seq, text in rows.values_list("seq", "body"):
        body = orjson.loads(text)
        if body["data"]["action"] == str(action.pk):
            return Said(seq, body["data"]["outcome"], body["actor"]["id"], datetime.fromisoformat(body["at"]))
    return None


def in_flight(run_id: UUID) -> list[UUID]:
    """Actions of a run that were redeemed and have no known outcome."""
    grants = Grant.objects.filter(action__run_id=run_id, redeemed_at__isnull=False, outcome__in=OPEN_OUTCOMES)
    return list(grants.values_list("action_id", flat=True))


def loose_ends(run_ids: Sequence[UUID]) -> dict[UUID, list[gates.LooseEnd]]:
    """What of each of these runs was approved and is not begun, and what was begun and has no known outcome. One query."""
    approved = Q(state="approved", grant__redeemed_at=None, grant__voided_at=None, grant__expires_at__gt=clock.now())
    begun = Q(grant__redeemed_at__isnull=False, grant__outcome__in=OPEN_OUTCOMES)
    rows = ProposedAction.objects.filter(approved | begun, run_id__in=run_ids).order_by("proposed_at")
    fields = ("pk", "run_id", "subject__rendition", "effect", "grant__outcome", "grant__redeemed_at")
    found: dict[UUID, list[gates.LooseEnd]] = {}
    for pk, run_id, text, effect, outcome, redeemed_at in rows.values_list(*fields):
        state = "approved" if redeemed_at is None else "unknown" if outcome == "unknown" else "begun"
        found.setdefault(run_id, []).append(gates.LooseEnd(pk, "Erased" if text is None else text, effect, state))
    return found


def _not_loaded(action: ProposedAction, fresh: bool) -> str:
    """Why the tool that is loaded here is not the one that was approved; empty if it is. Another schema may mean another thing.

    What was redeemed already is not asked: it must be found out what became of it, and any version of the tool can look.
    """
    tool = TOOLS.get(action.tool)
    if tool is None:
        return "its tool is not loaded here"
    if fresh and not tool.takes(action.tool_schema):
        return f"version {action.tool_schema} of its tool was approved, and version {tool.schema_version} is loaded here"
    return ""


def _take(grant: Grant, token: int, worker: str, fresh: bool) -> bool:
    """The one conditional update that makes a grant good for one use."""
    rows = Grant.objects.filter(pk=grant.pk, digest=grant.digest, voided_at=None, outcome__in=OPEN_OUTCOMES)
    if not fresh:
        return rows.filter(redeemed_at__isnull=False).update(token=token, redeemed_by=worker) == 1
    now = clock.now()
    recallable_no_more = Q(held_until=None) | Q(held_until__lte=now)
    open_rows = rows.filter(recallable_no_more, redeemed_at=None, expires_at__gt=now, action__state="approved")
    return open_rows.update(redeemed_at=now, redeemed_by=worker, token=token, key=grant.key) == 1


def _why_not(grant: Grant) -> str:
    if grant.voided_at is not None:
        return "it was taken back"
    if grant.held_until is not None and grant.held_until > clock.now():
        return "its approval can still be recalled"
    return "it has expired" if grant.expires_at <= clock.now() else "it is not open"


def _lapsed(grant: Grant) -> bool:
    return grant.voided_at is None and grant.redeemed_at is None and grant.expires_at <= clock.now()


def _redemption(action: ProposedAction, grant: Grant, what: canonical.CanonicalAction, fresh: bool) -> Redemption:
    payloads = {payload.pk: payload for payload in Payload.objects.select_related("key").filter(pk__in=action.attachments)}
    files = [
        File(named.name, named.media_type, vault.open_bytes(payloads[UUID(pk)]))
        for named, pk in zip(what.attachments, action.attachments, strict=True)
    ]
    redeemed_at = grant.redeemed_at or clock.now()
    arguments = TOOLS[action.tool].brought_up(what.arguments, action.tool_schema)
    return Redemption(action.pk, grant.pk, grant.digest, action.tool, arguments, files, redeemed_at, fresh, grant.key)


def _settle(redemption: Redemption, **fields: Any) -> None:
    rows = Grant.objects.filter(pk=redemption.grant_id, digest=redemption.digest, redeemed_at__isnull=False, outcome__in=OPEN_OUTCOMES)
    if rows.update(**fields) != 1:
        raise NotUnknown("Its outcome is known already.")


def _receipt(grant: Grant) -> Any:
    if grant.receipt_id is None:
        return None
    kept = vault.opened(Payload.objects.select_related("key").get(pk=grant.receipt_id))
    return orjson.loads(kept) if kept is not None else None  # erased: it happened all the same


def _proof(outcome: Saying, note: str, reference: str) -> tuple[str, str]:
    """What the person saw and under which reference, as it is kept. Looking again needs neither."""
    note, reference = note.strip(), reference.strip()
    if len(note) > MAX_NOTE or len(reference) > MAX_REFERENCE:
        raise BadInput(f"At most {MAX_NOTE} characters of what you saw and {MAX_REFERENCE} of the reference are kept.")
    if outcome != "look_again" and len(note) < 3:
        raise NoteNeeded("Say what you saw, in at least one sentence.")
    if outcome == "happened" and not reference:
        raise ReferenceNeeded("Name the reference under which it happened.")
    return note, reference


def _same_again(run: Held, action: ProposedAction, grant: Grant | None, by: Actor, outcome: Saying) -> Resolved | None:
    """The first of two that say the same: a double click, a replayed form."""
    if grant is None or (grant.outcome == "unknown" and run.row.state not in (State.QUEUED, State.RUNNING)):
        return None  # nothing was said yet, or it was looked up again since and nothing was found
    said = last_said(action)
    same = said is not None and (said.by, said.outcome) == (by.id, outcome)
    return Resolved(said.seq, outcome, again=True) if said and same else None


def _known(action: ProposedAction, grant: Grant | None) -> NotUnknown:
    """What stands, for who came too late."""
    if grant is None or grant.redeemed_at is None:
        return NotUnknown(f"It was never run: it is {action.state}.", state=action.state)
    said = last_said(action)
    if said is None or said.outcome == "look_again":
        return NotUnknown(STANDS[grant.outcome], state=grant.outcome)
    name = only(User.objects.filter(pk=said.by).values_list("name", flat=True)) or "Somebody"
    word = "it happened" if said.outcome == "happened" else "it did not happen"
    return NotUnknown(f"{name} said that {word}.", state=grant.outcome, said=said.outcome, by=name, at=log.stamp(said.at), seq=said.seq)


def _say(run: Held, action: ProposedAction, grant: Grant, by: Actor, outcome: Saying, note: str, reference: str) -> int:
    texts = {name: Text(text) for name, text in (("note", note), ("reference", reference)) if text}
    seq = run.append(ActionResolved(action=action.pk, grant=grant.pk, outcome=outcome), actor=by, texts=texts)
    if outcome == "happened":
        _it_happened(run, action, grant, reference, seq)
    elif outcome == "did_not_happen":
        Grant.objects.filter(pk=grant.pk, outcome="unknown").update(outcome="failed")
    _go_on(run, "answer" if outcome == "look_again" else "outcome")
    return seq


def _it_happened(run: Held, action: ProposedAction, grant: Grant, reference: str, seq: int) -> None:
    """Done, as a person says: never again, and in the ledger of what was done outside."""
    receipt = vault.keep(run.row.workspace_id, orjson.dumps({"reference": reference}), label="internal", media_type="application/json")
    Grant.objects.filter(pk=grant.pk, outcome="unknown").update(outcome="executed", executed_at=clock.now(), receipt=receipt)
    can_undo = action.tool in TOOLS and TOOLS[action.tool].can_undo and grant.key is None
    texts = {"subject": action.subject}
    ledger.tell(
        run,
        tool=action.tool,
        key=str(grant.key or grant.pk),
        can_undo=can_undo,
        action=action.pk,
        step=action.step or None,
        texts=texts,
        caused_by=seq,
    )


def _go_on(run: Held, reason: Literal["answer", "outcome"]) -> None:
    if run.row.state == State.WAITING and run.row.workflow:
        run.move(State.QUEUED, RunQueued(reason=reason))
    elif run.row.state == State.CANCELLING:
        from runs import signals

        if reason == "outcome":
            lease.fence_out(run.row.pk)  # a worker that is looking it up just now writes nothing any more
        if reason == "answer" or not signals.finish_cancelling(run):
            run.change(wake_at=clock.now(), waiting={})
    elif run.row.state == State.COMPENSATING:
        run.change(wake_at=clock.now(), waiting={})
