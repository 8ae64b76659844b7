"""A run walks its workflow, waits for people, survives whatever ends it early, and does nothing outside twice."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models import F

from access.rules import Actor, person
from approvals import decisions, execution, policy
from approvals.models import Grant, ProposedAction
from artifacts import vault
from config import clock
from runs import intake, signals, starting
from runs.engine import executor, lease, sweep
from runs.engine.tools import TOOLS, AnswerLost, Declined, Unavailable
from runs.errors import NotYourEvent
from runs.models import Event, JournalEntry, Lease, Run
from runs.verification import Whole, verify
from tests.runs import workflows
from tests.runs.workflows import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def run(cast, outside) -> Run:
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    return start(cast, "test-talk", {"thing": "tea"})


def start(cast, workflow, arguments, scope=None, title="A talk") -> Run:
    by = Actor("human", str(cast.agent.owner_id), "Priya")
    scope = scope if scope is not None else {"thing": ["tea"]}
    return starting.start(agent=cast.agent, owner=cast.agent.owner, by=by, title=title, workflow=workflow, arguments=arguments, scope=scope)


def walk(run: Run) -> str:
    word = executor.execute(run.pk)
    run.refresh_from_db()
    return word


def approve(cast, run: Run) -> ProposedAction:
    action = ProposedAction.objects.get(run=run, state="waiting")
    decisions.decide(action, reviewer=person(cast.riley.pk), verdict="approved", digest=action.digest)
    run.refresh_from_db()
    return action


def types(run: Run) -> list[str]:
    return list(Event.objects.filter(run_id=run.pk).order_by("seq").values_list("type", flat=True))


def test_an_approved_action_runs_once_and_the_run_ends_well(cast, run, outside):
    assert walk(run) == "waiting"
    assert run.state == "waiting" and run.waiting["on"] == "decision"
    assert outside.done == []
    approve(cast, run)
    assert run.state == "queued"
    assert walk(run) == "succeeded"
    assert [what for _, what, _ in outside.done] == ["note", "say"]
    assert types(run)[-1] == "run.succeeded" and types(run).count("run.succeeded") == 1
    assert isinstance(verify(run), Whole)
    assert walk(run) == "busy"
    assert len(outside.done) == 2


def test_what_was_not_performed_cannot_be_cited_as_done(cast, run, outside):
    soon = start(cast, "test-citing-too-soon", {})
    walk(soon)
    approve(cast, soon)
    assert walk(soon) == "parked" and outside.done == []
    parked = Event.objects.get(run_id=soon.pk, type="run.parked")
    assert "What was not performed" in " ".join(each.text for each in vault.shown(parked.payloads.values()).values())


@pytest.mark.parametrize("loaded", [2, 0])
def test_what_was_approved_for_another_version_of_the_tool_does_not_run(cast, run, outside, monkeypatch, loaded):
    walk(run)
    action = approve(cast, run)
    monkeypatch.setitem(TOOLS, "say", replace(TOOLS["say"], schema_version=loaded))
    assert walk(run) == "parked"
    assert [what for _, what, _ in outside.done] == ["note"] and Grant.objects.get(action=action).redeemed_at is None
    parked = Event.objects.get(run_id=run.pk, type="run.parked")
    said = " ".join(each.text for each in vault.shown(parked.payloads.values()).values())
    assert f"version 1 of its tool was approved, and version {loaded} is loaded here" in said


def test_arguments_of_an_earlier_version_are_brought_up_where_the_tool_knows_how(cast, run, outside, monkeypatch):
    walk(run)
    approve(cast, run)
    upcast = {1: lambda given: given | {"text": given["text"] + "?"}, 2: lambda given: given | {"text": given["text"] + "!"}}
    monkeypatch.setitem(TOOLS, "say", replace(TOOLS["say"], schema_version=3, upcast=upcast))
    assert walk(run) == "succeeded"
    assert outside.done[-1][1:] == ("say", "There is tea.?!")


def test_a_rejection_reaches_the_workflow_with_its_reason(cast, run, outside):
    walk(run)
    action = ProposedAction.objects.get(run=run)
    decisions.decide(action, reviewer=person(cast.riley.pk), verdict="rejected", digest=action.digest, reason="Say coffee.")
    assert walk(run) == "succeeded"
    assert outside.done == []
    report = Event.objects.get(run_id=run.pk, type="report.published")
    shown = vault.shown([report.payloads["body"]])
    assert next(iter(shown.values())).text == "Say coffee."


def test_a_finished_step_is_never_run_again(cast, run, outside):
    walk(run)
    assert outside.reads == 1
    approve(cast, run)
    walk(run)
    assert outside.reads == 1


def test_a_read_that_fails_is_tried_again_and_the_failures_are_told(cast, run, outside):
    outside.fail_next(Unavailable("not there"), Unavailable("not there yet"))
    assert walk(run) == "waiting"
    assert run.waiting["on"] == "retry"
    for _ in range(2):
        sweep.sweep()
        walk(run)
    assert outside.reads == 3
    assert types(run).count("step.failed") == 2
    assert run.waiting["on"] == "decision"


def test_a_read_that_keeps_failing_parks_the_run(cast, run, outside):
    outside.fail_next(*[Unavailable("gone")] * 5)
    for _ in range(3):
        walk(run)
        sweep.sweep()
    run.refresh_from_db()
    assert run.state == "parked"
    assert outside.reads == 3


def test_an_unregistered_tool_is_refused_and_does_nothing(cast, outside):
    run = start(cast, "test-unregistered", {})
    assert walk(run) == "parked"
    assert outside.done == []
    assert "block.raised" in types(run)


def test_a_read_outside_the_scope_is_refused(cast, outside):
    run = start(cast, "test-talk", {"thing": "coffee"})
    assert walk(run) == "parked"
    assert outside.reads == 0


def test_what_a_workflow_raises_parks_it_and_its_words_stay_out_of_the_log(cast, outside):
    run = start(cast, "test-raises", {})
    assert walk(run) == "parked"
    body = "".join(Event.objects.filter(run_id=run.pk).values_list("body", flat=True))
    assert "sk-live" not in body


def test_an_answer_lost_after_the_send_is_found_by_look_up(cast, run, outside):
    walk(run)
    action = approve(cast, run)
    outside.drop_answer = True
    assert walk(run) == "succeeded"
    assert [what for _, what, _ in outside.done] == ["note", "say"]
    assert Grant.objects.get(action=action).outcome == "executed"


def test_what_surely_did_not_happen_is_tried_again_under_the_same_grant(cast, run, outside):
    walk(run)
    action = approve(cast, run)
    walk_until_say_fails(run, outside, Unavailable("away"))
    past_quarantine(action)
    sweep.sweep()
    assert walk(run) == "succeeded"
    assert [what for _, what, _ in outside.done] == ["note", "say"]
    assert types(run).count("action.redeemed") == 2  # note and speech, each once


def test_what_the_outside_declines_parks_the_run_with_its_grant_spent(cast, run, outside):
    walk(run)
    action = approve(cast, run)
    walk_until_say_fails(run, outside, Declined("no such mailbox"))
    assert run.state == "parked"
    assert Grant.objects.get(action=action).outcome == "failed"


def walk_until_say_fails(run: Run, outside: World, error: Exception) -> None:
    """The note comes first; make the speech after it fail."""
    original = workflows.note_it.function

    def note_then_fail(call, text):
        result = original(call, text)
        outside.fail_next(error)
        return result

    object.__setattr__(workflows.note_it, "function", note_then_fail)
    try:
        walk(run)
    finally:
        object.__setattr__(workflows.note_it, "function", original)


def past_quarantine(action: ProposedAction) -> None:
    Grant.objects.filter(action=action).update(redeemed_at=clock.now() - timedelta(minutes=1))


def crash_before_the_send(cast, run: Run, monkeypatch: pytest.MonkeyPatch) -> ProposedAction:
    """As a worker that was killed after `action.redeemed` was committed: the lease is there, and nobody renews it."""
    walk(run)
    action = approve(cast, run)

    class Killed(BaseException):
        pass

    def die(name, *_):
        if name == "redeemed-say":
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("runs.engine.points.reached", die)
        patch.setattr(lease, "release", lambda held: None)
        with pytest.raises(Killed):
            executor.execute(run.pk)
    Lease.objects.filter(run=run).update(until=clock.now() - timedelta(seconds=1))
    return action


def test_a_worker_killed_after_redemption_is_followed_by_one_that_looks_first(cast, run, outside, monkeypatch):
    action = crash_before_the_send(cast, run, monkeypatch)
    assert walk(run) == "waiting"
    assert run.waiting["on"] == "outcome"
    assert [what for _, what, _ in outside.done] == ["note"]  # a frozen worker might still send: not before its deadline
    past_quarantine(action)
    Run.objects.filter(pk=run.pk).update(wake_at=clock.now())
    sweep.sweep()
    assert walk(run) == "succeeded"
    assert [what for _, what, _ in outside.done] == ["note", "say"]


def test_an_outcome_that_nothing_tells_waits_for_a_person(cast, run, outside, monkeypatch):
    action = crash_before_the_send(cast, run, monkeypatch)
    outside.blind = True
    for _ in range(4):
        Run.objects.filter(pk=run.pk, wake_at__isnull=False).update(wake_at=clock.now())
        sweep.sweep()
        walk(run)
    assert Grant.objects.get(action=action).outcome == "unknown"
    assert run.state == "waiting" and run.waiting["on"] == "outcome"
    execution.resolve(action, by=person(cast.otto.pk), outcome="happened", note="It is in the outbox.", reference="42")
    run.refresh_from_db()
    assert walk(run) == "succeeded"
    assert [what for _, what, _ in outside.done] == ["note"]


def test_what_a_person_says_did_not_happen_is_proposed_anew(cast, run, outside, monkeypatch):
    action = crash_before_the_send(cast, run, monkeypatch)
    outside.blind = True
    for _ in range(4):
        Run.objects.filter(pk=run.pk, wake_at__isnull=False).update(wake_at=clock.now())
        sweep.sweep()
        walk(run)
    execution.resolve(action, by=person(cast.otto.pk), outcome="did_not_happen", note="Nothing arrived there.")
    run.refresh_from_db()
    assert walk(run) == "waiting"
    second = approve(cast, run)
    assert second.digest != action.digest
    assert walk(run) == "succeeded"
    assert [what for _, what, _ in outside.done] == ["note", "say"]


def test_a_late_worker_is_fenced_out(cast, run, outside):
    held = lease.claim(run.pk)
    Lease.objects.filter(run=run).update(until=clock.now() - timedelta(seconds=1))
    assert walk(run) == "waiting"
    before = types(run)
    with pytest.raises(Exception, match="overtaken"):
        executor._walk(held)
    assert types(run) == before


def test_two_sweeps_call_one_worker(cast, run, outside):
    Run.objects.filter(pk=run.pk).update(state_since=clock.now() - timedelta(minutes=1))
    assert sweep.sweep() == 1
    assert sweep.sweep() == 0


def test_cancelling_a_waiting_run_withdraws_its_action_and_ends_it(cast, run, outside):
    walk(run)
    signal = signals.send(run, kind="cancel", key="1", by=person(cast.otto.pk), note="No longer needed.")
    assert signal.status == "applied"
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert ProposedAction.objects.get(run=run).state == "withdrawn"
    assert types(run)[-1] == "run.cancelled"
    again = signals.send(run, kind="cancel", key="2", by=person(cast.otto.pk))
    assert (again.status, again.reason) == ("refused", "had_already_ended")
    assert types(run).count("run.cancelled") == 1
    assert walk(run) == "busy"


def test_a_cancel_while_an_effect_is_in_flight_waits_for_its_outcome(cast, run, outside, monkeypatch):
    action = crash_before_the_send(cast, run, monkeypatch)
    signal = signals.send(run, kind="cancel", key="1", by=person(cast.otto.pk))
    assert signal.status == "delivered"
    run.refresh_from_db()
    assert run.state == "cancelling"
    past_quarantine(action)
    walk(run)
    assert run.state == "cancelled"
    assert [what for _, what, _ in outside.done] == ["note"]
    assert Grant.objects.get(action=action).outcome == "failed"


def again(run: Run) -> None:
    """Its timer is due."""
    Run.objects.filter(pk=run.pk, wake_at__isnull=False).update(wake_at=clock.now())
    sweep.sweep()


def test_whatever_a_tool_raises_its_outcome_is_looked_up(cast, run, outside):
    walk(run)
    approve(cast, run)
    outside.fail_next(RuntimeError("a tool's own mistake"))
    assert walk(run) == "waiting"
    assert run.waiting["on"] == "retry"
    again(run)
    assert walk(run) == "succeeded"
    assert [what for _, what, _ in outside.done] == ["note", "say"]


def test_a_cancelled_run_never_says_did_not_happen_of_what_nothing_tells(cast, run, outside):
    walk(run)
    approve(cast, run)
    outside.blind = True
    outside.fail_next(*[AnswerLost("no answer")] * 20)
    for _ in range(6):  # the note honours its key, so it is sent again, until only a person may go on
        walk(run)
        again(run)
    action = ProposedAction.objects.get(run=run, tool="note_it")
    assert Grant.objects.get(action=action).outcome == "unknown"
    assert signals.send(run, kind="cancel", key="1", by=person(cast.otto.pk)).status == "delivered"
    Grant.objects.filter(action=action).update(redeemed_at=clock.now() - timedelta(hours=1))
    walk(run)
    assert Grant.objects.get(action=action).outcome == "unknown"
    assert run.state == "cancelling"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("report.published", {}),
        ("milestone.reached", {}),
        ("block.raised", {"block": "x", "reason": "digest_mismatch"}),
        ("tool.ended", {"tool": "say.lookup", "outcome": "ok", "step": "perform#1", "call": "look-up:forged"}),
    ],
)
def test_an_agents_key_tells_nothing_about_what_the_engine_does(cast, run, outside, kind, data):
    walk(run)
    head = run.seq
    by = Actor("agent", str(cast.agent.pk), "support-triage", {cast.workspace.pk: frozenset({"runs.write"})})
    with pytest.raises(NotYourEvent):
        intake.accept(run, [intake.Told("1", kind, data)], by=by)
    run.refresh_from_db()
    assert run.seq == head


def test_changed_code_parks_the_run_with_the_step_named(cast, run, outside):
    walk(run)
    JournalEntry.objects.filter(run=run, step="propose.say#1").update(input_digest="0" * 64)
    approve(cast, run)
    assert walk(run) == "parked"
    assert Event.objects.get(run_id=run.pk, type="run.parked").body.count("propose.say#1") == 1


def test_the_journal_is_numbered_without_gaps(cast, run, outside):
    walk(run)
    approve(cast, run)
    walk(run)
    positions = list(JournalEntry.objects.filter(run=run).order_by("position").values_list("position", flat=True))
    assert positions == list(range(1, len(positions) + 1))
    assert not JournalEntry.objects.filter(run=run, token__lt=F("token")).exists()
