"""Runs that agents outside work on: who holds one, what its steps were and gave, and what happens when nobody is heard of it any more.

    claim → begin → (the agent's own work) → end → … → give_back

The same promises as for our own workers: one holder at a time, by a lease that it renews; a fencing token on every write, so that a
process that was frozen and woken changes nothing; and a journal from which another goes on. What stands in it is the agent's word.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import ClassVar, Literal
from uuid import UUID, uuid5

import orjson
from django.db.models import Q

from access.errors import BadInput, DatabaseTrouble, Forbidden, Refusal
from access.rows import only
from access.rules import Actor
from artifacts import vault
from config import clock
from runs import log
from runs.engine import budget
from runs.errors import RunEnded, StaleToken
from runs.lifecycle import State
from runs.log import Held, Text
from runs.models import AgentStep, Event, Lease, Run
from runs.vocabulary import (
    BudgetExceeded,
    CheckpointSaved,
    RunResumed,
    RunStalled,
    RunWaiting,
    StepCompleted,
    StepFailed,
    StepStarted,
    Trouble,
)

SHORTEST, LONGEST, USUAL = 2, 600, 30  # seconds of a lease
SILENCE = timedelta(hours=1)  # of a run that nobody has claimed: so long nothing is heard of it before it counts as stalled
LOOK_AGAIN = timedelta(seconds=60)  # at a run that nobody has claimed
MOST, MAX_RESULT, PAGE = 10_000, 256 * 1024, 200
PAGE_BYTES = 2 * 1024 * 1024  # of results in one page of the journal; one step has a page in any case
KEY = re.compile(r"[A-Za-z0-9_./-]{1,180}(#[0-9]{1,7})?")
BATCH = 200
Outcome = Literal["completed", "failed"]
logger = logging.getLogger(__name__)


class NotYours(Forbidden):
    """Handrail itself works on this run."""

    what_next: ClassVar[str] = "Nothing was changed. Only a run that an agent outside works on is claimed, and told step by step."


class HeldByAnotherProcess(Refusal):
    """Somebody else holds this run."""

    what_next: ClassVar[str] = "Nothing was changed. Claim it once its lease has run out, or leave it to who holds it."


class Overtaken(StaleToken):
    """Another process has taken over this run."""

    what_next: ClassVar[str] = "Nothing was written. Stop working on this run: what you began is begun again by who holds it now."


class LeaseNeeded(Refusal):
    """This takes the lease of the run."""

    what_next: ClassVar[str] = "Nothing was written. Claim the run by POST /api/v1/runs/{id}/lease, and send the token that it gives."


class NotAtWork(Refusal):
    """The run is not at work now, so nothing new begins."""


class BudgetUsed(Refusal):
    """A limit of this run is used up."""

    what_next: ClassVar[str] = "Nothing was begun, and people were told. Begin the step again once the run no longer waits for that."


class StepReused(Refusal):
    """This step was begun with another input."""

    what_next: ClassVar[str] = "Nothing was written. What is done for another input is another step: give it a key of its own."


class StepSettled(Refusal):
    """This step has an outcome already, and it is another one."""


class NotBegun(Refusal):
    """You have not begun this step."""

    what_next: ClassVar[str] = "Nothing was written. Begin the step, and say then what came of it."


@dataclass(frozen=True)
class Taken:
    """The lease of a run. `again`: this holder had it already. `before`: who held it before, if anybody did."""

    token: int
    holder: str
    until: datetime
    again: bool
    before: str


@dataclass(frozen=True)
class Told:
    """A step as it stands. `again`: it stood like this before. `idempotency_key`: for the agent's own calls, the same at each attempt."""

    row: AgentStep
    again: bool
    idempotency_key: UUID


# the lease --------------------------------------------------------------------------------------------------------------------------


def claim(run: Run, *, holder: str, seconds: int = USUAL) -> Taken:
    """Take a run, for the process that calls itself `holder`. The same holder again gets the same token while its lease holds.

    HeldByAnotherProcess if somebody else holds it.
    """
    check_outside(run)
    with log.holding(run.pk) as held:
        _check_open(held)
        now = clock.now()
        lease = Lease.objects.get(run_id=run.pk)
        holds, until = lease.until is not None and lease.until > now, now + timedelta(seconds=seconds)
        if holds and lease.worker != holder:
            raise HeldByAnotherProcess(f"{lease.worker} holds it.", holder=lease.worker, until=lease.until)
        token = lease.token if holds else lease.token + 1
        # one that was renewed since it was read stays whose it is
        free = Lease.objects.filter(run_id=run.pk, token=lease.token)
        free = free if holds else free.filter(Q(until=None) | Q(until__lte=now))
        if free.update(token=token, worker=holder, pid=0, until=until, called_at=None) != 1:
            raise HeldByAnotherProcess
        if not holds:
            _tell_claim(held, lease, holder, token)
    return Taken(token, holder, until, again=holds, before="" if holds else lease.worker)


def _tell_claim(held: Held, lease: Lease, holder: str, token: int) -> None:
    told = RunResumed(reason="lease_expired" if lease.until else "claimed", worker=holder, token=token)
    if held.row.state == State.STALLED:
        held.move(State.RUNNING, told)
    else:
        held.append(told, actor=log.ENGINE)


def renew(run: Run, *, token: int, seconds: int = USUAL) -> datetime:
    """A heartbeat; gives until when it holds, and `run` is as it is then. Never waits for its log. Overtaken if somebody else has it."""
    check_outside(run)
    until = clock.now() + timedelta(seconds=seconds)
    if Lease.objects.filter(run_id=run.pk, token=token, until__isnull=False).update(until=until) != 1:
        raise _not_held(run.pk, token)
    if Run.objects.filter(pk=run.pk, state=State.STALLED).exists():
        with _under(run, token) as held:
            heard(held)
    run.refresh_from_db(fields=["state"])
    return until


def give_back(run: Run, *, token: int) -> None:
    """Let another process have the run at once. What was begun and not ended is begun again by it."""
    check_outside(run)
    if Lease.objects.filter(run_id=run.pk, token=token, until__isnull=False).update(until=None) != 1:
        raise _not_held(run.pk, token)


def fence(held: Held, token: int | None) -> None:
    """Refuse a write to a run that was claimed unless it comes under the token that holds. In the caller's transaction."""
    lease = Lease.objects.get(run_id=held.row.pk)
    if token is None and (lease.token == 0 or lease.until is None):
        return
    if token is None:
        raise LeaseNeeded(f"{lease.worker} holds this run: send its token as Handrail-Token.", holder=lease.worker)
    if lease.token != token or lease.until is None:
        raise _not_held(held.row.pk, token)


@contextmanager
def _under(run: Run, token: int) -> Iterator[Held]:
    """The run's lock, under a token that holds."""
    check_outside(run)
    with log.holding(run.pk) as held:
        fence(held, token)
        yield held


def _not_held(run_id: UUID, token: int) -> Refusal:
    lease = Lease.objects.get(run_id=run_id)
    if lease.until is None:
        row = Run.objects.get(pk=run_id)
        if row.ended_at is not None:
            return RunEnded(f"The run ended as {row.state}.", state=row.state)
        return LeaseNeeded("Nobody holds this run now.")
    return Overtaken(f"Token {token} has been overtaken: {lease.worker} holds the run now.", holder=lease.worker, until=lease.until)


def check_outside(run: Run) -> None:
    """NotYours unless an agent outside works on it."""
    if run.workflow:
        raise NotYours


def _check_open(held: Held) -> None:
    if held.row.ended_at is not None:
        raise RunEnded(f"The run ended as {held.row.state}.", state=held.row.state)


# steps ------------------------------------------------------------------------------------------------------------------------------


def begin(run: Run, *, by: Actor, token: int, key: str, given: str, plan_step: int | None = None) -> Told:
    """Begin a step, or learn that it is done: then its row has the result. `given`: SHA-256 of its input, in hex.

    StepReused if it was begun with another input. An attempt that failed, or whose holder was lost, is followed by the next.
    """
    step = _step(key)
    with _under(run, token) as held:
        row = only(AgentStep.objects.select_related("result__key").filter(run_id=run.pk, step=step))
        if row is not None and row.given != given:
            raise StepReused(f"#{row.seq} tells of it.", seq=row.seq)
        if row is not None and (row.state == "done" or (row.state == "started" and row.token == token)):
            return _told(row, again=True)
        heard(held)
        _check_at_work(held)
        refused = over_budget(held)
        if refused is None:
            row = row or AgentStep(run_id=run.pk, step=step, given=given, position=_next_position(run.pk), attempts=0)
            _begin(held, row, by, token, plan_step)
    if refused is not None:  # raised here, so that what it wrote into the log stays
        raise refused
    return _told(row, again=False)


def _begin(held: Held, row: AgentStep, by: Actor, token: int, plan_step: int | None) -> None:
    row.plan_step, row.token, row.holder = plan_step, token, Lease.objects.get(run_id=held.row.pk).worker
    row.state, row.started_at, row.ended_at, row.attempts = "started", clock.now(), None, row.attempts + 1
    data = StepStarted(step=row.step, kind="agent", plan_step=plan_step, attempt=row.attempts, told=True, given=row.given)
    row.seq = held.append(data, actor=by)
    row.save()
    budget.use(held, steps=1)


def over_budget(held: Held) -> BudgetUsed | None:
    """Whether a limit is used up: then the run waits for people to raise it, and nothing new begins."""
    spent = budget.over(held.row.budgets, budget.used(held.row))
    if spent is None:
        return None
    if held.row.state == State.RUNNING:
        held.append(BudgetExceeded(budget=spent.budget, used=spent.used, limit=spent.limit), actor=log.ENGINE)
        waits(held, RunWaiting(on="budget"))
    return BudgetUsed(f"{spent.used} of {spent.limit} {spent.budget} are used.", budget=spent.budget, used=spent.used, limit=spent.limit)


def end(
    run: Run, *, by: Actor, token: int, key: str, outcome: Outcome, result: Text | None = None, error: Trouble = "error", detail: str = ""
) -> Told:
    """Say what came of a step that this holder began. The same again is answered with what stands; another outcome is refused.

    `result`: what a completed step gave, for whoever goes on with the run. A failed one may be begun again.
    """
    step = _step(key)
    if result is not None and len(_bytes(result)) > MAX_RESULT:
        raise BadInput(f"A result has at most {MAX_RESULT} bytes. Keep more as an artifact, and name that.", limit=MAX_RESULT)
    with _under(run, token) as held:
        row = only(AgentStep.objects.select_related("result__key").filter(run_id=run.pk, step=step))
        if row is None or row.token != token:
            raise NotBegun(f"{row.holder} began it, and was lost." if row else "Nobody has.")
        if row.state != "started":
            return _as_before(row, outcome, result)
        _check_open(held)
        row.ended_at = clock.now()
        if outcome == "completed":
            _complete(held, row, by, result)
        else:
            row.state = "failed"
            texts = {"detail": Text(detail, "personal")} if detail else {}
            row.seq = held.append(StepFailed(step=step, attempt=row.attempts, error=error, told=True), actor=by, texts=texts)
        row.save()
    return _told(row, again=False)


def listed(run: Run, *, after: int = 0, limit: int = PAGE) -> tuple[list[AgentStep], int | None]:
    """The journal, in the order in which its steps were first begun: those behind the position `after`, and where the next begin.

    A page ends early once its results come to PAGE_BYTES.
    """
    rows = AgentStep.objects.filter(run_id=run.pk, position__gt=after).order_by("position")
    sizes = list(rows.values_list("position", "result__size")[: limit + 1])
    fits = 0
    for total in accumulate(size or 0 for _, size in sizes[:limit]):
        if fits and total > PAGE_BYTES:
            break
        fits += 1
    last = sizes[fits - 1][0] if fits else after
    found = rows.select_related("result__key").filter(position__lte=last)
    return list(found), last if len(sizes) > fits else None


def _complete(held: Held, row: AgentStep, by: Actor, result: Text | None) -> None:
    row.state = "done"
    if result is not None:
        row.result = vault.keep(held.row.workspace_id, result.content, label=result.label, media_type=result.media_type)
    ms = max(int(((row.ended_at or clock.now()) - row.started_at).total_seconds() * 1000), 0)
    data = StepCompleted(step=row.step, plan_step=row.plan_step, ms=ms, told=True)
    row.seq = held.append(data, actor=by, texts={"result": row.result} if row.result else {})
    budget.use(held, working_ms=ms)
    planned = _planned(held.row)
    if planned and row.plan_step:
        held.append(CheckpointSaved(after=row.step, done=row.plan_step, left=max(planned - row.plan_step, 0)), actor=log.ENGINE)


def _planned(run: Run) -> int:
    """How many steps the plan has that was told last."""
    plans = Event.objects.filter(run_month=run.month, run_id=run.pk, type="plan.set").order_by("-seq")
    body = plans.values_list("body", flat=True).first()
    return int(orjson.loads(body)["data"]["steps"]) if body else 0


def _as_before(row: AgentStep, outcome: Outcome, result: Text | None) -> Told:
    kept = vault.opened(row.result) if row.result else b""
    said = _bytes(result) if result else b""
    if (row.state == "done") != (outcome == "completed") or (outcome == "completed" and kept is not None and kept != said):
        raise StepSettled(f"#{row.seq} says that it is {row.state}.", state=row.state, seq=row.seq)
    return _told(row, again=True)


def _told(row: AgentStep, *, again: bool) -> Told:
    return Told(row, again, uuid5(row.run_id, f"step:{row.step}"))


def _step(key: str) -> str:
    if not KEY.fullmatch(key):
        raise BadInput("A step's key has letters, digits, `_`, `.`, `/` and `-`, and may end with `#` and a number, as in `read_ticket#2`.")
    return key if "#" in key else f"{key}#1"


def _next_position(run_id: UUID) -> int:
    last = AgentStep.objects.filter(run_id=run_id).order_by("-position").values_list("position", flat=True).first() or 0
    if last >= MOST:
        raise BadInput(f"A run has at most {MOST} steps.", limit=MOST)
    return last + 1


def _check_at_work(held: Held) -> None:
    _check_open(held)
    if held.row.state not in (State.RUNNING, State.WAITING):
        raise NotAtWork(f"The run is {held.row.state}.", state=held.row.state)


def _bytes(text: Text) -> bytes:
    return text.content.encode("utf-8", "surrogatepass") if isinstance(text.content, str) else text.content


# waiting, and silence -----------------------------------------------------------------------------------------------------------------


def waits(held: Held, waiting: RunWaiting) -> None:
    """People have something to decide: say so of the whole run, whatever else its agent does meanwhile. In the caller's transaction."""
    told = waiting.model_dump(mode="json", exclude_none=True)
    if held.row.state == State.RUNNING:
        held.move(State.WAITING, waiting, waiting=told)
    elif held.row.state == State.WAITING:
        held.append(waiting, actor=log.ENGINE)
        held.change(waiting=told)


def goes_on(held: Held) -> None:
    """Nothing of it waits for people any more. In the caller's transaction."""
    if held.row.state == State.WAITING and not held.row.workflow:
        held.move(State.RUNNING, _resumed(held, "decision"))


def heard(held: Held) -> None:
    """Its agent has spoken: a run that had stalled goes on. In the caller's transaction."""
    if held.row.state == State.STALLED and not held.row.workflow:
        held.move(State.RUNNING, _resumed(held, "heard"))


def resumed(held: Held) -> None:
    """Somebody has it go on, which is for its agent to do. In the caller's transaction."""
    held.move(State.RUNNING, _resumed(held, "signal"))


def waits_for_budget(held: Held) -> None:
    """A limit is used up still, and nothing else is waited for: people have to raise it. In the caller's transaction."""
    if held.row.state == State.RUNNING and budget.over(held.row.budgets, budget.used(held.row)):
        waits(held, RunWaiting(on="budget"))


def _resumed(held: Held, reason: Literal["decision", "heard", "signal"]) -> RunResumed:
    lease = Lease.objects.get(run_id=held.row.pk)
    return RunResumed(reason=reason, worker=lease.worker or f"agent/{held.row.agent.name}", token=lease.token)


def stall_due() -> int:
    """Say of each run whose agent has gone silent that it stalled. Gives how many; two sweeps at once do no harm."""
    now = clock.now()
    at_work = Run.objects.filter(workflow="", state=State.RUNNING)
    lost = at_work.filter(lease__until__lte=now).values_list("pk", flat=True)
    quiet = at_work.filter(
        Q(lease__called_at=None) | Q(lease__called_at__lt=now - LOOK_AGAIN), lease__until=None, state_since__lt=now - SILENCE
    )
    return sum(_stalls(pk) for pk in [*lost[:BATCH], *quiet.values_list("pk", flat=True)[:BATCH]])


def _stalls(run_id: UUID) -> bool:
    try:
        with log.holding(run_id) as held:
            since = _silent_since(held)
            if since is None:
                return False
            held.move(State.STALLED, RunStalled(since=since))
    except (DatabaseTrouble, Refusal) as error:  # one run that can't be locked now must not keep the others
        logger.warning("silence not told", extra={"run": str(run_id), "error": type(error).__name__})
        return False
    return True


def _silent_since(held: Held) -> datetime | None:
    """Since when nothing is heard of a run that should be at work; None if that is no reason to worry."""
    now, lease = clock.now(), Lease.objects.get(run_id=held.row.pk)
    if held.row.state != State.RUNNING:
        return None
    if lease.until is not None:
        left_before = held.row.state_since > lease.until  # a decision came after its holder had left: somebody has a moment to claim it
        due = held.row.state_since + timedelta(seconds=USUAL) if left_before else lease.until
        return lease.until if due <= now else None
    Lease.objects.filter(run_id=held.row.pk).update(called_at=now)
    last = Event.objects.filter(run_month=held.row.month, run_id=held.row.pk, seq=held.row.seq).values_list("body", flat=True).get()
    at = datetime.fromisoformat(orjson.loads(last)["at"])
    return at if at <= now - SILENCE else None
