"""Whether to try again. Pure: nothing here reads a clock or a database."""

from dataclasses import dataclass

PASSING = frozenset({"unavailable", "timeout", "limit"})  # troubles that time alone may cure


@dataclass(frozen=True)
class Retry:
    """A policy. Waits are `first × factor^(attempt−1)` seconds, at most `longest`; after `attempts`, or `elapsed` seconds, it is over.

    A trouble that time alone does not cure is not tried a third time: the same error on the same input would come again.
    """

    attempts: int = 4
    first: float = 0.5
    factor: float = 3.0
    longest: float = 30.0
    elapsed: float = 3600.0


@dataclass(frozen=True)
class Again:
    """Try again after so many seconds."""

    wait: float


@dataclass(frozen=True)
class Stop:
    """Trying again would not help: why is a word for the log."""

    why: str


def decide(policy: Retry, *, attempt: int, retryable: bool, error: str = "", before: str = "", elapsed: float = 0.0) -> Again | Stop:
    """What follows the failure of the `attempt`-th attempt (the first is 1).

    `error` and `before`: the troubles of this attempt and of the one before it, on the same input; `elapsed`: seconds since the first.
    """
    if not retryable:
        return Stop("final")
    if error and error == before and error not in PASSING:
        return Stop("same_error")
    if attempt >= policy.attempts:
        return Stop("attempts")
    if elapsed >= policy.elapsed:
        return Stop("elapsed")
    return Again(min(policy.first * policy.factor ** (attempt - 1), policy.longest))
