"""How a run's rows are drawn together: what differs from a version before, what a later request replaced, and times that change."""

from dataclasses import replace
from typing import Any

import pytest

from runs.engine.tools import TOOLS, tool
from runs.story import rows, titles
from runs.story.aligning import opcodes
from runs.story.made import VERSIONS, differences
from runs.story.shapes import Difference, Item, Label, Quote
from runs.templatetags.story import DRAWN
from runs.timeline import fold
from tests.runs import lines
from tests.runs.lines import NOTE, SEND, Log
from tests.runs.test_timeline import items, said


def made(log: Log, text: str, version: int, name: str = "reply.txt", label: str = "personal") -> None:
    seq = lines.artifact(log, name, text, label=label)
    log.lines[seq - 1]["body"]["data"]["version"] = version


def told(log: Log) -> list[tuple[Any, ...]]:
    """The one line under each artifact."""
    return [item.lines[0] for item in items(fold(log.lines)) if item.kind == "artifact"]


def pieces(rich: tuple[Any, ...]) -> list[tuple[str, str]]:
    [difference] = [part for part in rich if isinstance(part, Difference)]
    return [(piece.kind, piece.text) for piece in differences(difference.before, difference.after)]


def test_of_a_version_it_is_told_what_it_changed_beside_how_sensitive_it_is() -> None:
    log = lines.begun()
    made(log, "Dear Marta, we refund the extra €1,079.00 the way it was paid.", 1)
    made(log, "Dear Marta, we refund the extra €1,284.00, including VAT, the way it was paid.", 2)
    first, second = told(log)
    assert isinstance(first[0], Label) and isinstance(first[-1], Quote), "one line: the label, and the words"
    assert isinstance(second[0], Label)
    assert pieces(second) == [("same", "… refund the extra"), ("del", "€1,079.00"), ("ins", "€1,284.00, including VAT,")]


def test_what_was_erased_or_is_another_artifact_is_compared_with_nothing() -> None:
    log = lines.begun()
    made(log, "One word.", 1)
    made(log, "Two words.", 1, name="other.txt")
    made(log, "Two words.", 2)
    log.lines[-3]["texts"]["content"] = {"erased_at": "2026-11-26T15:00:00Z", "erased_by": "Ada"}
    assert not [part for rich in told(log) for part in rich if isinstance(part, Difference)]


@pytest.mark.parametrize(
    ("before", "after"), [("the same words", "the same  words"), ("short", "word " * 900), ("a cut one⟦+900⟧", "another cut one⟦+900⟧")]
)
def test_what_does_not_differ_or_is_too_long_or_cut_off_is_not_compared(before: str, after: str) -> None:
    assert differences(before, after) == ()


def test_what_a_word_parts_is_one_place_of_a_difference() -> None:
    before, after = "We refund the extra the way it was paid.", "We refund the extra to the card ending 4417."
    assert [(piece.kind, piece.text) for piece in differences(before, after)] == [
        ("same", "… refund the extra"),
        ("del", "the way it was paid."),
        ("ins", "to the card ending 4417."),
    ]


def test_a_sentence_that_differs_stands_whole_and_of_a_long_passage_the_beginning() -> None:
    sentence = " ".join(f"word{number}" for number in range(24))
    passage = " ".join(f"word{number}" for number in range(60))
    assert len(sentence) < 200 < len(passage)
    for changed, shown in ((sentence, sentence), (passage, " ".join(passage.split()[:10]) + " …")):
        found = differences("We refund it. Fernhill", f"We refund it. {changed} Fernhill")
        assert [piece.text for piece in found] == ["We refund it.", shown]


def test_what_is_hidden_is_one_word_of_a_difference() -> None:
    assert [piece.text for piece in differences("Write to ⟦e-mail address⟧.", "Write to us.")] == ["Write to", "⟦e-mail address⟧.", "us."]


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("Pay ⟦iban⟧ by Friday.", '<ins>Friday.</ins> <span class="dim">Hidden values are not compared.</span>'),
        ("Pay ⟦iban⟧ by noon.", " Hidden values are not compared."),  # the account may be another, and no word differs
        ("Pay us by noon.", "<ins>us</ins>"),
    ],
)
def test_that_hidden_values_are_not_compared_is_said_where_both_versions_have_some(after: str, said: str) -> None:
    log = lines.begun()
    made(log, "Pay ⟦iban⟧ by noon.", 1)
    made(log, after, 2)
    for line, text in zip(log.lines[-2:], ("⟦", after), strict=True):
        line["texts"]["content"]["hidden"] = {"iban": 1} if "⟦" in text else {}
    drawn = "".join(str(DRAWN[type(part)](part)) if type(part) in DRAWN else str(part) for part in told(log)[1])
    assert said in drawn and ("not compared" in drawn) is ("not compared" in said)


def test_a_difference_in_more_places_than_are_shown_says_how_many_more_there_are() -> None:
    before = " ".join(f"w{number}" for number in range(60))
    some = before.replace("w5 ", "V5 ").replace("w20 ", "V20 ")
    assert [piece.kind for piece in differences(before, some)] == ["same", "del", "ins", "same", "del", "ins"]
    assert [(piece.kind, piece.text) for piece in differences(before, some.replace("w40 ", "V40 "))][6:] == [("more", "and 1 more change")]
    drawn = DRAWN[Difference](Difference(before, some.replace("w40 ", "V40 ").replace("w50 ", "V50 ")))
    assert drawn.endswith('<del>w20</del> <ins>V20</ins> <span class="dim">and 2 more changes</span>')


def test_a_step_that_is_done_anew_is_folded_unless_something_in_it_is_still_to_be_found() -> None:
    log = lines.drafted()
    log.add("step.started", {"step": "propose.send_email#1", "kind": "propose", "plan_step": 4}, who="agent")
    log.add("run.parked", {"reason": "error"}, detail="The workflow’s code failed.")
    before = {section.key: section for section in fold(log.lines).sections}
    assert rows.stretched(before["s3"], 0).replaced == ""
    log.add("deadletter.resolved", {"letter": NOTE, "choice": "retry", "step": "model.draft-reply#1"}, who="riley")
    log.add("run.queued", {"reason": "recovered"})
    log.add("step.started", {"step": "model.draft-reply#1", "kind": "model", "plan_step": 3}, who="agent")
    now = {section.key: section for section in fold(log.lines).sections}
    drawn = rows.stretched(now["s3"], 0)
    assert drawn.replaced.endswith("one anew below") and drawn.items == now["s3"].items, "all of it stands in the fold"
    assert rows.stretched(now["s3-2"], 0).replaced == rows.stretched(now["s2"], 0).replaced == ""
    assert rows.stretched(now["s3"], 0, new=now["s3"].last).replaced == "", "what is new to somebody is not folded"
    assert rows.stretched(now["s3"], now["s3"].opened).replaced == "", "nor what is looked at"
    done = replace(now["s3"], items=(*now["s3"].items, replace(now["s3"].items[-1], kind="effect", state="done")))
    assert rows.stretched(done, 0).replaced == "", "nor what was done outside"
    assert rows.stretched(now["s3"], 0, hits=[now["s3"].last]).replaced == "", "nor what is looked for"


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        ("action.expired", {"action": lines.SEND}),
        ("action.withdrawn", {"action": lines.SEND, "reason": "agent"}),
        ("effect.undone", {"key": NOTE}),
        ("run.compensating", {"effects": 2}),
        ("run.resumed", {"reason": "lease_expired", "worker": "w2", "token": 2}),
        ("child.started", {"run": NOTE, "ref": "RN-AAAA", "step": "step.child#1"}),
        ("budget.warned", {"budget": "tokens", "used": 9, "limit": 10}),
    ],
)
def test_a_step_in_which_something_was_undone_or_went_wrong_is_not_folded_when_it_is_done_anew(type_: str, data: dict[str, Any]) -> None:
    log = lines.drafted()
    log.add(type_, data)
    log.add("step.started", {"step": "propose.send_email#1", "kind": "propose", "plan_step": 4}, who="agent")
    log.add("run.parked", {"reason": "error"}, detail="The workflow’s code failed.")
    log.add("deadletter.resolved", {"letter": NOTE, "choice": "retry", "step": "model.draft-reply#1"}, who="riley")
    log.add("step.started", {"step": "model.draft-reply#1", "kind": "model", "plan_step": 3}, who="agent")
    now = {section.key: section for section in fold(log.lines).sections}
    assert now["s3"].anew and now["s3"].state == "done"
    assert rows.stretched(now["s3"], 0).replaced == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["a"] * 300, ["a", "b"] * 150),  # too long
        (["a"] * 160, ["a", "b"] * 80),  # short enough, and one word again and again
    ],
)
def test_what_would_take_long_to_align_is_one_place_between_what_begins_and_ends_the_same(before: list[str], after: list[str]) -> None:
    found = opcodes(["x", *before, "y"], ["x", *after, "y"], 200)
    assert [kind for kind, *_ in found] == ["equal", "replace", "equal"]
    assert [piece.kind for piece in differences(" ".join(["x", *before, "y"]), " ".join(["x", *after, "y"]))] == ["same", "del", "ins"]


def test_a_long_text_that_differs_in_a_place_is_compared_there() -> None:
    before = " ".join(f"w{number}" for number in range(700))
    assert [piece.text for piece in differences(before, before.replace("w350 ", "V "))][1:] == ["w350", "V"]


def test_of_very_many_versions_the_latest_tell_what_they_changed_and_the_others_how_they_begin() -> None:
    log = lines.begun()
    for version in range(1, VERSIONS + 4):
        made(log, f"Draft {version}.", version)
    kinds = [type(rich[-1]) for rich in told(log)]
    assert kinds == [Quote] * 3 + [Difference] * VERSIONS
    assert all(isinstance(rich[0], Label) for rich in told(log)), "the label stays"


def effect(number: int, **amounts: int) -> Item:
    return Item(number, number, lines.START, "effect", ("Done",), state="done", amounts=tuple(amounts.items()))


@pytest.mark.parametrize(
    ("amounts", "said"),
    [
        ([{"files": 1}, {"files": 4, "rows": 2}], "5 files"),
        ([{"files": 1}, {}, {}], "3 done outside"),
        ([{"files": 1}, {"files": -5}], "2 done outside"),
        ([{"files": 1}, {"files": 9 * 10**18}], "2 done outside"),
    ],
)
def test_a_sum_is_told_only_of_what_each_of_them_tells(amounts: list[dict[str, int]], said: str) -> None:
    assert rows.came_to([effect(number, **each) for number, each in enumerate(amounts, 1)]) == said


def test_what_was_rejected_and_put_to_people_anew_keeps_one_line_and_tells_its_reason_to_who_opens_it() -> None:
    log = lines.drafted()
    lines.propose(log, SEND, "send_email", "send", needs=1, subject="E-mail", reason="She asked why.")
    data = {"action": SEND, "digest": lines.DIGEST, "decision": NOTE, "verdict": "rejected", "round": 1}
    log.add("action.decided", data, who="riley", reason="Attach the record.")
    [before] = [each for each in items(fold(log.lines)) if each.kind == "proposal"]
    assert before.facts and not before.folded, "it stands as it is until another takes its place"
    lines.propose(log, NOTE, "send_email", "send", needs=1, subject="E-mail", reason="She asked why.")
    first, second = (each for each in items(fold(log.lines)) if each.kind == "proposal")
    assert (first.facts, [said(line) for line in first.lines]) == ((), ["Rejected at <At>, replaced by <At>."])
    assert (first.more, [said(line) for line in first.folded]) == ("Its reason", ["She asked why."])
    assert second.facts and second.state == "waiting"


def test_a_planned_step_says_what_its_tool_will_do_and_whether_it_can_be_undone() -> None:
    names = ("rows_note", "rows_back", "rows_send", "rows_read")
    try:
        tool(effect="write", title="Strike it from the book", target="CRM", name=names[1])(lambda call: None)
        tool(effect="write", title="Enter it in the book", target="CRM", compensate=names[1], name=names[0])(lambda call: None)
        tool(effect="send", title="Send the book off", target="mail server", name=names[2])(lambda call: None)
        tool(effect="read", title="Read the book", target="CRM", name=names[3])(lambda call: None)
        assert titles.will_do("Enter it in the book") == "Changes the CRM. Can be undone."
        assert titles.will_do("Send the book off") == "Sent once, through the mail server. Can’t be undone."
        assert titles.will_do("Read the book") == titles.will_do("Have lunch") == ""
    finally:
        for name in names:
            TOOLS.pop(name, None)


def test_what_policy_allowed_without_asking_is_told_in_one_line_and_what_was_approved_with_the_proof() -> None:
    effects = [each for each in items(fold(lines.finished().lines)) if each.kind == "effect"]
    assert [(each.runs_on, len(each.lines)) for each in effects[:2]] == [(True, 2), (True, 3)]
    assert "digests are the same" not in "".join(said(line) for line in effects[0].lines)
