"""Taking a run from where it is to where it must wait or ends. Any worker may do it, any number of times."""

import logging
from datetime import timedelta
from typing import Literal
from uuid import UUID

import orjson
from django.db import connection

from access.errors import AWAY, DatabaseTrouble
from artifacts import vault
from config import clock
from runs import live, log, updates
from runs.engine import asking, awaiting, compensation, effects, gates, lease, points, workflow
from runs.engine.lease import Claim
from runs.engine.outcomes import Interrupted, Parked, Waits
from runs.engine.walk import Walk
from runs.engine.workflow import Channel
from runs.errors import RunEnded, StaleToken
from runs.lifecycle import UNDOING, State
from runs.log import Held, Text
from runs.models import JournalEntry, Run
from runs.vocabulary import BlockRaised, RunParked, RunQueued, RunSucceeded, RunWaiting

LOOK_AGAIN_ANYWAY = timedelta(hours=1)  # for a cancelled run that waits for a person to say what happened; each look is in its log
# what came while a worker was on its way to wait
Reason = Literal["unfrozen", "child", "answer", "budget", "outcome", "decision", "webhook", "signal"]
logger = logging.getLogger(__name__)


def execute(run_id: UUID) -> str:
    """Claim the run and walk it until it waits, parks or ends. Gives the word of what came: `busy` if another worker has it."""
    held = lease.claim(run_id)
    if held is None:
        return "busy"
    with lease.heartbeat(held):
        points.reached("claimed", run_id)
        try:
            return _walk(held)
        except (StaleToken, RunEnded) as error:  # whoever took over, or cancelled, wrote the log
            logger.warning("overtaken: nothing more was written", extra={"run": str(run_id), "token": held.token, "why": error.kind})
            return "overtaken"
        except DatabaseTrouble:  # whoever comes next goes on from the last completed step
            if not connection.in_atomic_block:
                connection.close_if_unusable_or_obsolete()
            raise
        except Exception as error:  # in telling how the walk ended: as below, and not again and again
            logger.exception("walk not ended", extra={"run": str(run_id)})
            return _park(held, _raised(Run.objects.get(pk=run_id), error))
        finally:
            _let_go(held)


def _let_go(held: Claim) -> None:
    """Give the run back. If the database is away its lease runs out, and the sweep finds it."""
    try:
        lease.release(held)
        _call_again(held.run_id)
    except AWAY as error:
        logger.warning("lease not given back", extra={"run": str(held.run_id), "error": type(error).__name__})


def _call_again(run_id: UUID) -> None:
    """A run that was resumed or cancelled under a worker's hands waits for the next one; the sweep would find it a little later."""
    if Run.objects.filter(pk=run_id, state__in=(State.QUEUED, State.COMPENSATING), wake_at=None).exists():
        live.call_worker(run_id)


def _walk(held: Claim) -> str:
    run = Run.objects.select_related("agent", "input__key").get(pk=held.run_id)
    try:
        if run.state == State.CANCELLING:
            effects.settle_in_flight(Walk(run, held))
            return "settled"
        if run.state == State.COMPENSATING:
            compensation.undo(run, held)
            return compensation.finish(held)
        _call_workflow(run, held)
    except Waits as outcome:
        return _wait(held, outcome)
    except Parked as outcome:
        return _park(held, outcome)
    except Interrupted as outcome:
        return str(outcome)
    except (StaleToken, RunEnded, *AWAY):
        raise
    except Exception as error:  # whatever a workflow's own code raises is a dead letter, never a lost run
        logger.exception("workflow raised", extra={"run": str(run.pk)})
        return _park(held, _raised(run, error))
    return _succeed(held)


def _raised(run: Run, error: Exception) -> Parked:
    """A run that was being undone is stuck in its undoing: whoever has it tried again undoes, and does nothing else."""
    if run.state == State.COMPENSATING:
        return Parked("undo_failed", step=None, detail=f"The code that undoes it failed ({type(error).__name__}).")
    return Parked("error", step=None, detail=f"The workflow’s code failed ({type(error).__name__}).")


def _call_workflow(run: Run, held: Claim) -> None:
    known = workflow.loaded(run.workflow, run.workflow_version)
    if known is None:
        raise Parked("workflow_missing", step=None, detail=f"{run.workflow} version {run.workflow_version} is not loaded here.")
    arguments = orjson.loads(vault.open_bytes(run.input)) if run.input else {}
    known.function(Channel(run, held), **arguments)


def _wait(held: Claim, outcome: Waits) -> str:
    """Let go of the run until what it waits for comes, or until its timer."""
    waiting = outcome.waiting
    wake_at = clock.now() + timedelta(seconds=outcome.wake_in) if outcome.wake_in is not None else None
    with log.holding(held.run_id, token=held.token) as run:
        if run.row.state in UNDOING:
            came = _any_came(run, outcome)
            run.change(waiting={} if came else waiting.model_dump(mode="json", exclude_none=True))
            run.change(wake_at=clock.now() if came else wake_at or clock.now() + LOOK_AGAIN_ANYWAY)
            return str(run.row.state)
        if run.row.state != State.RUNNING:  # paused meanwhile: whoever goes on with it finds out anew what it waits for
            return "interrupted"
        _tell_block(run, waiting)
        if outcome.tell:
            outcome.tell(run)
        run.move(State.WAITING, waiting, waiting=waiting.model_dump(mode="json", exclude_none=True))
        run.change(wake_at=wake_at)
        if came := _any_came(run, outcome):
            run.move(State.QUEUED, RunQueued(reason=came))
        points.reached("waiting", held.run_id)
        lease.release(held)  # with the state: whoever is called for the run from now on finds it free
    return "waiting"


def _tell_block(run: Held, waiting: RunWaiting) -> None:
    """What is frozen blocks the run; it is told with the freezer's own words."""
    if waiting.on == "unfreezing" and (frozen := gates.current().frozen(run, waiting.tool or "")):
        block = BlockRaised(block=f"frozen:{frozen.tool}", reason="frozen", action=waiting.action)
        run.append(block, actor=log.ENGINE, texts={"detail": frozen.reason})


def _any_came(run: Held, outcome: Waits) -> Reason | None:
    return next((came for waiting in (outcome.waiting, *outcome.others) if (came := _came_meanwhile(run, waiting))), None)


def _came_meanwhile(run: Held, waiting: RunWaiting) -> Reason | None:
    """Whoever decided, asked, unfroze or raised a limit while this worker was still on its way to wait found no run that waited."""
    match waiting.on:
        case "unfreezing" if gates.current().frozen(run, waiting.tool or "") is None:
            return "unfrozen"
        case "child" if Run.objects.filter(pk=waiting.run, ended_at__isnull=False).exists():
            return "child"
        case "answer" if waiting.question and asking.answered(run.row, waiting.question):
            return "answer"
        case "budget" if updates.enough(run.row):
            return "budget"
        case "outcome" if waiting.until is None and waiting.action not in gates.current().in_flight(run.row.pk):
            return "outcome"
        case "webhook" | "signal" if awaiting.came_meanwhile(run, waiting):
            return "webhook" if waiting.on == "webhook" else "signal"
        case "decision" | "timer" if waiting.action is not None:
            return _decided_meanwhile(waiting.on, gates.current().answer(waiting.action))
        case _:
            return None


def _decided_meanwhile(on: str, answer: gates.Answer) -> Reason | None:
    if isinstance(answer, gates.Recallable) and on == "timer":
        return None  # until nobody can recall it any more: that is what it waits for
    if not isinstance(answer, gates.Waiting):
        return "decision"
    return "answer" if gates.current().questions(answer.action_id) else None


def _park(held: Claim, outcome: Parked) -> str:
    with log.holding(held.run_id, token=held.token) as run:
        if outcome.tell:
            outcome.tell(run)
        data = RunParked(reason=outcome.reason, step=outcome.step)
        run.move(State.PARKED, data, texts={"detail": Text(outcome.detail)})
    return "parked"


def _succeed(held: Claim) -> str:
    report = JournalEntry.objects.filter(run_id=held.run_id, kind="report").order_by("-position").first()
    with log.holding(held.run_id, token=held.token) as run:
        if run.row.state != State.RUNNING:  # paused in its last moment: it ends when it is resumed
            return "interrupted"
        gates.current().withdraw_open(run, reason="ended")
        run.move(State.SUCCEEDED, RunSucceeded(report=report.seq if report else None))
        points.reached("ending", held.run_id)
    points.reached("ended", held.run_id)
    return "succeeded"
