"""The words with which a workflow's walk ends early. They unwind to the executor through whatever the workflow catches."""

from access.errors import Refusal
from runs.vocabulary import RunWaiting


class Outcome(BaseException):
    """Not an error: `except Exception` in a workflow does not catch it."""


class Waits(Outcome):
    """The run waits, and nothing of it stays in memory. `wake_in`: seconds until it looks again by itself, if it should."""

    def __init__(self, waiting: RunWaiting, *, wake_in: float | None = None) -> None:
        self.waiting, self.wake_in = waiting, wake_in
        super().__init__(waiting.on)


class Parked(Outcome):
    """The run can't go on by itself; an operator must choose."""

    def __init__(self, reason: str, *, step: str | None, detail: str) -> None:
        self.reason, self.step, self.detail = reason, step, detail
        super().__init__(detail)


class Interrupted(Outcome):
    """The run is no longer running: somebody paused or cancelled it."""


class Overtaken(Refusal):
    """This worker lost the run."""
