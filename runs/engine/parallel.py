"""Doing several things at once. Each has a branch of the run's journal, and a thread with a database connection of its own.

    account, earlier = run.parallel(run.later(check_account, address), run.later(earlier_tickets, address))

A step's identity begins with the path of its branch, so that a replay finds it again in whatever order the branches came to theirs. All
are walked until each is done or can't go on; only then the run waits, or is stuck, and what the others did stays done. Their outcomes are
those of the run: it waits for whatever comes first of all that its branches wait for.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import connection

from access.errors import DatabaseTrouble
from runs import log
from runs.engine.journal import digest
from runs.engine.outcomes import Interrupted, Outcome, Parked, Waits
from runs.engine.tools import Tool
from runs.engine.walk import Walk
from runs.errors import RunEnded, StaleToken
from runs.models import JournalEntry
from runs.vocabulary import StepStarted

AT_ONCE = 4  # threads
MOST = 50  # branches
# which of several things a run is said to wait for: first what people can do something about
FIRST = ("answer", "outcome", "unfreezing", "decision", "budget", "webhook", "signal", "child", "retry", "timer")


@dataclass(frozen=True)
class Later:
    """Something to be done in a branch: a tool is used as by `run.step`, a function is given the run as its branch sees it."""

    does: Tool | Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        return self.does.name if isinstance(self.does, Tool) else getattr(self.does, "__name__", "function")

    def do(self, run: Any) -> Any:
        """`run` is the channel of the branch."""
        more = self.kwargs or {}
        return run.step(self.does, *self.args, **more) if isinstance(self.does, Tool) else self.does(run, *self.args, **more)


def together(walk: Walk, branches: Sequence[Later], channel: Callable[[Walk], Any], *, threads: int = AT_ONCE) -> list[Any]:
    """What each of the branches gives, in their order. `channel` makes the run as a branch sees it, of the walk on its path.

    `threads`: how many are walked at once; 0 for one after the other in this thread.
    """
    entry = _begun(walk, branches)
    path = entry.step.rpartition("/")[2].replace("#", "-")
    runs = [channel(walk.on(f"{path}.{number}/")) for number in range(1, len(branches) + 1)]
    if threads:
        with ThreadPoolExecutor(min(threads, len(branches)) or 1, thread_name_prefix=f"run-{walk.ref}") as pool:
            came = list(pool.map(_in_thread, branches, runs))
    else:
        came = [_attempt(branch, run) for branch, run in zip(branches, runs, strict=True)]
    _raise_first([trouble for _, trouble in came if trouble is not None])
    if entry.state != "done":
        with walk.hold() as run:
            walk.journal.end(run, entry, len(branches), label="internal", seq=run.row.seq)
            walk.completed(run, entry.step, None, 0)
    return [given for given, _ in came]


def _begun(walk: Walk, branches: Sequence[Later]) -> JournalEntry:
    step, given = walk.journal.next_step("parallel"), [branch.name for branch in branches]
    if len(branches) > MOST:
        raise Parked("error", step=step, detail=f"It would do {len(branches)} things at once; at most {MOST} are.")
    entry = walk.journal.find(step)
    if entry is not None and entry.input_digest != digest(given):
        raise Parked("code_changed", step=step, detail=f"The code changed at {step}: it does other things at once than it began with.")
    if entry is None:
        with walk.hold() as run:
            entry = walk.journal.begin(run, step, kind="parallel", given=given)
            run.append(StepStarted(step=step, kind="parallel"), actor=walk.agent)
    return entry


def _in_thread(branch: Later, run: Any) -> tuple[Any, BaseException | None]:
    with closing(connection):  # this thread's own
        return _attempt(branch, run)


def _attempt(branch: Later, run: Any) -> tuple[Any, BaseException | None]:
    """What a branch gives, or how it ended: so that the others are walked to their ends whatever becomes of this one."""
    try:
        return branch.do(run), None
    except (Outcome, Exception) as trouble:
        return None, trouble


def _raise_first(troubles: Sequence[BaseException]) -> None:
    """Of what keeps branches from going on, what weighs most: that the run is not this worker's, that it is stuck, that it waits."""
    for kinds in ((StaleToken, RunEnded, DatabaseTrouble), (Interrupted,), (Parked, Exception)):
        for trouble in troubles:
            if isinstance(trouble, kinds):
                raise trouble
    for trouble in troubles:
        if not isinstance(trouble, Waits):
            raise trouble
    waits = sorted((trouble for trouble in troubles if isinstance(trouble, Waits)), key=lambda each: FIRST.index(each.waiting.on))
    if len(waits) == 1:
        raise waits[0]
    if waits:
        raise _all_of(waits)


def _all_of(waits: Sequence[Waits]) -> Waits:
    """One wait for several things: whichever comes first wakes the run."""
    main = waits[0]
    named = [*(main.waiting.also or ()), *(on for each in waits[1:] for on in (each.waiting.on, *(each.waiting.also or ())))]
    ons = tuple(dict.fromkeys(named))
    also = tuple(waiting for each in waits for waiting in ((each.waiting, *each.others) if each is not main else each.others))
    revisable = any(each.waiting.revisable for each in waits) or None
    waiting = main.waiting.model_copy(update={"also": ons, "revisable": revisable})
    wake_in = min((each.wake_in for each in waits if each.wake_in is not None), default=None)
    tells = {each.waiting.on: each.tell for each in reversed(waits) if each.tell}
    return Waits(waiting, wake_in=wake_in, tell=partial(_tell_all, list(tells.values())), others=also)


def _tell_all(tells: Sequence[Callable[[log.Held], object]], run: log.Held) -> None:
    for tell in tells:
        tell(run)
