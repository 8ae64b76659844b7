"""What waits for one viewer: never a gap, never the same twice, never without bound."""

from hypothesis import given
from hypothesis import strategies as st

from runs.hub import KEPT, Batch, Feed


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
