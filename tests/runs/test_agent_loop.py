"""An open agent loop is as durable as a fixed workflow: each turn and call is a step, and what makes no sense is refused back to it."""

from typing import Any

import pytest

from access.rules import person
from approvals import decisions, policy
from approvals.models import ProposedAction
from runs.engine import executor
from runs.models import Event, Lease, Run
from runs.verification import Whole, verify
from tests.runs import workflows
from tests.runs.test_engine import approve, start, types, walk
from tests.runs.workflows import World

pytestmark = pytest.mark.django_db(transaction=True)
DONE = {"done": {"answer": "Said."}}


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def run(cast, outside) -> Run:
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    return start(cast, "test-agent", {}, scope={"thing": ["tea"]})


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"call": {"tool": tool, "arguments": arguments}}


def test_it_reads_writes_and_sends_as_the_model_chooses_and_each_is_a_gated_step(cast, run, outside):
    outside.turns = [call("look", thing="tea"), call("note_it", text="There is tea."), call("say", to=["a@example.org"], text="Tea!"), DONE]
    assert walk(run) == "waiting" and [what for _, what, _ in outside.done] == ["note"]
    approve(cast, run)
    assert walk(run) == "succeeded" and [what for _, what, _ in outside.done] == ["note", "say"]
    assert outside.reads == 1 and types(run).count("model.called") == 4
    assert [entry.get("tool") for entry in outside.told] == ["look", "note_it", "say"]
    assert isinstance(verify(run), Whole)


def test_an_invented_tool_is_refused_back_to_the_model_and_told(run, outside):
    outside.turns = [call("wire_money", amount=1), call("look", thing="tea"), DONE]
    assert walk(run) == "succeeded"
    assert "There is no tool called wire_money." in outside.told[0]["refused"] and "result" in outside.told[1]
    assert types(run).count("block.raised") == 1


@pytest.mark.parametrize("name", ["\u202e", "", "x" * 500, "drop table;\n--"])
def test_whatever_it_calls_an_invented_tool_the_log_can_hold_it(run, outside, name):
    outside.turns = [call(name), DONE]
    assert walk(run) == "succeeded" and types(run).count("block.raised") == 1


def test_arguments_that_do_not_fit_are_refused_back(run, outside):
    outside.turns = [call("look", thing=7), call("look", what="tea"), {"call": "look"}, {"tool": "look"}, DONE]
    assert walk(run) == "succeeded" and outside.reads == 0
    assert all("refused" in entry for entry in outside.told)


def test_the_same_call_again_is_noticed_and_not_made(run, outside):
    outside.turns = [call("look", thing="tea"), call("look", thing="tea"), DONE]
    assert walk(run) == "succeeded" and outside.reads == 1
    assert "exactly this before" in outside.told[1]["refused"]


def test_a_rejection_comes_back_with_its_reason(cast, run, outside):
    outside.turns = [call("say", to=["a@example.org"], text="Tea!"), DONE]
    walk(run)
    action = ProposedAction.objects.get(run=run)
    decisions.decide(action, reviewer=person(cast.riley.pk), verdict="rejected", digest=action.digest, reason="Say coffee.")
    assert walk(run) == "succeeded" and outside.done == []
    assert outside.told[0]["refused"] == "Say it: rejected. Say coffee."


def test_a_loop_that_leads_to_nothing_stops_and_so_does_one_that_never_ends(cast, run, outside):
    outside.turns = [{"done": {}}] * 20
    assert walk(run) == "parked" and types(run).count("model.called") == 5
    outside.turns = [call("look", thing="tea"), *[call("note_it", text=str(n)) for n in range(30)]]
    endless = start(cast, "test-agent", {}, scope={"thing": ["tea"]})
    assert walk(endless) == "parked" and types(endless).count("model.called") == 10
    assert '"reason":"agent_stopped"' in Event.objects.get(run_id=endless.pk, type="run.parked").body


def test_a_killed_worker_asks_the_model_for_no_turn_again(run, outside, monkeypatch):
    outside.turns = [call("look", thing="tea"), call("note_it", text="There is tea."), DONE]

    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    monkeypatch.setattr("runs.engine.effects._settle", die)
    with pytest.raises(Killed):
        executor.execute(run.pk)
    monkeypatch.undo()
    Lease.objects.filter(run=run).update(until=None)
    for _ in range(3):
        if walk(run) == "succeeded":
            break
    assert run.state == "succeeded" and types(run).count("model.called") == 3 and outside.reads == 1
    assert [what for _, what, _ in outside.done] == ["note"]
