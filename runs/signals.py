"""Signals: somebody asks a run to change course. The only writer of signals.

Each carries an idempotency key, is checked against the run's state under its lock, recorded, and says what became of it.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, get_args
from uuid import UUID

from access import audit, characters
from access.errors import BadInput, Forbidden
from access.rows import only
from access.rules import Actor
from artifacts import vault
from artifacts.models import Payload
from config import clock
from runs import lifecycle, log, steps
from runs.engine import gates, lease, ledger
from runs.errors import SignalReused
from runs.lifecycle import State
from runs.log import ENGINE, Held
from runs.models import Run, Signal
from runs.vocabulary import (
    RunCancelled,
    RunCancelling,
    RunCancelRequested,
    RunCompensating,
    RunPaused,
    RunQueued,
    SignalApplied,
    SignalKind,
    SignalReceived,
    SignalRefused,
)

KINDS = get_args(SignalKind)
FROM_AGENTS = ("cancel", "pause")  # a key stops its own run; that it goes on, and what it should know, is for people to say
FROM_PARENT = "parent-"  # how the key of a signal begins that a child has from its parent
WITH_A_NOTE = ("revise", "context")  # what they ask for stands in the note
MAX_NOTE = 4000
ERASED = "(What was written here was erased.)"  # what a workflow reads of it
MAX_UNREAD = 20  # notes that a run has not read yet
Refusing = Literal["not_in_this_state", "invalid", "not_supported", "too_many", "never_read"]


class UnknownSignal(BadInput):
    """There is no such signal."""


class PeopleSteer(Forbidden):
    """Only people have a run go on, change its plan or tell it something."""

    what_next: ClassVar[str] = "Nothing was changed. A key may cancel or pause the runs of its agent."


def send(run: Run, *, kind: str, key: str, by: Actor, note: str = "") -> Signal:
    """Give a run a signal. The same key again gives the first one. What became of it stands in `status` and `reason`."""
    if kind not in KINDS:
        raise UnknownSignal(f"Signals are {', '.join(KINDS)}.")
    if by.kind == "agent" and kind not in FROM_AGENTS:
        raise PeopleSteer
    if not key or len(key) > 200:
        raise BadInput("A signal needs an idempotency key of at most 200 characters.")
    if len(note) > MAX_NOTE:
        raise BadInput(f"The note has {len(note)} characters; at most {MAX_NOTE} are kept.")
    if kind in WITH_A_NOTE and not characters.seen_length(note):
        raise BadInput(f"The signal “{kind}” says what the agent should know. Write that into its note.")
    with log.holding(run.pk) as held:
        first = only(Signal.objects.filter(run_id=run.pk, actor_id=by.id, key=key))
        if first is not None:
            return _same(first, kind, note)
        signal = _receive(held, kind, key, by, note)
        if held.row.ended_at is not None:
            _settle(signal, "refused", "had_already_ended")
        else:
            CARRY_OUT[kind](held, signal, by)
        audit.record(by, "signal_sent", workspace_id=held.row.workspace_id, subject=("run", run.pk), kind=kind, status=signal.status)
    if signal.status != "refused" and kind not in WITH_A_NOTE:
        _to_children(run, signal, by)
    return signal


def cancel_children(run: Run, *, by: Actor) -> None:
    """Cancel what a run had started that goes on no more, once each."""
    cancel = Signal.objects.filter(run=run, kind="cancel").exclude(status="refused").order_by("created_at").first()
    if cancel is not None:
        by = Actor(cancel.actor_kind, cancel.actor_id)
    for child in Run.objects.filter(parent=run, ended_at=None):
        send(child, kind="cancel", key=f"{FROM_PARENT}{cancel.pk if cancel else run.pk}", by=by)


def _to_children(run: Run, signal: Signal, by: Actor) -> None:
    """What a run had started is cancelled, held and let go with it; what a person paused for itself stays paused."""
    if signal.kind == "cancel":
        cancel_children(run, by=by)
        return
    for child in Run.objects.filter(parent=run, ended_at=None):
        paused = child.state == State.PAUSED
        if paused != (signal.kind == "pause") and (not paused or _paused_with_parent(child)):
            send(child, kind=signal.kind, key=f"{FROM_PARENT}{signal.pk}", by=by)


def _paused_with_parent(child: Run) -> bool:
    last = Signal.objects.filter(run=child, kind="pause", status="applied").order_by("-created_at", "-pk").first()
    return last is not None and last.key.startswith(FROM_PARENT)


def ending_of(run_id: UUID) -> dict[str, Any] | None:
    """How the run ended: its state, the event that says so, and since when. None while it goes on."""
    row = only(Run.objects.filter(pk=run_id).values_list("state", "seq", "ended_at"))
    return {"state": row[0], "seq": row[1], "at": row[2]} if row and lifecycle.ended(row[0]) else None


def finish_cancelling(held: Held) -> bool:
    """Go on with a run that is being cancelled, once nothing is in flight any more: undo, or end. In the caller's transaction."""
    if gates.current().in_flight(held.row.pk):
        return False
    if not _undo(held):
        end_cancelled(held)
    return True


def is_cancelled(run_id: UUID) -> bool:
    """Whether somebody cancelled it, though it has not ended yet."""
    return Signal.objects.filter(run_id=run_id, kind="cancel", status="delivered").exists()


def keep_cancelling(held: Held) -> bool:
    """A cancelled run that got stuck never does what it did before: it is settled, undone and ended. False if nobody cancelled it.

    In the caller's transaction.
    """
    if not is_cancelled(held.row.pk):
        return False
    if in_flight := gates.current().in_flight(held.row.pk):
        held.move(State.CANCELLING, RunCancelling(in_flight=len(in_flight)))
    else:
        finish_cancelling(held)
    return True


def end_cancelled(held: Held) -> bool:
    """End a run that was cancelled, and say so to everybody who asked for it. False if nobody did. In the caller's transaction."""
    signal = Signal.objects.filter(run_id=held.row.pk, kind="cancel", status="delivered").order_by("created_at").first()
    if signal is not None:
        _end(held, signal)
    return signal is not None


def take(held: Held, kind: str) -> list[str]:
    """The notes of this kind that the run has not read, oldest first; from now on it has. In the caller's transaction."""
    unread = Signal.objects.filter(run_id=held.row.pk, kind=kind, status="accepted")
    taken = list(unread.select_related("note__key").order_by("created_at", "pk"))
    for signal in taken:
        _apply(held, signal)
    opened = [vault.opened(signal.note) for signal in taken if signal.note]
    return [ERASED if note is None else note.decode() for note in opened]  # that somebody asked for something stands all the same


def read_outside(run: Run, *, token: int | None) -> list[Signal]:
    """All notes of a run for the agent outside that works on it, oldest first, each with `note`; from now on it has read them.

    Those that it read before come along, so that an answer that was lost loses none.
    """
    with log.holding(run.pk) as held:
        steps.fence(held, token)
        steps.heard(held)
        told = Signal.objects.filter(run_id=run.pk, kind__in=WITH_A_NOTE, status__in=("accepted", "applied"))
        found = list(told.select_related("note__key").order_by("created_at", "pk"))
        for signal in found:
            if signal.status == "accepted" and held.row.ended_at is None:
                _apply(held, signal)
    return found


def all_unread(run_id: UUID) -> int:
    """How many notes of either kind the agent or workflow of a run has not read."""
    return Signal.objects.filter(run_id=run_id, kind__in=WITH_A_NOTE, status="accepted").count()


def unread(held: Held, kind: str) -> bool:
    """Whether there are notes of this kind that the run has not read."""
    return Signal.objects.filter(run_id=held.row.pk, kind=kind, status="accepted").exists()


def _receive(held: Held, kind: str, key: str, by: Actor, note: str) -> Signal:
    kept: Payload | None = vault.keep(held.row.workspace_id, note, label="internal") if note else None
    signal = Signal.objects.create(run_id=held.row.pk, kind=kind, key=key, actor_kind=by.kind, actor_id=by.id, note=kept)
    if held.row.ended_at is None:
        held.append(SignalReceived(signal=signal.pk, kind=kind), actor=by, texts={"note": kept} if kept else {})
    return signal


def _same(first: Signal, kind: str, note: str) -> Signal:
    if first.kind != kind:
        raise SignalReused(f"It was used for {first.kind}.", signal=str(first.pk))
    kept = vault.opened(first.note) if first.note else b""
    if kind in WITH_A_NOTE and kept is not None and kept != note.encode():  # what was erased can't be compared
        raise SignalReused(f"It was used for {first.kind} with another note.", signal=str(first.pk))
    return first


def _pause(held: Held, signal: Signal, by: Actor) -> None:
    """Hold it at once: nothing new begins. What is under way outside finishes, and its result is kept. An approval's clock goes on."""
    if held.row.state == State.PAUSED:
        _apply(held, signal)
    elif held.row.state in (State.QUEUED, State.RUNNING, State.WAITING):
        held.move(State.PAUSED, RunPaused(signal=signal.pk), actor=by)
        _apply(held, signal)
    else:
        _refuse(held, signal, "not_in_this_state")


def _resume(held: Held, signal: Signal, by: Actor) -> None:
    """Let a paused run go on from its last completed step."""
    if held.row.state != State.PAUSED:
        _refuse(held, signal, "not_in_this_state")
        return
    _apply(held, signal)
    held.move(State.QUEUED, RunQueued(reason="signal"))
    if not held.row.workflow:  # no worker takes it up: its agent goes on, or waits for what people have to decide still
        steps.resumed(held)
        gates.current().tell_agent_outside(held)
        steps.waits_for_budget(held)


def _add_context(held: Held, signal: Signal, by: Actor) -> None:
    """Something the agent should know. It stays accepted until the workflow asks for it."""
    if why := _can_not_read(held, "context"):
        _refuse(held, signal, why)
    elif held.row.state == State.WAITING and held.row.waits_on("signal"):
        held.move(State.QUEUED, RunQueued(reason="signal"))


def _revise(held: Held, signal: Signal, by: Actor) -> None:
    """The plan must change. What waits for approval is withdrawn, if the workflow plans anew then; else it reads the note when it can."""
    if why := _can_not_read(held, "revise"):
        _refuse(held, signal, why)
        return
    if not held.row.workflow:
        gates.current().withdraw_waiting(held, by=by, note=signal.note)
        gates.current().tell_agent_outside(held)
    elif held.row.state == State.WAITING and held.row.waiting.get("revisable"):
        gates.current().withdraw_waiting(held, by=by, note=signal.note)
        held.move(State.QUEUED, RunQueued(reason="signal"))


def _can_not_read(held: Held, kind: str) -> Refusing | None:
    """Why the run will not read such a note; None if it will."""
    from runs.engine import workflow  # whose channel takes the notes from here

    if held.row.state in (State.PARKED, State.STALLED, *lifecycle.UNDOING):
        return "not_in_this_state"
    if held.row.workflow and kind not in workflow.reads(held.row.workflow, held.row.workflow_version):
        return "not_supported"
    return "too_many" if all_unread(held.row.pk) > MAX_UNREAD else None


def refuse_unread(held: Held) -> None:
    """The run ends: say of each note that it was never read. In the caller's transaction, before the ending."""
    for signal in Signal.objects.filter(run_id=held.row.pk, kind__in=WITH_A_NOTE, status="accepted").order_by("created_at"):
        _refuse(held, signal, "never_read")


def _cancel(held: Held, signal: Signal, by: Actor) -> None:
    """Stop for good: nothing new is sent. What is in flight must have an outcome first, and what can be undone is undone."""
    again = Signal.objects.filter(run_id=held.row.pk, kind="cancel", status="delivered").exists()
    if again and held.row.state in lifecycle.UNDOING:
        _settle(signal, "delivered", "already_cancelling")
        return
    texts = {"reason": signal.note} if signal.note else {}
    held.append(RunCancelRequested(signal=signal.pk), actor=by, texts=texts)
    if held.row.state == State.COMPENSATING:
        _settle(signal, "delivered", "undoing")
        return
    gates.current().withdraw_open(held, reason="cancelled")
    in_flight = gates.current().in_flight(held.row.pk)
    if in_flight:
        held.move(State.CANCELLING, RunCancelling(in_flight=len(in_flight)))
        _settle(signal, "delivered", "in_flight")
        return
    lease.fence_out(held.row.pk)
    if _undo(held):
        _settle(signal, "delivered", "undoing")
    else:
        _end(held, signal)


def _undo(held: Held) -> bool:
    """Have what was done outside undone. False if nothing of it can be."""
    can_undo = sum(effect.can_undo and not effect.undone for effect in ledger.family_effects(held)) if held.row.workflow else 0
    if can_undo:
        held.move(State.COMPENSATING, RunCompensating(effects=can_undo))
    return can_undo > 0


def _end(held: Held, signal: Signal) -> None:
    Signal.objects.filter(run_id=held.row.pk, kind="cancel", status="delivered").exclude(pk=signal.pk).update(
        status="applied", settled_at=clock.now()
    )
    _apply(held, signal)
    effects = ledger.family_effects(held)
    undone = sum(effect.undone for effect in effects)
    withdrawn = gates.current().withdrawn(held.row.pk)
    held.move(State.CANCELLED, RunCancelled(signal=signal.pk, done=len(effects) - undone, undone=undone, withdrawn=withdrawn))


def _apply(held: Held, signal: Signal) -> None:
    held.append(SignalApplied(signal=signal.pk, kind=signal.kind), actor=ENGINE)
    _settle(signal, "applied", "")


def _refuse(held: Held, signal: Signal, reason: Refusing) -> None:
    held.append(SignalRefused(signal=signal.pk, kind=signal.kind, reason=reason), actor=ENGINE)
    _settle(signal, "refused", reason)


def _settle(signal: Signal, status: str, reason: str) -> None:
    signal.status, signal.reason, signal.settled_at = status, reason, clock.now()
    signal.save(update_fields=["status", "reason", "settled_at"])


CARRY_OUT: Mapping[str, Callable[[Held, Signal, Actor], None]] = {
    "cancel": _cancel,
    "pause": _pause,
    "resume": _resume,
    "context": _add_context,
    "revise": _revise,
}
__all__ = ["KINDS", "UnknownSignal", "end_cancelled", "ending_of", "finish_cancelling", "refuse_unread", "send", "take"]
