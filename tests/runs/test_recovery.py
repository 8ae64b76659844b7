"""Stuck runs: an operator sees what happened and what was done, and chooses once how it goes on."""

import html
import re
from datetime import timedelta

import pytest
from django.test import Client

from access.errors import BadInput
from access.rules import person
from approvals import decisions, policy
from approvals.models import ProposedAction
from artifacts.models import Payload
from config import clock
from runs import cases, context, recovery
from runs.engine import gates
from runs.engine.gates import LooseEnd
from runs.engine.reads import STOPPED
from runs.engine.tools import Unavailable
from runs.heard import heard_of
from runs.models import Event, JournalEntry, Run
from runs.recovery import AlreadyChosen, NotPossible
from tests.approvals.mailing import text
from tests.cast import member
from tests.runs import workflows
from tests.runs.test_compensation import cancel, told
from tests.runs.test_engine import start, types, walk
from tests.runs.workflows import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outside() -> World:
    return workflows.reset()


@pytest.fixture
def run(cast, outside) -> Run:
    """It was tried as often as it may be."""
    for tool in ("put", "note_it", "take_away"):
        policy.set_rule(cast.workspace.pk, tool, name="Notes", outcome="automatic", by=None)
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    run = start(cast, "test-talk", {"thing": "tea"})
    outside.fail_next(*[Unavailable("down")] * 3)
    for _ in range(3):
        Run.objects.filter(pk=run.pk, state="waiting").update(state="queued", waiting={}, wake_at=None)
        walk(run)
    assert run.state == "parked"
    return run


@pytest.fixture
def undoing(cast, run, outside) -> Run:
    """It could not undo what it had done."""
    run = start(cast, "test-undone", {}, scope={})
    walk(run)
    cancel(cast, run)
    outside.undo_faults = [Unavailable("down")] * 9
    for _ in range(6):
        if walk(run) == "parked":
            break
    outside.undo_faults = []
    assert run.state == "parked"
    return run


def choose(cast, run: Run, choice: str, **more) -> None:
    at = more.pop("at", None) or recovery.parking(run).seq
    recovery.choose(run, choice, at=at, by=person(cast.otto.pk), **more)
    run.refresh_from_db()


def test_what_is_tried_again_goes_on_from_the_last_completed_step_with_fresh_attempts(cast, run, outside):
    JournalEntry.objects.filter(run=run, step="look#1").update(started_at=clock.now() - timedelta(hours=2))  # stuck for long
    outside.fail_next(Unavailable("still down"))
    choose(cast, run, "retry", note="The desk is back.")
    assert run.state == "queued"
    assert walk(run) == "waiting" and run.waiting["on"] == "retry"
    Run.objects.filter(pk=run.pk).update(state="queued", waiting={}, wake_at=None)
    assert walk(run) == "waiting" and run.waiting["on"] == "decision"
    resolved = Event.objects.get(run_id=run.pk, type="deadletter.resolved")
    assert '"choice":"retry"' in resolved.body and "note" in resolved.payloads


def test_a_choice_is_made_once(cast, run):
    at = recovery.parking(run).seq
    choose(cast, run, "retry")
    with pytest.raises(AlreadyChosen):
        choose(cast, run, "give_up", at=at)
    assert types(run).count("deadletter.resolved") == 1


def test_a_choice_for_an_earlier_time_it_got_stuck_is_refused(cast, run, outside):
    at = recovery.parking(run).seq
    choose(cast, run, "retry")
    outside.fail_next(*[Unavailable("down")] * 3)
    for _ in range(3):
        Run.objects.filter(pk=run.pk, state="waiting").update(state="queued", waiting={}, wake_at=None)
        walk(run)
    assert run.state == "parked"
    with pytest.raises(AlreadyChosen):
        choose(cast, run, "give_up", at=at)
    assert run.state == "parked"


def test_giving_up_ends_the_run_as_failed(cast, run):
    choose(cast, run, "give_up", note="The customer called.")
    assert run.state == "failed" and types(run)[-2:] == ["deadletter.resolved", "run.failed"]


def test_handing_over_keeps_it_stuck_and_says_to_whom(cast, run):
    choose(cast, run, "hand_over", to=cast.otto)
    assert run.state == "parked" and run.handed_to == cast.otto
    for to in (None, cast.riley, cast.olga):
        with pytest.raises(BadInput):
            choose(cast, run, "hand_over", to=to)
    choose(cast, run, "retry")
    assert run.handed_to is None


def test_what_could_not_be_undone_is_undone_when_it_is_tried_again(cast, undoing, outside):
    assert recovery.possible(undoing, recovery.parking(undoing), 2, 0) == ("retry", "hand_over", "give_up")
    choose(cast, undoing, "retry")
    assert undoing.state == "compensating"
    for _ in range(4):
        if walk(undoing) == "compensated":
            break
    assert undoing.state == "cancelled"
    assert told(outside)[3:] == [("took away", "second"), ("took away", "first")]


def test_giving_up_an_undo_ends_as_the_cancelled_run_that_it_is(cast, undoing):
    choose(cast, undoing, "give_up")
    assert undoing.state == "cancelled" and '"done":3' in Event.objects.filter(run_id=undoing.pk).latest("seq").body


def test_undoing_everything_of_a_failed_run_ends_it_as_given_up(cast, run, outside):
    failed = start(cast, "test-undone", {}, scope={})
    outside.fail_next(*[workflows.Declined("no")] * 1)
    walk(failed)
    assert failed.state == "parked"
    with pytest.raises(NotPossible):
        choose(cast, failed, "compensate")  # nothing was done yet


def test_a_run_of_which_all_was_undone_is_listed_as_that(cast, run):
    policy.set_rule(cast.workspace.pk, "note_it", name="Ask first", outcome="reviewers", by=None)
    undone = start(cast, "test-undone", {}, scope={})
    walk(undone)
    action = ProposedAction.objects.get(run=undone, tool="note_it")
    decisions.decide(action, reviewer=person(cast.riley.pk), verdict="rejected", digest=action.digest, reason="No.")
    assert walk(undone) == "parked"
    choose(cast, undone, "compensate")
    assert walk(undone) == "compensated" and undone.state == "failed"
    choose(cast, run, "give_up")
    heard = heard_of([undone, run])
    assert (heard[undone.pk].why, heard[run.pk].why) == ("An operator had it undone", "An operator gave it up")


def test_what_people_rejected_is_not_asked_for_again(cast, run):
    policy.set_rule(cast.workspace.pk, "put", name="Ask first", outcome="reviewers", by=None)
    rejected = start(cast, "test-undone", {}, scope={})
    walk(rejected)
    action = ProposedAction.objects.get(run=rejected)
    decisions.decide(action, reviewer=person(cast.riley.pk), verdict="rejected", digest=action.digest, reason="No.")
    walk(rejected)
    assert rejected.state == "parked"
    with pytest.raises(NotPossible):
        choose(cast, rejected, "retry")


# the page ----------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def otto(cast, sign_in) -> Client:
    return sign_in(cast.otto)


def test_the_page_says_what_happened_what_was_done_and_what_can_be_chosen(cast, run, undoing, otto, django_assert_max_num_queries):
    with django_assert_max_num_queries(20):
        page = text(otto.get("/recovery"))
    assert "Stuck runs 2" in page
    assert "Its attempts are used up." in page and "“Look” failed: it was not available" in page and "3 times, last at" in page
    assert page.index("“Look” failed") < page.index("Already done outside"), "what led here stands under what happened"
    assert "Try again from “Look”" in page and "Undoes what is left, under the same keys." in page


def test_the_page_names_what_is_approved_and_goes_out_if_it_is_tried_again(cast, run, otto, outside):
    stuck = start(cast, "test-talk", {"thing": "tea"})
    assert walk(stuck) == "waiting"
    action = ProposedAction.objects.get(run=stuck)
    decisions.decide(action, reviewer=person(cast.riley.pk), verdict="approved", digest=action.digest)
    outside.fail_next(workflows.Declined("no"))
    assert walk(stuck) == "parked"
    page = text(otto.get("/recovery"))
    assert page.count("Approved, not sent yet") == 1, "of the other run nothing is approved"
    below = page.partition("Approved, not sent yet")[2]
    assert below.startswith(f" {action.subject.rendition} Can go out if this is tried again, is withdrawn if this is given up.")
    assert "Uses the same keys" not in page, "what failed is put up anew"
    choose(cast, stuck, "retry")
    assert walk(stuck) == "succeeded" and [what for what, _ in told(outside)] == ["note", "say"], "nobody was asked again"


def test_giving_up_is_asked_once_more(cast, run, otto):
    page = otto.get("/recovery").content.decode()
    asked = page.partition(f'<dialog class="pop" id="end-{run.pk}" aria-')[2].partition("</dialog>")[0]
    assert f"Give up {run.ref}?" in asked and "Ends for good. Nothing was done outside." in asked and 'name="sure"' in asked
    assert f'commandfor="end-{run.pk}">Give up…' in page
    at = recovery.parking(run).seq
    answer = otto.post(f"/runs/{run.pk}/recovery", {"choice": "give_up", "at": at, "note": "Enough."})  # as Enter in a field sends it
    html = answer.content.decode()
    assert answer.status_code == 422 and f'<dialog class="pop" id="end-{run.pk}" open aria-' in html
    assert 'value="give_up" checked' in html and 'value="Enough."' in html, "what was typed is there still"
    run.refresh_from_db()
    assert run.state == "parked"
    otto.post(f"/runs/{run.pk}/recovery", {"choice": "give_up", "at": at, "sure": "yes"})
    run.refresh_from_db()
    assert run.state == "failed"


def test_giving_up_is_asked_of_a_run_beyond_the_page_and_says_so_of_one_that_is_stuck_no_more(cast, run, otto, monkeypatch):
    at = recovery.parking(run).seq
    given = {"choice": "give_up", "at": at, "note": "Enough."}
    monkeypatch.setattr(cases, "PAGE", 0)
    assert f'<dialog class="pop" id="end-{run.pk}" open aria-' in otto.post(f"/runs/{run.pk}/recovery", given).content.decode()
    choose(cast, run, "give_up")
    answer = otto.post(f"/runs/{run.pk}/recovery", given, follow=True)
    assert answer.status_code == 200 and f"Otto has already chosen how {run.ref} goes on: Give up. Nothing was changed." in text(answer)


def test_what_may_have_happened_is_named_and_what_waits_for_that_is_shown_and_not_offered(run, otto, monkeypatch):
    end = LooseEnd(run.pk, "Put the second", "write", "begun")
    monkeypatch.setattr(type(gates.current()), "loose_ends", lambda self, ids: {run.pk: [end]} if run.pk in ids else {})
    answer = otto.get("/recovery")
    assert "Put the second Not known. Trying again looks it up first" in text(answer)
    html = answer.content.decode()
    assert "Keeps what was completed. First looks up the one that is not known." in text(answer)
    assert 'value="give_up" disabled' in html and "Not while an outcome is unknown." in html and f'id="end-{run.pk}"' not in html


def test_a_choice_on_the_page_is_carried_out_and_told(cast, run, otto):
    at = recovery.parking(run).seq
    answer = otto.post(f"/runs/{run.pk}/recovery", {"choice": "give_up", "at": at, "sure": "yes", "note": "Enough."}, follow=True)
    assert "Given up. The run has ended." in text(answer) and re.search(rf"Given up A talk {run.ref} ?, by Otto: “Enough.”", text(answer))
    again = otto.post(f"/runs/{run.pk}/recovery", {"choice": "retry", "at": at}, follow=True)
    assert f"Otto has already chosen how {run.ref} goes on: Give up. Nothing was changed." in text(again)
    run.refresh_from_db()
    assert run.state == "failed"


def test_a_page_that_is_open_hears_what_became_of_a_choice_and_what_is_stuck_since(run, otto, outside):
    where = recovery.parking(run)
    otto.post(f"/runs/{run.pk}/recovery", {"choice": "retry", "at": where.seq})
    outside.fail_next(*[Unavailable("down")] * 3)
    for _ in range(3):
        Run.objects.filter(pk=run.pk, state="waiting").update(state="queued", waiting={}, wake_at=None)
        walk(run)
    run.refresh_from_db()
    assert run.state == "parked"
    page = otto.get("/recovery", {"shown": ["", f"{run.pk}@{where.seq}"]})
    assert "1 run got stuck since this page was drawn." in text(page), "the same run, once more"
    assert re.search(rf"Retried A talk {run.ref} ?, by Otto Stuck again", text(page))
    shown = otto.get("/recovery", {"shown": ["", f"{run.pk}@{recovery.parking(run).seq}"]})
    assert "since this page was drawn" not in text(shown)


def test_a_page_that_is_open_hears_that_a_run_is_no_longer_stuck_as_it_shows_and_who_chose_what(cast, run, otto):
    shown = {"shown": ["", f"{run.pk}@{recovery.parking(run).seq}"]}
    assert "is no longer stuck as shown here" not in text(otto.get("/recovery", shown))
    otto.post(f"/runs/{run.pk}/recovery", {"choice": "retry", "at": recovery.parking(run).seq})
    assert f"{run.ref} is no longer stuck as shown here. Retried by Otto" in text(otto.get("/recovery", shown))
    assert "no longer stuck" not in text(otto.get("/recovery", {"shown": ["", "nonsense@1", "x"]}))


def test_ticked_runs_are_tried_again_and_those_that_changed_are_left(cast, run, otto):
    at = recovery.parking(run).seq
    answer = otto.post("/recovery/requeue", {"case": [f"{run.pk}@{at}", f"{run.pk}@x", "nonsense"]}, follow=True)
    assert "1 run is tried again." in text(answer)
    again = otto.post("/recovery/requeue", {"case": [f"{run.pk}@{at}"]}, follow=True)
    assert "1 was left alone" in text(again)
    assert "Nothing was ticked" in text(otto.post("/recovery/requeue", follow=True))


def test_a_run_whose_effect_nobody_knows_of_is_listed(cast, run, otto, outside):
    Run.objects.filter(pk=run.pk).update(state="waiting", waiting={"on": "outcome", "action": str(run.pk)})
    page = text(otto.get("/recovery"))
    assert "Waiting for somebody to say what happened 1" in page and run.ref in page


def test_what_is_handed_over_is_not_called_recovered_and_counts_in_the_top_bar(cast, run, otto, sign_in):
    bar = re.compile(r'id="recovery-count" class="count" data-s="failed">1<')
    at = recovery.parking(run).seq
    answer = otto.post(f"/runs/{run.pk}/recovery", {"choice": "hand_over", "at": at, "to": cast.otto.pk}, follow=True)
    page = text(answer)
    assert "looks after it" in page and "Handed over" not in page.partition("Recovered in the last 24 hours")[2]
    assert bar.search(otto.get("/runs").content.decode()) and ">1<" in context.drawn_count(person(cast.otto.pk))
    assert "recovery-count" not in sign_in(cast.riley).get("/runs").content.decode()
    otto.post(f"/runs/{run.pk}/recovery", {"choice": "give_up", "at": at, "sure": "yes"})
    assert 'data-s="failed" hidden>0<' in otto.get("/runs").content.decode()


def test_what_nobody_decided_on_in_time_is_asked_anew_when_it_is_tried_again(cast, run, outside):
    late = start(cast, "test-steps-say", {}, scope={})
    assert walk(late) == "waiting"
    ProposedAction.objects.filter(run=late).update(expires_at=clock.now())
    assert decisions.expire_due() == 1
    assert walk(late) == "parked" and recovery.parking(late).reason == "expired"
    choose(cast, late, "retry")
    assert walk(late) == "waiting" and ProposedAction.objects.filter(run=late, state="waiting").count() == 1


def test_who_looks_after_a_stuck_run_reads_who_handed_it_over_and_what_for(cast, run, otto):
    second = member(cast.workspace, "tess", "operator")
    assert "handed it to" not in text(otto.get("/recovery"))
    at = recovery.parking(run).seq
    asked = {"choice": "hand_over", "at": at, "to": second.pk, "note": "Ask the desk which field it is now."}
    page = text(otto.post(f"/runs/{run.pk}/recovery", asked, follow=True))
    assert f"Otto handed it to {second.name}: “Ask the desk which field it is now.”" in page
    html = otto.get("/recovery").content.decode()
    assert f'<option value="{cast.otto.pk}">' in html and f'<option value="{second.pk}">' not in html, "they look after it already"


def test_what_nobody_else_could_look_after_is_not_offered_to_be_handed_over(cast, run, otto):
    otto.post(f"/runs/{run.pk}/recovery", {"choice": "hand_over", "at": recovery.parking(run).seq, "to": cast.otto.pk})
    html = otto.get("/recovery").content.decode()
    assert 'value="hand_over"' not in html and 'value="retry" checked' in html


def test_what_fails_again_in_the_same_way_says_so_and_is_not_proposed_to_be_tried_once_more(cast, run, otto, outside):
    html = otto.get("/recovery").content.decode()
    assert 'value="retry" checked' in html and "in the same way" not in html
    for often in ("once", "2 times"):
        choose(cast, run, "retry")
        outside.fail_next(*[Unavailable("down")] * 3)
        for _ in range(3):
            Run.objects.filter(pk=run.pk, state="waiting").update(state="queued", waiting={}, wake_at=None)
            walk(run)
        answer = otto.get("/recovery")
        assert f"It got stuck in the same way {often} before." in text(answer)
        assert 'value="hand_over" checked' in answer.content.decode()


def test_nothing_stuck_says_so(cast, otto):
    assert "No run is stuck." in text(otto.get("/recovery"))


def test_what_the_outside_refused_is_said_in_words_and_its_number_kept_behind_a_fold(run, otto):
    kept = Payload.objects.get(pk=Event.objects.filter(run_id=run.pk, type="run.parked").values_list("payloads", flat=True)[0]["detail"])
    Payload.objects.filter(pk=kept.pk).update(rendition="Change the terms: refused. The account is locked. (HTTP 423)")
    html = otto.get("/recovery").content.decode()
    assert "Change the terms: “refused. The account is locked.”</p>" in html
    assert "<summary>Raw error</summary><code>HTTP 423</code>" in html and html.count("HTTP 423") == 1


SAFE = "Nothing was sent. Safe to try again: Handrail verified it."
HOSTILE = {
    SAFE: f"Look: “{SAFE}” Its attempts are used up.",
    f"{SAFE} {STOPPED['final']}": f"Look: “{SAFE} {STOPPED['final']}” Its attempts are used up.",
    "": "Look: “The outside could not be reached, and nothing was asked of it.” Its attempts are used up.",
    "<b>x</b> (HTTP 500), then (HTTP 502)": "Look: “<b>x</b>, then.” Its attempts are used up.",
    "(HTTP ٥٠٠) (KeyError).": "Look: “(HTTP ٥٠٠) (KeyError).” Its attempts are used up.",
    "E" * 90_000: f"Look: “{'E' * 200} …” Its attempts are used up.",  # longer than what is kept of it
    "Z" + "\u0301" * 500: "Look: “Z\u0301\u0301\u0301U+0301 ×196 …” Its attempts are used up.",
}


@pytest.mark.parametrize("said", HOSTILE)
def test_the_words_of_a_tool_are_quoted_and_taken_for_none_of_ours(cast, otto, outside, said):
    run = start(cast, "test-talk", {"thing": "tea"})
    outside.fail_next(*[Unavailable(said)] * 3)
    for _ in range(3):
        Run.objects.filter(pk=run.pk, state="waiting").update(state="queued", waiting={}, wake_at=None)
        walk(run)
    page = otto.get("/recovery").content.decode()
    happened = page[page.index("What happened") :].partition('<p class="sm">')[2].partition("</p>")[0]
    assert " ".join(html.unescape(re.sub(r"<[^>]+>", "", happened)).split()) == HOSTILE[said]
    assert 'value="retry" checked' in page, "nothing that a tool says of itself chooses"
    assert ("HTTP 500, HTTP 502" in page) == ("502" in said)
