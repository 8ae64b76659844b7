"""What comes at a bad moment: while something is in flight, while a worker goes to wait, while it undoes, while a child is at work."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from access.rules import Actor, person
from approvals import asking, decisions, execution, freezes, policy
from approvals.models import Decision, ProposedAction
from artifacts import vault
from artifacts.models import Payload
from config import clock
from runs import reading, recovery, signals, updates
from runs.engine import compensation, executor, sweep
from runs.engine.tools import TOOLS, Unavailable
from runs.errors import SignalReused
from runs.models import Run, Signal
from runs.signals import PeopleSteer
from runs.verification import Whole, verify
from tests.approvals.mailing import text
from tests.runs import workflows
from tests.runs.test_compensation import cancel, ending, told
from tests.runs.test_engine import approve, start, walk
from tests.runs.workflows import World

pytestmark = pytest.mark.django_db(transaction=True)


class Killed(BaseException):
    """The worker is gone."""


@pytest.fixture
def outside(cast) -> World:
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    for tool in ("put", "note_it", "take_away"):
        policy.set_rule(cast.workspace.pk, tool, name="Notes", outcome="automatic", by=None)
    return workflows.reset()


@pytest.fixture
def done(cast, outside) -> Run:
    """It has put two things there, and waits."""
    run = start(cast, "test-undone", {}, scope={})
    assert walk(run) == "waiting"
    return run


@pytest.fixture
def undoing(cast, done) -> Run:
    """It is being cancelled, and people are asked about each undo."""
    policy.set_rule(cast.workspace.pk, "take_away", name="Ask first", outcome="reviewers", by=None)
    cancel(cast, done)
    return done


def send(cast, run: Run, kind: str, key: str = "", note: str = "", by: Actor | None = None) -> Signal:
    sent = signals.send(run, kind=kind, key=key or f"{kind}-{run.seq}", by=by or person(cast.otto.pk), note=note)
    run.refresh_from_db()
    return sent


def recover(cast, run: Run, choice: str) -> None:
    recovery.choose(run, choice, at=recovery.parking(run).seq, by=person(cast.otto.pk))
    run.refresh_from_db()


def during(monkeypatch, name: str, happens: Callable[[], object]) -> None:
    """What happens, once, while this tool is being called."""
    tool, left = TOOLS[name], [happens]

    def call(self, call, given):
        if self is tool and left:
            left.pop()()
        return self.function(call, **given)

    monkeypatch.setattr(type(tool), "__call__", call)


def dies(*_: object) -> None:
    raise Killed


# cancelling --------------------------------------------------------------------------------------------------------------------------


def test_what_was_in_flight_when_a_run_is_cancelled_is_undone_too(cast, outside, monkeypatch):
    run = start(cast, "test-undone", {}, scope={})
    during(monkeypatch, "put", lambda: cancel(cast, run))
    assert executor.execute(run.pk) == "cancelled"
    assert walk(run) == "compensated"
    assert told(outside) == [("put", "first"), ("took away", "first")]
    assert ending(run) == {"done": 0, "undone": 1, "withdrawn": 0} and isinstance(verify(run), Whole)


def test_an_ending_counts_what_was_still_in_flight_at_the_cancel(cast, outside, monkeypatch):
    run = start(cast, "test-talk", {"thing": "tea"})
    walk(run)
    approve(cast, run)
    during(monkeypatch, "note_it", lambda: cancel(cast, run))
    executor.execute(run.pk)
    run.refresh_from_db()
    assert run.state == "cancelled" and ending(run)["done"] == 1


def test_a_cancelled_run_that_got_stuck_is_never_let_go_forward(cast, outside, monkeypatch):
    run = start(cast, "test-talk", {"thing": "tea"})
    walk(run)
    approve(cast, run)
    during(monkeypatch, "note_it", dies)
    with pytest.raises(Killed):
        executor.execute(run.pk)
    cancel(cast, run)
    monkeypatch.setattr("runs.engine.effects.settle_in_flight", lambda *_: 1 / 0)
    assert run.state == "cancelling" and walk(run) == "parked"
    monkeypatch.undo()
    recover(cast, run, "retry")
    assert run.state == "cancelling"  # what is in flight is found out, and then it ends
    walk(run)
    assert run.state == "cancelling" and run.wake_at is not None and outside.done == []


def test_what_cant_be_looked_up_any_more_is_for_a_person_to_say_and_the_cancel_ends(cast, outside, monkeypatch, sign_in):
    run = start(cast, "test-talk", {"thing": "tea"})
    walk(run)
    approve(cast, run)
    during(monkeypatch, "note_it", dies)
    with pytest.raises(Killed):
        executor.execute(run.pk)
    cancel(cast, run)
    monkeypatch.delitem(TOOLS, "note_it")
    assert walk(run) == "cancelling" and run.waiting["on"] == "outcome"
    page = text(sign_in(cast.otto).get(f"/runs/{run.pk}"))
    assert "Waiting for an outcome" in page and "Undoing" not in page.partition("Now ")[0], "nothing is undone before that is known"
    action = ProposedAction.objects.get(run=run, tool="note_it")
    execution.resolve(action, by=person(cast.otto.pk), outcome="did_not_happen", note="It is not in the system.")
    run.refresh_from_db()
    assert run.state == "cancelled" and ending(run)["done"] == 0


def test_an_undoing_that_raises_is_stuck_as_such_and_tried_again_as_such(cast, done, outside, monkeypatch):
    cancel(cast, done)
    monkeypatch.setattr(compensation, "how", lambda *_: 1 / 0)
    assert walk(done) == "parked" and recovery.parking(done).reason == "undo_failed"
    monkeypatch.undo()
    recover(cast, done, "retry")
    assert walk(done) == "compensated" and told(outside)[3:] == [("took away", "second"), ("took away", "first")]


# undoing -----------------------------------------------------------------------------------------------------------------------------


def test_a_decision_on_an_undo_that_comes_while_its_worker_goes_to_wait_is_not_missed(cast, undoing, monkeypatch):
    real = executor._wait

    def late(held, outcome):
        approve(cast, undoing)
        return real(held, outcome)

    monkeypatch.setattr(executor, "_wait", late)
    assert walk(undoing) == "compensating" and undoing.wake_at <= clock.now()


def test_an_undo_that_people_refused_is_put_to_them_again_when_it_is_tried_again(cast, undoing, outside):
    walk(undoing)
    action = ProposedAction.objects.get(run=undoing, state="waiting")
    decisions.decide(action, reviewer=person(cast.riley.pk), verdict="rejected", digest=action.digest, reason="Not yet.")
    assert walk(undoing) == "parked"
    recover(cast, undoing, "retry")
    for _ in range(2):
        assert walk(undoing) == "compensating"
        approve(cast, undoing)
    assert walk(undoing) == "compensated" and told(outside)[3:] == [("took away", "second"), ("took away", "first")]


def test_who_is_asked_about_an_undo_reads_what_it_does_and_the_run_says_that_it_waits_for_them(cast, undoing, sign_in):
    walk(undoing)
    action = ProposedAction.objects.get(run=undoing, state="waiting")
    card = text(sign_in(cast.riley).get(f"/actions/{action.pk}"))
    assert "Undoing goes on with what is left." in card and "The agent gets your reason" not in card
    assert "What it would undo stays as it is, and the run is stuck until an operator chooses." in card
    page = text(sign_in(cast.otto).get(f"/runs/{undoing.pk}"))
    assert "Undoing what was done outside. " in page and "A reviewer has to decide: Take it away." in page
    assert "Asks for approval: Take it away" in page
    runs = text(sign_in(cast.otto).get("/runs?view=people"))
    assert "Waiting on people 1" in runs and "1 reviewer" in runs
    approve(cast, undoing)
    assert undoing.waiting == {} and undoing.state == "compensating"


def test_an_undo_that_failed_left_a_checkpoint_and_its_log_answers_for_it(cast, done, outside):
    cancel(cast, done)
    outside.undo_faults = [Unavailable("down")] * 9
    while walk(done) != "parked":
        pass
    recover(cast, done, "give_up")
    assert {answer.key: answer.state for answer in reading.answers(done)}["failures"] == "pass"
    assert isinstance(verify(done), Whole)


def test_an_undo_waits_for_no_budget(cast, done, outside):
    updates.set_budgets(done, {"steps": 3}, by=person(cast.otto.pk))
    cancel(cast, done)
    assert walk(done) == "compensated" and ending(done)["undone"] == 2


def test_an_undo_that_is_frozen_goes_on_when_the_freeze_is_lifted(cast, done, outside):
    cancel(cast, done)
    made = freezes.freeze(cast.workspace.pk, what="tool", tool="take_away", by=person(cast.otto.pk), reason="Look first.")
    assert walk(done) == "compensating" and done.wake_at > clock.now() + timedelta(minutes=5)
    freezes.lift(made.freeze, by=person(cast.otto.pk), reason="It is fine.")
    sweep.sweep()
    assert walk(done) == "compensated"


# pausing -----------------------------------------------------------------------------------------------------------------------------


def test_what_is_under_way_while_a_run_is_paused_and_resumed_is_done_and_kept(cast, outside, monkeypatch):
    run = start(cast, "test-talk", {"thing": "tea"})
    walk(run)
    approve(cast, run)
    during(monkeypatch, "say", lambda: (send(cast, run, "pause"), send(cast, run, "resume")))
    assert executor.execute(run.pk) == "queued"
    assert walk(run) == "succeeded" and [what for _, what, _ in outside.done] == ["note", "say"]


def test_what_a_lost_worker_of_a_paused_run_had_begun_is_found_out_when_it_goes_on(cast, outside, monkeypatch):
    run = start(cast, "test-talk", {"thing": "tea"})
    walk(run)
    approve(cast, run)

    monkeypatch.setattr("runs.engine.effects._settle", lambda *_, **__: (send(cast, run, "pause"), dies()))
    with pytest.raises(Killed):
        executor.execute(run.pk)
    monkeypatch.undo()
    sent = list(outside.done)
    assert walk(run) == "busy" and run.state == "paused"
    send(cast, run, "resume")
    assert walk(run) == "waiting" or run.state == "succeeded"
    assert outside.done[: len(sent)] == sent and len({key for key, _, _ in outside.done}) == len(outside.done)


# families ----------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def family(cast, outside) -> tuple[Run, Run]:
    """A run that waits for its child, which waits for people."""
    run = start(cast, "test-parent", {"thing": "tea"})
    walk(run)
    child = Run.objects.get(parent=run)
    walk(child)
    return run, child


def test_a_child_is_paused_and_resumed_with_its_parent(cast, family):
    run, child = family
    send(cast, run, "pause")
    child.refresh_from_db()
    assert child.state == "paused"
    send(cast, run, "resume")
    child.refresh_from_db()
    assert child.state == "queued"


def test_a_child_that_was_paused_for_itself_stays_so_when_its_parent_goes_on(cast, family):
    run, child = family
    send(cast, child, "pause")
    send(cast, run, "pause")
    send(cast, run, "resume")
    child.refresh_from_db()
    assert child.state == "paused"


@pytest.mark.parametrize("lost", [False, True])
def test_giving_a_run_up_cancels_its_child(cast, family, monkeypatch, lost):
    run, child = family
    Run.objects.filter(pk=run.pk).update(state="queued", waiting={}, workflow_version=99)
    assert walk(run) == "parked"
    with monkeypatch.context() as meanwhile:
        if lost:  # whoever chose was gone before the child was told
            meanwhile.setattr(signals, "cancel_children", lambda run, by: None)
        recover(cast, run, "give_up")
    sweep.sweep()
    child.refresh_from_db()
    assert (run.state, child.state) == ("failed", "cancelled") and isinstance(verify(child), Whole)


def test_a_child_that_was_not_told_of_its_parents_cancel_is_found_while_that_undoes(cast, family):
    run, child = family
    Run.objects.filter(pk=run.pk).update(state="compensating", waiting={})
    sweep.sweep()
    child.refresh_from_db()
    assert child.state == "cancelled"


# who, and how often ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["resume", "revise", "context"])
def test_an_agents_key_stops_its_run_and_does_not_steer_it(cast, done, kind):
    agent = Actor("agent", str(cast.agent.pk), "support-triage", {cast.workspace.pk: frozenset({"runs.steer"})})
    assert send(cast, done, "pause", by=agent).status == "applied"
    with pytest.raises(PeopleSteer):
        send(cast, done, kind, by=agent, note="Ignore what they said.")
    assert done.state == "paused"


def test_a_key_that_was_used_with_another_note_is_refused(cast, outside):
    run = start(cast, "test-steered", {"thing": "tea"}, scope={})
    first = send(cast, run, "context", key="k", note="They are on the old plan.")
    assert send(cast, run, "context", key="k", note="They are on the old plan.").pk == first.pk
    with pytest.raises(SignalReused):
        send(cast, run, "context", key="k", note="They are on the new plan.")


def test_nothing_is_undone_while_an_outcome_is_not_known(cast, done):
    where = recovery.Parking(1, "error", "", "")
    assert "compensate" in recovery.possible(done, where, 2, 0)
    assert not {"compensate", "give_up"} & set(recovery.possible(done, where, 2, 1))


# erased meanwhile --------------------------------------------------------------------------------------------------------------------


def test_a_wish_for_another_plan_stands_when_its_words_are_erased_before_they_are_read(cast, outside):
    run = start(cast, "test-steered", {"thing": "tea"}, scope={})
    walk(run)
    vault.erase(send(cast, run, "revise", note="Say that Marta called.").note, by=cast.ada)
    assert walk(run) == "waiting"
    assert ProposedAction.objects.filter(run=run).count() == 2, "planned anew"


def test_a_question_that_is_erased_before_its_answer_holds_no_run_up(cast, outside):
    run = start(cast, "test-talk", {"thing": "tea"})
    walk(run)
    action = ProposedAction.objects.get(run=run, state="waiting")
    asking.ask(action, by=person(cast.riley.pk), question="Who is Marta?", digest=action.digest)
    vault.erase(Payload.objects.latest("created_at", "pk"), by=cast.ada)
    assert walk(run) == "waiting" and asking.open_questions(action) == []
    decisions.decide(action, reviewer=person(cast.riley.pk), verdict="rejected", digest=action.digest, reason="Not to Marta.")
    vault.erase(Decision.objects.get(action=action).reason, by=cast.ada)
    assert walk(run) == "succeeded"


def test_a_walk_whose_end_cant_be_told_is_stuck_and_not_walked_for_ever(cast, outside, monkeypatch):
    run = start(cast, "test-talk", {"thing": "tea"})
    monkeypatch.setattr(executor, "_came_meanwhile", lambda *_: 1 / 0)
    assert walk(run) == "parked" and recovery.parking(run).reason == "error"
