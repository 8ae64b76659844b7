"""Changing a workflow under runs that wait: a new version beside the old, a version that is gone, code changed without a new one."""

from collections.abc import Iterator

import pytest

from access.rules import person
from approvals import policy
from runs import recovery
from runs.engine import workflow
from runs.engine.workflow import Channel
from runs.models import Event, Run
from tests.runs import workflows
from tests.runs.test_engine import approve, start, walk
from tests.runs.workflows import World, say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Whatever versions a test declares are gone after it."""
    newest, versions = dict(workflow.WORKFLOWS), dict(workflow.VERSIONS)
    yield
    for registry, before in ((workflow.WORKFLOWS, newest), (workflow.VERSIONS, versions)):
        registry.clear()
        registry.update(before)


def declare(version: int, text: str) -> None:
    @workflow.workflow("test-versions", version=version)
    def says(run: Channel) -> None:
        run.plan("Get approval", "Say it")
        answer = run.propose(say, to=["a@example.org"], text=text)
        if answer.approved:
            run.perform(answer)


@pytest.fixture
def run(cast, outside) -> Run:
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    declare(1, "The old way.")
    run = start(cast, "test-versions", {}, scope={})
    walk(run)
    return run


def parked(run: Run) -> str:
    return Event.objects.filter(run_id=run.pk, type="run.parked").latest("seq").body


def test_a_new_version_beside_the_old_lets_both_finish(cast, run, outside):
    declare(2, "The new way.")
    newer = start(cast, "test-versions", {}, scope={})
    assert (run.workflow_version, newer.workflow_version) == (1, 2)
    walk(newer)
    for each in (run, newer):
        approve(cast, each)
        assert walk(each) == "succeeded"
    assert [text for _, _, text in outside.done] == ["The old way.", "The new way."]


def test_an_old_version_that_is_declared_late_does_not_become_the_newest(cast, run):
    declare(3, "The newest.")
    declare(2, "Late.")
    assert start(cast, "test-versions", {}, scope={}).workflow_version == 3


def test_a_version_that_is_gone_leaves_its_run_stuck_until_it_comes_back(cast, run, outside):
    old = workflow.VERSIONS.pop(("test-versions", 1))
    approve(cast, run)
    assert walk(run) == "parked" and "workflow_missing" in parked(run)
    workflow.VERSIONS["test-versions", 1] = old
    recovery.choose(run, "retry", at=recovery.parking(run).seq, by=person(cast.otto.pk))
    assert walk(run) == "succeeded" and len(outside.done) == 1


def test_code_that_changed_under_a_waiting_run_parks_it_with_the_step_named(cast, run, outside):
    declare(1, "Changed without a new version.")
    approve(cast, run)
    assert walk(run) == "parked" and "propose.say#1" in parked(run) and "code_changed" in parked(run)
    assert outside.done == []
