"""Undoing what a run did outside: the last effect first, each by the tool that its own tool names for it.

An undo is an exact action like any other: policies and freezes hold for it, it has a grant, a receipt and retries of its own, and it is
journaled, so that a worker that is killed in the middle undoes nothing twice. It runs while the run is `compensating`, and only then.
"""

from functools import partial
from typing import Any, Literal

from runs import log, signals
from runs.engine import gates, ledger
from runs.engine.channel import Channel
from runs.engine.gates import Approved
from runs.engine.journal import Journal, result_of
from runs.engine.lease import Claim
from runs.engine.ledger import Effect
from runs.engine.outcomes import Parked
from runs.engine.tools import TOOLS, Tool
from runs.engine.walk import hold
from runs.lifecycle import State
from runs.log import Held
from runs.models import Event, JournalEntry, Run
from runs.vocabulary import CheckpointSaved, EffectUndoFailed, RunFailed


def undoable(run: Run | Held) -> list[Effect]:
    """What of a run can be undone and is not, in the order in which it is undone; with what its child runs did that succeeded."""
    return [effect for effect in ledger.family_effects(run) if effect.can_undo and not effect.undone]


def undo(run: Run, held: Claim) -> None:
    """Undo all that can be. Waits and Parked as in a workflow: an undo may need a person, a retry or an operator."""
    since, journal, left = _begun(run), Journal(run.pk, held.token), undoable(run)
    for number, effect in enumerate(left):
        _undo(run, held, journal.on(effect.branch), effect, since)
        with hold(held) as locked:
            _checkpoint(locked, effect, len(left) - number - 1)


def finish(held: Claim) -> str:
    """Nothing is left to undo: the run ends, as cancelled if somebody cancelled it, else as given up."""
    with log.holding(held.run_id, token=held.token) as run:
        if run.row.state != State.COMPENSATING:
            return "interrupted"
        if not signals.end_cancelled(run):
            run.move(State.FAILED, RunFailed(reason="given_up"))
    return "compensated"


def _begun(run: Run) -> int:
    """The event with which this undoing began: what people refused before it is asked anew, for somebody chose to try again."""
    begun = Event.objects.filter(run_month=run.month, run_id=run.pk, type="run.compensating").order_by("-seq")
    return begun.values_list("seq", flat=True).first() or 0


def _undo(run: Run, held: Claim, journal: Journal, effect: Effect, since: int) -> None:
    channel = Channel(run, held, journal)
    try:
        tool, arguments = how(run, effect)
        reason = f"Undoes {TOOLS[effect.tool].title.lower()}."
        while True:
            answer = channel.propose(tool, reason=reason, **arguments)
            if isinstance(answer, Approved):
                if channel.perform_once(answer)["happened"]:
                    return
            elif answer.seq > since:
                raise Parked("refused", step=None, detail=f"{tool.title}: {type(answer).__name__.lower()}.")
    except Parked as trouble:
        why: Literal["refused", "error"] = "refused" if trouble.reason == "refused" else "error"
        raise Parked("undo_failed", step=trouble.step, detail=trouble.detail, tell=partial(_tell_failed, effect, why)) from None


def _tell_failed(effect: Effect, why: Literal["refused", "error"], run: Held) -> None:
    run.append(EffectUndoFailed(key=effect.key, reason=why), actor=log.ENGINE)
    _checkpoint(run, effect, len(undoable(run)))


def _checkpoint(run: Held, effect: Effect, left: int) -> None:
    """How much is left to undo, said anew with each: the run goes on from there if it gets stuck."""
    run.append(CheckpointSaved(after=f"{effect.branch}perform#1", left=left), actor=log.ENGINE)


def how(run: Run, effect: Effect) -> tuple[Tool, dict[str, Any]]:
    """The tool that undoes it, and its arguments: made of what was done and of what that gave."""
    done = TOOLS.get(effect.tool)
    tool = TOOLS.get(done.compensate) if done is not None and done.compensate else None
    if done is None or tool is None or effect.action is None:
        raise Parked("undo_failed", step=None, detail=f"The tool that undoes {effect.tool} is not loaded here.")
    did = JournalEntry.objects.select_related("result__key").filter(run_id=effect.run or run.pk, kind="perform", action_id=effect.action)
    entry = did.last()
    gave = (result_of(entry) or {}).get("result") if entry else None
    if gave is None:
        raise Parked("undo_failed", step=None, detail="A person said that it happened, so what would undo it is not known.")
    return tool, done.undo(gates.current().proposed(effect.action).arguments, gave) if done.undo else dict(gave)
