"""Who is told of a run that needs somebody: stuck, handed over, asking, over a limit."""

import pytest

from access.rules import person
from approvals import policy
from approvals.notifications import audience, wording
from approvals.notifications.models import Notice
from runs import questions, recovery, signals, updates
from runs.engine.tools import Declined
from runs.models import Run
from tests.cast import member
from tests.runs import workflows
from tests.runs.test_engine import start, walk

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture(autouse=True)
def outside(cast) -> workflows.World:
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    return workflows.reset()


def told(run: Run, kind: str) -> set[str]:
    """Who would be told of it now, by all the notices of this kind."""
    notices = Notice.objects.filter(run=run, kind=kind).select_related(*audience.OF_ACTION)
    return {user.name for notice in notices for user in audience.people(notice)}


def says(run: Run, kind: str) -> str:
    item = wording.item(Notice.objects.select_related(*audience.OF_ACTION).filter(run=run, kind=kind).latest("created_at"), "UTC")
    return f"{item.title}. {item.text} {item.link}"


def test_who_can_help_a_run_is_told_and_nobody_once_it_goes_on(cast, outside):
    asking = start(cast, "test-asks", {})
    walk(asking)
    assert told(asking, "asks") == {"Otto"}, "the only one who may steer"
    assert says(asking, "asks") == f"Run {asking.ref} asks you something. It waits for the answer. https://handrail.test/runs/{asking.pk}"
    questions.answer(asking, questions.asked(asking).id, "Tea.", by=person(cast.otto.pk))
    assert told(asking, "asks") == set()

    over = start(cast, "test-talk", {"thing": "tea"})
    updates.set_budgets(over, {"steps": 1}, by=person(cast.otto.pk))
    walk(over)
    assert told(over, "budget") == {"Otto"} and "has used up a limit" in says(over, "budget")
    updates.set_budgets(over, {"steps": 9}, by=person(cast.otto.pk))
    assert told(over, "budget") == set()


def test_who_may_recover_a_stuck_run_is_told_until_it_is_somebodys(cast, outside):
    outside.fail_next(Declined("no"))
    run = start(cast, "test-talk", {"thing": "tea"})
    assert walk(run) == "parked"
    assert told(run, "stuck") == {"Otto"} and "is stuck" in says(run, "stuck") and "/recovery" in says(run, "stuck")
    recovery.choose(run, "hand_over", at=recovery.parking(run).seq, by=person(cast.otto.pk), to=cast.otto)
    assert told(run, "stuck") == set() and not Notice.objects.filter(run=run, kind="handed").exists(), "who takes it knows"


def test_whom_a_stuck_run_is_handed_to_is_told_and_not_once_it_ended(cast, outside):
    outside.fail_next(Declined("no"))
    run = start(cast, "test-talk", {"thing": "tea"})
    walk(run)
    olu = member(cast.workspace, "olu", "operator")
    assert told(run, "stuck") == {"Otto", "Olu"}
    recovery.choose(run, "hand_over", at=recovery.parking(run).seq, by=person(cast.otto.pk), to=olu)
    assert told(run, "handed") == {"Olu"} and told(run, "stuck") == set()
    signals.send(run, kind="cancel", key="1", by=person(cast.otto.pk))
    assert told(run, "handed") == set()
