"""The states of a run and the legal ways between them. The picture in the docs is generated from `TRANSITIONS`."""

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    QUEUED = "queued"  # ready; a worker may claim it
    RUNNING = "running"  # a worker holds its lease
    WAITING = "waiting"  # for a person, an answer, a budget, a time; spends nothing
    PAUSED = "paused"  # a person stopped it for now
    PARKED = "parked"  # a dead letter: an operator must choose
    STALLED = "stalled"  # its worker or agent went silent
    CANCELLING = "cancelling"  # something outside is still in flight
    COMPENSATING = "compensating"  # effects are being undone
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


S = State
TERMINAL = frozenset({S.SUCCEEDED, S.FAILED, S.CANCELLED})
UNDOING = (S.CANCELLING, S.COMPENSATING)  # what it did is being undone, or will be at once: nothing new is built on it
ENDINGS: Mapping[str, State] = {"run.succeeded": S.SUCCEEDED, "run.failed": S.FAILED, "run.cancelled": S.CANCELLED}

TRANSITIONS: Mapping[State, frozenset[State]] = {
    S.QUEUED: frozenset({S.RUNNING, S.PAUSED, S.PARKED, S.STALLED, S.CANCELLING, S.COMPENSATING, S.CANCELLED, S.FAILED}),
    S.RUNNING: frozenset(
        {S.QUEUED, S.WAITING, S.PAUSED, S.PARKED, S.STALLED, S.CANCELLING, S.COMPENSATING, S.SUCCEEDED, S.FAILED, S.CANCELLED}
    ),
    S.WAITING: frozenset({S.QUEUED, S.RUNNING, S.PAUSED, S.PARKED, S.STALLED, S.CANCELLING, S.COMPENSATING, S.CANCELLED, S.FAILED}),
    S.PAUSED: frozenset({S.QUEUED, S.PARKED, S.CANCELLING, S.COMPENSATING, S.CANCELLED, S.FAILED}),
    S.PARKED: frozenset({S.QUEUED, S.COMPENSATING, S.CANCELLING, S.CANCELLED, S.FAILED}),
    S.STALLED: frozenset({S.QUEUED, S.RUNNING, S.PARKED, S.CANCELLING, S.CANCELLED, S.SUCCEEDED, S.FAILED}),
    S.CANCELLING: frozenset({S.COMPENSATING, S.PARKED, S.CANCELLED}),
    S.COMPENSATING: frozenset({S.PARKED, S.CANCELLED, S.FAILED}),
    S.SUCCEEDED: frozenset(),
    S.FAILED: frozenset(),
    S.CANCELLED: frozenset(),
}

PAGE_WORDS: Mapping[State, str] = {
    S.QUEUED: "Running",
    S.RUNNING: "Running",
    S.WAITING: "Waiting",
    S.PAUSED: "Paused",
    S.PARKED: "Stuck",
    S.STALLED: "Stuck",
    S.CANCELLING: "Undoing",
    S.COMPENSATING: "Undoing",
    S.SUCCEEDED: "Done",
    S.FAILED: "Failed",
    S.CANCELLED: "Cancelled",
}


def may(before: State | str, after: State | str) -> bool:
    return State(after) in TRANSITIONS[State(before)]


def ended(state: State | str) -> bool:
    return State(state) in TERMINAL
