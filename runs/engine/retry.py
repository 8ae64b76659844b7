"""Whether to try again. Pure: nothing here reads a clock or a database."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Retry:
    """A policy. Waits are `first × factor^(attempt−1)` seconds, at most `longest`; after `attempts` it is over."""

    attempts: int = 4
    first: float = 0.5
    factor: float = 3.0
    longest: float = 30.0


@dataclass(frozen=True)
class Again:
    """Try again after so many seconds."""

    wait: float


@dataclass(frozen=True)
class Stop:
    """Trying again would not help: why is a word for the log."""

    why: str


def decide(policy: Retry, *, attempt: int, retryable: bool) -> Again | Stop:
    """What follows the failure of the `attempt`-th attempt (the first is 1)."""
    if not retryable:
        return Stop("final")
    if attempt >= policy.attempts:
        return Stop("attempts")
    return Again(min(policy.first * policy.factor ** (attempt - 1), policy.longest))
