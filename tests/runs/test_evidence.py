"""Seven questions about a run, answered from its log."""

from hypothesis import given, settings

from runs import evidence
from runs.evidence import Answer
from tests.runs import lines
from tests.runs.lines import DIGEST, NOTE, SEND, SIGNAL, Log
from tests.runs.test_timeline import LOGS, log_of


def ask(log: Log, key: str, **more: object) -> Answer:
    return next(each for each in evidence.answers(log.lines, **more) if each.key == key)  # type: ignore[arg-type]


def test_a_run_that_did_all_as_it_should_passes_each_question_that_was_asked() -> None:
    given_ = evidence.answers(lines.finished().lines)
    assert [each.state for each in given_] == ["pass", "pass", "pass", "pass", "not_asked", "not_asked", "pass"]
    assert evidence.summary(given_) == "5 pass"


def test_every_answer_that_passes_or_fails_links_to_events_of_the_log() -> None:
    log = lines.finished()
    for each in evidence.answers(log.lines):
        assert all(0 < seq <= len(log.lines) for seq in each.seqs)
    assert ask(log, "plan").seqs == (3, 4)


def test_a_run_that_just_began_answers_not_yet() -> None:
    states = {each.key: each.state for each in evidence.answers(lines.begun().lines)}
    assert states == {
        "owner": "pass",
        "plan": "pass",
        "artifacts": "not_yet",
        "failures": "not_yet",
        "signals": "not_yet",
        "cancel": "not_yet",
        "report": "not_yet",
    }


def test_an_empty_log_fails_nothing() -> None:
    assert {each.state for each in evidence.answers([])} == {"not_yet"}


def test_a_decision_by_the_runs_own_owner_fails() -> None:
    log = lines.proposed()
    decided = {"action": SEND, "digest": DIGEST, "decision": NOTE, "verdict": "approved", "round": 1}
    seq = log.add("action.decided", decided, who="owner")
    assert (ask(log, "owner").state, ask(log, "owner").seqs) == ("fail", (seq,))


def test_an_action_that_ran_with_another_digest_than_was_granted_fails() -> None:
    log = lines.approved()
    seq = log.add("action.redeemed", {"action": SEND, "grant": SIGNAL, "digest": "f" * 64, "token": 2, "worker": "w1"})
    assert (ask(log, "owner").state, ask(log, "owner").seqs) == ("fail", (seq,))


def test_acting_before_the_plan_fails() -> None:
    log = Log()
    log.add("tool.started", {"tool": "search"}, who="agent")
    assert ask(log, "plan").state == "fail"
    log.add("plan.set", {"version": 1, "steps": 1}, who="agent", step_1="Search")
    assert (ask(log, "plan").state, ask(log, "plan").seqs) == ("fail", (1, 2))


def test_an_artifact_that_no_event_made_fails() -> None:
    assert ask(lines.finished(), "artifacts", loose=["reply.txt v2"]).state == "fail"


def test_a_claim_that_cites_what_was_not_recorded_fails() -> None:
    log = lines.begun()
    seq = log.add("milestone.reached", {"cites": [99]}, who="agent", title="Confirmed")
    assert (ask(log, "artifacts").state, ask(log, "artifacts").seqs) == ("fail", (seq,))


def test_a_failure_is_covered_by_a_checkpoint_after_it_or_after_the_work_before_it() -> None:
    log = lines.begun()
    failed = {"step": "read_ticket#1", "attempt": 1, "error": "timeout"}
    log.add("step.failed", failed, who="agent")
    assert ask(log, "failures").state == "pass"  # nothing was done that could be lost
    log.add("tool.ended", {"tool": "search", "outcome": "ok"}, who="agent")
    log.add("step.failed", failed, who="agent")
    assert ask(log, "failures").state == "not_yet"
    log.add("run.parked", {"reason": "error"})
    assert ask(log, "failures").state == "fail"
    log.add("checkpoint.saved", {"done": 1, "left": 1})
    assert ask(log, "failures").state == "pass"


def test_failures_are_counted_as_the_timeline_counts_attempts() -> None:
    log = lines.begun()
    assert ask(log, "failures").why == ("Nothing has failed so far",)
    log.add("tool.ended", {"tool": "send_email", "outcome": "unknown", "step": "perform/x#1", "error": "unavailable"}, who="agent")
    assert ask(log, "failures").why[0] == "1 got no answer, "  # the outside failed with 500: the timeline shows an attempt
    for attempt in range(1, 5):
        log.add("tool.ended", {"tool": "read_ticket", "outcome": "error", "step": "read_ticket#1", "error": "timeout"}, who="agent")
        log.add("step.failed", {"step": "read_ticket#1", "attempt": attempt, "error": "timeout"}, who="agent")
    log.add("run.parked", {"reason": "retries_exhausted"})
    assert ask(log, "failures").why[0] == "4 failed and 1 got no answer, "


def test_a_signal_that_led_to_nothing_fails_once_the_run_has_ended() -> None:
    log = lines.begun()
    seq = log.add("signal.received", {"signal": SIGNAL, "kind": "context"}, who="owner")
    assert ask(log, "signals").state == "not_yet"
    log.add("run.succeeded", {})
    assert (ask(log, "signals").state, ask(log, "signals").seqs) == ("fail", (seq,))


def test_a_cancelled_run_ended_once_and_last() -> None:
    log = lines.cancelled()
    assert ask(log, "cancel").state == "pass"
    log.add("note.posted", {}, who="agent")
    assert ask(log, "cancel").state == "fail"


def test_a_report_without_citations_fails_and_so_does_success_without_a_report() -> None:
    log = lines.begun()
    log.add("report.published", {}, who="agent", title="All good")
    assert ask(log, "report").state == "fail"
    log = lines.begun()
    log.add("run.succeeded", {})
    assert ask(log, "report").state == "fail"


def test_answers_are_json_for_pipelines() -> None:
    told = evidence.as_json(ask(lines.finished(), "plan"))
    assert told == {
        "key": "plan",
        "question": "Planned before it acted",
        "answer": "pass",
        "why": "Plan #3 came before #4",
        "events": [3, 4],
    }


@settings(max_examples=150, deadline=None)
@given(LOGS)
def test_any_legal_log_is_answered(events: list[object]) -> None:
    log = log_of(events)
    given_ = evidence.answers(log)
    assert [each.state in ("pass", "fail", "not_yet", "not_asked") for each in given_] == [True] * 7
    assert not any(
        each.state == "not_yet" for each in given_ if log and log[-1]["body"]["type"] in evidence.ENDINGS and each.key == "report"
    )
