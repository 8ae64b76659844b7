"""What became of sending a message."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sent:
    """The other side took it."""


@dataclass(frozen=True)
class Dropped:
    """There was nothing left to tell this person."""


@dataclass(frozen=True)
class Failed:
    """It was not taken. `trouble` is a word of ours."""

    trouble: str
    retryable: bool


Outcome = Sent | Dropped | Failed
