"""What waits for one viewer: never a gap, never the same twice, never without bound."""

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.rules import Actor
from runs import endings, hub, intake, starting
from runs.hub import KEPT, Batch, Feed
from runs.intake import Told


def batch(first: int, last: int) -> Batch:
    return Batch([b"{}"] * (last - first + 1), list(range(first, last + 1)), last, False)


def test_what_follows_the_cursor_is_given_as_it_is():
    feed = Feed(("human", "1", 1))
    given = batch(4, 6)
    feed.put(given)
    assert feed.take(3) is given
    assert feed.take(6) is None and not feed.behind


def test_what_was_read_already_is_left_out():
    feed = Feed(("human", "1", 1))
    feed.put(batch(1, 3))
    feed.put(batch(4, 6))
    assert feed.take(4).seqs == [5, 6]


def test_a_gap_sends_the_viewer_to_the_log():
    feed = Feed(("human", "1", 1))
    feed.put(batch(5, 6))
    assert feed.take(3) is None and feed.behind


def test_a_slow_viewer_is_sent_to_the_log_instead_of_being_kept_for():
    feed = Feed(("human", "1", 1))
    for n in range(KEPT + 5):
        feed.put(batch(n + 1, n + 1))
    assert feed.behind
    assert sum(len(waiting.lines) for waiting in feed.batches) <= KEPT


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 9)), max_size=40), st.integers(0, 30))
def test_whatever_comes_the_viewer_gets_a_dense_row(spans, cursor):
    feed = Feed(("human", "1", 1))
    for first, more in spans:
        feed.put(batch(first, first + more))
        while (taken := feed.take(cursor)) is not None:
            assert taken.seqs == list(range(cursor + 1, cursor + 1 + len(taken.seqs)))
            cursor = taken.seqs[-1]


@pytest.mark.django_db(transaction=True)
def test_a_wake_is_read_once_for_all_who_watch(cast, monkeypatch):
    by = Actor("agent", str(cast.agent.pk), cast.agent.name)
    run = starting.start(agent=cast.agent, owner=cast.priya, by=by, title="Watched", agent_version="1")
    reads: list[int] = []
    read = hub._read
    monkeypatch.setattr(hub, "_read", lambda run_id, after, standings: (reads.append(after), read(run_id, after, standings))[1])

    async def recheck() -> Actor:
        return by

    async def watch(seqs: list[int]) -> None:
        async with aclosing(hub.follow(run.pk, after=0, actor=by, recheck=recheck)) as batches:
            async for batch in batches:
                seqs += batch.seqs

    async def scene() -> list[list[int]]:
        seen: list[list[int]] = [[] for _ in range(50)]
        watching = [asyncio.create_task(watch(seqs)) for seqs in seen]
        await until_async(lambda: hub.hub().connected and seen == [[1, 2]] * 50)
        await hub.in_thread(intake.accept)(run, [Told("a", "milestone.reached")], by=by)
        await until_async(lambda: seen == [[1, 2, 3]] * 50)
        await hub.in_thread(endings.end)(run, "failed", by=by)
        await asyncio.gather(*watching)
        return seen

    assert asyncio.run(scene()) == [[1, 2, 3, 4]] * 50
    assert reads == [2, 3]


def test_every_look_that_a_message_begins_is_kept_until_it_has_ended(monkeypatch):
    begun: list[int] = []

    async def scene() -> None:
        here, go = hub.Hub(), asyncio.Event()

        async def doubt() -> None:
            begun.append(1)
            await go.wait()

        monkeypatch.setattr(here, "_doubt", doubt)
        for _ in range(3):
            here._heard({"type": "message", "data": b'{"rights": true}'})
        assert len(here.looks) == 3
        go.set()
        await until_async(lambda: not here.looks)

    asyncio.run(scene())
    assert begun == [1, 1, 1]


async def until_async(condition: Callable[[], Any], within: float = 40) -> None:
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
