"""A run's journal: read page by page by whoever goes on with it, whatever the length, and nothing that is completed is done again."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals import policy
from runs.engine import journal
from runs.engine.journal import Journal
from runs.engine.tools import Call, tool
from runs.engine.workflow import Channel, workflow
from runs.models import JournalEntry, Run
from runs.verification import Whole, verify
from tests.runs import workflows
from tests.runs.test_engine import approve, start, walk
from tests.runs.workflows import World

pytestmark = pytest.mark.django_db(transaction=True)
LONG = "a long text, " * 4000
asked: list[int] = []


@tool(effect="read", title="Count")
def count(call: Call, number: int) -> dict[str, object]:
    asked.append(number)
    return {"number": number, "text": LONG if number == 3 else ""}


@workflow("test-counts", version=1)
def counts(run: Channel, times: int) -> None:
    for number in range(times):
        assert run.step(count, number)["number"] == number
    assert run.step(count, 3)["text"] == LONG
    answer = run.propose(workflows.say, to=["a@example.org"], text=f"There are {times}.")
    if answer.approved:
        run.perform(answer)


@pytest.fixture
def outside() -> World:
    asked.clear()
    return workflows.reset()


@pytest.fixture
def run(cast, outside, monkeypatch) -> Run:
    """It has done 25 steps, and waits. Its journal is read four entries at a time."""
    monkeypatch.setattr(journal, "PAGE", 4)
    monkeypatch.setattr(journal, "AHEAD", 6)
    monkeypatch.setattr(journal, "SMALL", 1000)
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    run = start(cast, "test-counts", {"times": 24}, scope={})
    assert walk(run) == "waiting"
    return run


def test_a_replay_of_many_pages_asks_for_nothing_again(cast, run, outside):
    approve(cast, run)
    assert walk(run) == "succeeded"
    assert asked == [*range(24), 3] and len(outside.done) == 1
    assert list(JournalEntry.objects.filter(run=run).order_by("position").values_list("position", flat=True)) == [*range(1, 28)]
    assert isinstance(verify(run), Whole)


def test_steps_that_are_asked_for_in_another_order_are_found(run):
    found = Journal(run.pk, token=0)
    for number in (20, 1, 25, 7, 2, 2):
        entry = found.find(f"count#{number}")
        assert entry is not None and journal.result_of(entry)["number"] == (number - 1 if number < 25 else 3)
    assert found.find("count#26") is None and found.find("propose.say#1").state == "started"


def test_what_is_in_memory_and_asked_of_the_database_does_not_grow_with_the_run(run):
    read = Journal(run.pk, token=0)
    with CaptureQueriesContext(connection) as taken:
        for number in range(1, 26):
            journal.result_of(read.find(f"count#{number}"))
            assert len(read._recorded._ahead) + len(read._recorded._given) <= journal.AHEAD + journal.PAGE
    assert len(taken) <= (25 // 4 + 1) * 2 + 4  # a page and its small results each, and the large ones


def test_a_step_that_is_begun_and_ended_at_once_is_written_once(run):
    rows = JournalEntry.objects.filter(run=run, kind="step")
    assert {entry.attempts for entry in rows} == {1} and rows.count() == 25 and run.steps == 26
