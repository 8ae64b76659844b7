"""Signals: somebody asks a run to change course. The only writer of signals.

Each carries an idempotency key, is checked against the run's state under its lock, recorded, and says what became of it.
"""

from typing import Any, Literal
from uuid import UUID

from access import audit
from access.errors import BadInput
from access.rules import Actor
from artifacts import vault
from artifacts.models import Payload
from config import clock
from runs import lifecycle, log
from runs.engine import gates, lease
from runs.errors import SignalReused
from runs.lifecycle import State
from runs.log import ENGINE, Held
from runs.models import Run, Signal
from runs.vocabulary import RunCancelled, RunCancelling, RunCancelRequested, SignalApplied, SignalReceived, SignalRefused

KINDS = ("cancel", "pause", "resume", "revise", "context")
NOW = ("cancel",)  # the others are understood and answered, but not yet carried out
MAX_NOTE = 4000


class UnknownSignal(BadInput):
    """There is no such signal."""


def send(run: Run, *, kind: str, key: str, by: Actor, note: str = "") -> Signal:
    """Give a run a signal. The same key again gives the first one. What became of it stands in `status` and `reason`."""
    if kind not in KINDS:
        raise UnknownSignal(f"Signals are {', '.join(KINDS)}.")
    if not key or len(key) > 200:
        raise BadInput("A signal needs an idempotency key of at most 200 characters.")
    if len(note) > MAX_NOTE:
        raise BadInput(f"The note has {len(note)} characters; at most {MAX_NOTE} are kept.")
    with log.holding(run.pk) as held:
        first = Signal.objects.filter(run_id=run.pk, actor_id=by.id, key=key).first()
        if first is not None:
            return _same(first, kind)
        signal = _receive(held, kind, key, by, note)
        if held.row.ended_at is not None:
            _settle(signal, "refused", "had_already_ended")
        elif kind not in NOW:
            _refuse(held, signal, "not_yet")
        else:
            _cancel(held, signal, by)
        audit.record(by, "signal_sent", workspace_id=held.row.workspace_id, subject=("run", run.pk), kind=kind, status=signal.status)
    return signal


def ending_of(run_id: UUID) -> dict[str, Any] | None:
    """How the run ended: its state, the event that says so, and since when. None while it goes on."""
    row = Run.objects.filter(pk=run_id).values_list("state", "seq", "ended_at").first()
    return {"state": row[0], "seq": row[1], "at": row[2]} if row and lifecycle.ended(row[0]) else None


def finish_cancelling(held: Held) -> bool:
    """End a run that is being cancelled, once nothing is in flight any more. In the caller's transaction."""
    if gates.current().in_flight(held.row.pk):
        return False
    signal = Signal.objects.filter(run_id=held.row.pk, kind="cancel", status="delivered").order_by("created_at").first()
    _end(held, signal, withdrawn=0)
    return True


def _receive(held: Held, kind: str, key: str, by: Actor, note: str) -> Signal:
    kept: Payload | None = vault.keep(held.row.workspace_id, note, label="internal") if note else None
    signal = Signal.objects.create(run_id=held.row.pk, kind=kind, key=key, actor_kind=by.kind, actor_id=by.id, note=kept)
    if held.row.ended_at is None:
        held.append(SignalReceived(signal=signal.pk, kind=kind), actor=by, texts={"note": kept} if kept else {})
    return signal


def _same(first: Signal, kind: str) -> Signal:
    if first.kind != kind:
        raise SignalReused(f"It was used for {first.kind}.", signal=str(first.pk))
    return first


def _cancel(held: Held, signal: Signal, by: Actor) -> None:
    """Stop for good. What was not redeemed is withdrawn and the worker fenced out; what is in flight must have an outcome first."""
    if held.row.state == State.CANCELLING:
        _settle(signal, "delivered", "already_cancelling")
        return
    texts = {"reason": signal.note} if signal.note else {}
    held.append(RunCancelRequested(signal=signal.pk), actor=by, texts=texts)
    withdrawn = gates.current().withdraw_open(held, reason="cancelled")
    in_flight = gates.current().in_flight(held.row.pk)
    if in_flight:
        held.move(State.CANCELLING, RunCancelling(in_flight=len(in_flight)))
        _settle(signal, "delivered", "in_flight")
        return
    lease.fence_out(held.row.pk)
    _end(held, signal, withdrawn=withdrawn)


def _end(held: Held, signal: Signal, *, withdrawn: int) -> None:
    Signal.objects.filter(run_id=held.row.pk, kind="cancel", status="delivered").exclude(pk=signal.pk).update(
        status="applied", settled_at=clock.now()
    )
    held.append(SignalApplied(signal=signal.pk, kind="cancel"), actor=ENGINE)
    _settle(signal, "applied", "")
    done = gates.current().effects_done(held.row.pk)
    held.move(State.CANCELLED, RunCancelled(signal=signal.pk, done=done, withdrawn=withdrawn))


def _refuse(held: Held, signal: Signal, reason: Literal["not_yet", "not_in_this_state", "invalid"]) -> None:
    held.append(SignalRefused(signal=signal.pk, kind=signal.kind, reason=reason), actor=ENGINE)
    _settle(signal, "refused", reason)


def _settle(signal: Signal, status: str, reason: str) -> None:
    signal.status, signal.reason, signal.settled_at = status, reason, clock.now()
    signal.save(update_fields=["status", "reason", "settled_at"])


__all__ = ["KINDS", "UnknownSignal", "ending_of", "finish_cancelling", "send"]
