"""The same thing again in a run, after it was done or rejected, is told to who decides: by what it is, not by its nonce."""

import pytest

from access.rules import person
from approvals import decisions, policy
from approvals.errors import WarningNotTicked
from approvals.models import ProposedAction
from runs import starting
from runs.engine import executor
from runs.engine.tools import Call, tool
from runs.engine.workflow import Channel, workflow

pytestmark = pytest.mark.django_db(transaction=True)
written: list[str] = []


@tool(effect="write", title="Write it down", prepare=lambda a, nonce: a | {"mark": f"<{nonce}@fernhill.example>"}, fixed=("mark",))
def write_down(call: Call, text: str, mark: str = "") -> None:
    written.append(text)


@workflow("test-repeating", version=1, title="Write things down")
def repeating(run: Channel, texts: list[str]) -> None:
    run.plan("Get approval", "Write it down")
    for text in texts:
        answer = run.propose(write_down, text=text)
        if answer.approved:
            run.perform(answer)


@pytest.fixture
def start(cast):
    policy.set_rule(cast.workspace.pk, write_down.name, name="Notes", outcome="reviewers", by=None)

    def started(*texts: str):
        owner = cast.agent.owner
        given = {"agent": cast.agent, "owner": owner, "by": person(owner.pk), "title": "Notes", "workflow": "test-repeating"}
        run = starting.start(**given, arguments={"texts": list(texts)}, scope={})
        assert executor.execute(run.pk) == "waiting"
        return run

    return started


def waiting(run) -> ProposedAction:
    return ProposedAction.objects.get(run=run, state="waiting")


def told(action: ProposedAction) -> dict[str, int]:
    return {warning["code"]: warning["params"]["count"] for warning in action.warnings}


def decide(action: ProposedAction, by, verdict: str, *acks: str) -> None:
    reason = "Once is enough." if verdict == "rejected" else ""
    decisions.decide(action, reviewer=person(by.pk), verdict=verdict, digest=action.digest, reason=reason, seen={}, acks=acks)


def test_what_was_done_before_in_the_run_is_a_repeat_that_asks_for_a_tick(cast, start):
    run = start("a", "a")
    assert told(waiting(run)) == {}
    decide(waiting(run), cast.riley, "approved")
    assert executor.execute(run.pk) == "waiting"
    again = waiting(run)
    assert told(again) == {"repeat_of_executed": 1}
    with pytest.raises(WarningNotTicked):
        decide(again, cast.riley, "approved")
    decide(again, cast.riley, "approved", "repeat_of_executed")
    assert again.digest != ProposedAction.objects.filter(run=run).order_by("proposed_seq").first().digest


def test_what_was_rejected_before_in_the_run_is_told(cast, start):
    run = start("b", "b", "b")
    for times in (0, 1, 2):
        action = waiting(run)
        assert told(action) == ({"repeat_of_rejected": times} if times else {})
        decide(action, cast.sam, "rejected")
        executor.execute(run.pk)
    assert "b" not in written


def test_another_thing_and_another_run_are_no_repeat(cast, start):
    run = start("c", "d")
    decide(waiting(run), cast.riley, "approved")
    executor.execute(run.pk)
    assert told(waiting(run)) == {}
    assert told(waiting(start("c"))) == {}
