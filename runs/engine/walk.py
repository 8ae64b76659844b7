"""One worker's walk through a run: what every verb of the channel needs to look up, to write down and to stop by."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

from access.rules import Actor
from runs import log
from runs.engine import budget, lineage
from runs.engine.gates import Attached
from runs.engine.journal import Journal
from runs.engine.lease import MOMENT, Claim
from runs.engine.outcomes import Interrupted, Waits
from runs.engine.tools import Tool
from runs.errors import StaleToken
from runs.lifecycle import State
from runs.log import Held, Seen
from runs.models import Run
from runs.vocabulary import BudgetExceeded, CheckpointSaved, RunWaiting, StepCompleted

SETTLES = (State.CANCELLING, State.PAUSED, State.QUEUED)  # cancelled or paused under way, or to go on again meanwhile


@contextmanager
def hold(lease: Claim, *, settling: bool = False) -> Iterator[Held]:
    """The run's lock under this worker's token. Interrupted if it is no longer at work; `settling` may finish what was begun."""
    with log.holding(lease.run_id, token=lease.token) as run:
        if run.row.state != lease.works and not (settling and run.row.state in SETTLES):
            raise Interrupted(run.row.state)
        lease.goes_on()
        yield run


@dataclass
class _Last:
    """The run as a walk, and its branches, saw it last; and when that was under its lock, by `time.monotonic`."""

    seen: Seen
    held_at: float = 0.0


class Walk:
    """A run in a worker's hands. `journal`: what it did so far, read if it is not given; `plan`: the headings of the story."""

    def __init__(self, run: Run, held: Claim, journal: Journal | None = None) -> None:
        self.id, self.ref, self.month = run.pk, run.ref, run.month
        self.lease = held
        self.journal = journal or Journal(run.pk, held.token)
        self.agent = Actor("agent", str(run.agent_id), run.agent.name)
        self.plan: list[str] = []
        self._last = _Last(Seen(run))

    @property
    def row(self) -> Run:
        """The run as it was read last."""
        return self._last.seen.row

    def on(self, branch: str) -> "Walk":
        """The same walk on a branch of it: with steps of its own, and all else shared."""
        other = copy(self)
        other.journal = self.journal.on(branch)
        return other

    def hold(self, *, settling: bool = False) -> AbstractContextManager[Held]:
        """The run's lock under this worker's token; Interrupted if the run is no longer at work, unless it is `settling` what was begun."""
        return self._hold(settling)

    @contextmanager
    def _hold(self, settling: bool) -> Iterator[Held]:
        with hold(self.lease, settling=settling) as run:
            yield run
        self._saw(run.seen)

    def write(self, write: Callable[[Held], None]) -> None:
        """Have `write` append to the run under this worker's token: in one statement if nobody else wrote meanwhile, else under its lock.

        `write` may be called twice, the second time with the run as others left it. Interrupted as by `hold`.
        """
        seen = self._last.seen
        written = log.at_once(seen, self.lease.token, write) if seen.row.state == self.lease.works else None
        if written is not None:
            self.lease.goes_on()
            self._saw(written)
            return
        with self.hold() as run:
            write(run)

    def _saw(self, seen: Seen) -> None:
        self._last.seen, self._last.held_at = seen, time.monotonic()

    def check_at_work(self) -> None:
        """Before the outside is asked something without a lock: Interrupted if the run is no longer at work, StaleToken if it is another's.

        Not asked again within a moment of having held the run.
        """
        if self.row.state == self.lease.works and time.monotonic() - self._last.held_at < MOMENT:
            return
        row = Run.objects.select_related("lease").get(pk=self.id)
        if row.lease.token != self.lease.token:
            raise StaleToken(f"Token {self.lease.token} has been overtaken.", token=self.lease.token)
        if row.state != self.lease.works:
            raise Interrupted(row.state)
        self.lease.goes_on()

    def check_budget(self) -> None:
        """Before something new begins: wait for people if a budget is used up. Undoing has no budget."""
        if self.lease.works == State.COMPENSATING or budget.over(self.row.budgets, budget.used(self.row)) is None:
            return
        row = Run.objects.get(pk=self.id)
        if budget.over(row.budgets, budget.used(row)) is None:  # people have raised a limit meanwhile
            self._last.seen = Seen(row)
            return
        raise Waits(RunWaiting(on="budget"), tell=_tell_exceeded)

    def nonce(self, step: str, tool: Tool, arguments: Mapping[str, Any], files: Sequence[Attached]) -> str:
        """What the identity of an action that is proposed at this step is made of: the same at every replay."""
        return lineage.kept_nonce(self.row, step, tool, arguments, files)

    def plan_step(self, title: str) -> int | None:
        """Which step of the plan this is, counted from 1: the one with the same words."""
        return next((i for i, step in enumerate(self.plan, 1) if step.casefold() == title.casefold()), None)

    def completed(self, run: Held, step: str, plan_step: int | None, ms: int, *, done: int | None = None) -> None:
        """Say that a step is done, and what of the plan is done and left with it."""
        run.append(StepCompleted(step=step, plan_step=plan_step, ms=ms), actor=self.agent)
        done = (plan_step or 0) if done is None else done
        if self.plan:  # without one there is nothing that is done and left of it
            run.append(CheckpointSaved(after=step, done=done, left=max(len(self.plan) - done, 0)), actor=log.ENGINE)

    def count(self, run: Held, ms: int, tokens: int = 0, cost_micro: int = 0) -> None:
        """Add to what the run has used; warn of a budget that is nearly used up by it."""
        budget.use(run, working_ms=ms, tokens=tokens, cost_micro=cost_micro)


def _tell_exceeded(run: Held) -> None:
    if spent := budget.over(run.row.budgets, budget.used(run.row)):
        run.append(BudgetExceeded(budget=spent.budget, used=spent.used, limit=spent.limit), actor=log.ENGINE)
