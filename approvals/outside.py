"""Agents outside: they propose, wait, redeem by the digest of what they are about to run, run it themselves, and report.

    propose → (decided by people or a rule) → redeem → the agent's own call → report

Handrail cannot see the call. So what it says of it is the agent's word, and never “verified”; an agent that redeemed and stays silent
leaves an unknown outcome, which a person resolves. A redeemed grant never returns to the pool.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID, uuid5

import orjson

from access.errors import BadInput, DatabaseTrouble, Refusal
from access.rows import only
from access.rules import Actor
from approvals import asked_for, asking, canonical, decisions, exact, execution, freezes, mismatch
from approvals.errors import (
    ActionClosed,
    AlreadyAnswered,
    ArgumentsRefused,
    DigestMismatch,
    Frozen,
    HeldByAnother,
    NoSuchQuestion,
    NothingGranted,
    NotOutside,
    NotRunning,
    OutcomeKnown,
    ProposalReused,
    SchemaChanged,
    ToolRefused,
)
from approvals.models import Grant, ProposedAction
from artifacts import vault
from artifacts.models import Payload
from config import clock
from runs import log, signals, steps
from runs.engine import effects, gates
from runs.engine.gates import Attached, Proposal, Redemption, Refused
from runs.engine.tools import TOOLS, InvalidArguments, Tool
from runs.errors import RunEnded
from runs.lifecycle import State
from runs.log import Held, Text
from runs.models import Event, Run
from runs.vocabulary import ActionExecuted, ActionUnknown, BlockRaised, EffectDone, QuestionAnswered, RunWaiting

logger = logging.getLogger(__name__)
Outcome = Literal["executed", "failed"]
MAX_FACTS, MAX_ATTACHMENTS, MAX_ANSWER = 64 * 1024, 20, 8000
TOKEN = 1  # a grant has one use and is never handed on, so there is one token
SETTLED = ("executed", "failed")


@dataclass(frozen=True)
class Proposed:
    """An action that an agent put up. `again`: it was put up already under this key, and this was a repeat of it."""

    action: ProposedAction
    again: bool


@dataclass(frozen=True)
class Redeemed:
    """The one use of a grant, in the hands of who said `holder`. `exact` is what may be run: the canonical JSON of the digest."""

    action_id: UUID
    grant_id: UUID
    digest: str
    exact: str
    attachments: tuple[tuple[str, str], ...]  # name, SHA-256 of the content
    redeemed_at: datetime
    report_by: datetime | None
    again: bool


@dataclass(frozen=True)
class Reported:
    """What the agent said became of it. `again`: it had said so already."""

    outcome: str
    again: bool


@dataclass(frozen=True)
class Answered:
    seq: int
    again: bool


# proposing --------------------------------------------------------------------------------------------------------------------------


def propose(
    run: Run,
    *,
    by: Actor,
    key: str,
    tool: str,
    version: int,
    arguments: Mapping[str, Any],
    attachments: Sequence[int] = (),
    reason: str = "",
    lease: int | None = None,
) -> Proposed:
    """Put an exact action up for decision. The same key again gives the first; with something else in it, ProposalReused.

    `attachments`: the events that made the artifacts. `lease`: its fencing token, if the run was claimed.
    ToolRefused if nobody declared the tool, a rule forbids it, or it would touch what is outside the run's scope; that is written into
    the log. BudgetUsed while a limit of the run is used up: as of a step, nothing new begins.
    """
    if run.workflow:
        raise NotOutside("Handrail runs the workflow of this run, and proposes for it.")
    known = _declared(tool, version)
    complete = _checked(known, arguments) if known else dict(arguments)
    nonce = str(uuid5(run.pk, f"outside:{key}"))
    with log.holding(run.pk) as held:
        first = only(ProposedAction.objects.filter(run_id=run.pk, key=key))
        steps.fence(held, lease)
        steps.heard(held)
        spent = _check_new(held) if first is None else None
        files = _attached(held.row, attachments)
        made = spent or (_put_up(held, Proposal(known, complete, "", nonce, files, reason), first) if known else _unregistered(held, tool))
        if isinstance(made, Refused):
            _tell_refusal(held, by, nonce, tool, made, complete)
        elif first is None and not isinstance(made, Refusal):
            ProposedAction.objects.filter(pk=made.pk).update(key=key)
            _wait_for(held, made)
    if isinstance(made, Refused):
        raise ToolRefused(made.detail, reason=made.reason)
    if isinstance(made, Refusal):  # raised here, so that what it wrote into the log stays
        raise made
    return Proposed(made, again=first is not None)


def _check_new(held: Held) -> Refusal | None:
    """A run that is at work, or waits, may put up something new, unless a limit of it is used up."""
    _check_running(held)
    return steps.over_budget(held)


def _wait_for(held: Held, action: ProposedAction) -> None:
    """While people have something of it to decide the run waits for them, for the first of several."""
    answer = gates.current().answer(action.pk)
    if held.row.state == State.RUNNING and isinstance(answer, gates.Waiting):
        steps.waits(held, RunWaiting(on="decision", action=answer.action_id, until=answer.until, needs=answer.needs))


def _declared(name: str, version: int) -> Tool | None:
    tool = TOOLS.get(name)
    if tool is not None and tool.executor != "agent":
        raise NotOutside(f"{name} is one of Handrail’s own tools: a workflow uses it.")
    if tool is not None and tool.schema_version != version:
        raise SchemaChanged(f"{name} has version {tool.schema_version} here, not {version}.", tool_schema=tool.schema_version)
    return tool


def _checked(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if odd := sorted(arguments.keys() - tool.arguments.model_fields.keys()):
        raise ArgumentsRefused(f"{tool.name} takes no “{odd[0][:40]}”.")
    try:
        return tool.checked(**arguments)
    except InvalidArguments as error:
        raise ArgumentsRefused(str(error)) from None


def _unregistered(held: Held, tool: str) -> Refused:
    asked_for.note(held.row, tool)
    return Refused("unregistered", f"{tool} is not registered here.")


def _put_up(held: Held, proposal: Proposal, first: ProposedAction | None) -> ProposedAction | Refused:
    try:
        digest = canonical.digest(exact.build(proposal))
    except canonical.NotCanonical as error:
        raise ArgumentsRefused(str(error)) from error
    if first is not None:
        if first.digest != digest:
            raise ProposalReused(f"It put up {first.tool} as #{first.proposed_seq}.", action=str(first.pk))
        return first
    if outside := effects.outside_scope(held.row, proposal.tool, proposal.arguments):
        return Refused("out_of_scope", f"It would touch {outside}, outside this run’s scope.")
    answer = gates.current().propose(held, proposal)
    if isinstance(answer, gates.Frozen):
        freezes.check(held.row, answer.tool)
        raise Frozen
    return answer if isinstance(answer, Refused) else ProposedAction.objects.get(pk=answer.action_id)


def _attached(run: Run, seqs: Sequence[int]) -> list[Attached]:
    if len(set(seqs)) < len(seqs) or len(seqs) > MAX_ATTACHMENTS:
        raise BadInput(f"Each attachment is named once, at most {MAX_ATTACHMENTS} of them.")
    rows = Event.objects.filter(run_month=run.month, run_id=run.pk, seq__in=seqs, artifact__isnull=False)
    made = {event.seq: event.artifact for event in rows.select_related("artifact__payload__key")}
    if missing := [seq for seq in seqs if seq not in made or made[seq].payload.erased_at]:
        raise BadInput(f"#{missing[0]} made no artifact that is there: an attachment is the event that made an artifact of this run.")
    return [Attached(made[seq].name, made[seq].payload.media_type, made[seq].payload) for seq in seqs]


def _tell_refusal(held: Held, by: Actor, nonce: str, tool: str, refused: Refused, arguments: Mapping[str, Any]) -> None:
    """A block in the log, once for each key: an agent that asks again and again must not fill it."""
    sender = f"{by.id}:proposal:{nonce}"
    if Event.objects.filter(run_month=held.row.month, run_id=held.row.pk, sender=sender).exists():
        return
    texts = {"detail": Text(refused.detail), "arguments": Text(orjson.dumps(arguments), "personal", "application/json")}
    held.append(BlockRaised(block=tool, reason=refused.reason), actor=log.ENGINE, texts=texts, sender=sender)


def _check_running(held: Held) -> None:
    if held.row.ended_at is not None:
        raise RunEnded(f"The run ended as {held.row.state}.", state=held.row.state)
    if held.row.state not in (State.RUNNING, State.WAITING):
        raise NotRunning(f"The run is {held.row.state}.", state=held.row.state)


# what the agent is told ---------------------------------------------------------------------------------------------------------------


def for_agent(action: ProposedAction) -> dict[str, Any]:
    """What the agent alone is told of its action, in full, for it must act on it. `exact` is null once the bytes were erased."""
    if action.executor != "agent":
        return {}
    stored = vault.opened(Payload.objects.select_related("key").get(pk=action.canonical_id))
    answer = gates.current().answer(action.pk) if action.state in ("rejected", "recalled") else None
    asked = asking.open_questions(action)
    return {
        "exact": stored.decode() if stored is not None else None,
        "rejection": answer.reason if isinstance(answer, gates.Rejected) else None,
        "questions": [{"id": one.id, "seq": one.seq, "question": one.text} for one in asked],
        "run_state": action.run.state,
    }


def answer(action: ProposedAction, *, by: Actor, question: UUID, text: str, cites: Sequence[int] = ()) -> Answered:
    """Answer what a reviewer asked. The same again gives the first; another answer is refused. It changes nothing about the action."""
    with log.holding(action.run_id) as run:
        action = decisions.locked(action.pk)
        _check_outside(action)
        asked = next((said for said in asking.thread(action) if said.id == question), None)
        if asked is None:
            raise NoSuchQuestion
        if asked.answer_payload is not None:
            return _same_answer(asked, text)
        if action.state != "waiting":
            raise ActionClosed(f"It was {action.state} meanwhile.", state=action.state)
        if wrong := [seq for seq in cites if not 1 <= seq <= run.row.seq]:
            raise BadInput(f"#{wrong[0]} can’t be cited: the log is at #{run.row.seq}.", head=run.row.seq)
        told = QuestionAnswered(question=question, cites=tuple(cites))
        return Answered(run.append(told, actor=by, texts={"answer": Text(text, "personal")}, caused_by=asked.seq), again=False)


def _same_answer(asked: asking.Said, text: str) -> Answered:
    kept = Payload.objects.select_related("key").get(pk=asked.answer_payload)
    if vault.opened(kept) != text.encode():
        raise AlreadyAnswered(f"#{asked.answer_seq} answered it.", seq=asked.answer_seq)
    return Answered(asked.answer_seq, again=True)


# redeeming ----------------------------------------------------------------------------------------------------------------------------


def redeem(action: ProposedAction, *, by: Actor, digest: str, holder: str, lease: int | None = None) -> Redeemed:
    """Take the one use of an approved action, for who is known by `holder`. `digest`: of what is about to be run. `lease`: as in `propose`.

    The same holder again is answered the same, until an outcome is known. HeldByAnother for anybody else. DigestMismatch raises a block.
    """
    with log.holding(action.run_id) as run:
        action = decisions.locked(action.pk)
        _check_outside(action)
        steps.fence(run, lease)
        steps.heard(run)
        taken = _take(run, action, by, digest, holder)
    if isinstance(taken, Refusal):  # raised here, so that what it wrote into the log stays
        raise taken
    return taken


def _take(run: Held, action: ProposedAction, by: Actor, digest: str, holder: str) -> Redeemed | Refusal:
    grant = only(Grant.objects.select_for_update(no_key=True).filter(action=action))
    if digest != action.digest:
        detail = f"The agent came with digest {digest[:12]}…, and the action has {action.digest[:12]}…."
        mismatch.tell(run, action, by=by, detail=detail, digest=digest)
        return DigestMismatch(digest=action.digest)
    if grant is not None and grant.redeemed_at is not None:
        return _again(action, grant, holder)
    _check_running(run)
    freezes.check(run.row, action.tool)
    gates.current().deliver(run, action.pk)  # who comes to redeem has been told
    taken = execution.redeem(run, action.pk, token=TOKEN, worker=f"agent/{action.run.agent.name}")
    if not isinstance(taken, Redemption):
        newer = {"superseded_by": str(action.superseded_by_id)} if action.superseded_by_id else {}
        newer |= {"recall_until": log.stamp(grant.held_until)} if grant is not None and grant.held_until else {}
        why = taken.why if isinstance(taken, gates.NotGranted) else "it can’t be taken now"
        return NothingGranted(f"This is {action.state}, and {why}.", state=action.state, **newer)
    report_by = taken.redeemed_at + timedelta(seconds=TOOLS[action.tool].deadline)
    Grant.objects.filter(pk=taken.grant_id, redeemed_at__isnull=False).update(holder=_known_as(holder), report_by=report_by)
    return _redeemed(action, Grant.objects.get(pk=taken.grant_id), again=False)


def _again(action: ProposedAction, grant: Grant, holder: str) -> Redeemed:
    if grant.holder != _known_as(holder):
        raise HeldByAnother(outcome=grant.outcome)
    if grant.outcome != "none":
        raise OutcomeKnown(f"It is {grant.outcome}.", outcome=grant.outcome)
    return _redeemed(action, grant, again=True)


def _redeemed(action: ProposedAction, grant: Grant, *, again: bool) -> Redeemed:
    payloads = {str(payload.pk): payload for payload in Payload.objects.select_related("key").filter(pk__in=action.attachments)}
    stored = exact.stored_bytes(action)
    names = [each.name for each in canonical.parse(stored).attachments]
    sums = [hashlib.sha256(vault.open_bytes(payloads[pk])).hexdigest() for pk in action.attachments]
    files = tuple(zip(names, sums, strict=True))
    at = grant.redeemed_at or clock.now()
    return Redeemed(action.pk, grant.pk, grant.digest, stored.decode(), files, at, grant.report_by, again)


def _check_outside(action: ProposedAction) -> None:
    if action.executor != "agent":
        raise NotOutside("Handrail itself runs this action.")


def _known_as(holder: str) -> str:
    return hashlib.sha256(holder.encode()).hexdigest()


# reporting ----------------------------------------------------------------------------------------------------------------------------


def report(
    action: ProposedAction, *, by: Actor, holder: str, outcome: Outcome, facts: Mapping[str, Any] | None = None, detail: str = ""
) -> Reported:
    """What became of it, as the agent says; only by who holds its one use. The same again gives the first, anything else OutcomeKnown.

    A late word is better than none: it is taken as long as no person has said what happened.
    """
    receipt = orjson.dumps({"facts": dict(facts or {}), "detail": detail}, option=orjson.OPT_SORT_KEYS)
    if len(receipt) > MAX_FACTS:
        raise BadInput(f"The facts have {len(receipt)} bytes; at most {MAX_FACTS} are kept. More is an artifact.", limit=MAX_FACTS)
    with log.holding(action.run_id) as run:
        action = decisions.locked(action.pk)
        _check_outside(action)
        grant = only(Grant.objects.select_for_update(no_key=True).filter(action=action))
        if grant is None or grant.redeemed_at is None:
            raise NothingGranted("Nobody has redeemed it, so nothing can have been run.", state=action.state)
        if grant.holder != _known_as(holder):
            raise HeldByAnother(outcome=grant.outcome)
        if grant.outcome in SETTLED:
            return _same_report(grant, outcome, receipt)
        _settle(run, action, grant, by, outcome, receipt)
        if run.row.state == State.CANCELLING:
            signals.finish_cancelling(run)
    return Reported(outcome, again=False)


def _same_report(grant: Grant, outcome: Outcome, receipt: bytes) -> Reported:
    receipts = Payload.objects.select_related("key").filter(pk=grant.receipt_id)
    kept = vault.opened(receipts[0]) if receipts else None
    if grant.outcome == outcome and kept == receipt:
        return Reported(outcome, again=True)
    raise OutcomeKnown(f"It is {grant.outcome}.", outcome=grant.outcome)


def _settle(run: Held, action: ProposedAction, grant: Grant, by: Actor, outcome: Outcome, receipt: bytes) -> None:
    tool = TOOLS.get(action.tool)
    label = tool.label if tool and tool.label == "secret" else "personal"
    kept = vault.keep(action.workspace_id, receipt, label=label, media_type="application/json")
    now = clock.now()
    at = {"executed_at": now if outcome == "executed" else None, "unknown_at": None}
    open_rows = Grant.objects.filter(pk=grant.pk, redeemed_at__isnull=False, outcome__in=execution.OPEN_OUTCOMES)
    if open_rows.update(outcome=outcome, receipt=kept, **at) != 1:
        raise OutcomeKnown
    told = ActionExecuted(action=action.pk, grant=grant.pk, digest=grant.digest, ok=outcome == "executed")
    seq = run.append(told, actor=by, texts={"receipt": kept})
    if outcome == "executed" and action.effect != "read":
        done = EffectDone(tool=action.tool, key=str(grant.pk), can_undo=False, action=action.pk)
        run.append(done, actor=by, texts={"subject": action.subject}, caused_by=seq)


# silence ------------------------------------------------------------------------------------------------------------------------------


def silent_due() -> int:
    """Say of each redeemed action whose agent has stayed silent for too long that its outcome is unknown. Safe to run twice at once."""
    silent = Grant.objects.filter(report_by__lte=clock.now(), outcome="none").order_by("report_by")
    return sum(_silent(*each) for each in list(silent.values_list("pk", "action__run_id")[:200]))


def _silent(grant_id: UUID, run_id: UUID) -> bool:
    try:
        with log.holding(run_id) as run:
            now = clock.now()
            lost = Grant.objects.filter(pk=grant_id, outcome="none", redeemed_at__isnull=False, report_by__lte=now)
            if lost.update(outcome="unknown", unknown_at=now) != 1:
                return False
            action_id = Grant.objects.values_list("action_id", flat=True).get(pk=grant_id)
            run.append(ActionUnknown(action=action_id, grant=grant_id, reason="silent"), actor=log.ENGINE)
    except (DatabaseTrouble, Refusal) as error:  # one run that can't be locked now must not keep the others
        logger.warning("silence not told", extra={"grant": str(grant_id), "error": type(error).__name__})
        return False
    return True
