"""Undoing one thing that a run did outside, because a person asked for it after the run had ended.

The ended run's log is closed. So the undoing is a run of its own, a child of the one that did it, with one exact action in it that goes
through the gate like any other: policies, freezes and budgets hold for it, and who asked for it never decides on it.
"""

from dataclasses import dataclass
from typing import ClassVar

from access.errors import BadInput, Forbidden, Refusal
from access.rules import Actor
from runs import lifecycle, log, starting
from runs.engine import compensation, ledger
from runs.engine.channel import Channel
from runs.engine.ledger import UNDO, Effect
from runs.engine.outcomes import Parked
from runs.engine.proposals import APPROVAL
from runs.engine.tools import TOOLS, Tool
from runs.engine.workflow import workflow
from runs.models import Run

MAX_REASON = 2000


class CannotBeUndone(Refusal):
    """This can’t be undone."""

    what_next: ClassVar[str] = "Nothing was changed. The run’s page says of each effect whether it can be."


class GoesOn(Refusal):
    """The run goes on."""

    what_next: ClassVar[str] = "Nothing was changed. Cancel it, and all that can be undone is; or wait until it has ended."


class AlreadyUndone(Refusal):
    """This was undone before."""

    what_next: ClassVar[str] = "Nothing was changed."


class ReasonWanted(BadInput):
    """An undoing needs a reason."""

    what_next: ClassVar[str] = "Nothing was changed. Say why in a few words; whoever decides on it reads them."


class PeopleUndo(Forbidden):
    """Only people ask for what was done to be undone."""


@dataclass(frozen=True)
class Undoing:
    """What became of asking for it: the run that undoes it, the newest if there were several."""

    run: Run
    undone: bool

    @property
    def open(self) -> bool:
        return not lifecycle.ended(self.run.state)


@workflow(UNDO, version=1, title="Undo one effect")
def undo_effect(run: Channel, seq: int, why: str) -> None:
    """Started by `undo` alone. What it looks up stands in its parent's log, which is closed, so a replay finds the same."""
    did = Run.objects.select_related("parent").get(pk=run.id).parent
    if did is None or did.ended_at is None:
        raise Parked("error", step=None, detail="It undoes what a run did that has ended, and there is none that it belongs to.")
    effect = _effect(did, seq)
    tool, arguments = compensation.how(did, effect)
    run.plan(APPROVAL, tool.title)
    answer = run.propose(tool, reason=f"Undoes what {did.ref} did at #{seq}: {why}", **arguments)
    if not answer.approved:
        why = getattr(answer, "reason", "")
        run.report("Not undone", body=f"{type(answer).__name__}{f': {why}' if why else '.'}", cites=[answer])
        return
    run.perform(answer)
    run.report("Undone", cites=[answer])


def undo(run: Run, seq: int, *, by: Actor, reason: str) -> Run:
    """The run that undoes the effect which event `seq` of `run` tells of. Asked for twice, it is one, as long as that goes on.

    CannotBeUndone, GoesOn, AlreadyUndone, ReasonWanted or PeopleUndo if not.
    """
    if by.kind != "human":
        raise PeopleUndo
    if not reason.strip() or len(reason) > MAX_REASON:
        raise ReasonWanted(f"It has 1 to {MAX_REASON} characters.")
    with log.holding(run.pk) as held:
        if why := why_not(held.row, effect := _effect(held.row, seq)):
            raise why
        before = of(held.row).get(seq)
        if before is not None and before.open:
            return before.run
        number = ledger.undoings(run).filter(parent_step__startswith=f"{_step(seq)}#").count() + 1
        return starting.start_child(
            held.row,
            step=f"{_step(seq)}#{number}",
            title=f"{TOOLS[TOOLS[effect.tool].compensate or ''].title}: undoes {held.row.ref} #{seq}",
            workflow=UNDO,
            arguments={"seq": seq, "why": reason.strip()},
            scope=held.row.scope,
            budgets=starting.DEFAULT_BUDGETS,
            by=by,
            note=reason.strip(),
        )


def why_not(run: Run, effect: Effect) -> Refusal | None:
    """Why an effect can't be undone by itself now; None if it can."""
    if not run.workflow or not effect.can_undo or _undoes(effect) is None:
        return CannotBeUndone("Its tool has no undo, or that is not loaded here.")
    if effect.undone:
        return AlreadyUndone()
    if not lifecycle.ended(run.state):
        return GoesOn(f"{run.ref} has not ended.")
    if run.parent_id is not None and (parent := Run.objects.get(pk=run.parent_id)).ended_at is None:
        return GoesOn(f"It is a part of {parent.ref}, which has not ended.")
    return None


def of(run: Run) -> dict[int, Undoing]:
    """The undoings that people asked for, by the event of the effect. No query for a run that has not ended."""
    if run.ended_at is None:
        return {}
    found, undone = ledger.undoings(run).order_by("created_at"), ledger.undone_after(run)
    return {seq: Undoing(each, seq in undone) for each in found for seq in [ledger.undoes(each.parent_step)]}


def look(run: Run, seq: int) -> tuple[Effect, Tool]:
    """An effect that can be undone by itself now, and the tool that does it. Raises what `why_not` gives."""
    effect = _effect(run, seq)
    if why := why_not(run, effect):
        raise why
    return effect, TOOLS[TOOLS[effect.tool].compensate or ""]


def _effect(run: Run, seq: int) -> Effect:
    found = next((effect for effect in ledger.effects(run) if effect.seq == seq), None)
    if found is None:
        raise CannotBeUndone(f"#{seq:,} of {run.ref} tells of nothing that was done outside.")
    return found


def _undoes(effect: Effect) -> Tool | None:
    done = TOOLS.get(effect.tool)
    return TOOLS.get(done.compensate) if done is not None and done.compensate else None


def _step(seq: int) -> str:
    return f"{UNDO}-{seq}"
