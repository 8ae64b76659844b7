"""Retries: a pure policy with stop conditions, and what of a failure is told."""

from datetime import timedelta

import pytest

from approvals import policy
from artifacts import vault
from config import clock
from runs.engine.retry import Again, Retry, Stop, decide
from runs.engine.tools import MAX_SAID, OddAnswer, ToolError, Unavailable
from runs.models import Event, JournalEntry, Run
from tests.runs import workflows
from tests.runs.test_engine import again, approve, start, types, walk
from tests.runs.workflows import World

POLICY = Retry(attempts=4, first=0.5, factor=3, longest=2, elapsed=60)


@pytest.mark.parametrize(
    ("given", "follows"),
    [
        ({"attempt": 1}, Again(0.5)),
        ({"attempt": 2}, Again(1.5)),
        ({"attempt": 3}, Again(2)),
        ({"attempt": 4}, Stop("attempts")),
        ({"attempt": 1, "retryable": False}, Stop("final")),
        ({"attempt": 2, "elapsed": 60.0}, Stop("elapsed")),
        ({"attempt": 2, "error": "error", "before": "error"}, Stop("same_error")),
        ({"attempt": 2, "error": "error", "before": "timeout"}, Again(1.5)),
        ({"attempt": 2, "error": "unavailable", "before": "unavailable"}, Again(1.5)),  # time alone may cure it
        ({"attempt": 2, "error": "timeout", "before": "timeout"}, Again(1.5)),
    ],
)
def test_what_follows_a_failure(given, follows):
    assert decide(POLICY, **{"retryable": True} | given) == follows


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def run(cast, outside) -> Run:
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    return start(cast, "test-talk", {"thing": "tea"})


def why(run: Run) -> str:
    parked = Event.objects.get(run_id=run.pk, type="run.parked")
    return next(iter(vault.shown(parked.payloads.values()).values())).text


@pytest.mark.django_db(transaction=True)
def test_the_same_error_on_the_same_input_is_not_tried_a_third_time(run, outside):
    outside.fail_next(ToolError("a bad plan"), ToolError("a bad plan"))
    assert walk(run) == "waiting"
    again(run)
    assert walk(run) == "parked" and outside.reads == 2
    assert "It was the same error on the same input" in why(run)


@pytest.mark.django_db(transaction=True)
def test_what_a_tools_own_code_raises_is_a_failure_of_the_step_and_not_of_the_workflow(run, outside):
    outside.fail_next(KeyError("sk-live-1234567890abcdef"), KeyError("sk-live-1234567890abcdef"))
    assert walk(run) == "waiting" and run.waiting["on"] == "retry"
    again(run)
    assert walk(run) == "parked" and why(run).startswith("Look: The tool’s code failed (KeyError).")


@pytest.mark.django_db(transaction=True)
def test_what_time_may_cure_is_tried_as_often_as_it_may_be(run, outside):
    outside.fail_next(*[Unavailable("down")] * 3)
    for _ in range(2):
        assert walk(run) == "waiting"
        again(run)
    assert walk(run) == "parked" and outside.reads == 3 and why(run) == "Look: down. Its attempts are used up."


@pytest.mark.django_db(transaction=True)
def test_a_send_is_tried_for_so_long_and_no_longer(cast, run, outside):
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    walk(run)
    approve(cast, run)
    outside.fail_next(Unavailable("down"), Unavailable("down"))
    assert walk(run) == "waiting"
    JournalEntry.objects.filter(run=run, step="perform#1").update(started_at=clock.now() - timedelta(hours=2))
    again(run)
    assert walk(run) == "parked" and outside.done == []


@pytest.mark.django_db(transaction=True)
def test_an_answer_that_does_not_fit_is_not_tried_again(run, outside):
    outside.fail_next(OddAnswer("no such field"))
    assert walk(run) == "parked" and outside.reads == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("step", ["look#1", "model.phrase#1"])
def test_a_replay_that_asks_a_completed_read_for_something_else_uses_what_it_gave_and_says_so_once(run, outside, step):
    walk(run)
    JournalEntry.objects.filter(run=run, step=step).update(input_digest="0" * 64)
    for _ in range(2):
        Run.objects.filter(pk=run.pk).update(state="queued", waiting={}, wake_at=None)
        assert walk(run) == "waiting"
    notes = Event.objects.filter(run_id=run.pk, type="note.posted")
    said = [next(iter(vault.shown(note.payloads.values()).values())).text for note in notes]
    assert said == [f"The code changed at {step}: it asks for something else now. What it gave before is used."]
    assert outside.reads == 1 and types(run).count("model.called") == 1


@pytest.mark.parametrize("before", range(MAX_SAID - 24, MAX_SAID, 3))
def test_what_a_long_error_quotes_does_not_end_within_a_secret(before):
    said = ToolError("x" * before + " sk-live-4hT9xQ2mW7vB1nC8 " + "y" * 50_000).said
    assert MAX_SAID - 30 < len(said) <= MAX_SAID
    assert "sk-" not in said
