"""Where a run can be and where it can go from there: one literal, with no state forgotten and no way back from an ending."""

import pytest
from django.db import IntegrityError, transaction

from runs import lifecycle
from runs.lifecycle import ENDINGS, PAGE_WORDS, TERMINAL, TRANSITIONS, State
from runs.models import Run
from tests import factories

LIVE = [state for state in State if state not in TERMINAL]
# what a page says of each state
WORDS = {
    "Running": {"queued", "running"},
    "Waiting": {"waiting"},
    "Paused": {"paused"},
    "Stuck": {"parked", "stalled"},
    "Undoing": {"cancelling", "compensating"},
    "Done": {"succeeded"},
    "Failed": {"failed"},
    "Cancelled": {"cancelled"},
}


def test_every_state_says_where_it_may_go():
    assert set(TRANSITIONS) == set(State)
    assert {after for ways in TRANSITIONS.values() for after in ways} <= set(State)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_nothing_leads_out_of_an_ending(state):
    assert TRANSITIONS[state] == frozenset()
    assert lifecycle.ended(state)
    assert not any(lifecycle.may(state, other) for other in State)


def test_the_endings_are_the_states_of_the_events_that_end_a_run():
    assert {State.SUCCEEDED, State.FAILED, State.CANCELLED} == TERMINAL == set(ENDINGS.values())
    assert set(ENDINGS) == {"run.succeeded", "run.failed", "run.cancelled"}
    assert not any(lifecycle.ended(state) for state in LIVE)


def test_no_state_leads_to_itself():
    assert [state for state in State if lifecycle.may(state, state)] == []


def reachable(start: State) -> set[State]:
    found, ahead = set(), [start]
    while ahead:
        for after in TRANSITIONS[ahead.pop()] - found:
            found.add(after)
            ahead.append(after)
    return found


def test_a_new_run_can_get_everywhere():
    assert reachable(State.QUEUED) | {State.QUEUED} == set(State)


@pytest.mark.parametrize("state", LIVE)
def test_from_everywhere_a_run_can_be_cancelled(state):
    assert State.CANCELLED in reachable(state)
    assert State.CANCELLED in TRANSITIONS[state] or State.PARKED in TRANSITIONS[state], "at once, or an operator can"


def test_a_run_that_was_stopped_goes_on_by_the_queue_alone():
    """Resume goes to queued, and the executor derives the rest. An agent outside is in no queue: a decision has its run go on at once."""
    for stopped in (State.WAITING, State.PAUSED, State.PARKED):
        assert State.QUEUED in TRANSITIONS[stopped]
        assert (State.RUNNING in TRANSITIONS[stopped]) == (stopped == State.WAITING)


def test_only_a_run_at_work_succeeds():
    assert {state for state in State if State.SUCCEEDED in TRANSITIONS[state]} == {State.RUNNING, State.STALLED}


def test_a_cancel_is_never_taken_back():
    for undoing in (State.CANCELLING, State.COMPENSATING):
        assert not TRANSITIONS[undoing] & {State.QUEUED, State.RUNNING, State.WAITING, State.PAUSED, State.SUCCEEDED}


def test_every_state_has_its_word_on_a_page():
    assert {state.value: PAGE_WORDS[state] for state in State} == {state: word for word, states in WORDS.items() for state in states}


def test_states_are_asked_for_by_their_names_too():
    assert lifecycle.may("queued", "running") and not lifecycle.may("succeeded", "running")
    with pytest.raises(ValueError, match="dreaming"):
        lifecycle.may("dreaming", "running")


@pytest.mark.django_db(transaction=True)
def test_the_database_knows_the_states_and_that_an_ending_has_its_time(cast):
    run = factories.make_run(cast)
    for row in ({"state": "dreaming"}, {"state": "succeeded"}, {"ended_at": run.created_at}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Run.objects.filter(pk=run.pk).update(**row)
    assert Run.objects.get(pk=run.pk).state == "running"
