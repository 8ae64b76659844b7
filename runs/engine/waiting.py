"""Waiting for what becomes of a proposal: for how long at most, and until when an approval can be recalled."""

from dataclasses import dataclass
from datetime import timedelta

from access.rules import Actor
from config import clock
from runs.engine import gates
from runs.engine.gates import Answer
from runs.engine.lease import Claim
from runs.engine.outcomes import Waits
from runs.engine.walk import hold
from runs.models import JournalEntry
from runs.vocabulary import RunWaiting


@dataclass(frozen=True)
class Patience:
    """For how long the agent wants what it proposes; if nobody has decided by then it is withdrawn, with the reason."""

    lasts: timedelta
    reason: str


def withdrawn(lease: Claim, agent: Actor, entry: JournalEntry, answer: Answer, patience: Patience | None) -> Answer:
    """The answer; of what waits for longer than it is wanted, the one after withdrawing it. Whatever was decided before stands."""
    if patience is None or entry.started_at + patience.lasts > clock.now():
        return answer
    with hold(lease) as run:
        return gates.current().withdraw(run, answer.action_id, by=agent, reason=patience.reason)


def for_answer(entry: JournalEntry, answer: gates.Waiting | gates.Recallable, patience: Patience | None, *, revisable: bool) -> Waits:
    """What the run waits for, with the time at which it looks again by itself."""
    if isinstance(answer, gates.Recallable):
        until = RunWaiting(on="timer", action=answer.action_id, until=answer.until)
        return Waits(until, wake_in=(answer.until - clock.now()).total_seconds())
    waits = RunWaiting(on="decision", action=answer.action_id, until=answer.until, needs=answer.needs, revisable=revisable or None)
    return Waits(waits, wake_in=(entry.started_at + patience.lasts - clock.now()).total_seconds() if patience else None)
