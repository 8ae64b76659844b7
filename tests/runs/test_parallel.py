"""Several things at once: each in a branch that is as durable as the run, and none loses what another did."""

import threading
from datetime import timedelta

import orjson
import pytest

from access.rules import person
from approvals import decisions, freezes, policy
from approvals.models import ProposedAction
from artifacts import vault
from config import clock
from runs import signals
from runs.engine import executor, journal, lease, sweep
from runs.engine.replaying import replay
from runs.engine.tools import TOOLS, Declined, Unavailable
from runs.models import Event, JournalEntry, Lease, Run
from runs.verification import Whole, verify
from tests.runs import workflows
from tests.runs.test_engine import start, types, walk
from tests.runs.workflows import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def begin(cast, outside):
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    for tool in ("put", "note_it", "take_away"):
        policy.set_rule(cast.workspace.pk, tool, name="Notes", outcome="automatic", by=None)
    return lambda *texts: start(cast, "test-at-once", {"say_too": list(texts)}, scope={"thing": ["tea", "coffee"]})


def report(run: Run) -> str:
    title = Event.objects.get(run_id=run.pk, type="report.published").payloads["title"]
    return next(iter(vault.shown([title]).values())).text


def done(outside: World) -> list[str]:
    return sorted(f"{what} {text}" for _, what, text in outside.done)


def decide(cast, run: Run, text: str, verdict: str = "approved") -> None:
    waiting = ProposedAction.objects.filter(run=run, state="waiting").select_related("canonical__key")
    action = next(each for each in waiting if orjson.loads(vault.open_bytes(each.canonical))["arguments"]["text"] == text)
    decisions.decide(action, reviewer=person(cast.riley.pk), verdict=verdict, digest=action.digest, reason="Not this one.")
    run.refresh_from_db()


def test_each_gives_what_it_gave_in_its_place(begin, outside):
    run = begin()
    assert walk(run) == "succeeded" and report(run) == "tea coffee both"
    assert done(outside) == ["note both", "put after", "put both"] and outside.reads == 2
    steps = set(JournalEntry.objects.filter(run=run, kind__in=journal.STEPS).values_list("step", flat=True))
    assert {"parallel-1.1/look#1", "parallel-1.2/look#1", "parallel-1.3/propose.put#1", "parallel-1.3/perform#2", "perform#1"} <= steps
    assert isinstance(verify(run), Whole)


def test_reads_are_asked_at_the_same_time(begin, outside, monkeypatch):
    both = threading.Barrier(2, timeout=20)

    def look(call, thing):
        both.wait()  # each needs the other to be there
        return {"thing": thing}

    monkeypatch.setitem(vars(TOOLS["look"]), "function", look)
    run = begin()
    assert walk(run) == "succeeded" and report(run) == "tea coffee both"


def test_a_branch_that_fails_loses_nothing_of_the_others(begin, outside):
    run = begin()
    outside.fail_next(Declined("no"))
    assert walk(run) == "parked"
    assert outside.reads + len(outside.done) >= 3 and types(run).count("run.parked") == 1
    before = outside.reads, done(outside)
    Run.objects.filter(pk=run.pk).update(state="queued")
    assert walk(run) == "succeeded" and report(run) == "tea coffee both"
    assert outside.reads - before[0] <= 1 and done(outside).count("put both") == 1 and done(outside).count("note both") == 1


def test_a_run_waits_for_all_its_branches_and_goes_on_with_whichever_is_settled(begin, outside, cast):
    run = begin("one", "two")
    assert walk(run) == "waiting" and run.waiting["on"] == "decision" and run.waiting["also"] == ["decision"]
    assert done(outside) == ["note both", "put both"]
    decide(cast, run, "two")
    assert run.state == "queued" and walk(run) == "waiting" and done(outside)[-1] == "say two"  # done, though the other still waits
    decide(cast, run, "one", "rejected")
    assert walk(run) == "succeeded" and report(run) == "tea coffee both nothing two" and outside.reads == 2


def test_a_timer_of_one_branch_wakes_a_run_that_waits_for_people_in_another(begin, outside, monkeypatch):
    monkeypatch.setitem(vars(TOOLS["look"]), "retry", TOOLS["look"].retry.__class__(attempts=3, first=20))
    outside.fail_next(Unavailable("not now"))
    run = begin("one")
    assert walk(run) == "waiting" and run.waiting["on"] == "decision" and run.waiting["also"] == ["retry"]
    Run.objects.filter(pk=run.pk).update(wake_at=run.wake_at - timedelta(seconds=20))
    sweep.sweep()
    assert walk(run) == "waiting" and run.waiting["on"] == "decision" and "also" not in run.waiting and outside.reads == 3


def test_a_run_that_waits_for_people_in_several_branches_does_not_look_by_itself(begin, outside):
    run = begin("one", "two")
    assert walk(run) == "waiting" and run.wake_at is None


def test_the_end_of_a_freeze_lets_go_what_waited_for_it_beside_people(begin, outside, cast):
    frozen = freezes.freeze(cast.workspace.pk, what="tool", tool="put", reason="Stop.", by=person(cast.otto.pk)).freeze
    run = begin("one")
    assert walk(run) == "waiting" and run.waiting["on"] == "unfreezing" and run.waiting["also"] == ["decision"]
    beside = {"on": "answer", "also": ["unfreezing"]}  # as when a branch asks people
    Run.objects.filter(pk=run.pk).update(waiting=beside)
    freezes.lift(frozen, by=person(cast.otto.pk), reason="Go on.")
    freezes.let_go_due()
    assert walk(run) == "waiting" and done(outside) == ["note both", "put both"]


def test_a_replay_walks_the_branches_and_finds_them_the_same_or_says_where_not(begin, outside, monkeypatch):
    real = workflows.put_and_note

    def put_and_note(branch, text):
        branch.note("About to put it")
        return real(branch, text)

    monkeypatch.setattr(workflows, "put_and_note", put_and_note)
    run = begin()
    assert walk(run) == "succeeded" and replay(run).same

    def then_once_more(branch, text):
        gives = put_and_note(branch, text)
        branch.step(workflows.put, "once more")
        return gives

    then_once_more.__name__ = "put_and_note"
    monkeypatch.setattr(workflows, "put_and_note", then_once_more)
    came = replay(run)
    assert came.end == "stopped" and "added" in {found.what for found in came.differences}


def test_a_worker_that_is_lost_in_the_middle_repeats_only_what_was_not_completed(begin, outside, monkeypatch):
    class Killed(BaseException):
        pass

    real = journal.Journal.end

    def die(self, held, entry, *given, **more):
        if entry.step == "parallel-1.3/perform#1":
            raise Killed
        real(self, held, entry, *given, **more)

    run = begin()
    monkeypatch.setattr(journal.Journal, "end", die)
    with pytest.raises(Killed):
        executor.execute(run.pk)
    monkeypatch.undo()
    assert outside.reads == 2
    Lease.objects.filter(run=run).update(until=None)
    assert walk(run) == "succeeded" and report(run) == "tea coffee both"
    assert outside.reads == 2 and done(outside) == ["note both", "put after", "put both"]


def test_branches_of_a_worker_that_was_overtaken_write_nothing(begin, outside):
    run = begin()
    held = lease.claim(run.pk)
    Lease.objects.filter(run=run).update(until=clock.now() - timedelta(seconds=1))
    assert walk(run) == "succeeded"
    with pytest.raises(Exception, match="overtaken|ended"):
        executor._walk(held)
    assert done(outside) == ["note both", "put after", "put both"]


def test_what_branches_did_is_undone_the_last_first(begin, outside, cast):
    run = begin("one")
    walk(run)
    signals.send(run, kind="cancel", key="1", by=person(cast.otto.pk))
    assert walk(run) == "compensated"
    assert [text for _, what, text in outside.done if what == "took away"] == ["both"] and run.refresh_from_db() is None
    assert run.state == "cancelled" and isinstance(verify(run), Whole)


def test_other_branches_than_were_begun_park_the_run(begin, outside, cast):
    run = begin("one")
    walk(run)
    JournalEntry.objects.filter(run=run, step="parallel#1").update(input_digest="0" * 64)
    decide(cast, run, "one")
    assert walk(run) == "parked"
    assert orjson.loads(Event.objects.get(run_id=run.pk, type="run.parked").body)["data"] == {
        "reason": "code_changed",
        "step": "parallel#1",
    }


def test_the_page_tells_what_was_done_at_once(begin, cast, sign_in):
    run = begin()
    walk(run)
    assert sign_in(cast.otto).get(f"/runs/{run.pk}").status_code == 200
    assert "Does at once" in sign_in(cast.otto).get(f"/runs/{run.pk}/events").content.decode()
