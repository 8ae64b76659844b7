"""Freezes: at once, and for as long as one stands, nothing of an agent, a tool or the workspace is granted or redeemed.

Whoever grants or redeems shares a lock of the workspace with the others who do, until they commit; whoever freezes or lifts has it alone.
So what was let through was committed before the freeze was, and afterwards nothing is. What waits goes on waiting, and its clocks go on. A
run that comes to something frozen waits without a worker and goes on by itself. Each freeze stands for itself, and ends once: lifted, or
by time.
"""

import hashlib
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from django.db import connection, transaction
from django.db.models import BigIntegerField, CharField, Func, Q, QuerySet, Value

from access import audit, rules
from access.errors import DatabaseTrouble, Refusal
from access.models import Agent, Workspace
from access.rules import Actor
from approvals import reasons
from approvals.errors import AlreadyLifted, FreezeRefused, Frozen
from approvals.models import Freeze, Policy, ProposedAction
from artifacts import vault
from artifacts.models import Payload
from artifacts.redaction import plain
from config import clock
from runs import live, log
from runs.engine.tools import TOOLS
from runs.lifecycle import State
from runs.models import Run
from runs.vocabulary import BlockCleared, RunQueued

What = Literal["agent", "tool", "workspace"]
MAX_REASON = 500
LONGEST = timedelta(days=366)  # of a freeze that names its end
KEPT = 50  # past freezes on their page
UNFREEZING = "unfreezing"  # what a run waits for that came to something frozen
RELATED = ("agent", "workspace", "by", "lifted_by", "reason", "lifted_why")
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Made:
    """A freeze that stands, or was lifted. `again`: it was so already, and this was a repeat of it."""

    freeze: Freeze
    again: bool


def freeze(
    workspace_id: UUID, *, what: What, by: Actor, reason: str, agent_id: UUID | None = None, tool: str = "", until: datetime | None = None
) -> Made:
    """Let nothing more of it be granted or redeemed. FreezeRefused if it can't be, saying why; nothing is frozen then."""
    reason = _reason(reason)
    target = _target(workspace_id, what, agent_id, tool)
    if until is not None and until <= clock.now():
        raise FreezeRefused("Its end lies in the past.", field="until")
    if until is not None and until > clock.now() + LONGEST:  # beyond the year 9999 no row could be read back, nor the freeze be lifted
        raise FreezeRefused("It ends within a year, or it is open.", field="until")
    with transaction.atomic(durable=True):
        hold(workspace_id, alone=True)
        same = standing().filter(workspace_id=workspace_id, by_id=by.user_id, until=until, **target)
        for first in same.select_related("reason__key"):
            if vault.opened(first.reason) == reason.encode():
                return Made(found(first.pk), again=True)
        kept = vault.keep(workspace_id, reason, label="internal")
        made = Freeze.objects.create(workspace_id=workspace_id, by_id=by.user_id, reason=kept, until=until, since=clock.now(), **target)
        audit.record(by, "frozen", workspace_id=workspace_id, subject=("freeze", made.pk), why=str(kept.pk), **_told(made))
    _tell(workspace_id)
    return Made(found(made.pk), again=False)


def lift(given: Freeze, *, by: Actor, reason: str) -> Made:
    """Unfreeze; the runs that waited for it go on. The same again is answered with the first; AlreadyLifted if it ended otherwise."""
    reason = _reason(reason)
    with transaction.atomic(durable=True):
        hold(given.workspace_id, alone=True)
        now = clock.now()
        kept = vault.keep(given.workspace_id, reason, label="internal")
        rows = standing().filter(pk=given.pk)
        lifted = rows.update(lifted_at=now, lifted_by=by.user_id, lifted_why=kept) == 1
        if lifted:
            audit.record(by, "unfrozen", workspace_id=given.workspace_id, subject=("freeze", given.pk), why=str(kept.pk), **_told(given))
        else:
            transaction.set_rollback(True)
    if not lifted:
        return _not_lifted(found(given.pk), by)
    let_go(given.pk)
    _tell(given.workspace_id)
    return Made(found(given.pk), again=False)


def found(pk: UUID) -> Freeze:
    return Freeze.objects.select_related(*RELATED).get(pk=pk)


def standing() -> QuerySet[Freeze]:
    """The freezes that stand now."""
    return Freeze.objects.filter(Q(until=None) | Q(until__gt=clock.now()), lifted_at=None)


def seen_by(actor: Actor) -> list[Freeze]:
    """What is frozen where this person sees actions or runs, the newest first. One query if nothing is, else two."""
    places = {*actor.somewhere("approvals.view"), *actor.somewhere("runs.view")}
    here = standing().filter(workspace_id__in=places)
    # every page asks, and nothing is frozen mostly: to ask for all there is to tell takes four times as long
    return list(here.select_related(*RELATED).order_by("-since")) if places and here.exists() else []


def history(actor: Actor) -> tuple[list[Freeze], list[Freeze]]:
    """What is frozen where this person sees actions, and the last that were: both the newest first."""
    seen = rules.visible(actor, Freeze, "approvals.view").select_related(*RELATED).order_by("-since")
    now = list(seen.filter(pk__in=standing().values("pk")))
    return now, list(seen.exclude(pk__in=[each.pk for each in now])[:KEPT])


def of(workspace_id: UUID, agent_id: UUID, tool: str) -> Freeze | None:
    """The freeze that keeps this agent from using this tool: of several the one that ends last."""
    mine = Q(what="workspace") | Q(what="agent", agent_id=agent_id) | Q(what="tool", tool=tool)
    rows = list(standing().filter(mine, workspace_id=workspace_id).select_related(*RELATED))
    return max(rows, key=lambda each: (each.until is None, each.until or each.since), default=None)


def on(action: ProposedAction) -> Freeze | None:
    """The freeze that keeps this action from being granted or redeemed. For the eye: `check` is what guards."""
    return of(action.workspace_id, action.run.agent_id, action.tool)


def in_the_way(run: Run, tool: str) -> Freeze | None:
    """The freeze that stands in the way of this run. Until the transaction ends none comes into force unseen, and none is lifted."""
    hold(run.workspace_id)
    return of(run.workspace_id, run.agent_id, tool)


def check(run: Run, tool: str) -> None:
    """Refuse with Frozen to grant anything that is frozen."""
    if frozen := in_the_way(run, tool):
        raise Frozen(sentence(frozen), frozen=as_json(frozen))


def let_go_due() -> int:
    """Let the runs go on that waited for freezes that have ended. Gives how many freezes; safe to run twice at once."""
    ended = Q(lifted_at__isnull=False) | Q(until__lte=clock.now())
    due = list(Freeze.objects.filter(ended, let_go_at=None).values_list("pk", "workspace_id").order_by("since")[:50])
    for pk, workspace_id in due:
        let_go(pk)
        _tell(workspace_id)
    return len(due)


def let_go(freeze_id: UUID) -> None:
    """Let the runs go on that waited for the end of this freeze, unless another one is in their way."""
    ended = Freeze.objects.get(pk=freeze_id)
    waiting = Run.objects.filter(workspace_id=ended.workspace_id, state=State.WAITING).only("waiting").order_by("state_since")
    undoing = Run.objects.filter(workspace_id=ended.workspace_id, state=State.COMPENSATING, wake_at__isnull=False)
    undoing.update(wake_at=clock.now())  # they look by themselves whether they can go on
    whole = True
    for run_id in [run.pk for run in waiting.iterator() if run.waits_on(UNFREEZING)]:
        try:
            _go_on(run_id)
        except (DatabaseTrouble, Refusal) as error:  # one run that can't be locked now must not keep the others waiting
            whole = False
            logger.warning("not let go on", extra={"run": str(run_id), "error": type(error).__name__})
    if whole:
        Freeze.objects.filter(pk=freeze_id, let_go_at=None).update(let_go_at=clock.now())


def _go_on(run_id: UUID) -> None:
    with log.holding(run_id) as run:
        waits = run.row.waiting
        if run.row.state != State.WAITING or not run.row.waits_on(UNFREEZING):
            return
        said = waits["tool"] if waits["on"] == UNFREEZING else ""  # and in other branches something that the row does not name
        still = said and in_the_way(run.row, said)
        if still and UNFREEZING not in waits.get("also", ()):
            return
        if said and not still:
            run.append(BlockCleared(block=block(said)), actor=log.ENGINE)
        run.move(State.QUEUED, RunQueued(reason="unfrozen"))


def block(tool: str) -> str:
    """The name of the block that a run's log has while it waits."""
    return f"frozen:{tool}"


def hold(workspace_id: UUID, *, alone: bool = False) -> None:
    """The workspace's lock of freezes, until the transaction ends: shared, or alone. Taken after the run, before limits.

    SQLite has one writer at a time, which is lock enough: its transactions begin IMMEDIATE.
    """
    if connection.vendor != "postgresql":
        return
    key = int.from_bytes(hashlib.sha256(b"freeze" + workspace_id.bytes).digest()[:8], "big", signed=True)
    name = "pg_advisory_xact_lock" if alone else "pg_advisory_xact_lock_shared"
    call = Func(Value(key, BigIntegerField()), function=name, output_field=CharField())
    list(Workspace.objects.filter(pk=workspace_id).values_list(call))


# words ------------------------------------------------------------------------------------------------------------------------------


def target_words(frozen: Freeze) -> str:
    """What is frozen, in the middle of a sentence: agent support-triage · “Send the reply” · everything in Fernhill."""
    if frozen.what == "agent":
        return f"agent {frozen.agent.name}"
    if frozen.what == "tool":
        return f"“{TOOLS[frozen.tool].title if frozen.tool in TOOLS else frozen.tool}”"
    return f"everything in {frozen.workspace.name}"


def sentence(frozen: Freeze) -> str:
    """Frozen by Ada since 14:02, until 15:00 (UTC): why."""
    until = f", until {_utc(frozen.until)}" if frozen.until else ""
    return f"Frozen by {frozen.by.name} since {_utc(frozen.since)}{until} (UTC): {_words(frozen.reason)}"


def as_json(frozen: Freeze) -> dict[str, Any]:
    """A freeze, for whoever asks over the API. Texts are renditions."""
    return {
        "id": str(frozen.pk),
        "what": frozen.what,
        "agent": frozen.agent.name if frozen.agent else None,
        "tool": frozen.tool or None,
        "by": {"id": str(frozen.by_id), "name": frozen.by.name},
        "reason": _words(frozen.reason),
        "since": log.stamp(frozen.since),
        "until": log.stamp(frozen.until) if frozen.until else None,
        "lifted_at": log.stamp(frozen.lifted_at) if frozen.lifted_at else None,
        "lifted_by": {"id": str(frozen.lifted_by_id), "name": frozen.lifted_by.name} if frozen.lifted_by else None,
        "lifted_why": _words(frozen.lifted_why) if frozen.lifted_why else None,
    }


def _words(payload: Payload) -> str:
    if payload.rendition is not None:
        return plain(payload.rendition)
    return vault.tombstone(payload.erased_at, payload.erased_by.name if payload.erased_by else "")


def _utc(when: datetime) -> str:
    return f"{when:%H:%M}" if when.date() == clock.now().date() else f"{when.day} {when:%b, %H:%M}"


# how --------------------------------------------------------------------------------------------------------------------------------


def tools(workspace_id: UUID) -> list[tuple[str, str]]:
    """(name, title) of what can be frozen as a tool here: whatever has a rule, or acts outside."""
    ruled = set(Policy.objects.filter(workspace_id=workspace_id).values_list("tool", flat=True)) - {""}
    known = {name: TOOLS[name].title if name in TOOLS else name for name in ruled}
    known |= {tool.name: tool.title for tool in TOOLS.values() if tool.effect != "read"}
    return sorted(known.items(), key=lambda each: each[1].casefold())


def agents(workspace_id: UUID) -> list[Agent]:
    return list(Agent.objects.filter(workspace_id=workspace_id).order_by("name"))


def _target(workspace_id: UUID, what: str, agent_id: UUID | None, tool: str) -> dict[str, Any]:
    if what == "agent":
        if agent_id is None or not Agent.objects.filter(pk=agent_id, workspace_id=workspace_id).exists():
            raise FreezeRefused("There is no such agent in this workspace.", field="agent")
        return {"what": what, "agent_id": agent_id, "tool": ""}
    if what == "tool":
        if tool not in dict(tools(workspace_id)):
            raise FreezeRefused("There is no such tool here.", field="tool")
        return {"what": what, "agent_id": None, "tool": tool}
    if what != "workspace":
        raise FreezeRefused("An agent, a tool or the workspace can be frozen.", field="what")
    return {"what": what, "agent_id": None, "tool": ""}


def _reason(reason: str) -> str:
    reason = reason.strip()
    if why := reasons.trouble(reason, MAX_REASON):
        raise FreezeRefused(why, field="reason")
    return reason


def _not_lifted(frozen: Freeze, by: Actor) -> Made:
    if frozen.lifted_at is not None and str(frozen.lifted_by_id) == by.id:
        return Made(frozen, again=True)
    said = f"{frozen.lifted_by.name} lifted it at {_utc(frozen.lifted_at)} (UTC)." if frozen.lifted_at else "It had run out."
    raise AlreadyLifted(said, frozen=as_json(frozen))


def _told(frozen: Freeze) -> dict[str, Any]:
    return {
        "what": frozen.what,
        "agent": str(frozen.agent_id) if frozen.agent_id else None,
        "tool": frozen.tool or None,
        "until": log.stamp(frozen.until) if frozen.until else None,
    }


def _tell(workspace_id: UUID) -> None:
    """Open pages of the workspace look again. Nothing new stands in a log, so any of its runs will do to name."""
    newest = Run.objects.filter(workspace_id=workspace_id).order_by("-created_at").values_list("pk", "seq").first()
    if newest is not None:
        live.wake(newest[0], workspace_id, newest[1])


def may(actor: Actor, workspace_id: UUID) -> bool:
    return rules.can(actor, "approvals.freeze", workspace_id)
