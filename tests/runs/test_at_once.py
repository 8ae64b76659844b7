"""A writer that knows the run as it is commits in one statement; whoever came in between sends it to the lock, and nothing is half done."""

import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection

from config import clock
from runs import log
from runs.engine import lease
from runs.engine.lease import Claim
from runs.engine.outcomes import Interrupted
from runs.engine.walk import Walk
from runs.errors import StaleToken
from runs.lifecycle import State
from runs.log import ENGINE, Held, Seen, Text
from runs.models import Event, Lease, Run
from runs.verification import Whole, verify
from runs.vocabulary import BudgetExceeded, MilestoneReached, NotePosted, RunPaused
from tests import factories
from tests.together import together
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(cast) -> Run:
    return factories.make_run(cast)


@pytest.fixture
def walk(run) -> Walk:
    """A walk that has seen the run."""
    made = Walk(Run.objects.select_related("agent").get(pk=run.pk), Claim(run.pk, token_of(run), "w-1"))
    with made.hold() as held:
        held.append(MilestoneReached(), actor=ENGINE)
    return made


def token_of(run: Run) -> int:
    return Lease.objects.get(run_id=run.pk).token


def say(text: str):
    def write(held: Held) -> None:
        held.append(NotePosted(), actor=ENGINE, texts={"note": Text(text)})

    return write


def seen_of(walk: Walk) -> Seen:
    return walk._last.seen


def at_once(walk: Walk) -> Seen | None:
    return log.at_once(seen_of(walk), walk.lease.token, say("at once"))


def count(run: Run) -> int:
    assert isinstance(verify(Run.objects.get(pk=run.pk)), Whole)
    return Event.objects.filter(run_id=run.pk).count()


def test_what_nobody_else_touched_is_written_in_one_statement(run, walk):
    before = count(run)
    for number in range(5):
        walk.write(say(f"note {number}"))
    assert count(run) == before + 5 == Run.objects.get(pk=run.pk).seq
    assert bool(at_once(walk)) is (connection.vendor == "postgresql")  # elsewhere everything is written under the lock


def test_whoever_wrote_meanwhile_sends_the_writer_to_the_lock_with_the_run_as_it_is_then(run, walk):
    factories.note(run)
    before = count(run)
    assert at_once(walk) is None
    assert count(run) == before
    rows = []
    walk.write(lambda held: (rows.append(held.row.seq), say("after it")(held)))
    assert rows[-1] == before, "it was told of the run as it was before"
    assert count(run) == before + 1


def test_a_change_that_no_event_tells_of_is_seen_too(run, walk):
    Run.objects.filter(pk=run.pk).update(wake_at=clock.now() + timedelta(hours=1), tokens=70)
    walk.write(lambda held: (held.change(tokens=held.row.tokens + 1), say("counted")(held)))
    assert Run.objects.get(pk=run.pk).tokens == 71


def test_a_worker_that_was_overtaken_writes_nothing(run, walk):
    before = count(run)
    Lease.objects.filter(run_id=run.pk).update(token=walk.lease.token + 1)
    assert at_once(walk) is None
    with pytest.raises(StaleToken):
        walk.write(say("late"))
    assert count(run) == before


def test_a_run_that_was_paused_meanwhile_interrupts_the_writer(run, walk):
    with log.holding(run.pk) as held:
        held.move(State.PAUSED, RunPaused(signal=uuid4()), actor=ENGINE)
    before = count(run)
    with pytest.raises(Interrupted):
        walk.write(say("late"))
    assert count(run) == before


def test_whoever_waits_for_the_row_writes_after_what_was_committed_there(run, walk):
    """The run is taken over in a transaction that is still open when the old worker writes."""
    holds, asked = threading.Event(), threading.Event()
    before = count(run)

    def takes_over() -> None:
        with log.holding(run.pk) as held:
            lease.fence_out(run.pk)
            holds.set()
            assert asked.wait(30)
            until(lambda: blocked() or connection.vendor == "sqlite", within=30, what="the writer waits")
            held.change(waiting={})

    def writes() -> None:
        assert holds.wait(30)
        asked.set()
        walk.write(say("late"))

    _, late = together([takes_over, writes])
    assert isinstance(late, StaleToken), late
    assert count(run) == before


def blocked() -> bool:
    """Whether somebody waits for a lock."""
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")  # pg_stat_activity stands still within a transaction
        return cursor.fetchone()[0] > 0


def test_many_who_write_so_at_once_leave_a_dense_log(run, walk):
    """Branches of one walk share what was seen; each finds the others' events there and goes to the lock."""
    before = count(run)
    others = [walk.on(f"parallel-1.{number}/") for number in range(4)]

    def write(branch: Walk) -> None:
        for turn in range(6):
            branch.write(say(f"turn {turn}"))

    answers = together([lambda branch=branch: write(branch) for branch in others])
    assert answers == [None] * 4
    assert count(run) == before + 24 == Run.objects.get(pk=run.pk).seq


def test_what_somebody_is_told_of_is_written_with_the_notice_or_not_at_all(run, walk, monkeypatch):
    """A listener writes in the same transaction, so that what it listens to is written under the lock alone."""
    told: list[bool] = []
    monkeypatch.setitem(log.listeners, lambda held: told.append(connection.in_atomic_block), frozenset({"budget.exceeded"}))
    walk.write(lambda held: held.append(BudgetExceeded(budget="steps", used=2, limit=1), actor=ENGINE))
    walk.write(say("nobody listens"))
    assert told == [True]


def test_what_fails_to_be_written_is_not_there(run, walk):
    """A mistake in the writer's own code, after it has appended."""
    before = count(run)

    def fails(held: Held) -> None:
        say("half")(held)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        walk.write(fails)
    assert count(run) == before
    walk.write(say("whole"))
    assert count(run) == before + 1
