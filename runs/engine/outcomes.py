"""The words with which a workflow's walk ends early. They unwind to the executor through whatever the workflow catches."""

from collections.abc import Callable

from runs.log import Held
from runs.vocabulary import RunWaiting

Tell = Callable[[Held], object]


class Outcome(BaseException):
    """Not an error: `except Exception` in a workflow does not catch it.

    `tell` appends what belongs to it, in the transaction in which the run stops for it: what is told is never told twice.
    """

    tell: Tell | None = None


class Waits(Outcome):
    """The run waits, and nothing of it stays in memory. `wake_in`: seconds until it looks again by itself, if it should.

    `others`: what else it waits for, in other branches.
    """

    def __init__(
        self, waiting: RunWaiting, *, wake_in: float | None = None, tell: Tell | None = None, others: tuple[RunWaiting, ...] = ()
    ) -> None:
        self.waiting, self.wake_in, self.tell, self.others = waiting, wake_in, tell, others
        super().__init__(waiting.on)


class Parked(Outcome):
    """The run can't go on by itself; an operator must choose."""

    def __init__(self, reason: str, *, step: str | None, detail: str, tell: Tell | None = None) -> None:
        self.reason, self.step, self.detail, self.tell = reason, step, detail, tell
        super().__init__(detail)


class Interrupted(Outcome):
    """The run is no longer running: somebody paused or cancelled it."""
