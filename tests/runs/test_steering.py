"""Pause, resume, context and revise: each says what became of it, and changes the run as it says."""

import pytest

from access.errors import BadInput
from access.rules import person
from approvals import decisions, policy
from approvals.models import ProposedAction
from artifacts import vault
from runs import signals
from runs.engine import executor
from runs.engine.tools import TOOLS
from runs.models import Event, JournalEntry, Run, Signal
from runs.verification import Whole, verify
from tests.runs import workflows
from tests.runs.test_engine import approve, start, types, walk
from tests.runs.workflows import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def run(cast, outside) -> Run:
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    return start(cast, "test-steered", {"thing": "tea"}, scope={})


def send(cast, run: Run, kind: str, note: str = "", key: str = "") -> Signal:
    sent = signals.send(run, kind=kind, key=key or f"{kind}-{run.seq}", by=person(cast.otto.pk), note=note)
    run.refresh_from_db()
    return sent


def became(signal: Signal) -> tuple[str, str]:
    signal.refresh_from_db()
    return signal.status, signal.reason


def test_a_signal_sent_twice_is_one_signal(cast, run):
    first, second = send(cast, run, "pause", key="same"), send(cast, run, "pause", key="same")
    assert first.pk == second.pk and became(first) == ("applied", "")
    assert types(run).count("run.paused") == 1


def test_a_paused_run_does_nothing_until_it_is_resumed(cast, run, outside):
    send(cast, run, "pause")
    assert run.state == "paused" and walk(run) == "busy" and JournalEntry.objects.filter(run=run).count() == 0
    assert became(send(cast, run, "pause", key="again")) == ("applied", "")
    assert became(send(cast, run, "resume")) == ("applied", "")
    assert run.state == "queued" and walk(run) == "waiting"
    assert became(send(cast, run, "resume", key="late")) == ("refused", "not_in_this_state")


@pytest.mark.parametrize("kind", ["context", "revise"])
def test_a_run_that_is_stuck_reads_no_note(cast, kind):
    stuck = start(cast, "test-steered", {"thing": "tea"})
    Run.objects.filter(pk=stuck.pk).update(workflow_version=99)
    assert walk(stuck) == "parked"
    assert became(send(cast, stuck, kind, "In green, please.")) == ("refused", "not_in_this_state")


def test_an_approval_that_comes_while_it_is_paused_is_used_when_it_goes_on(cast, run, outside):
    walk(run)
    send(cast, run, "pause")
    approve(cast, run)
    assert run.state == "paused" and walk(run) == "busy" and outside.done == []
    send(cast, run, "resume")
    assert walk(run) == "succeeded" and [what for _, what, _ in outside.done] == ["say"]
    assert isinstance(verify(run), Whole)


def test_what_is_under_way_when_a_run_is_paused_finishes_and_nothing_after_it_begins(cast, outside, run, monkeypatch):
    talk = start(cast, "test-talk", {"thing": "tea"})
    walk(talk)
    approve(cast, talk)
    note_it = TOOLS["note_it"]

    def paused_meanwhile(call, arguments):
        send(cast, talk, "pause")
        return note_it.function(call, **arguments)

    monkeypatch.setattr(type(note_it), "__call__", lambda tool, call, given: paused_meanwhile(call, given) if tool is note_it else None)
    assert executor.execute(talk.pk) == "paused"
    talk.refresh_from_db()
    assert talk.state == "paused" and [what for _, what, _ in outside.done] == ["note"]
    assert types(talk)[-1] == "checkpoint.saved" and "effect.done" in types(talk)  # its result is kept
    monkeypatch.undo()
    send(cast, talk, "resume")
    assert walk(talk) == "succeeded" and [what for _, what, _ in outside.done] == ["note", "say"]


def test_a_run_that_is_resumed_under_its_old_workers_hands_goes_on_with_the_next(cast, outside, run, monkeypatch):
    talk = start(cast, "test-talk", {"thing": "tea"})
    look = TOOLS["look"]

    def paused_and_resumed(tool, call, given):
        send(cast, talk, "pause")
        send(cast, talk, "resume")
        return look.function(call, **given)

    monkeypatch.setattr(type(look), "__call__", paused_and_resumed)
    called = []
    monkeypatch.setattr("runs.live.call_worker", called.append)
    assert executor.execute(talk.pk) == "queued"
    assert talk.pk in called  # after the lease was given back
    monkeypatch.undo()
    assert walk(talk) == "waiting" and outside.reads == 2  # a read is made again; nothing outside was done


def test_context_is_read_at_the_next_checkpoint_and_once(cast, run, outside):
    note = send(cast, run, "context", "They are on the old plan.")
    assert became(note) == ("accepted", "")
    walk(run)
    assert became(note) == ("applied", "")
    action = approve(cast, run)
    walk(run)
    assert outside.done[-1][2] == "There is tea. They are on the old plan."
    seqs = dict(Event.objects.filter(run_id=run.pk, type__startswith="signal.").values_list("type", "seq"))
    assert seqs["signal.received"] < seqs["signal.applied"] < action.proposed_seq


def test_a_note_that_nobody_came_to_read_is_told_so_before_the_ending(cast, run, outside):
    walk(run)
    approve(cast, run)
    note = send(cast, run, "context", "Too late?")
    assert walk(run) == "succeeded"
    assert became(note) == ("refused", "never_read")
    assert types(run)[-2:] == ["signal.refused", "run.succeeded"]


def test_revise_withdraws_what_waits_and_the_run_plans_anew(cast, run, outside):
    walk(run)
    first = ProposedAction.objects.get(run=run, state="waiting")
    wish = send(cast, run, "revise", "Say coffee as well.")
    first.refresh_from_db()
    assert first.state == "withdrawn" and run.state == "queued" and became(wish) == ("accepted", "")
    assert vault.open_bytes(first.closed_why) == b"Say coffee as well."
    assert walk(run) == "waiting" and became(wish) == ("applied", "")
    approve(cast, run)
    assert walk(run) == "succeeded"
    assert [text for _, _, text in outside.done] == ["There is tea. Say coffee as well."]
    with pytest.raises(Exception, match="withdrawn"):
        decisions.decide(first, reviewer=person(cast.riley.pk), verdict="approved", digest=first.digest)


def test_revise_before_anything_is_put_up_keeps_it_from_being_put_up(cast, run, outside):
    send(cast, run, "revise", "Say coffee as well.")
    assert walk(run) == "waiting"
    assert ProposedAction.objects.filter(run=run).count() == 1
    approve(cast, run)
    walk(run)
    assert outside.done[-1][2] == "There is tea. Say coffee as well."


def test_revise_of_a_paused_run_withdraws_when_it_goes_on(cast, run, outside):
    walk(run)
    send(cast, run, "pause")
    wish = send(cast, run, "revise", "Say coffee as well.")
    assert became(wish) == ("accepted", "") and ProposedAction.objects.get(run=run).state == "waiting"
    send(cast, run, "resume")
    assert walk(run) == "waiting" and became(wish) == ("applied", "")
    assert ProposedAction.objects.filter(run=run).order_by("proposed_at").first().state == "withdrawn"
    approve(cast, run)
    walk(run)
    assert [text for _, _, text in outside.done] == ["There is tea. Say coffee as well."]


def test_a_write_that_is_no_part_of_the_plan_that_can_change_is_not_withdrawn(cast, outside):
    for tool in ("say", "note_it"):
        policy.set_rule(cast.workspace.pk, tool, name="Ask", outcome="reviewers", by=None)
    run = start(cast, "test-steered-twice", {}, scope={})
    assert walk(run) == "waiting"
    wish = send(cast, run, "revise", "Say coffee as well.")
    assert became(wish) == ("accepted", "") and ProposedAction.objects.get(run=run).state == "waiting"
    approve(cast, run)
    assert walk(run) == "waiting" and became(wish) == ("applied", "") and [what for _, what, _ in outside.done] == ["note"]


def test_revise_does_not_touch_what_was_approved(cast, run, outside):
    walk(run)
    action = approve(cast, run)
    wish = send(cast, run, "revise", "Say coffee as well.")
    action.refresh_from_db()
    assert action.state == "approved" and walk(run) == "succeeded" and became(wish) == ("refused", "never_read")


@pytest.mark.parametrize("kind", ["context", "revise"])
def test_a_workflow_that_reads_no_notes_is_sent_none(cast, outside, run, kind):
    talk = start(cast, "test-talk", {"thing": "tea"})
    walk(talk)
    assert became(send(cast, talk, kind, "Hear this.")) == ("refused", "not_supported")
    assert ProposedAction.objects.get(run=talk).state == "waiting"


@pytest.mark.parametrize("kind", ["context", "revise"])
@pytest.mark.parametrize("note", ["", "  \n", "\u200b\u2060"])
def test_a_note_that_says_nothing_is_no_signal(cast, run, kind, note):
    with pytest.raises(BadInput, match="note"):
        send(cast, run, kind, note)
    assert not Signal.objects.exists()


def test_a_run_takes_only_so_many_notes_that_it_has_not_read(cast, run):
    sent = [send(cast, run, "context", f"Note {n}", key=str(n)) for n in range(signals.MAX_UNREAD + 1)]
    assert [became(each) for each in sent[-2:]] == [("accepted", ""), ("refused", "too_many")]
