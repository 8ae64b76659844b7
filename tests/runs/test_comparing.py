"""Two runs beside each other: rows are matched by what they are about, compared by the bytes, and shown as renditions."""

from dataclasses import replace
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.test import Client

from access.rules import person
from approvals import policy
from artifacts import vault
from runs import comparing, presenting
from runs.beside import legs as beside_legs
from runs.beside.figures import _worked, in_seconds
from runs.beside.legs import Leg
from runs.beside.words import word_by_word
from runs.comparing import Pair, _once
from runs.engine import forking
from runs.models import Event, Run
from runs.story.shapes import Piece, Text
from tests.runs import workflows
from tests.runs.test_engine import approve, start, walk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(cast) -> Run:
    workflows.reset()
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    return done(cast, start(cast, "test-talk", {"thing": "tea"}))


@pytest.fixture
def otto(cast) -> Client:
    client = Client()
    client.force_login(cast.otto)
    return client


def done(cast, run: Run) -> Run:
    walk(run)
    approve(cast, run)
    assert walk(run) == "succeeded"
    return run


def fork(cast, run: Run, **more) -> Run:
    made = forking.fork(run, by=person(cast.otto.pk), key=str(more), step="model.phrase#1", **more)
    return done(cast, made)


def compared(cast, one: Run, other: Run) -> comparing.Comparison:
    found = {each.pk: each for each in Run.objects.select_related(*presenting.RELATED, "input__key")}
    return comparing.compare(found[one.pk], found[other.pk], person(cast.otto.pk))


def rows(found: comparing.Comparison) -> list[tuple[str, bool]]:
    return [((pair.first or pair.second).about[0], pair.same) for pair in found.pairs]


def test_a_fork_that_did_the_same_differs_in_nothing_but_that_it_is_one(cast, run):
    found = compared(cast, fork(cast, run), run)
    assert found.forked and found.first.run == run and found.at == found.second.run.forked_seq
    assert [row for row in rows(found) if not row[1]] == [("people", False)]
    assert ("effect", True) in rows(found) and found.first.own[0].seq == found.at + 1
    assert not [row for row in rows(found) if row[0] == "ending"], "that both are done stands at their heads"
    said = next(pair.second.more for pair in found.pairs if pair.second and pair.second.key)
    assert said == "Happened only once: outside it was recognised as the same."


def test_what_differs_is_named_and_shown_word_by_word(cast, run):
    found = compared(cast, run, fork(cast, run, edits={"thing": "coffee"}))
    kept = next(pair for pair in found.pairs if pair.first and pair.first.about[0] == "artifact")
    assert [(piece.kind, piece.text) for piece in kept.first.pieces if piece.kind != "same"] == [("del", "tea.")]
    assert [(piece.kind, piece.text) for piece in kept.second.pieces if piece.kind != "same"] == [("ins", "coffee.")]
    asked = next(pair for pair in found.pairs if pair.first and pair.first.about[0] == "model")
    assert not asked.same and not asked.second.more, "that it was asked something else, the changed input says"
    answers = [[piece.text for piece in leg.pieces if piece.kind != "same"] for leg in (asked.first, asked.second)]
    assert answers == [["tea."], ["coffee."]], "of what it answered the field that differs"
    assert not [piece for pair in found.pairs if pair.first for piece in pair.first.pieces if piece.kind == "same" and "\n" in piece.text]
    action = next(pair for pair in found.pairs if pair.first and pair.first.about[0] == "action" and "say" in pair.first.about[1])
    assert not action.same and [piece.text for piece in action.second.pieces if piece.kind == "ins"] == ["coffee."]
    effects = [pair for pair in found.pairs if pair.first and pair.first.about[0] == "effect"]
    assert [pair.same for pair in effects] == [True, True]  # by what is said of them: their actions say what differs


def test_two_runs_of_one_workflow_are_folded_where_they_begin_alike(cast, run, otto):
    other = done(cast, start(cast, "test-talk", {"thing": "tea"}))
    found = compared(cast, run, other)
    assert not found.forked and found.trunk >= 1 and "look#1" in {pair.first.about[1] for pair in found.pairs if pair.first}
    page = otto.get(f"/runs/{run.pk}/compare?with={other.pk}").content.decode()
    assert f"The first {found.trunk} are the same in both" in page and other.ref in page
    cost = next(figure for figure in found.figures if figure.name == "Cost")
    assert other.ref in otto.get(f"/runs/{run.pk}/compare").content.decode()
    assert cost.same and cost.first == "None, a script answered"


def test_what_took_two_runs_almost_the_same_time_is_no_difference():
    assert [in_seconds(seconds) for seconds in (0.4, 0.8, 2.1, 2.4, 75)] == ["Under a second"] * 2 + ["2 s"] * 2 + ["1 min"]


@pytest.mark.parametrize(("ms", "told"), [(600, "Under a second"), (2_100, "2 s"), (2_400, "2 s")])
def test_work_is_told_in_whole_seconds_as_well(cast, run, ms, told):
    side = compared(cast, run, fork(cast, run)).first
    calls = [line for line in side.own if line.type in ("tool.ended", "model.called")]
    own = [replace(line, data={**line.data, "ms": ms if line is calls[0] else 0}) for line in side.own]
    assert _worked(SimpleNamespace(own=own)) == told


def test_the_page_says_where_they_part_and_shows_both_in_figures(cast, run, otto, django_assert_max_num_queries):
    made = fork(cast, run, edits={"thing": "coffee"})
    with django_assert_max_num_queries(24):
        page = otto.get(f"/runs/{made.pk}/compare?with={run.pk}").content.decode()
    assert f"They part after #{made.forked_seq}" in page and "<del>tea.</del>" in page and "<ins>coffee.</ins>" in page
    alike = page.partition('class="same"><th scope="row">People who decided')[2].partition("</tr>")[0]
    assert alike.count(">1 person</td>") == 2, "what is the same in both stands there, and recedes"


def test_runs_of_different_workflows_are_not_compared(cast, run, otto):
    other = start(cast, "test-asks", {})
    walk(other)
    assert otto.get(f"/runs/{run.pk}/compare?with={other.pk}").status_code == 422
    assert otto.get(f"/runs/{run.pk}/compare?with=nonsense").status_code == 404


def test_the_page_of_a_replay_says_same_and_is_refused_in_words(cast, run, otto):
    assert "It would do the same" in otto.get(f"/runs/{run.pk}/replay").content.decode()
    refused = otto.get(f"/runs/{run.pk}/replay?version=9")
    assert refused.status_code == 409 and "version 9 is not loaded here" in refused.content.decode()


def test_a_mark_of_something_hidden_is_never_cut_and_long_sameness_is():
    before = Text("Pay ⟦card⟧ now " + "same " * 60 + "old end")
    after = Text("Pay ⟦iban⟧ now " + "same " * 60 + "new end")
    left, right = word_by_word(before, after)
    assert [(p.kind, p.text) for p in left if p.kind != "same"] == [("del", "⟦card⟧"), ("del", "old")]
    assert [(p.kind, p.text) for p in right if p.kind != "same"] == [("ins", "⟦iban⟧"), ("ins", "new")]
    assert sum(len(piece.text) for piece in left) < 160 and any("…" in piece.text for piece in left)


def test_a_text_that_differs_further_on_than_is_compared_is_said_to_differ():
    def kept(ends: str) -> Leg:
        about = {"about": ("artifact", "a", "1"), "icon": "file", "title": ("a",), "text": None, "shade": "", "part": "", "key": ""}
        return Leg(seq=1, told=ends, marks={"content": ends}, shown={"content": Text("same " * 2000 + ends)}, **about)

    pair = comparing._pair(kept("old"), kept("new"), asked=True)
    assert not pair.same and not pair.first.pieces and pair.first.more == pair.second.more == "The content differs."
    for mark in ("⟦card⟧", "⟦iban⟧"):
        cut = word_by_word(Text("a" * 3998 + mark), Text("b" * 3998 + mark))
        assert all("⟦" not in piece.text for side in cut for piece in side)


def test_what_was_erased_in_one_is_said_to_be_and_not_to_have_held_nothing(cast, run, otto):
    other = done(cast, start(cast, "test-talk", {"thing": "tea"}))
    vault.erase_all([UUID(pk) for each in Event.objects.filter(run_id=run.pk) for pk in each.payloads.values()], by=cast.ada, why="Asked.")
    found = compared(cast, run, other)
    assert [(each.name, each.first, each.second) for each in found.figures][:2] == [
        ("Report", "Erased", "Said"),
        ("Left the company", "Erased; Erased", "Note it; Say it"),
    ]
    page = otto.get(f"/runs/{run.pk}/compare?with={other.pk}").content.decode()
    assert "Thing: " not in page and "What it gave differs." in page


def test_words_beside_each_other_that_differ_are_one_difference():
    left, right = word_by_word(Text("So: Checked the number. Kind regards"), Text("So: The credit note is agreed. Kind regards"))
    assert [(p.kind, p.text) for p in left] == [("same", "So: "), ("del", "Checked the number."), ("same", " Kind regards")]
    assert [(p.kind, p.text) for p in right] == [("same", "So: "), ("ins", "The credit note is agreed."), ("same", " Kind regards")]
    alike = word_by_word(Text("One two three"), Text("One 2 three"))
    assert [[p.text for p in pieces] for pieces in alike] == [["One ", "two", " three"], ["One ", "2", " three"]]


def test_what_would_take_long_to_align_is_one_that_is_gone_and_one_that_has_come():
    old, new = "begin " + "a " * 900 + "end", "begin " + "a b " * 450 + "end"
    left, right = word_by_word(Text(old), Text(new))
    assert [piece.kind for piece in left] == ["same", "del", "same"] and [piece.kind for piece in right] == ["same", "ins", "same"]


@pytest.mark.parametrize(("first", "second", "alike"), [("a " * 400, "a b " * 200, True), ("a " * 400, "b c " * 200, False)])
def test_whether_a_long_text_is_another_that_was_changed_is_told_by_its_words_without_aligning_them(monkeypatch, first, second, alike):
    monkeypatch.setattr(comparing, "SequenceMatcher", None)
    assert comparing._alike(comparing.Read("note", Text(first), Text(second))) is alike


def test_numbers_of_events_are_no_difference_where_a_run_cites_itself_and_are_one_in_what_it_wrote(monkeypatch):
    def marks(leg: Leg, role: str, content: bytes) -> dict[str, str]:
        monkeypatch.setattr(beside_legs.vault, "opened", lambda payload: content)
        return dict(beside_legs._marked(leg, {role: SimpleNamespace()}).marks)

    leg = Leg(30, ("milestone",), "", (), None, "", "", "", None)
    said = [[marks(leg, role, text) for text in (b"From #9 and #15.", b"From #4 and #5.")] for role in ("detail", "content")]
    assert said[0][0] == said[0][1] and said[1][0] != said[1][1]
    assert marks(leg, "detail", b"Order #3111") != marks(leg, "detail", b"Order #3112"), "no event of this run"


def test_what_only_one_did_stands_beside_what_the_other_did_under_the_same_step():
    def leg(seq: int, about: str, part: str) -> Leg:
        return Leg(seq, (about,), "", (), None, "", part, "", None)

    first = [leg(1, "same", "Read"), leg(2, "approved", "Ask"), leg(3, "note", "Log"), leg(4, "end", "Log")]
    second = [leg(1, "same", "Read"), leg(5, "cancelled", "Ask"), leg(6, "withdrawn", "Ask"), leg(7, "end", "Log")]
    rows = [
        (pair.first and pair.first.seq, pair.second and pair.second.seq, pair.part) for pair in comparing._pairs(first, second, asked=True)
    ]
    assert rows == [(1, 1, "Read"), (2, 5, "Ask"), (None, 6, "Ask"), (3, None, "Log"), (4, 7, "Log")]


def test_a_long_difference_is_shown_once_with_the_numbers_of_the_rows_that_it_is_in():
    marked = (Piece("ins", "We will offer a credit note on the next invoice."),)
    legs = [Leg(seq, ("x",), "", (), Text("t"), "", "", "", None, pieces=marked) for seq in (8, 11)]
    legs.append(replace(legs[1], seq=14, more="1 attachment."))
    shown, named = _once([Pair(leg, replace(leg, seq=leg.seq + 20, more=""), False) for leg in legs])
    assert shown.first and shown.first.pieces and shown.first.more == "The same in #11 and #14."
    assert shown.second and shown.second.pieces and shown.second.more == "The same in #31 and #34."
    assert named.first and (named.first.seq, named.first.more) == (14, "1 attachment.") and not (named.first.pieces or named.first.text)


def test_a_difference_is_the_same_whatever_stands_around_it_and_a_short_one_is_shown_each_time():
    def pair(seq: int, before: str, marked: str) -> Pair:
        pieces = (Piece("same", before), Piece("ins", marked))
        leg = Leg(seq, ("x",), "", (), Text("t"), "", "", "", None, pieces=pieces)
        return Pair(leg, replace(leg, seq=seq + 20, pieces=pieces[:1]), False)

    long, short = "We will offer a credit note on the next invoice.", "a refund"
    assert len(list(_once([pair(8, "Dear Marta, ", long), pair(11, "To say: ", long)]))) == 1
    around = "The words before it are more than forty characters long: "
    assert len(list(_once([pair(8, around, short), pair(11, around, short)]))) == 2


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["the status"], "The status differs, too."),
        (["the attachments"], "The attachments differ, too."),
        (["the address"], "The address differs, too."),
        (["the HTML", "the reason"], "The HTML and the reason differ, too."),
    ],
)
def test_what_else_differs_is_said_in_the_right_number(names: list[str], said: str) -> None:
    assert comparing._differ(names, too=True) == said
