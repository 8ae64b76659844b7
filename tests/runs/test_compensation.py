"""Undoing what was done outside: in reverse order, once, whatever dies meanwhile; and what can't be undone is said."""

import orjson
import pytest
from django.urls import reverse

from access.rules import person
from approvals import policy
from approvals.models import Grant, ProposedAction
from runs import signals
from runs.engine import compensation, executor, lease, ledger
from runs.engine.tools import Unavailable
from runs.models import Event, Run
from runs.verification import Whole, verify
from tests.runs import workflows
from tests.runs.test_engine import approve, start, types, walk
from tests.runs.workflows import World
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def run(cast, outside) -> Run:
    """It has put two things there, and waits."""
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    for tool in ("put", "note_it", "take_away"):
        policy.set_rule(cast.workspace.pk, tool, name="Notes", outcome="automatic", by=None)
    run = start(cast, "test-undone", {}, scope={})
    assert walk(run) == "waiting"
    return run


def cancel(cast, run: Run, key: str = "stop") -> signals.Signal:
    sent = signals.send(run, kind="cancel", key=key, by=person(cast.otto.pk), note="No longer needed.")
    run.refresh_from_db()
    return sent


def told(outside: World) -> list[tuple[str, str]]:
    return [(what, text) for _, what, text in outside.done]


def ending(run: Run) -> dict[str, int]:
    data = orjson.loads(Event.objects.filter(run_id=run.pk).latest("seq").body)["data"]
    return {key: data.get(key, 0) for key in ("done", "undone", "withdrawn")}


def test_a_cancelled_run_undoes_what_it_did_the_last_first_and_says_what_stays(cast, run, outside):
    signal = cancel(cast, run)
    assert (signal.status, signal.reason, run.state) == ("delivered", "undoing", "compensating")
    assert walk(run) == "compensated"
    assert told(outside)[3:] == [("took away", "second"), ("took away", "first")]
    signal.refresh_from_db()
    assert (run.state, signal.status) == ("cancelled", "applied")
    assert ending(run) == {"done": 1, "undone": 2, "withdrawn": 1}
    assert [effect.undone for effect in ledger.effects(run)] == [True, False, True]
    assert types(run)[-1] == "run.cancelled" and isinstance(verify(run), Whole)
    assert walk(run) == "busy" and len(outside.done) == 5


def test_an_undo_is_an_exact_action_with_a_grant_of_its_own(cast, run, outside):
    cancel(cast, run)
    walk(run)
    undone = ProposedAction.objects.filter(run=run, tool="take_away").order_by("proposed_at")
    done = [effect.seq for effect in reversed(ledger.effects(run)) if effect.can_undo]
    assert [action.step for action in undone] == [f"undo-{seq}/propose.take_away#1" for seq in done]
    assert {grant.outcome for grant in Grant.objects.filter(action__in=undone)} == {"executed"}


def test_a_worker_that_is_lost_in_the_middle_undoes_nothing_twice(cast, run, outside, monkeypatch):
    cancel(cast, run)

    class Killed(BaseException):
        pass

    def die(*_):
        raise Killed

    real = compensation._undo

    def once(*given):
        real(*given)
        monkeypatch.setattr(compensation, "_undo", die)

    monkeypatch.setattr(compensation, "_undo", once)
    with pytest.raises(Killed):
        executor.execute(run.pk)
    monkeypatch.undo()
    lease.Lease.objects.filter(run=run).update(until=None)
    assert walk(run) == "compensated"
    assert told(outside)[3:] == [("took away", "second"), ("took away", "first")]


def test_a_lost_answer_of_an_undo_is_looked_up_and_not_repeated(cast, run, outside):
    cancel(cast, run)
    outside.undo_faults = [workflows.AnswerLost("dropped")]
    for _ in range(8):
        Run.objects.filter(pk=run.pk).update(wake_at=None)
        if walk(run) == "compensated":
            break
    assert run.state == "cancelled"
    assert sorted(told(outside)[3:]) == [("took away", "first"), ("took away", "second")]


def test_an_undo_that_fails_for_good_is_a_dead_letter_and_the_rest_stays_known(cast, run, outside):
    cancel(cast, run)
    outside.undo_faults = [Unavailable("down")] * 9
    for _ in range(6):
        if walk(run) == "parked":
            break
    assert run.state == "parked" and types(run)[-3:] == ["effect.undo_failed", "checkpoint.saved", "run.parked"]
    assert told(outside)[3:] == [] and len(compensation.undoable(run)) == 2


def test_a_cancelled_run_that_is_stuck_in_its_undo_is_offered_no_second_cancel(cast, run, outside, sign_in):
    otto, there = sign_in(cast.otto), reverse("runs:run", args=(run.pk,))
    assert "Cancel run…" in otto.get(there).content.decode()
    cancel(cast, run)
    outside.undo_faults = [Unavailable("down")] * 9
    until(lambda: walk(run) == "parked", within=30, what="it gets stuck")
    page = otto.get(there).content.decode()
    assert "It was cancelled already" in page and "Cancel run…" not in page


def test_a_hundred_cancels_while_it_undoes_leave_one_ending(cast, run, outside):
    first = cancel(cast, run)
    more = [cancel(cast, run, key=str(n)) for n in range(20)]
    assert {(signal.status, signal.reason) for signal in more} == {("delivered", "already_cancelling")}
    walk(run)
    late = cancel(cast, run, key="late")
    assert (late.status, late.reason) == ("refused", "had_already_ended")
    for signal in (first, *more):
        signal.refresh_from_db()
    assert {signal.status for signal in (first, *more)} == {"applied"} and types(run).count("run.cancelled") == 1
    assert types(run).count("run.cancel_requested") == 1


def test_what_was_never_undoable_ends_at_once(cast, outside, run):
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    talk = start(cast, "test-talk", {"thing": "tea"})
    walk(talk)
    approve(cast, talk)
    assert cancel(cast, talk, key="x").status == "applied"


def test_an_undo_that_policy_gives_to_people_waits_for_them(cast, run, outside):
    policy.set_rule(cast.workspace.pk, "take_away", name="Ask first", outcome="reviewers", by=None)
    cancel(cast, run)
    assert walk(run) == "compensating" and told(outside)[3:] == []
    for _ in range(2):
        approve(cast, run)
        assert run.state == "compensating" and run.wake_at is not None
        word = walk(run)
    assert word == "compensated" and told(outside)[3:] == [("took away", "second"), ("took away", "first")]
