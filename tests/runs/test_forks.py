"""Forks: another run goes on from a point of this one, with changed input if somebody wants, and does nothing again that was done."""

import orjson
import pytest

from access.rules import person
from approvals import decisions, gate, policy
from approvals.models import Grant, ProposedAction
from artifacts import vault
from artifacts.models import Artifact
from config import clock
from runs import signals
from runs.engine import executor, family, forking, ledger, sweep, undoing
from runs.engine.tools import TOOLS
from runs.models import Event, JournalEntry, Run
from runs.verification import Whole, verify
from tests.runs import workflows
from tests.runs.test_children import undone_with_its_parent
from tests.runs.test_engine import approve, start, types, walk
from tests.runs.workflows import World
from tests.together import together
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def run(cast, outside) -> Run:
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    return start(cast, "test-talk", {"thing": "tea"})


def fork(cast, run: Run, step: str = "", key: str = "k", **more) -> Run:
    run.refresh_from_db()
    return forking.fork(run, by=person(cast.otto.pk), key=key, step=step, **more)


def done(cast, run: Run) -> Run:
    walk(run)
    approve(cast, run)
    assert walk(run) == "succeeded"
    return run


def forked(run: Run) -> dict:
    return orjson.loads(Event.objects.get(run_id=run.pk, type="run.forked").body)["data"]


def test_a_fork_takes_over_what_was_completed_and_asks_for_none_of_it_again(cast, run, outside):
    walk(run)
    made = fork(cast, run, "propose.say#1")
    assert walk(made) == "waiting" and outside.reads == 1
    assert types(made)[:4] == ["run.created", "run.forked", "plan.set", "artifact.created"] and "model.called" not in types(made)
    assert (made.forked_from_id, made.owner_id, made.scope, made.starter_id) == (run.pk, run.owner_id, run.scope, str(cast.otto.pk))
    told = forked(made)
    before = Event.objects.get(run_id=run.pk, seq=told["seq"] + 1)
    assert (told["parent"], told["step"], told["taken"], told["plan_steps"]) == (
        str(run.pk),
        "propose.say#1",
        2,
        [1, 2],
    ) and before.type == "step.started"
    approve(cast, made)
    assert walk(made) == "succeeded"
    assert isinstance(verify(made), Whole) and isinstance(verify(run), Whole)
    cited = [orjson.loads(e.body)["data"]["cites"] for e in Event.objects.filter(run_id=made.pk, type="report.published")]
    assert all(seq <= made.seq for seq in cited[0]) and 4 in cited[0]
    assert Artifact.objects.filter(run_id=made.pk).count() == 1


def test_changed_input_of_a_step_is_what_it_is_asked_and_the_rest_stays(cast, run, outside):
    walk(run)
    made = fork(cast, run, "model.phrase#1", edits={"thing": "coffee"})
    assert walk(made) == "waiting"
    approve(cast, made)
    assert walk(made) == "succeeded" and walk(made) == "busy"
    assert [text for _, _, text in outside.done] == ["There is coffee."] * 2 and outside.reads == 1
    assert "note.posted" not in types(made)  # nothing says that the code changed


def test_changed_input_of_a_proposal_puts_up_another_action(cast, run, outside):
    walk(run)
    made = fork(cast, run, "propose.say#1", edits={"text": "Hello."})
    assert walk(made) == "waiting" and walk(made) == "busy"
    approve(cast, made)
    assert walk(made) == "succeeded"
    assert [text for _, what, text in outside.done if what == "say"] == ["Hello."]


def test_what_is_done_with_the_same_input_in_both_is_done_once_under_one_key(cast, run, outside):
    done(cast, run)
    made = fork(cast, run, "model.phrase#1")
    done(cast, made)
    assert [what for _, what, _ in outside.done] == ["note", "say"]
    first, second = (Grant.objects.get(action__run=each, action__tool="say") for each in (run, made))
    assert second.key == first.pk and first.key is None and second.action.digest == first.action.digest
    effects = [orjson.loads(e.body)["data"] for e in Event.objects.filter(run_id=made.pk, type="effect.done")]
    assert str(first.pk) in {effect["key"] for effect in effects} and not any(effect["can_undo"] for effect in effects)


def test_whoever_of_both_is_first_gives_the_key(cast, run, outside):
    walk(run)
    made = fork(cast, run, "model.phrase#1")
    done(cast, made)
    approve(cast, run)
    assert walk(run) == "succeeded"
    assert [what for _, what, _ in outside.done] == ["note", "say"]
    assert Grant.objects.get(action__run=run, action__tool="say").key == Grant.objects.get(action__run=made, action__tool="say").pk


def test_what_is_done_with_other_input_has_a_key_of_its_own(cast, run, outside):
    done(cast, run)
    done(cast, fork(cast, run, "model.phrase#1", edits={"thing": "coffee"}))
    assert [text for _, what, text in outside.done if what == "say"] == ["There is tea.", "There is coffee."]
    assert len({key for key, _, _ in outside.done}) == 4


def test_what_was_undone_is_done_anew_under_a_new_key(cast, outside):
    for tool in ("put", "note_it", "take_away"):
        policy.set_rule(cast.workspace.pk, tool, name=tool, outcome="automatic", by=None)
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    run = start(cast, "test-undone", {}, {})
    walk(run)
    signals.send(run, kind="cancel", key="1", by=person(cast.otto.pk))
    walk(run)
    run.refresh_from_db()
    assert run.state == "cancelled"
    made = fork(cast, run)
    assert JournalEntry.objects.filter(run=made, kind="perform").count() == 1  # what could not be undone stands
    walk(made)
    assert [what for _, what, _ in outside.done] == ["put", "note", "put", "took away", "took away", "put", "put"]


def test_what_a_child_run_did_and_its_parent_undid_is_done_anew(cast, outside):
    for tool in ("put", "note_it", "take_away"):
        policy.set_rule(cast.workspace.pk, tool, name=tool, outcome="automatic", by=None)
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    run = start(cast, "test-parent-puts", {}, {})
    walk(run)
    assert walk(Run.objects.get(parent=run)) == "succeeded"
    sweep.sweep()
    walk(run)
    signals.send(run, kind="cancel", key="1", by=person(cast.otto.pk))
    assert walk(run) == "compensated" and [text for _, what, text in outside.done if what == "put"] == ["before", "of the child", "after"]
    made = fork(cast, run)
    assert walk(made) == "waiting" and made.waiting["on"] == "child" and outside.done[-1][2] == "before"
    assert walk(Run.objects.get(parent=made)) == "succeeded" and outside.done[-1][2] == "of the child"


def test_ids_and_chance_are_those_of_the_parent_so_that_the_same_is_done_once(cast, outside):
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    run = start(cast, "test-numbers", {}, {})
    walk(run)
    made = fork(cast, run, "propose.say#1")
    walk(made)
    for each in (made, run):
        approve(cast, each)
        assert walk(each) == "succeeded"
    assert len({key for key, _, _ in outside.done}) == 1 and len({text for *_, text in outside.done}) == 1


def test_a_fork_of_a_child_does_anew_what_its_parent_undid(cast, outside):
    made = fork(cast, undone_with_its_parent(cast))
    assert not JournalEntry.objects.filter(run=made, kind="perform").exists()
    walk(made)
    assert [text for _, what, text in outside.done if what == "put"][-1] == "of the child"


@pytest.mark.parametrize("of", ["the parent", "the fork"])
def test_what_both_did_under_one_key_and_one_undid_is_done_anew_by_the_next(cast, outside, of):
    for tool in ("put", "note_it", "take_away"):
        policy.set_rule(cast.workspace.pk, tool, name=tool, outcome="automatic", by=None)
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    run = done(cast, start(cast, "test-undone", {}, {}))
    made = done(cast, fork(cast, run, at=1))
    first = next(effect.seq for effect in ledger.effects(run) if effect.can_undo)
    assert walk(undoing.undo(run, first, by=person(cast.otto.pk), reason="No.")) == "succeeded"
    again = fork(cast, run, key="2", at=1) if of == "the parent" else fork(cast, made, key="2")
    walk(again)
    assert outside.done[-1][1:] == ("put", "first")


@pytest.mark.parametrize("then", [{}, {"step": "model.phrase#1"}, {"step": "propose.say#1"}])
def test_what_an_earlier_fork_changed_stays_changed(cast, run, outside, then):
    walk(run)
    one = fork(cast, run, "model.phrase#1", edits={"thing": "coffee"})
    if then:
        walk(one)
    two = done(cast, fork(cast, one, key="2", **then))
    assert [text for _, what, text in outside.done if what == "say"] == ["There is coffee."] and "note.posted" not in types(two)


def test_another_name_of_the_same_step_keeps_what_was_changed_of_it_before(cast, run, outside):
    walk(run)
    one = fork(cast, run, "propose.say#1", edits={"text": "Hello."})
    walk(one)
    done(cast, fork(cast, one, "propose.say#1", key="2", edits={"to": ["b@example.org"]}))
    assert [text for _, what, text in outside.done if what == "say"] == ["Hello."]


def test_an_approval_that_nobody_used_does_not_survive_a_fork(cast, run, outside):
    walk(run)
    approve(cast, run)
    run.refresh_from_db()
    made = fork(cast, run)
    assert not JournalEntry.objects.filter(run=made, kind="propose").exists()
    assert walk(made) == "waiting" and outside.done == []
    assert ProposedAction.objects.filter(run=made, state="waiting").count() == 1


def test_what_was_rejected_stays_rejected(cast, run, outside):
    walk(run)
    action = ProposedAction.objects.get(run=run)
    decisions.decide(action, reviewer=person(cast.riley.pk), verdict="rejected", digest=action.digest, reason="No.")
    walk(run)
    made = fork(cast, run)
    assert walk(made) == "succeeded" and not ProposedAction.objects.filter(run=made).exists()


def test_changed_input_of_the_run_begins_anew_and_goes_no_further_than_its_scope(cast, run, outside):
    done(cast, run)
    made = fork(cast, run, edits={"thing": "coffee"})
    assert forked(made) | {"parent": ""} == {"parent": "", "ref": run.ref, "seq": 1, "taken": 0, "plan_steps": []}
    assert walk(made) == "parked" and outside.reads == 1
    assert orjson.loads(Event.objects.get(run_id=made.pk, type="run.parked").body)["data"]["reason"] == "out_of_scope"


def test_a_fork_has_read_what_its_parent_has_read(cast, run, outside):
    walk(run)
    made = fork(cast, run, "propose.say#1")
    Run.objects.filter(pk=made.pk).update(tools=[*made.tools, "put"])
    assert "look" in family.tools_used(made) and "put" not in family.tools_used(run)
    assert gate.taint_of(made, TOOLS["say"]) == gate.taint_of(run, TOOLS["say"])


def test_a_fork_gets_what_is_left_of_the_limits(cast, run, outside):
    walk(run)
    Run.objects.filter(pk=run.pk).update(budgets={"tokens": 100, "steps": 10}, tokens=30)
    made = fork(cast, run, "propose.say#1")
    assert made.budgets == {"tokens": 70, "steps": 9}  # 3 of 10 begun, 2 of them taken over
    Run.objects.filter(pk=run.pk).update(tokens=100)
    with pytest.raises(forking.NotForkable, match="used up"):
        fork(cast, run, key="another")


def test_a_long_title_gives_way_to_what_tells_a_fork_apart(cast, run, outside):
    run.title = vault.keep(run.workspace_id, ("A ticket about " * 20)[:200].encode(), label="internal")
    run.save(update_fields=["title"])
    walk(run)
    other = fork(cast, run, "model.phrase#1", edits={"thing": "coffee"})
    again = fork(cast, other, "look#1")
    titles = [vault.open_bytes(each.title).decode() for each in (other, again)]
    assert titles[0].endswith("…, with other thing") and titles[1].endswith(f"…, forked after #{again.forked_seq}")
    assert all(len(title) <= 200 for title in titles) and "with other" not in titles[1]


def called(run: Run, title: str) -> None:
    Run.objects.filter(pk=run.pk).update(title=vault.keep(run.workspace_id, title, label="internal"))


HIDDEN = ("4111 1111 1111 1111", "GB29 NWBK 6016 1331 9268 19", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "/home/riley/keys/id")


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_title_that_gives_way_shows_no_half_of_what_is_hidden_in_it(cast, run, outside, hidden):
    walk(run)
    called(run, f"{'a b ' * 43} {hidden} b")
    made = fork(cast, run, "model.phrase#1", edits={"thing": "coffee"})
    assert made.title.rendition.startswith("a b a b") and made.title.rendition.endswith(" a b…, with other thing")
    long = start(cast, "test-talk", {"thing": "tea"}, title=f"{'a b ' * 48} {hidden} b")
    assert long.title.rendition.endswith(" a b…") and len(long.title.rendition) < 200


def test_only_what_tells_a_fork_apart_gives_way_to_what_tells_the_next_one_apart(cast, run, outside):
    walk(run)
    called(run, "Send it to Ana, with other papers")
    made = fork(cast, run, "model.phrase#1")
    assert made.title.rendition == f"Send it to Ana, with other papers, forked after #{made.forked_seq}"
    of_it = fork(cast, made, "look#1")
    assert of_it.title.rendition == f"Send it to Ana, with other papers, forked after #{of_it.forked_seq}"


def test_a_run_whose_title_nobody_could_see_is_called_by_its_reference(cast, outside):
    made = start(cast, "test-talk", {"thing": "tea"}, title="\u200b\u3164 \u202e")
    assert made.title.rendition == f"Run {made.ref}"


def test_the_same_key_makes_one_fork_and_no_other(cast, run, outside):
    walk(run)
    made = fork(cast, run, "model.phrase#1")
    assert fork(cast, run, "model.phrase#1") == made and Run.objects.filter(forked_from=run).count() == 1
    with pytest.raises(forking.ForkReused):
        fork(cast, run, "model.phrase#1", edits={"thing": "coffee"})
    assert fork(cast, run, "model.phrase#1", key="another") != made


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"step": "nowhere#1"}, "can't begin"),
        ({"step": "artifact#1"}, "can't begin"),
        ({"step": "model.phrase#1", "at": 3}, "not both"),
        ({"step": "model.phrase#1", "edits": {"colour": "red"}}, "no “colour”"),
        ({"step": "look#1", "edits": {"thing": 7}}, "thing"),
        ({"edits": {"colour": "red"}}, "no “colour”"),
        ({"at": 3, "edits": {"thing": "coffee"}}, "name the step"),
        ({"at": 1000}, "Its log goes to"),
    ],
)
def test_what_makes_no_sense_starts_nothing(cast, run, outside, asked, why):
    walk(run)
    with pytest.raises(forking.BadInput, match=why):
        fork(cast, run, **asked)
    assert not Run.objects.filter(forked_from=run).exists()


def test_a_run_that_is_being_undone_or_that_an_agent_outside_works_on_is_not_forked(cast, run, outside):
    walk(run)
    Run.objects.filter(pk=run.pk).update(state="compensating")
    with pytest.raises(forking.NotForkable, match="undone"):
        fork(cast, run)
    Run.objects.filter(pk=run.pk).update(state="waiting", workflow="")
    with pytest.raises(forking.NotForkable, match="agent outside"):
        fork(cast, run)


def test_a_fork_of_a_fork_knows_what_both_did(cast, run, outside):
    done(cast, run)
    made = fork(cast, run, "propose.say#1")
    walk(made)
    again = fork(cast, made, "model.phrase#1", edits={"thing": "coffee"})
    assert again.lineage == run.pk and family.tools_used(again) == {"look", "note_it", "say"}
    done(cast, again)
    assert [text for _, what, text in outside.done if what == "say"] == ["There is tea.", "There is coffee."] and outside.reads == 1


def test_both_at_once_do_the_same_once(cast, run, outside):
    """Whoever takes its grant first gives the key; the other one looks up what became of it."""
    walk(run)
    made = fork(cast, run, "model.phrase#1")
    walk(made)
    for each in (run, made):
        approve(cast, each)
    together([lambda: executor.execute(run.pk), lambda: executor.execute(made.pk)])

    def over() -> bool:
        for each in (run, made):
            Run.objects.filter(pk=each.pk, state="waiting").update(wake_at=clock.now())
            sweep.sweep()
            walk(each)
        return {run.state, made.state} == {"succeeded"}

    until(over, within=30, what=lambda: f"both to be done: {run.state} {run.waiting}, {made.state} {made.waiting}")
    assert sorted(what for _, what, _ in outside.done) == ["note", "say"]
