"""Doing things to the outside world: redeem the grant, call the tool, write down what came of it.

    redeem (one transaction) → call, under the grant's id as its key → settle (one transaction)

What happens to a call whose answer is lost is looked up; where the outside can't tell, a person says. It is never sent again unless
the outside honours the key, or the call is past its hard deadline and the tool's quarantine, for a frozen worker may still wake.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson

from config import clock
from runs import log, signals
from runs.engine import gates, ledger, points
from runs.engine.gates import NotGranted, Redemption, Spent
from runs.engine.outcomes import Interrupted, Parked, Waits
from runs.engine.retry import Again, decide
from runs.engine.tools import TOOLS, Absent, Call, Fenced, Found, Tool, ToolError, Unsure
from runs.engine.walk import Walk
from runs.lifecycle import State
from runs.log import Held, Text
from runs.models import Event, JournalEntry, Run
from runs.vocabulary import LOOK_UP, RunWaiting, StepStarted, ToolEnded, ToolStarted

logger = logging.getLogger(__name__)
MAX_LOOKS = 3  # look-ups that tell nothing before a person is asked
LOOK_AGAIN = 2.0  # seconds between them


@dataclass
class Performance:
    """One redeemed action on its way through its stages."""

    walk: Walk
    entry: JournalEntry
    plan_step: int | None
    redemption: Redemption
    called: bool = False  # by this worker, on this walk

    @property
    def tool(self) -> Tool:
        return TOOLS[self.redemption.tool]


def check_scope(run: Run, tool: Tool, arguments: Mapping[str, Any], step: str) -> None:
    """Park the run if the tool would touch what is not in the run's scope, which never changes."""
    if outside := outside_scope(run, tool, arguments):
        raise Parked("out_of_scope", step=step, detail=f"{tool.title} would touch {outside}, outside this run's scope.")


def outside_scope(run: Run, tool: Tool, arguments: Mapping[str, Any]) -> str:
    """What the tool would touch that is not in the run's scope, in words; empty if nothing."""
    return beyond_scope(run, tool.touches(arguments))


def beyond_scope(run: Run, touched: Mapping[str, Sequence[str]]) -> str:
    """What of these is not in the run's scope, in words; empty if nothing. `touched`: kind of thing → ids."""
    outside = {kind: [pk for pk in ids if pk not in run.scope.get(kind, ())] for kind, ids in touched.items()}
    return "; ".join(f"{kind} {', '.join(map(str, ids))[:200]}" for kind, ids in outside.items() if ids)


def perform(walk: Walk, step: str, action_id: UUID, plan_step: int | None) -> dict[str, Any]:
    """Run an approved action, once.

    Gives {"happened": True, "result": what the tool returned}, also when an earlier worker, a look-up or a person settled it; or
    {"happened": False, "result": None} when a person said that it did not happen, or its approval lapsed before.
    """
    points.reached("approved", walk.id)
    with walk.hold() as run:
        entry = walk.journal.begin(run, step, kind="perform", given=str(action_id), action_id=action_id)
        taken = gates.current().redeem(run, action_id, token=walk.lease.token, worker=walk.lease.worker)
        if isinstance(taken, gates.Frozen):  # raised in here, so that nothing of this attempt is written or counted
            raise Waits(RunWaiting(on="unfreezing", action=action_id, tool=taken.tool, until=taken.until))
        if isinstance(taken, NotGranted) and taken.lapsed:
            return _lapsed(walk, run, entry)
        if isinstance(taken, Redemption):
            run.append(StepStarted(step=step, kind="perform", plan_step=plan_step, attempt=entry.attempts), actor=walk.agent)
            if taken.fresh and taken.key is None:
                _tell_call(walk, run, entry, TOOLS[taken.tool])
    if isinstance(taken, NotGranted):
        raise Parked("refused", step=step, detail=f"The grant could not be redeemed: {taken.why}.")
    if isinstance(taken, Spent):
        return _spent(walk, entry, taken, plan_step)
    points.reached(f"redeemed-{taken.tool}", walk.id)
    performance = Performance(walk, entry, plan_step, taken)
    return _call_tool(performance) if taken.fresh and taken.key is None else _recover(performance)


def _lapsed(walk: Walk, run: Held, entry: JournalEntry) -> dict[str, Any]:
    """Nobody used the approval in time, such as while it was frozen: it surely did not happen, and is for people to decide again."""
    outcome = {"happened": False, "result": None}
    walk.journal.end(run, entry, outcome, label="internal", seq=run.row.seq)
    return outcome


def settle_in_flight(walk: Walk) -> None:
    """A cancelled run: find out what became of whatever was under way. Sends nothing."""
    for action_id in gates.current().in_flight(walk.id):
        step = walk.journal.performing(action_id).step
        with walk.hold(settling=True) as run:
            entry = walk.journal.begin(run, step, kind="perform", given=str(action_id), action_id=action_id)
            taken = gates.current().redeem(run, action_id, token=walk.lease.token, worker=walk.lease.worker)
            if isinstance(taken, NotGranted):  # nothing of it can be looked up here, so that only a person can tell
                gates.current().ask_what_became(run, action_id)
        if isinstance(taken, NotGranted):
            raise Waits(RunWaiting(on="outcome", action=action_id))
        if isinstance(taken, Redemption):
            _recover(Performance(walk, entry, None, taken), may_send=False)


def _run(p: Performance) -> Any:
    """Call the tool once more."""
    with p.walk.hold() as run:
        _tell_call(p.walk, run, p.entry, p.tool)
    return _call_tool(p)


def _tell_call(walk: Walk, run: Held, entry: JournalEntry, tool: Tool) -> None:
    data = ToolStarted(tool=tool.name, tool_schema=tool.schema_version, effect=tool.effect, step=entry.step)
    run.append(data, actor=walk.agent)


def _call_tool(p: Performance) -> Any:
    """Call the tool with exactly what was approved."""
    points.reached(f"calling-{p.tool.name}", p.walk.id)
    begun, p.called = time.monotonic(), True
    try:
        with p.walk.lease.calling(p.tool.deadline + 2):
            result = p.tool(_call(p, begun), p.redemption.arguments)
    except ToolError as error:
        return _went_wrong(p, error, ms_since(begun))
    except Exception as error:  # whatever a tool's own code raises says nothing about what the outside did
        logger.exception("tool raised", extra={"run": str(p.walk.id), "step": p.entry.step})
        return _went_wrong(p, ToolError(f"The tool’s code failed ({type(error).__name__})."), ms_since(begun))
    points.reached(f"called-{p.tool.name}", p.walk.id)
    return _settle(p, result, found=False, ms=ms_since(begun))


def _went_wrong(p: Performance, error: ToolError, ms: int) -> Any:
    """A call without a result: nothing happened for sure, or it must be found out."""
    with p.walk.hold(settling=True) as run:
        outcome = "error" if error.happened is False else "unknown"
        data = ToolEnded(tool=p.tool.name, outcome=outcome, ms=ms, step=p.entry.step, error=error.kind)
        run.append(data, actor=p.walk.agent, texts={"detail": Text(error.said, p.tool.label)})
        cancelled = run.row.state == State.CANCELLING
    if error.happened is not False:
        return _recover(p)
    verdict = decide(p.tool.retry, attempt=p.entry.attempts, retryable=error.retryable and not cancelled, elapsed=_since(p))
    if isinstance(verdict, Again):
        raise Waits(RunWaiting(on="retry", action=p.redemption.action_id), wake_in=verdict.wait)
    return _give_up(p, error.said)


def _give_up(p: Performance, detail: str) -> Any:
    """It surely did not happen and is not tried again: the grant is spent without effect."""
    with p.walk.hold(settling=True) as run:
        gates.current().failed(run, p.redemption, detail=detail)
        ended = _finish_if_cancelling(run)
    if ended:
        raise Interrupted("cancelled")
    raise Parked("retries_exhausted", step=p.entry.step, detail=f"{p.tool.title}: {detail}")


def _recover(p: Performance, *, may_send: bool = True) -> Any:
    """Find out what became of a call that nobody saw end."""
    looked = _look_up(p)
    if isinstance(looked, Found):
        return _settle(p, looked.result, found=True, ms=0)
    if isinstance(looked, Unsure) and not (p.tool.honours_key and may_send):
        return _ask_a_person(p) if p.entry.attempts >= MAX_LOOKS or not p.tool.lookup else _look_again(p, LOOK_AGAIN)
    safe_at = firm_from(p.tool, p.redemption.redeemed_at)
    if not may_send:
        return _give_up(p, "The run was cancelled before it happened.") if clock.now() >= safe_at else _look_again(p, _until(safe_at))
    if p.tool.honours_key or clock.now() >= safe_at:
        if not may_repeat(p.tool, p.entry.attempts):
            return _ask_a_person(p)
        return _run(p) if not p.called else _later(p)
    return _look_again(p, _until(safe_at))


def _later(p: Performance) -> Any:
    """This worker has just tried: the next attempt is counted, and not at once."""
    verdict = decide(p.tool.retry, attempt=p.entry.attempts, retryable=True, elapsed=_since(p))
    if isinstance(verdict, Again):
        raise Waits(RunWaiting(on="retry", action=p.redemption.action_id), wake_in=verdict.wait)
    return _ask_a_person(p)


def _since(p: Performance) -> float:
    """Seconds since its first attempt began."""
    return (clock.now() - p.entry.started_at).total_seconds()


def firm_from(tool: Tool, redeemed_at: datetime) -> datetime:
    """From when on “the outside does not have it” means that it never will: no worker can still be sending by then."""
    return redeemed_at + timedelta(seconds=tool.deadline + tool.quarantine)


def may_repeat(tool: Tool, attempts: int) -> bool:
    """Whether, at this attempt, what surely did not happen is done again; afterwards only a person goes on."""
    return attempts <= MAX_LOOKS + tool.retry.attempts


def _look_up(p: Performance) -> Found | Absent | Unsure:
    """Ask the outside what became of it, and write down what it said."""
    if p.tool.lookup is None:
        return Unsure("This tool has no look-up.")
    begun = time.monotonic()
    try:
        with p.walk.lease.calling(p.tool.deadline + 2):
            looked, trouble = p.tool.lookup(_call(p, begun), p.redemption.arguments), None
    except ToolError as error:
        looked, trouble = Unsure(error.said), error.kind
    except Exception as error:
        logger.exception("look-up raised", extra={"run": str(p.walk.id), "step": p.entry.step})
        looked, trouble = Unsure(f"The look-up’s code failed ({type(error).__name__})."), "error"
    _tell_look(p, looked, trouble, ms_since(begun))
    points.reached(f"looked-up-{p.tool.name}", p.walk.id)
    return looked


def _tell_look(p: Performance, looked: Found | Absent | Unsure, trouble: Any, ms: int) -> None:
    """Found is ok; absent is ok and not_found; what tells nothing is unknown, with the reason as its text."""
    unsure = isinstance(looked, Unsure)
    ended = ToolEnded(
        tool=f"{p.tool.name}.lookup"[:80],
        outcome="unknown" if unsure else "ok",
        ms=ms,
        call=f"{LOOK_UP}{p.redemption.grant_id}",
        error="not_found" if isinstance(looked, Absent) else trouble,
    )
    texts = {"detail": Text(looked.why, p.tool.label)} if isinstance(looked, Unsure) and looked.why else {}
    with p.walk.hold(settling=True) as run:
        run.append(ended, actor=log.ENGINE, texts=texts)


def _look_again(p: Performance, wait: float) -> Any:
    raise Waits(RunWaiting(on="outcome", action=p.redemption.action_id, until=clock.now() + timedelta(seconds=wait)), wake_in=wait)


def _ask_a_person(p: Performance) -> Any:
    with p.walk.hold(settling=True) as run:
        gates.current().unknown(run, p.redemption, reason=_how_lost(run, p))
    raise Waits(RunWaiting(on="outcome", action=p.redemption.action_id))


def _how_lost(run: Held, p: Performance) -> str:
    """How the last call's answer was lost, as the log has it: a call that nobody saw end had its worker lost."""
    told = Event.objects.filter(run_month=run.row.month, run_id=run.row.pk, type__in=("tool.started", "tool.ended"))
    calls = (orjson.loads(body)["data"] for body in told.order_by("-seq").values_list("body", flat=True))
    last = next((data for data in calls if data.get("step") == p.entry.step), {})
    if last.get("outcome") != "unknown":
        return "worker_lost"
    return "deadline" if last.get("error") == "timeout" else "dropped"


def _settle(p: Performance, result: Any, *, found: bool, ms: int) -> Any:
    """Receipt, events and journal in one transaction: from here on it is never done again."""
    outcome = {"happened": True, "result": result}
    with p.walk.hold(settling=True) as run:
        if not found:
            texts = {"result": Text(orjson.dumps(result), p.tool.label, "application/json")}
            run.append(ToolEnded(tool=p.tool.name, outcome="ok", ms=ms, step=p.entry.step), actor=p.walk.agent, texts=texts)
        gates.current().executed(run, p.redemption, result=result, label=p.tool.label, found=found)
        subject = p.tool.done or p.tool.subject
        seq = ledger.tell(
            run,
            tool=p.tool.name,
            key=p.redemption.known_as,
            can_undo=p.tool.can_undo and p.redemption.key is None,  # else it is for the run that did it first to undo
            action=p.redemption.action_id,
            step=p.entry.step,
            texts={"subject": Text(subject(p.redemption.arguments) if subject else p.tool.title, p.tool.label)},
        )
        p.walk.journal.end(run, p.entry, outcome, label=p.tool.label, seq=seq)
        p.walk.count(run, ms)
        p.walk.completed(run, p.entry.step, p.plan_step, ms)
        ended = _finish_if_cancelling(run)
    if ended:
        raise Interrupted("cancelled")
    return outcome


def _spent(walk: Walk, entry: JournalEntry, spent: Spent, plan_step: int | None) -> Any:
    """A person said what happened while no worker was there."""
    outcome = {"happened": spent.outcome == "executed", "result": spent.result if spent.outcome == "executed" else None}
    with walk.hold() as run:
        walk.journal.end(run, entry, outcome, label="personal", seq=spent.seq)
        if outcome["happened"]:
            walk.completed(run, entry.step, plan_step, 0)
    return outcome


def _finish_if_cancelling(run: Held) -> bool:
    return run.row.state == State.CANCELLING and signals.finish_cancelling(run)


def _call(p: Performance, begun: float) -> Call:
    def last_check() -> None:
        if time.monotonic() - begun > p.tool.deadline:
            raise Fenced("The call is past its deadline.")
        may_go_on = (p.walk.lease.works, State.PAUSED, State.QUEUED)  # what is under way when a run is paused finishes, resumed or not
        if not p.walk.lease.is_mine() or not Run.objects.filter(pk=p.walk.id, state__in=may_go_on).exists():
            raise Fenced

    return Call(p.walk.id, p.entry.step, p.redemption.known_as, p.tool.deadline, last_check, p.redemption.attachments)


def _until(at: Any) -> float:
    return max((at - clock.now()).total_seconds(), 0.1)


def ms_since(begun: float) -> int:
    """Milliseconds since a moment of `time.monotonic()`."""
    return int((time.monotonic() - begun) * 1000)
