"""One thing that an ended run did outside is undone because a person asked for it: by a run of its own, once, through the gate."""

import re

import pytest
from django.test import Client

from access.rules import person
from approvals import decisions, policy
from approvals.models import ProposedAction
from artifacts import vault
from runs import presenting, reading
from runs.beside.figures import figures
from runs.beside.legs import Side
from runs.engine import executor, ledger, sweep, undoing
from runs.engine.undoing import AlreadyUndone, CannotBeUndone, GoesOn, PeopleUndo, ReasonWanted
from runs.models import Event, Run
from runs.verification import Whole, verify
from tests.runs import workflows
from tests.runs.test_children import undone_with_its_parent
from tests.runs.test_compensation import told
from tests.runs.test_engine import approve, start, walk
from tests.runs.workflows import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def waiting(cast, outside) -> Run:
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    for tool in ("put", "note_it", "take_away"):
        policy.set_rule(cast.workspace.pk, tool, name="Notes", outcome="automatic", by=None)
    run = start(cast, "test-undone", {}, scope={})
    assert walk(run) == "waiting"
    return run


@pytest.fixture
def run(cast, waiting) -> Run:
    """It has put two things there and said so, and has ended."""
    approve(cast, waiting)
    assert walk(waiting) == "succeeded"
    return waiting


def second(run: Run) -> int:
    return [effect.seq for effect in ledger.effects(run) if effect.can_undo][1]


def ask(cast, run: Run, seq: int, reason: str = "It was the wrong shelf.") -> Run:
    return undoing.undo(run, seq, by=person(cast.otto.pk), reason=reason)


def states(run: Run) -> list[str]:
    return [effect.state for effect in ledger.effects(run)]


def test_what_was_done_is_undone_by_a_run_of_its_own_and_the_ledger_says_so(cast, run, outside):
    head, made = run.seq, ask(cast, run, second(run))
    assert (made.parent_id, made.starter_id) == (run.pk, str(cast.otto.pk))
    assert walk(made) == "succeeded"
    assert told(outside)[-1] == ("took away", "second") and len(outside.done) == 5
    assert states(run) == ["done", "done", "undone", "done"]
    run.refresh_from_db()
    assert run.seq == head and isinstance(verify(run), Whole) and isinstance(verify(made), Whole)
    with pytest.raises(AlreadyUndone):
        ask(cast, run, second(run))


def test_asked_for_twice_it_is_one_and_after_a_rejection_it_can_be_asked_for_again(cast, run, outside):
    policy.set_rule(cast.workspace.pk, "take_away", name="Notes", outcome="reviewers", by=None)
    first, again = ask(cast, run, second(run)), ask(cast, run, second(run), "Twice.")
    assert first.pk == again.pk and walk(first) == "waiting"
    sweep.sweep()
    first.refresh_from_db()
    assert first.state == "waiting", "its parent has ended, and it is no orphan"
    action = ProposedAction.objects.get(run=first)
    assert vault.opened(action.reason).decode() == f"Undoes what {run.ref} did at #{second(run)}: It was the wrong shelf."

    decisions.decide(action, reviewer=person(cast.riley.pk), verdict="rejected", digest=action.digest, reason="Leave it.")
    assert walk(first) == "succeeded" and states(run)[2] == "done"
    third = ask(cast, run, second(run))
    assert third.pk != first.pk and walk(third) == "waiting"
    approve(cast, third)
    assert walk(third) == "succeeded" and states(run)[2] == "undone"


def test_who_asked_for_it_never_decides_on_it(cast, run):
    policy.set_rule(cast.workspace.pk, "take_away", name="Notes", outcome="reviewers", by=None)
    made = undoing.undo(run, second(run), by=person(cast.riley.pk), reason="Mine.")
    walk(made)
    client = Client()
    client.force_login(cast.riley)
    action = ProposedAction.objects.get(run=made)
    client.post(f"/actions/{action.pk}/decision", {"verdict": "approved", "digest": action.digest})
    action.refresh_from_db()
    assert action.state == "waiting"


def test_what_cannot_be_undone_alone_is_refused_with_the_reason(cast, waiting, outside):
    with pytest.raises(GoesOn):
        ask(cast, waiting, second(waiting))
    approve(cast, waiting)
    walk(waiting)
    note = next(effect.seq for effect in ledger.effects(waiting) if effect.tool == "note_it")
    with pytest.raises(CannotBeUndone):
        ask(cast, waiting, note)
    with pytest.raises(CannotBeUndone):
        ask(cast, waiting, 1)
    with pytest.raises(ReasonWanted):
        ask(cast, waiting, second(waiting), "  ")
    with pytest.raises(PeopleUndo):
        undoing.undo(waiting, second(waiting), by=ledger.log.ENGINE, reason="x")
    assert not Run.objects.filter(workflow=undoing.UNDO).exists()


def test_the_ledger_says_when_what_a_live_run_did_can_be_undone(cast, waiting):
    def said() -> list[str]:
        row = Run.objects.select_related(*presenting.RELATED).get(pk=waiting.pk)
        shown = presenting.view(row, person(cast.otto.pk), reading.told(row))
        return [each.told[0] for each in shown.ledger if each.effect.can_undo and each.state == "done"]

    assert said() and set(said()) == {"Can be undone once the run has ended."}
    approve(cast, waiting)
    assert walk(waiting) == "succeeded" and set(said()) == {"Can be undone."}


def test_an_open_page_asks_often_only_while_something_is_being_undone(cast, waiting):
    def every() -> list[str]:
        client = Client()
        client.force_login(cast.otto)
        return re.findall(r'hx-trigger="every (\d+s)"', client.get(f"/runs/{waiting.pk}").content.decode())

    assert every() == []  # it is live: what comes is pushed
    approve(cast, waiting)
    assert walk(waiting) == "succeeded" and every() == ["60s"]
    undone = [ask(cast, waiting, effect.seq) for effect in ledger.effects(waiting) if effect.can_undo]
    assert every() == ["5s"]
    assert {walk(made) for made in undone} == {"succeeded"} and every() == []


def test_a_worker_that_is_lost_in_the_middle_undoes_it_once(cast, run, outside, monkeypatch):
    made = ask(cast, run, second(run))

    class Killed(BaseException):
        pass

    def die(name, *_):
        if name == "called-take_away":
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("runs.engine.points.reached", die)
        with pytest.raises(Killed):
            executor.execute(made.pk)
    assert walk(made) == "succeeded"
    assert [what for _, what, _ in outside.done].count("took away") == 1


def test_what_a_parent_undid_of_a_child_is_undone_there_too_and_not_again(cast, outside):
    child = undone_with_its_parent(cast)
    [effect] = ledger.effects(child)
    assert effect.undone
    with pytest.raises(AlreadyUndone):
        undoing.undo(child, effect.seq, by=person(cast.otto.pk), reason="Again.")


def test_a_run_that_belongs_to_none_undoes_nothing(cast, outside):
    alone = start(cast, undoing.UNDO, {"seq": 7, "why": "x"}, scope={})
    assert walk(alone) == "parked" and outside.done == []
    parked = Event.objects.get(run=alone, type="run.parked")
    (why,) = vault.shown(parked.payloads.values()).values()
    assert why.text == "It undoes what a run did that has ended, and there is none that it belongs to."


def test_otto_undoes_it_on_its_page_and_by_the_api(cast, run, outside, django_assert_max_num_queries):
    client = Client()
    client.force_login(cast.otto)
    page = f"/runs/{run.pk}/effects/{second(run)}/undo"
    assert f'href="{page}"' in client.get(f"/runs/{run.pk}").content.decode()
    with django_assert_max_num_queries(25):
        assert "Take it away" in client.get(page).content.decode()
    assert client.post(page, {"reason": ""}).status_code == 422
    sent = client.post(page, {"reason": "It was the wrong shelf."})
    made = Run.objects.get(parent=run, workflow=undoing.UNDO)
    assert sent.headers["Location"] == f"/runs/{made.pk}"
    assert "Being undone by" in client.get(f"/runs/{run.pk}").content.decode()
    assert walk(made) == "succeeded"
    shown = client.get(f"/runs/{run.pk}").content.decode()
    assert "Undone by" in shown and made.ref in shown and f'href="{page}"' not in shown
    ended = shown[shown.index('id="run-now"') :].partition("</section>")[0]
    assert "Undone since: " in ended and made.ref in ended
    row = shown[shown.index(f'id="e{second(run)}"') :].partition("</li>")[0]
    assert "Undone by" in row and made.ref in row
    listed = client.get("/runs").content.decode().partition(f'mono">{run.ref}')[2]
    assert "3 done, 1 undone, 0 waiting" in listed.partition("</tr>")[0]
    ran = Run.objects.get(pk=run.pk)
    side = Side(presenting.view(ran, person(cast.otto.pk)), reading.told(ran).lines)
    [left] = [figure.first for figure in figures(side, side) if figure.name == "Left the company"]
    assert left.count(", undone") == 1
    again = client.post(page, {"reason": "Once more."})
    assert again.status_code == 409 and again.content.decode().count("This was undone before.") == 1
    part = client.get(f"/runs/{made.pk}").content.decode()
    assert f'Part of <a href="/runs/{run.pk}">{run.ref}</a>' in part, "from the undoing back to what it undoes"
    first = [effect.seq for effect in ledger.effects(run) if effect.can_undo][0]
    asked = {"effect": first, "reason": "This one too."}
    told = client.post(f"/api/v1/runs/{run.pk}/undos", asked, content_type="application/json").json()
    assert told["undoes"] == {"run": str(run.pk), "effect": first} and told["state"] == "queued"
