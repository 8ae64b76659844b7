"""The story of a run is a pure fold of its log."""

import re
import types
import typing
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from runs import vocabulary
from runs.story import raw, titles
from runs.story.shapes import Item, Section, Story, Text, Took, Who
from runs.story.wire import read
from runs.timeline import Fold, fold
from tests.runs import lines
from tests.runs.lines import DIGEST, NOTE, OWNER, RILEY, SEND, SIGNAL, Log, words


def items(story: Story, *, quiet: bool = False) -> list[Item]:
    return [item for section in story.sections for item in section.items if quiet or not item.quiet]


def item(story: Story, seq: int) -> Item:
    return next(each for each in items(story, quiet=True) if each.first == seq)


def section(story: Story, key: str) -> Section:
    return next(each for each in story.sections if each.key == key)


def said(rich: tuple[Any, ...]) -> str:
    return "".join(part if isinstance(part, str) else getattr(part, "text", "") or f"<{type(part).__name__}>" for part in rich)


# What a run says --------------------------------------------------------------------------------------------------------------------


def test_an_empty_log_says_that_nothing_is_recorded() -> None:
    story = fold([])
    assert (story.seq, story.state, said(story.now.what)) == (0, "queued", "Nothing is recorded yet.")


def test_a_run_that_was_just_started_has_no_plan_yet() -> None:
    story = fold(lines.begun().lines, upto=2)
    assert story.plan is None
    assert said(story.now.what) == "Just started."  # that there is no plan, the timeline says
    [start] = items(story)
    assert (start.first, start.last) == (1, 2)
    assert start.title == (Who("human", OWNER), " started the run")
    assert said(start.lines[0]) == "Scope: ticket ZN-4821"


def test_a_run_that_was_not_allowed_its_reply_says_so_and_why() -> None:
    story = fold(lines.rejected().lines)
    assert said(story.now.what) == "Not sent: <Who> rejected “E-mail a reply to Marta Oyelaran”."
    assert story.now.refused, "and so it is not in the green of something done"
    assert (said(items(story)[-1].title), items(story)[-1].state) == ("Ended, nothing done", "cancelled")
    assert [s.key for s in story.sections][-3:] == ["s5", "s6", "end"], "what was not reached stands before the end"
    assert [said(line) for line in story.now.lines] == ["“Name the amount.”", "Nothing was done outside."]
    [card] = [each for each in items(story) if each.kind == "proposal"]
    assert said(card.lines[-1]) == "Rejected at <At>, so nothing was sent."


def test_an_agent_that_was_heard_of_again_was_silent_for_a_time_and_is_no_trouble_any_more() -> None:
    log = lines.begun()
    silent = log.add("run.stalled", {"since": log.until(-30)}, after=10)
    assert fold(log.lines).state == "stalled"
    log.add("run.resumed", {"reason": "heard", "worker": "host-a:1", "token": 1}, after=20)
    story = fold(log.lines)
    row = next(item for section in story.sections for item in section.items if item.first == silent)
    assert (row.kind, row.state, row.minor, said(row.title)) == ("state", "", True, "The agent was silent for <Took>")
    assert row.title[1] == Took(60_000) and story.state == "running"


def test_a_request_that_is_void_tells_its_reason_to_who_opens_it() -> None:
    log = lines.drafted()
    lines.propose(log, SEND, "send_email", "send", needs=1, subject="E-mail", reason="She asked why.")
    log.add("action.withdrawn", {"action": SEND, "reason": "revised"})
    [card] = [each for each in items(fold(log.lines)) if each.kind == "proposal"]
    assert (card.more, [said(line) for line in card.folded]) == ("Its reason", ["She asked why."])
    assert [said(line) for line in card.lines] == ["Withdrawn at <At> for a change of plan."]


def test_each_step_of_the_plan_holds_what_happened_in_it() -> None:
    story = fold(lines.finished().lines)
    assert [s.key for s in story.sections] == ["start", "s1", "s2", "s3", "s4", "s5", "s6", "end"]
    assert [s.state for s in story.sections if s.kind == "step"] == ["done"] * 6
    assert [s.title.text for s in story.sections if s.title] == list(lines.PLAN)
    assert [i.kind for i in section(story, "s1").items if not i.quiet] == ["tool", "artifact"]


def test_a_checkpoint_stands_in_the_story_if_somebody_put_it_into_words() -> None:
    log = lines.drafted()
    log.add("checkpoint.saved", {"done": 3, "left": 3}, who="agent", done="The draft is kept.")
    told = [each for each in items(fold(log.lines)) if each.kind == "checkpoint"]
    assert [(each.more, said(each.folded[0])) for each in told] == [("3 done, 3 left", "Done: The draft is kept.")]


def test_a_run_that_is_done_says_what_came_of_it_and_what_was_done_and_to_whom() -> None:
    story = fold(lines.finished().lines)
    assert said(story.now.what) == "Answered and logged."
    assert said(story.now.lines[0]) == "Done outside: Note added to account 00932; E-mail sent to Marta Oyelaran."


def test_of_very_many_effects_the_first_are_named_and_the_rest_counted() -> None:
    log = lines.approved()
    for number in range(6):
        log.add("effect.done", {"tool": "add_note", "key": f"k-{number}", "can_undo": True}, subject=f"Note {number}")
    log.add("run.succeeded", {})
    story = fold(log.lines)
    assert (said(story.now.what), said(story.now.lines[0])) == (
        "Done.",
        "Done outside: Note 0; Note 1; Note 2; Note 3; and 2 more.",
    )


@pytest.mark.parametrize("how", ["rejected", "expired"])
def test_a_step_in_which_approval_was_not_given_is_not_in_the_green_of_something_done(how: str) -> None:
    if how == "rejected":
        log = lines.rejected()
    else:
        log = lines.proposed()
        log.add("action.expired", {"action": SEND}, after=2640)
        log.add("run.queued", {"reason": "decision"})
        log.add("run.resumed", {"reason": "claimed", "worker": "w1", "token": 2})
        lines.completed(log, "propose.send_email#1", 4)
        log.add("run.succeeded", {})
    story = fold(log.lines)
    assert section(story, "s4").state == how
    assert story.plan and [s.state for s in story.plan.steps] == ["done", "done", "done", how, "not_reached", "not_reached"]


def test_steps_are_told_by_the_titles_of_what_they_do() -> None:
    quiet = [titles.plain(each.title) for each in items(fold(lines.finished().lines), quiet=True) if each.quiet]
    assert {"Asks for approval: Send the reply", "Done: Read the ticket, ", "Did what was approved: Send the reply, "} <= set(quiet)
    assert not [words for words in quiet if "#" in words]


def test_every_event_is_told_under_everything() -> None:
    for made in (lines.finished(), lines.cancelled()):
        told = {seq for each in items(fold(made.lines), quiet=True) for seq in range(each.first, each.last + 1)}
        assert told == set(range(1, len(made.lines) + 1))


def test_the_story_stands_still_at_any_event() -> None:
    """Looking back shows what was known then, and nothing of what came after."""
    log = lines.proposed()
    waiting = fold(log.lines)
    after = lines.approved().lines
    assert fold(after, upto=waiting.seq) == waiting


def test_what_is_planned_only_is_told_as_planned_and_never_reached_once_it_ended() -> None:
    story = fold(lines.proposed().lines)
    assert story.plan and [s.state for s in story.plan.steps] == ["done", "done", "done", "waiting", "planned", "planned"]
    assert [s.state for s in story.sections][-2:] == ["planned", "planned"]
    ended = fold(lines.cancelled().lines)
    assert ended.plan and [s.state for s in ended.plan.steps] == ["done", "done", "done", "cancelled", "not_reached", "not_reached"]


def test_a_run_that_waits_says_whom_for_and_until_when() -> None:
    story = fold(lines.proposed().lines)
    assert said(story.now.what) == "Waiting for a reviewer to approve <One>."
    assert titles.one_of("send_email") in ("one e-mail", "one action") and titles.one_of("nobody_knows") == "one action"
    assert said(story.now.lines[0]) == "E-mail a reply to Marta Oyelaran."
    assert (story.now.waits_for, story.now.action) == ("decision", SEND)
    assert story.now.until and story.now.since and story.now.until - story.now.since == timedelta(seconds=2639)
    block = items(story)[-1]
    assert (block.kind, block.state, said(block.title)) == ("block", "waiting", "Waiting for a reviewer")


def test_a_decision_ends_the_waiting_and_says_how_long_it_was() -> None:
    story = fold(lines.approved().lines)
    decision = next(each for each in items(story) if each.kind == "decision")
    assert decision.title == (Who("human", RILEY), " approved exactly this")
    assert decision.said and decision.said.text == "Checked the amount."
    waited = item(story, 22)
    assert waited.kind == "state" and waited.minor and waited.quiet and said(waited.title).startswith("Waited ")
    assert said(decision.lines[-1]) == "Waited for <Took>."
    assert story.usage.waiting_ms == 722_000
    assert not [each for each in items(story) if each.state == "waiting"]


def test_a_run_that_is_paused_still_waits_for_a_decision_with_its_deadline() -> None:
    log = lines.proposed()
    log.add("run.paused", {"signal": NOTE})
    story = fold(log.lines)
    assert (story.now.state, said(story.now.lines[1])) == (
        "paused",
        "E-mail a reply to Marta Oyelaran can still be decided on. At <Moment> the request expires.",
    )
    block = next(each for each in items(story) if each.kind == "block")
    assert (block.state, said(block.title), story.usage.waiting_ms) == ("waiting", "Waiting for a reviewer", 0)
    log.add("run.queued", {"reason": "signal"})
    after = fold(log.lines)
    assert not [each for each in items(after) if each.kind == "block"] and after.usage.waiting_ms > 0
    assert "Waited <Took> for a decision" in [said(each.title) for each in items(after)]


def test_a_proposal_shows_whom_it_goes_to() -> None:
    proposal = next(each for each in items(fold(lines.proposed().lines)) if each.kind == "proposal")
    assert [(name, said(value)) for name, value in proposal.facts] == [
        ("To", "marta@brightwater.example"),
        ("Subject", "Your duplicate charge"),
    ]
    assert proposal.digest == DIGEST


def test_what_was_done_outside_is_listed_with_who_allowed_it_and_whether_it_can_be_undone() -> None:
    story = fold(lines.finished().lines)
    assert [(e.subject and e.subject.text, e.state, e.can_undo) for e in story.effects] == [
        ("Note added to account 00932", "done", True),
        ("E-mail sent to Marta Oyelaran", "done", False),
    ]
    sent = next(each for each in items(story) if each.kind == "effect" and said(each.title).startswith("E-mail"))
    assert [said(line) for line in sent.lines] == [
        "Approved by <Who> at <At>.",
        "Key send_email-6. Can’t be undone.",
        "What ran is what was approved: the digests are the same, <At>.",
    ]


@pytest.mark.parametrize(
    ("log", "state"), [(lines.proposed, "waiting"), (lines.approved, "granted"), (lines.finished, "done"), (lines.cancelled, "")]
)
def test_an_action_stands_among_the_effects_until_it_is_done_or_void(log: Callable[[], Log], state: str) -> None:
    states = [effect.state for effect in fold(log().lines).effects if effect.tool == "send_email"]
    assert states == ([state] if state else [])


def test_an_automatic_action_is_no_event_of_the_story_but_its_effect_is() -> None:
    story = fold(lines.finished().lines)
    assert [said(each.title) for each in items(story) if each.kind == "proposal"] == ["Proposed: E-mail a reply to Marta Oyelaran"]
    noted = next(each for each in items(story) if said(each.title).startswith("Note added"))
    assert said(noted.lines[0]) == "Allowed without a person, by its policy."


def test_a_scripted_model_says_so() -> None:
    wrote = next(each for each in items(fold(lines.drafted().lines)) if "wrote" in said(each.title))
    assert "Scripted, no model" in said(wrote.title)


def test_of_a_played_model_it_is_said_that_a_script_plays_it() -> None:
    log = lines.begun()
    called = {"step": "model.draft-reply#1", "model": "large", "prompt": "first-reply", "prompt_version": "1", "finish": "stop"}
    log.add("model.called", called | {"endpoint": "played"}, who="agent")
    log.add("model.called", called | {"endpoint": "main", "step": "model.draft-reply#2"}, who="agent")
    wrote = [said(each.title) for each in items(fold(log.lines)) if "wrote" in said(each.title)]
    assert wrote == ["The demo’s model wrote: first reply Played by a script", "The model wrote: first reply"]


# Trouble ----------------------------------------------------------------------------------------------------------------------------


def failing(attempts: int) -> Log:
    log = lines.begun()
    for attempt in range(1, attempts + 1):
        log.add("step.started", {"step": "read_ticket#1", "kind": "tool", "plan_step": 1, "attempt": attempt}, who="agent")
        log.add("tool.started", {"tool": "read_ticket", "step": "read_ticket#1"}, who="agent")
        log.add(
            "tool.ended",
            {"tool": "read_ticket", "outcome": "error", "ms": 30_000, "step": "read_ticket#1", "error": "timeout"},
            who="agent",
        )
        failed = {"step": "read_ticket#1", "attempt": attempt, "error": "timeout"}
        log.add("step.failed", failed, who="agent", detail=f"504 from the desk, try {attempt}")
        log.add("step.retrying", {"step": "read_ticket#1", "attempt": attempt + 1, "wait_ms": 2000})
        log.add("run.waiting", {"on": "retry"})
        log.add("run.queued", {"reason": "timer"})
        log.add("run.resumed", {"reason": "claimed", "worker": "w1", "token": attempt + 1})
    return log


def test_failed_attempts_are_one_row_that_names_each() -> None:
    log = failing(2)
    log.add("step.started", {"step": "read_ticket#1", "kind": "tool", "plan_step": 1, "attempt": 3}, who="agent")
    log.add("tool.started", {"tool": "read_ticket", "step": "read_ticket#1"}, who="agent")
    log.add("tool.ended", {"tool": "read_ticket", "outcome": "ok", "ms": 900, "step": "read_ticket#1"}, who="agent")
    [row] = [each for each in items(fold(log.lines)) if each.kind == "tool"]
    assert [(t.number, t.ok, said(t.told)) for t in row.tries] == [
        (1, False, "504 from the desk, try 1"),
        (2, False, "504 from the desk, try 2"),
        (3, True, "<Took>"),
    ]
    assert row.state == "" and (row.first, row.last) == (4, 22)


def test_a_write_that_is_made_again_says_so_under_the_same_key() -> None:
    log = lines.approved()
    for attempt, outcome in ((1, "unknown"), (2, "ok")):
        log.add("step.started", {"step": "perform#2", "kind": "perform", "plan_step": 6, "attempt": attempt}, who="agent")
        log.add("tool.started", {"tool": "send_email", "effect": "send", "step": "perform#2"}, who="agent")
        ended = {"tool": "send_email", "outcome": outcome, "ms": 100, "step": "perform#2"}
        log.add("tool.ended", ended, who="agent")
    [row] = [each for each in items(fold(log.lines)) if each.kind == "tool" and each.tries]
    assert [(each.number, each.ok) for each in row.tries] == [(1, False), (2, True)]
    assert said(row.tries[1].told) == "<Took>, under the same key"


def test_what_a_fork_only_found_is_told_as_the_deed_of_the_run_it_was_forked_from() -> None:
    log = lines.approved()
    log.add("run.forked", {"parent": NOTE, "ref": "RN-AAAA", "seq": 9, "step": "read_ticket#1", "taken": 1, "plan_steps": [1]}, who="riley")
    log.add("effect.done", {"tool": "send_email", "key": OWNER, "can_undo": False, "action": SEND}, subject="A reply")
    log.add("run.succeeded", {})
    story = fold(log.lines)
    assert [said(effect.told) for effect in story.effects] == ["The run that this one was forked from did it. It is there once."]
    assert "Nothing more was done outside: all of it was there already." in [said(line) for line in story.now.lines]


def test_a_step_that_was_left_after_it_failed_is_not_called_done() -> None:
    log = lines.drafted()
    log.add("step.started", {"step": "propose.send_email#1", "kind": "propose", "plan_step": 4}, who="agent")
    log.add("run.parked", {"reason": "error"}, detail="The workflow’s code failed.")
    log.add("deadletter.resolved", {"letter": NOTE, "choice": "retry", "step": "model.draft-reply#1"}, who="riley")
    log.add("run.queued", {"reason": "recovered"})
    log.add("step.started", {"step": "model.draft-reply#1", "kind": "model", "plan_step": 3}, who="agent")
    story = fold(log.lines)
    assert (section(story, "s4").state, section(story, "s4").word) == ("failed", "")
    assert (section(story, "s3").state, section(story, "s3").word) == ("done", ""), "it had been done, and is done anew"
    lines.completed(log, "model.draft-reply#1", 3)
    log.add("step.started", {"step": "propose.send_email#1", "kind": "propose", "plan_step": 4}, who="agent")
    lines.completed(log, "propose.send_email#1", 4)
    story = fold(log.lines)
    assert section(story, "s4").word == "Failed, done anew below" and section(story, "s4-2").state == "done"


def test_attempts_after_trying_again_go_on_in_their_order() -> None:
    log = failing(1)
    log.add("run.parked", {"reason": "retries_exhausted", "step": "read_ticket#1"}, detail="504 from the desk")
    log.add("deadletter.resolved", {"letter": NOTE, "choice": "retry"}, who="riley")
    log.add("run.queued", {"reason": "recovered"})
    for attempt in (1, 2):  # its attempts are counted anew
        log.add("step.started", {"step": "read_ticket#1", "kind": "tool", "plan_step": 1, "attempt": attempt}, who="agent")
        log.add("tool.started", {"tool": "read_ticket", "step": "read_ticket#1"}, who="agent")
        ended = {"tool": "read_ticket", "outcome": "error", "error": "unavailable", "ms": 100, "step": "read_ticket#1"}
        log.add("tool.ended", ended, who="agent", detail=f"again {attempt}")
        log.add(
            "step.failed", {"step": "read_ticket#1", "attempt": attempt, "error": "unavailable"}, who="agent", detail=f"again {attempt}"
        )
    [row] = [each for each in items(fold(log.lines)) if each.kind == "tool"]
    assert [(each.number, said(each.told)) for each in row.tries] == [(1, "504 from the desk, try 1"), (2, "again 1"), (3, "again 2")]


def test_a_step_that_is_done_anew_leaves_what_was_told_of_it_before() -> None:
    log = lines.begun()
    called = {"model": "scripted", "scripted": True, "prompt": "draft-reply", "prompt_version": "1", "step": "model.draft-reply#1", "ms": 9}
    log.add("step.started", {"step": "model.draft-reply#1", "kind": "model", "plan_step": 3, "attempt": 1}, who="agent")
    log.add("run.parked", {"reason": "error"}, detail="The workflow’s code failed (KeyError).")
    log.add("deadletter.resolved", {"letter": NOTE, "choice": "retry", "step": "read_account#1"}, who="riley")
    log.add("run.queued", {"reason": "recovered"})
    lines.read(log, "read_account#1", 2, "read_account")
    began = log.add("step.started", {"step": "model.draft-reply#1", "kind": "model", "plan_step": 3, "attempt": 1}, who="agent")
    log.add("model.called", called, who="agent")
    wrote = [each for each in items(fold(log.lines)) if "wrote" in said(each.title)]
    assert [each.first for each in wrote] == [began], "it stands where it was written, not where it was begun and came to nothing"
    chose = next(line for line in log.lines if line["body"]["type"] == "deadletter.resolved")
    assert said(raw.told(read(chose), {})) == "Chose to try again, from “<Step>” on"


def test_who_was_handed_a_stuck_run_is_named_in_the_raw_log() -> None:
    log = failing(1)
    log.add("deadletter.resolved", {"letter": NOTE, "choice": "hand_over", "to": OWNER}, who="riley")
    told = raw.told(read(log.lines[-1]), {})
    assert told == ("Handed it to ", Who("human", OWNER))


def test_a_section_in_which_nobody_had_to_be_asked_says_so() -> None:
    log = lines.begun()
    log.add("step.started", {"step": "propose.add_note#1", "kind": "propose", "plan_step": 4}, who="agent")
    proposal = {"action": SEND, "tool": "add_note", "tool_schema": 1, "digest": DIGEST, "effect": "write", "executor": "handrail"}
    proposal |= {"policy": NOTE, "policy_version": 1, "needs": 0, "until": log.until(60)}
    log.add("action.proposed", proposal, reason="It was asked for.", who="agent")
    log.add("action.granted", {"action": SEND, "grant": NOTE, "digest": DIGEST, "automatic": True, "until": log.until(60)})
    log.add("step.completed", {"step": "propose.add_note#1", "plan_step": 4, "ms": 0}, who="agent")
    shown = [said(each.title) for each in section(fold(log.lines), "s4").items if not each.quiet]
    assert shown and any("Allowed without a person" in each for each in shown), shown


def test_a_failure_that_was_not_overcome_stays_red() -> None:
    log = failing(1)
    [row] = [each for each in items(fold(log.lines)) if each.kind == "tool"]
    assert row.state == "failed" and not row.quiet
    log.add("run.parked", {"reason": "retries_exhausted", "step": "read_ticket#1"}, detail="504 from the desk")
    story = fold(log.lines)
    assert said(story.now.what) == "Stuck: a step of it failed for good."
    assert [section(story, "s1").state, story.plan and story.plan.steps[0].state] == ["parked", "parked"]


def half_done() -> Log:
    """Two things were done at once, in one step of the plan: one failed for good, then the other was done."""
    log = lines.begun()
    for number in (1, 2):
        step = {"step": f"parallel-1.{number}/perform#1", "kind": "perform", "plan_step": 4, "attempt": 1}
        log.add("step.started", step, who="agent")
        log.add("tool.started", {"tool": "change_terms", "effect": "write", "step": step["step"]}, who="agent")
    refused = {"tool": "change_terms", "outcome": "error", "ms": 9, "step": "parallel-1.2/perform#1", "error": "refused"}
    log.add("tool.ended", refused, who="agent")
    log.add("tool.ended", {"tool": "change_terms", "outcome": "ok", "ms": 9, "step": "parallel-1.1/perform#1"}, who="agent")
    done = {"key": SEND, "action": SEND, "tool": "change_terms", "step": "parallel-1.1/perform#1", "can_undo": True}
    log.add("effect.done", done, subject="New terms")
    lines.completed(log, "parallel-1.1/perform#1", 4)
    log.add("run.parked", {"reason": "retries_exhausted", "step": "parallel-1.2/perform#1"}, detail="It is locked.")
    return log


def drawn(log: Log) -> tuple[str, str]:
    story = fold(log.lines)
    assert story.plan
    return section(story, "s4").state, story.plan.steps[3].state


def test_a_step_in_which_something_failed_for_good_is_not_drawn_done_though_more_was_done_beside_it() -> None:
    log = half_done()
    assert drawn(log) == ("parked", "parked")
    log.add("deadletter.resolved", {"letter": NOTE, "choice": "retry"}, who="riley")
    log.add("run.queued", {"reason": "recovered"})
    again = {"step": "parallel-1.2/perform#1", "kind": "perform", "plan_step": 4, "attempt": 1}
    log.add("step.started", again, who="agent")
    lines.completed(log, "parallel-1.2/perform#1", 4)
    assert drawn(log) == ("done", "done")


def test_what_an_operator_had_undone_is_told_as_that_and_named_and_its_step_stays_failed() -> None:
    log = half_done()
    log.add("deadletter.resolved", {"letter": NOTE, "choice": "compensate"}, who="riley")
    log.add("run.compensating", {"effects": 1})
    log.add("step.started", {"step": "undo-9/perform#1", "kind": "perform", "attempt": 1}, who="agent")
    log.add("effect.undone", {"key": SEND})
    log.add("step.completed", {"step": "undo-9/perform#1", "ms": 9}, who="agent")
    assert drawn(log) == ("failed", "failed")
    log.add("run.failed", {"reason": "given_up"})
    story = fold(log.lines)
    assert said(story.now.what) == "Failed: an operator had it undone."
    assert [said(line) for line in story.now.lines] == ["Undone: New terms."]
    assert said(items(story)[-1].title) == "Failed: an operator had it undone" and drawn(log) == ("failed", "failed")


def test_giving_up_an_undoing_that_got_stuck_is_giving_up() -> None:
    log = half_done()
    log.add("run.compensating", {"effects": 1})
    log.add("run.parked", {"reason": "undo_failed"})
    log.add("run.failed", {"reason": "given_up"})
    assert said(fold(log.lines).now.what) == "Failed: an operator gave it up."


def test_a_lost_worker_is_told() -> None:
    log = lines.begun()
    log.add("run.resumed", {"reason": "lease_expired", "worker": "w2", "token": 2})
    assert "worker was lost" in said(items(fold(log.lines))[-1].title)


def test_a_refusal_by_policy_is_red_and_never_clears() -> None:
    log = lines.begun()
    log.add("block.raised", {"block": "b1", "reason": "unregistered"})
    log.add("block.cleared", {"block": "b1"})
    block = items(fold(log.lines))[-1]
    assert (block.kind, block.state) == ("block", "failed")


def test_an_unknown_outcome_blocks_until_a_person_says_what_happened() -> None:
    log = lines.approved()
    grant = {"action": SEND, "grant": SIGNAL}
    log.add("action.redeemed", grant | {"digest": DIGEST, "token": 2, "worker": "w1"})
    log.add("action.unknown", grant | {"reason": "dropped"})
    log.add("run.waiting", {"on": "outcome", "action": SEND})
    story = fold(log.lines)
    assert said(story.now.what) == "Waiting for a person to say what happened."
    assert [e.state for e in story.effects] == ["unknown"]
    assert [each.kind for each in items(story)[-1:]] == ["block"]
    log.add("action.resolved", grant | {"outcome": "happened"}, who="riley", note="It is in the mailbox.")
    assert not [each for each in items(fold(log.lines)) if each.kind == "block"]


def test_a_cancelled_run_names_what_stays_and_what_was_undone_and_tells_of_each_undoing() -> None:
    log = lines.approved()
    log.add("step.started", {"step": "propose.add_note#1", "kind": "propose", "plan_step": 5}, who="agent")
    lines.propose(log, NOTE, "add_note", "write", needs=0, subject="Add a note to account 00932")
    lines.perform(log, NOTE, "add_note", "write", 5, "Note added to account 00932", can_undo=True)
    log.add("action.redeemed", {"action": SEND, "grant": SIGNAL, "digest": DIGEST, "token": 2, "worker": "w1"})
    log.add("signal.received", {"signal": SIGNAL, "kind": "cancel"}, who="owner")
    log.add("run.cancelling", {"in_flight": 1})
    assert said(fold(log.lines).now.lines[0]).startswith("Still under way outside: E-mail a reply to Marta Oyelaran. It ends")
    log.add("action.executed", {"action": SEND, "grant": SIGNAL, "digest": DIGEST})
    sent = {"tool": "send_email", "key": "mail", "can_undo": False, "action": SEND}
    log.add("effect.done", sent, subject="E-mail sent to Marta Oyelaran")
    log.add("run.compensating", {"effects": 1})
    log.add("effect.undone", {"key": "add_note-5"})
    log.add("run.cancelled", {"signal": SIGNAL, "done": 1, "undone": 1, "withdrawn": 1})
    story = fold(log.lines)
    assert "Undone: Note added to account 00932" in [said(each.title) for each in items(story)]
    assert said(story.now.lines[0]) == (
        "Done outside, and stays: E-mail sent to Marta Oyelaran. Undone: Note added to account 00932. 1 request was withdrawn."
    )
    log.lines[-1]["body"]["data"] |= {"done": 2}  # one of them by a run of its own, whose log names it
    assert said(fold(log.lines).now.lines[0]).startswith("2 things had been done outside and stay, 1 thing was put back")


def test_a_signal_says_what_became_of_it() -> None:
    story = fold(lines.cancelled().lines)
    signal = next(each for each in items(story) if each.kind == "signal")
    assert signal.said and signal.said.text == "Solved by phone."
    assert said(signal.lines[-1]) == "Ended the run at <At>."
    log = lines.proposed()
    log.add("signal.received", {"signal": SIGNAL, "kind": "context"}, who="owner", note="They are on the old plan.")
    refused = log.add("signal.refused", {"signal": SIGNAL, "kind": "context", "reason": "not_yet"})
    story = fold(log.lines)
    assert said(item(story, refused - 1).lines[0]) == "Refused at <At>: Handrail can’t do that yet."


def test_a_cancelled_run_says_what_it_leaves_behind() -> None:
    story = fold(lines.cancelled().lines)
    assert said(story.now.what) == "Cancelled."
    assert said(story.now.lines[0]) == "Nothing outside was left changed, 1 request was withdrawn."
    proposal = next(each for each in items(story) if each.kind == "proposal")
    assert proposal.facts == () and proposal.state == ""


def test_a_replaced_plan_says_what_changed() -> None:
    log = lines.begun(("Read", "Send"))
    log.add("plan.set", {"version": 2, "steps": 3}, who="agent", step_1="Read", step_2="Check", step_3="Send")
    story = fold(log.lines)
    change = items(story)[-1]
    assert (said(change.title), change.more) == ("Plan changed, version 2", "2 steps changed")
    assert story.plan and [s.title.text for s in story.plan.steps] == ["Read", "Check", "Send"]


def test_a_step_that_is_come_back_to_has_a_section_of_its_own() -> None:
    log = lines.begun()
    lines.read(log, "read_ticket#1", 1, "read_ticket")
    lines.read(log, "check_account#1", 2, "check_account")
    lines.read(log, "read_ticket#2", 1, "read_ticket")
    story = fold(log.lines)
    assert [s.key for s in story.sections if s.items] == ["start", "s1", "s2", "s1-2"]
    assert story.plan and story.plan.steps[0].section == "s1-2"


def test_an_agent_that_tells_no_steps_has_one_list_and_a_plan_without_states() -> None:
    log = lines.begun()
    log.add("tool.started", {"tool": "search", "call": "c1"}, who="agent")
    log.add("tool.ended", {"tool": "search", "outcome": "ok", "ms": 20, "call": "c1"}, who="agent")
    log.add("run.succeeded", {})
    story = fold(log.lines)
    assert [s.key for s in story.sections] == ["start", "end"]
    assert story.plan and {s.state for s in story.plan.steps} == {""}


def test_an_erased_text_says_so() -> None:
    log = Log()
    log.add("note.posted", {}, who="agent", note={"erased_at": "2026-11-26T15:00:00Z", "erased_by": "Ada"})
    note = items(fold(log.lines))[0]
    assert note.said and note.said.erased and note.said.erased_by == "Ada"


# For any log ------------------------------------------------------------------------------------------------------------------------

POOL: tuple[Any, ...] = (
    *("read_ticket", "read_ticket#1", "perform#1", DIGEST, "reply.txt", "text/plain", "3.2.1"),
    *(OWNER, RILEY, SEND, NOTE, SIGNAL),
    *(0, 1, 2, 7, 2**53 - 1),
    *(True, False),
    *("2026-11-26T14:02:00Z", "2026-11-27T14:02:00.000001Z"),
    *([], [1], [1, 2, 900]),
)
ROLES = (
    *("title", "scope", "input", "note", "reason", "detail", "done", "left", "body", "content", "arguments", "result", "output"),
    *("subject", "canonical", "receipt", "reference", "question", "answer", "step_1", "step_2", "step_99"),
)
TEXTS = (
    words("Ticket ZN-4821"),
    words("", "public"),
    words('{"to": ["a@b.example"], "subject": "⟦card⟧", "n": 3}', "personal", "application/json", hidden={"card": 1}),
    words('{"arguments": {"to": "x", "deep": {"a": [1]}}}', media_type="application/json"),
    words("{broken", media_type="application/json"),
    {"erased_at": "2026-11-26T15:00:00Z", "erased_by": "Ada"},
)


def values(annotation: Any, metadata: list[Any]) -> Iterator[Any]:
    """What of the pool, or of the words of an enum, this field takes."""
    adapter = TypeAdapter(typing.Annotated[(annotation, *metadata)] if metadata else annotation)
    for value in (*_enum(annotation), *POOL):
        try:
            adapter.validate_json(vocabulary.orjson.dumps(value), strict=True)
        except ValidationError:
            continue
        yield value


def _enum(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) is typing.Literal:
        return typing.get_args(annotation)
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return tuple(each for part in typing.get_args(annotation) for each in _enum(part))
    return ()


def event_of(kind: str) -> st.SearchStrategy[tuple[str, dict[str, Any], dict[str, Any]]]:
    model = vocabulary.TYPES[kind]
    needed, allowed = {}, {}
    for name, info in model.model_fields.items():
        choices = st.sampled_from(list(values(info.annotation, info.metadata)))
        (needed if info.is_required() else allowed)[name] = choices
    roles = [role for role in ROLES if model.roles.fullmatch(role)]
    texts = st.dictionaries(st.sampled_from(roles), st.sampled_from(TEXTS), max_size=4) if roles else st.just({})
    return st.tuples(st.just(kind), st.fixed_dictionaries(needed, optional=allowed), texts)


EVENTS = st.one_of([event_of(kind) for kind in sorted(vocabulary.TYPES)])
LOGS = st.lists(st.tuples(EVENTS, st.sampled_from(["system", "agent", "owner", "riley"])), max_size=40)


def log_of(events: list[Any]) -> list[dict[str, Any]]:
    log = Log()
    for (kind, data, texts), who in events:
        log.add(kind, data, who=who, **texts)
    return log.lines


@settings(max_examples=300, deadline=None)
@given(LOGS)
def test_any_legal_log_makes_a_story(events: list[Any]) -> None:
    log = log_of(events)
    story = fold(log)
    assert story.seq == len(log)
    told = {seq for each in items(story, quiet=True) for seq in (each.first, each.last)}
    assert told <= set(range(1, len(log) + 1))
    keys = [each.key for each in story.sections]
    assert len(keys) == len(set(keys)) and all(re.fullmatch(r"start|end(-\d+)?|s\d+(-\d+)?", key) for key in keys)


@settings(max_examples=300, deadline=None)
@given(LOGS)
def test_any_legal_event_has_a_line_in_the_raw_log_that_names_no_step_by_its_number(events: list[Any]) -> None:
    for line in map(read, log_of(events)):
        words = titles.plain(raw.told(line, {}))
        assert words.strip() and "–" not in words and not re.search(r"\w#\d", words)


@settings(max_examples=150, deadline=None)
@given(LOGS, st.lists(st.integers(0, 40), max_size=4))
def test_folding_in_pieces_gives_the_same_story(events: list[Any], cuts: list[int]) -> None:
    log = log_of(events)
    telling = Fold()
    for cut in sorted(cuts):
        telling.feed(log[:cut])
        telling.story()  # a look in between changes nothing
    assert telling.feed(log).story() == fold(log)


@settings(max_examples=100, deadline=None)
@given(LOGS, st.integers(0, 40))
def test_a_story_up_to_an_event_is_the_story_of_the_log_up_to_there(events: list[Any], upto: int) -> None:
    log = log_of(events)
    assert fold(log, upto=upto) == fold(log[:upto])


def test_an_event_of_a_later_vocabulary_is_told_by_its_name() -> None:
    line = {"seq": 1, "hash": "", "body": {"type": "moon.landed", "at": "2026-11-26T14:02:00Z", "data": {"x": [None]}}, "texts": {}}
    [told] = items(fold([line]), quiet=True)
    assert "moon.landed" in said(told.title)


def test_texts_are_equal_whatever_they_hide() -> None:
    assert Text("a", hidden={"card": 1}) == Text("a", hidden={"card": 1})


def test_a_reason_is_told_once_and_a_range_ends_where_the_next_row_begins() -> None:
    log = lines.begun()
    log.add("milestone.reached", {"cites": [1]}, title="Reply ready", detail="Answers a duplicate charge.", who="agent")
    log.add("tool.started", {"tool": "read_ticket", "step": "read_ticket#1"}, who="agent")
    log.add("note.posted", {}, note="Between", who="agent")
    log.add("tool.ended", {"tool": "read_ticket", "outcome": "error", "ms": 100, "step": "read_ticket#1"}, who="agent", detail="No answer.")
    proposal = {"action": SEND, "tool": "send_email", "tool_schema": 1, "digest": DIGEST, "effect": "send", "executor": "handrail"}
    proposal |= {"policy": NOTE, "policy_version": 1, "needs": 1, "until": log.until(2640)}
    log.add("action.proposed", proposal, reason="Answers a duplicate charge.", subject="A reply", who="agent")
    rows = sorted(items(fold(log.lines), quiet=True), key=lambda row: row.first)
    said_ = [said(line) for row in rows for line in row.lines]
    assert [words for words in said_ if "duplicate" in words] == ["Answers a duplicate charge."] and "Cites <At>." in said_
    assert all(one.ends < other.first for one, other in zip(rows, rows[1:], strict=False))
    assert [said(each.told) for row in rows for each in row.tries] == ["No answer (after <Took>)"]


def test_what_a_step_read_is_said_as_a_sentence() -> None:
    def told(title: str, *given: str) -> str:
        return titles.plain(titles.with_argument(title, given))

    assert told("Read the ticket", "Ticket id ", "ZN-4823") == "Read ticket ZN-4823"
    assert told("Check the account", "Email ", "marta@brightwater.example") == "Check the account of marta@brightwater.example"
    assert told("Look", "Thing ", "tea") == "Look, thing tea"
    assert told("Read the ticket", "Ticket id ", "ZN-4823", ", ", "Lines ", "3") == "Read the ticket: Ticket id ZN-4823, Lines 3"


def test_attempts_that_failed_in_the_same_way_say_it_once() -> None:
    def tried(*details: str) -> Item:
        log = lines.begun()
        for number, detail in enumerate(details, start=1):
            log.add("step.started", {"step": "look#1", "kind": "tool", "plan_step": 1, "attempt": number}, who="agent")
            log.add("step.failed", {"step": "look#1", "attempt": number, "error": "unavailable"}, who="agent", detail=detail)
        return next(each for each in items(fold(log.lines)) if each.tries)

    assert tried("down", "down").one_failure
    assert not tried("down", "gone").one_failure and not tried("down").one_failure


class Counting(dict[int, object]):
    """How often a row was looked at."""

    looks = 0

    def __getitem__(self, row: int) -> object:
        self.looks += 1
        return super().__getitem__(row)


@pytest.mark.parametrize("named", [{}, {"step": "sort-{}#1"}, {"call": "call-{}"}])
def test_a_line_costs_the_same_however_long_the_run_is_already(named: dict[str, str]) -> None:
    looks = []
    for calls in (50, 1000):
        log = lines.begun()
        for number in range(calls):
            own = {name: value.format(number) for name, value in named.items()}
            log.add("tool.started", {"tool": "move_files", "effect": "read", **own}, who="agent")
            log.add("tool.ended", {"tool": "move_files", "outcome": "ok", "ms": 40, **own}, who="agent")
        told = Fold()
        told._draft.rows = rows = Counting()
        told.feed(log.lines)
        looks.append(rows.looks / calls)
    assert looks[1] <= looks[0] * 1.1


def test_of_a_record_it_is_told_what_it_holds_and_of_one_that_is_cut_off_nothing() -> None:
    made = {"artifact": SIGNAL, "version": 1, "label": "internal", "size": 9}
    log = lines.begun()
    account = '{"name": "Brightwater", "contacts": [{"name": "Marta"}], "invoices": [{"number": "INV-1"}, {"number": "INV-2"}]}'
    for name, media_type, content in (
        ("account.json", "application/json", account),
        ("payments.csv", "text/csv", "id,amount\nPAY-1,12\n\nPAY-2,8\n"),
        ("half.json", "application/json", account[:40] + "⟦+900⟧"),
    ):
        data = made | {"name": name, "media_type": media_type}
        log.add("artifact.created", data, who="agent", content=lines.words(content, media_type=media_type))
    told = [[said(line) for line in item.lines] for item in items(fold(log.lines)) if item.kind == "artifact"]
    assert told == [["Brightwater: 1 contact, 2 invoices"], ["2 rows"], []]
