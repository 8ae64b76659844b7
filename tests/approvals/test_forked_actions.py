"""The card of an action in a fork: what the run it was forked from did at this step, and what that one has read."""

from dataclasses import replace

import pytest
from django.test import Client

from access.rules import person
from approvals import policy, presenting
from approvals.models import ProposedAction
from runs.engine import forking
from runs.engine.tools import TOOLS
from runs.models import Run
from tests.runs import workflows
from tests.runs.test_engine import approve, start, walk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(cast) -> Run:
    workflows.reset()
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    run = start(cast, "test-talk", {"thing": "tea"})
    walk(run)
    approve(cast, run)
    assert walk(run) == "succeeded"
    return run


def card(cast, run: Run, **more) -> str:
    made = forking.fork(run, by=person(cast.otto.pk), key=str(more), step="model.phrase#1", **more)
    walk(made)
    riley = Client()
    riley.force_login(cast.riley)
    return riley.get(f"/actions/{ProposedAction.objects.get(run=made, tool='say').pk}").content.decode()


def test_who_decides_sees_what_was_done_before_at_this_step(cast, run):
    same = card(cast, run)
    assert f'Done before in <a href="/runs/{run.pk}">{run.ref}</a>' in same and "It was exactly this." in same
    other = card(cast, run, edits={"thing": "coffee"})
    assert "It was done with other input" in other and "under a key of its own" in other


def test_what_the_run_it_was_forked_from_has_read_is_told_with_the_fork(cast, run, monkeypatch):
    monkeypatch.setitem(TOOLS, "look", replace(TOOLS["look"], reads_private=True, reads_untrusted=True))
    page = card(cast, run)
    assert page.count(f"In {run.ref}, from which it was forked") == 2 and "read private and outside text" in page


def test_a_run_without_forks_asks_for_none(cast, run, django_assert_num_queries):
    from approvals import lineage

    action = ProposedAction.objects.select_related("run").get(run=run, tool="say")
    with django_assert_num_queries(0):
        assert lineage.earlier(action) == ()
    assert presenting.panel(presenting.find(person(cast.riley.pk), action.pk), person(cast.riley.pk)).earlier == ()
