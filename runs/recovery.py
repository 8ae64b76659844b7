"""Stuck runs: what a person may choose, and what that does. Each choice is about one parking of the run and is made once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args
from uuid import UUID

import orjson

from access import audit, rules
from access.errors import BadInput, Refusal
from access.models import User
from access.rules import Actor
from runs import log, signals
from runs.engine import compensation, gates, journal, lease, resuming
from runs.engine.ledger import Effect
from runs.lifecycle import State
from runs.log import Held, Text
from runs.models import Event, Run
from runs.vocabulary import DeadLetterResolved, RunCompensating, RunFailed, RunQueued

Choice = Literal["retry", "compensate", "hand_over", "give_up"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
MAX_NOTE = 2000
MOST_AT_ONCE = 100


class AlreadyChosen(Refusal):
    """Somebody has already chosen how this run goes on."""

    what_next: ClassVar[str] = "Nothing was changed. Look at the run: it may have gone on, ended, or be stuck at another place."


class NotPossible(Refusal):
    """This can't be chosen for this run."""

    what_next: ClassVar[str] = "Nothing was changed. Take one of the choices that are named here."


@dataclass(frozen=True)
class Parking:
    """Where and why a run is stuck. `seq` is the event that says so: a choice names it."""

    seq: int
    reason: str
    step: str
    at: str


def parking(run: Run) -> Parking | None:
    """How the run is stuck now; None if it is not."""
    if run.state != State.PARKED:
        return None
    parked = Event.objects.filter(run_month=run.month, run_id=run.pk, type="run.parked")
    last = parked.order_by("-seq").values_list("seq", "body").first()
    return parked_at(last[0], orjson.loads(last[1])) if last else None


def parked_at(seq: int, body: Mapping[str, Any]) -> Parking:
    """The parking that an event tells of; `body` is parsed."""
    return Parking(seq, body["data"]["reason"], body["data"].get("step", ""), body["at"])


@dataclass(frozen=True)
class Standing:
    """A stuck run as it stands: where, what of it can be undone, how much has no known outcome, and what can be chosen."""

    where: Parking
    undoable: list[Effect]
    in_flight: int
    choices: tuple[Choice, ...]


def standing(held: Run | Held) -> Standing | None:
    """How a stuck run stands; None if it is not stuck. Of a held run also by what this transaction has told."""
    run = held.row if isinstance(held, Held) else held
    where = parking(run)
    if where is None:
        return None
    undoable, in_flight = compensation.undoable(held), len(gates.current().in_flight(run.pk))
    return Standing(where, undoable, in_flight, possible(run, where, len(undoable), in_flight))


def possible(run: Run, where: Parking, undoable: int, in_flight: int) -> tuple[Choice, ...]:
    """What can be chosen, in this order. `undoable`: how many effects can be undone; `in_flight`: how many have no known outcome."""
    again = bool(run.workflow) and not (where.reason == "refused" and not where.step)  # what people rejected is not asked for again
    undo = bool(run.workflow) and undoable > 0 and not in_flight and where.reason != "undo_failed"  # there, trying again is undoing
    may = {"retry": again, "compensate": undo, "hand_over": True, "give_up": not in_flight}
    return tuple(choice for choice in CHOICES if may[choice])


def is_stuck_at(run: Run, at: int) -> bool:
    """Whether it is stuck still, and where whoever chooses saw it."""
    where = parking(run)
    return where is not None and where.seq == at


def choose(run: Run, choice: Choice, *, at: int, by: Actor, note: str = "", to: User | None = None, step: str = "") -> Held:
    """Have a stuck run go on as chosen. `at`: the event at which it got stuck. `to`: of `hand_over`, to whom.

    `step`: of `retry`, an earlier step that is done anew with all that came after it; without one, the step at which it got stuck.

    AlreadyChosen if it is not stuck there any more, NotPossible if this can't be done with it.
    """
    if choice not in CHOICES:
        raise BadInput(f"Choose one of {', '.join(CHOICES)}.")
    if len(note) > MAX_NOTE:
        raise BadInput(f"The note has {len(note)} characters; at most {MAX_NOTE} are kept.")
    with log.holding(run.pk) as held:
        now = standing(held)
        if now is None or now.where.seq != at:
            parked = now.where.seq if now else None
            raise AlreadyChosen(f"The run is {held.row.state}.", state=held.row.state, seq=held.row.seq, parked=parked)
        if choice not in now.choices:
            raise NotPossible(f"Possible are: {', '.join(now.choices)}.", choices=list(now.choices))
        _check_to(held.row, choice, to)
        earlier = _from(held.row, choice, now, step)
        told = DeadLetterResolved(letter=held.row.pk, choice=choice, to=to.pk if to else None, step=earlier)
        held.append(told, actor=by, texts={"note": Text(note.strip())} if note.strip() else {}, caused_by=at)
        held.change(handed_to=None)
        CARRY_OUT[choice](held, now.where, now.undoable, to)
        more: dict[str, Any] = {"to": str(to.pk)} if to else {}
        audit.record(by, "recovered", workspace_id=held.row.workspace_id, subject=("run", held.row.pk), choice=choice, seq=at, **more)
    if choice in ("compensate", "give_up"):
        signals.cancel_children(run, by=by)  # it waits for them no more
    return held


def requeue(wanted: Mapping[UUID, int], *, by: Actor) -> tuple[int, int]:
    """Retry many: run → the event at which it got stuck. Gives how many go on, and how many do not because something changed."""
    done = 0
    runs = rules.visible(by, Run, "runs.recover").filter(pk__in=list(wanted)[:MOST_AT_ONCE])
    for run in runs.order_by("state_since"):
        try:
            choose(run, "retry", at=wanted[run.pk], by=by)
        except (AlreadyChosen, NotPossible):
            continue
        done += 1
    return done, len(wanted) - done


def people(workspace_id: UUID, team: UUID | None) -> list[User]:
    """To whom a stuck run of this team can be handed."""
    return rules.holders(workspace_id, "runs.recover", team)


def _check_to(run: Run, choice: Choice, to: User | None) -> None:
    if choice == "hand_over" and (to is None or to not in people(run.workspace_id, run.team_id)):
        raise BadInput("Name somebody of this workspace who may recover runs.")
    if choice != "hand_over" and to is not None:
        raise BadInput("Only what is handed over goes to somebody.")


def _from(run: Run, choice: Choice, now: Standing, step: str) -> str | None:
    """The earlier step that is done anew; None if it goes on at the step at which it got stuck. NotPossible, or BadInput."""
    if not step or step == now.where.step:
        return None
    if choice != "retry":
        raise BadInput("Only what is tried again begins at a step.")
    if now.where.reason == "undo_failed" or not resuming.again(run.pk, step):
        why = "It can’t be resumed from this step: what came after it can’t be made again. Fork the run from there."
        raise NotPossible(why, steps=resuming.steps(resuming.rows([run.pk])[run.pk]))
    return step


def _retry(held: Held, where: Parking, undoable: list[Effect], to: User | None) -> None:
    if where.reason == "undo_failed":
        _undo(held, where, undoable, to)
        return
    journal.afresh(held.row.pk, where.step)
    if signals.keep_cancelling(held):
        return
    held.move(State.QUEUED, RunQueued(reason="recovered"))


def _undo(held: Held, where: Parking, undoable: list[Effect], to: User | None) -> None:
    journal.afresh(held.row.pk, where.step)
    gates.current().withdraw_open(held, reason="ended")
    held.move(State.COMPENSATING, RunCompensating(effects=len(undoable)))


def _hand_over(held: Held, where: Parking, undoable: list[Effect], to: User | None) -> None:
    held.change(handed_to=to)


def _give_up(held: Held, where: Parking, undoable: list[Effect], to: User | None) -> None:
    lease.fence_out(held.row.pk)
    gates.current().withdraw_open(held, reason="ended")
    if not signals.end_cancelled(held):
        held.move(State.FAILED, RunFailed(reason="given_up"))


CARRY_OUT: Mapping[Choice, Callable[[Held, Parking, list[Effect], User | None], None]] = {
    "retry": _retry,
    "compensate": _undo,
    "hand_over": _hand_over,
    "give_up": _give_up,
}
