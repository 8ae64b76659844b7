"""Resuming a stuck run from the middle: an earlier step is done anew in the same run, where nothing was done outside since."""

import pytest
from django.test import Client

from access.rules import person
from approvals import policy
from runs import recovery
from runs.engine import resuming
from runs.engine.tools import TOOLS, Declined
from runs.models import Event, JournalEntry, Run
from runs.verification import Whole, verify
from tests.approvals.mailing import text
from tests.runs import workflows
from tests.runs.test_engine import approve, start, types, walk
from tests.runs.workflows import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def run(cast, outside) -> Run:
    """Stuck in its second look, after it asked the model."""
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    run = start(cast, "test-looks", {"thing": "tea"})
    outside.faults = [None, Declined("no")]
    assert walk(run) == "parked"
    return run


def retry(cast, run: Run, step: str) -> None:
    at = recovery.parking(run).seq
    recovery.choose(run, "retry", at=at, by=person(cast.otto.pk), step=step)
    run.refresh_from_db()


def test_a_stuck_run_is_resumed_from_an_earlier_step_and_what_came_after_it_is_done_anew(cast, run, outside):
    retry(cast, run, "model.phrase#1")
    assert [e.step for e in JournalEntry.objects.filter(run=run).order_by("position")] == ["plan#1", "look#1", "context#1"]
    assert walk(run) == "waiting" and outside.reads == 3  # the first look is kept
    asked = [kind for kind in types(run) if kind == "model.called"]
    assert len(asked) == 2 and isinstance(verify(run), Whole)
    approve(cast, run)
    assert walk(run) == "succeeded" and [what for _, what, _ in outside.done] == ["say"]
    assert '"step":"model.phrase#1"' in Event.objects.get(run_id=run.pk, type="deadletter.resolved").body


def test_what_was_proposed_or_done_outside_is_never_forgotten(cast, run, outside):
    retry(cast, run, "look#1")
    walk(run)
    approve(cast, run)
    outside.faults = [Declined("no")]
    assert walk(run) == "parked"
    with pytest.raises(recovery.NotPossible, match="Fork the run"):
        retry(cast, run, "model.phrase#1")
    assert JournalEntry.objects.filter(run=run, kind="perform").exists() and recovery.parking(run) is not None


def test_what_led_there_is_told_and_a_step_that_did_what_was_approved_by_the_title_of_its_tool(cast, run, outside, sign_in):
    page = text(sign_in(cast.otto).get("/recovery"))
    assert 0 < page.index("“Phrase it” done") < page.index("“Look” failed")
    retry(cast, run, "look#1")
    walk(run)
    approve(cast, run)
    outside.faults = [Declined("no")]
    assert walk(run) == "parked"
    page, title = text(sign_in(cast.otto).get("/recovery")), TOOLS["say"].title
    assert page.index("“Look” failed") < page.index("“Phrase it” done") < page.index("” was not done"), "in order"
    assert f"Try again from “{title}”" in page and "what was approved" not in page


def test_of_a_long_run_the_latest_steps_are_offered_and_done_anew(cast, run, monkeypatch):
    monkeypatch.setattr(resuming, "LATEST", 3)
    assert resuming.steps(resuming.rows([run.pk])[run.pk]) == ["model.phrase#1"], "the first look lies before that"
    with pytest.raises(recovery.NotPossible):
        retry(cast, run, "look#1")
    retry(cast, run, "model.phrase#1")
    assert [e.step for e in JournalEntry.objects.filter(run=run).order_by("position")] == ["plan#1", "look#1", "context#1"]


def test_only_who_tries_again_says_from_where(cast, run):
    with pytest.raises(recovery.BadInput):
        recovery.choose(run, "give_up", at=recovery.parking(run).seq, by=person(cast.otto.pk), step="look#1")
    with pytest.raises(recovery.NotPossible):
        retry(cast, run, "nowhere#1")


def test_the_page_and_the_api_name_the_steps_and_take_one(cast, run):
    otto = Client()
    otto.force_login(cast.otto)
    assert otto.get(f"/api/v1/runs/{run.pk}/recovery").json()["steps"] == ["look#1", "model.phrase#1"]
    page = otto.get("/recovery").content.decode()
    assert '<option value="model.phrase#1">Phrase it, anew with all that came after it</option>' in page
    otto.post(f"/runs/{run.pk}/recovery", {"choice": "retry", "at": recovery.parking(run).seq, "step": "look#1"})
    run.refresh_from_db()
    assert run.state == "queued" and "from “Look” on" in otto.get(f"/runs/{run.pk}").content.decode()
