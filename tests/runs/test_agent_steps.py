"""Agents outside under a lease: one holder at a time, late writes refused, a journal from which another goes on, silence noticed."""

import hashlib
from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.test import Client

from access import keys
from access.rules import SYSTEM
from approvals import decisions, policy
from approvals.models import ProposedAction
from approvals.notifications import audience
from approvals.notifications.models import Notice
from config import clock
from runs import reading, signals, steps, updates
from runs.engine import outside as declaring
from runs.engine import sweep
from runs.engine.tools import TOOLS
from runs.models import AgentStep, Event, Lease, Run
from runs.verification import Whole, verify
from tests.approvals.mailing import text
from tests.approvals.test_outside import NOTICE, TOOL_FILE, VOUCHER
from tests.factories import actor
from tests.ids import without_ids
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)


def sha(given: Any) -> str:
    return hashlib.sha256(orjson.dumps(given, option=orjson.OPT_SORT_KEYS)).hexdigest()


class Process:
    """A process of an agent outside, which works on a run."""

    def __init__(self, client: Client, run: str, holder: str) -> None:
        self.client, self.run, self.holder, self.token = client, run, holder, 0

    def send(self, path: str, body: Any, verb: str = "post", **headers: Any) -> Any:
        named = {name.replace("_", "-"): str(value) for name, value in headers.items()}
        return getattr(self.client, verb)(f"/api/v1/{path}", body, content_type="application/json", headers=named)

    def claim(self, seconds: int = 30) -> Any:
        answer = self.send(f"runs/{self.run}/lease", {"holder": self.holder, "seconds": seconds})
        self.token = answer.json()["lease"]["token"] if answer.status_code < 300 else self.token
        return answer

    def beat(self, seconds: int = 30) -> Any:
        return self.send(f"runs/{self.run}/lease", {"token": self.token, "seconds": seconds}, "put")

    def begin(self, key: str, given: Any = None, **more: Any) -> Any:
        return self.send(f"runs/{self.run}/steps", {"token": self.token, "key": key, "input": sha(given)} | more)

    def end(self, key: str, outcome: str = "completed", **more: Any) -> Any:
        return self.send(f"runs/{self.run}/steps/outcome", {"token": self.token, "key": key, "outcome": outcome} | more)

    def tell(self, id: str) -> Any:
        event = {"id": id, "type": "note.posted", "texts": {"note": "Here."}}
        return self.send(f"runs/{self.run}/events", event, Handrail_Token=self.token)

    def read(self) -> Any:
        return self.send(f"runs/{self.run}/notes", {}, Handrail_Token=self.token)

    def propose(self, key: str, tool: str = "issue_voucher", arguments: Any = VOUCHER) -> Any:
        body = {"tool": tool, "tool_schema": 1, "arguments": arguments}
        return self.send(f"runs/{self.run}/actions", body, Idempotency_Key=key, Handrail_Token=self.token)


@pytest.fixture
def client_of_agent(cast) -> Client:
    return Client(headers={"Authorization": f"Bearer {keys.make(cast.agent, name='test', by=SYSTEM)[1]}"})


@pytest.fixture
def run(client_of_agent) -> Run:
    started = {"title": "A late parcel", "agent_version": "1", "scope": {"customer": ["ACC-1"]}}
    answer = client_of_agent.post("/api/v1/runs", started, content_type="application/json", headers={"Idempotency-Key": "a"})
    return Run.objects.get(pk=answer.json()["id"])


@pytest.fixture
def one(client_of_agent, run) -> Process:
    return Process(client_of_agent, str(run.pk), "here:1")


@pytest.fixture
def other(client_of_agent, run) -> Process:
    return Process(client_of_agent, str(run.pk), "there:2")


def lapse(run: Run, by: timedelta = timedelta(minutes=5)) -> None:
    """Its holder says nothing for so long that its lease is over."""
    Lease.objects.filter(run=run).update(until=clock.now() - by)
    Run.objects.filter(pk=run.pk).update(state_since=clock.now() - by * 2)


def kind(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition(":")[2]


def data(run: Run, *types: str) -> list[dict[str, Any]]:
    rows = Event.objects.filter(run=run, type__in=types).order_by("seq").values_list("body", flat=True)
    return [orjson.loads(body) for body in rows]


# one holder -----------------------------------------------------------------------------------------------------------------------------


def test_one_holds_a_run_and_everybody_else_is_told_who(run, one, other):
    assert one.claim().status_code == 201 and one.token == 1
    assert one.claim().status_code == 200 and one.token == 1, "its answer was lost, and it asked again"
    refused = other.claim()
    assert kind(refused) == (409, "held-by-another-process") and refused.json()["holder"] == "here:1"
    assert one.beat().json()["state"] == "running"
    one.send(f"runs/{run.pk}/lease?token=1", None, "delete")
    assert kind(one.beat()) == (409, "lease-needed"), "it gave it back"
    assert other.claim().json()["lease"]["held_before_by"] == "here:1" and other.token == 2


def test_of_twenty_that_claim_at_once_one_has_it(run):
    came = together([lambda n=n: steps.claim(run, holder=f"p:{n}") for n in range(20)])
    assert sum(isinstance(each, steps.Taken) for each in came) == 1
    assert {type(each) for each in came} == {steps.Taken, steps.HeldByAnotherProcess}


def test_a_process_that_was_overtaken_writes_nothing_any_more(run, one, other, cast, declared):
    one.claim()
    assert one.begin("draft").status_code == 201
    action = ProposedAction.objects.get(pk=one.propose("j").json()["action"]["id"])
    decisions.decide(action, reviewer=actor(cast.riley), verdict="approved", digest=action.digest)
    lapse(run)
    assert other.claim().json()["lease"]["held_before_by"] == "here:1"
    before = Event.objects.filter(run=run).count()
    late = [one.end("draft"), one.begin("next"), one.beat(), one.tell("a"), one.propose("k")]
    late.append(one.send(f"actions/{action.pk}/redemption", {"digest": action.digest, "holder": "a" * 16}, Handrail_Token=one.token))
    late.append(one.send(f"runs/{run.pk}/ending", {"outcome": "failed"}, Handrail_Token=one.token))
    assert {kind(answer) for answer in late} == {(409, "overtaken")}
    assert {answer.json()["holder"] for answer in late} == {"there:2"}
    without = one.send(f"runs/{run.pk}/ending", {"outcome": "failed"})
    assert kind(without) == (409, "lease-needed"), "nor without its token"
    assert Event.objects.filter(run=run).count() == before
    assert other.tell("a").status_code == 201


def test_a_run_that_a_workflow_works_on_is_not_claimed(cast, client_of_agent):
    from tests.runs.test_engine import start

    run = start(cast, "test-asks", {}, scope={})
    assert kind(Process(client_of_agent, str(run.pk), "here:1").claim()) == (403, "not-yours")


# the journal ----------------------------------------------------------------------------------------------------------------------------


def test_another_goes_on_from_the_journal_and_what_is_done_is_not_done_again(run, one, other):
    one.claim()
    told = one.begin("read_ticket", {"ticket": 1}, plan_step=1).json()["step"]
    assert (told["state"], told["attempt"], told["key"]) == ("started", 1, "read_ticket#1")
    again = one.begin("read_ticket", {"ticket": 1})
    assert again.status_code == 200 and again.json()["step"]["idempotency_key"] == told["idempotency_key"]
    done = one.end("read_ticket", result={"text": '{"subject": "Late"}', "media_type": "application/json", "label": "personal"})
    assert done.status_code == 201 and one.end("read_ticket", result={"text": '{"subject": "Late"}'}).status_code == 200
    assert kind(one.end("read_ticket", result={"text": "another"})) == (409, "step-settled")
    one.begin("draft", {"a": 1})
    lapse(run)
    other.claim()
    journal = other.client.get(f"/api/v1/runs/{run.pk}/steps").json()
    assert [(step["key"], step["state"], step["holder"]) for step in journal["steps"]] == [
        ("read_ticket#1", "done", "here:1"),
        ("draft#1", "started", "here:1"),
    ]
    known = other.begin("read_ticket", {"ticket": 1})
    assert known.status_code == 200 and known.json()["step"]["state"] == "done"
    assert known.json()["step"]["result"]["text"] == '{"subject": "Late"}'
    assert kind(other.begin("read_ticket", {"ticket": 2})) == (409, "step-reused"), "the same key, another input"
    assert kind(other.end("draft")) == (409, "not-begun"), "the other one's attempt"
    anew = other.begin("draft", {"a": 1}).json()["step"]
    assert (anew["attempt"], anew["holder"]) == (2, "there:2")
    assert other.end("draft", result={"base64": "/w=="}).json()["step"]["result"] == {
        "label": "internal",
        "media_type": "text/plain",
        "base64": "/w==",
    }
    assert len(data(run, "step.completed")) == 2 and isinstance(verify(run), Whole)


def test_a_page_of_the_journal_ends_early_where_its_results_are_large(run, one, monkeypatch):
    monkeypatch.setattr(steps, "PAGE_BYTES", 25)
    one.claim()
    for name in ("a", "b", "c", "d"):
        one.begin(name)
        one.end(name, result={"text": name * (30 if name == "c" else 10)})
    read, after = [], 0
    while after is not None:
        page = one.client.get(f"/api/v1/runs/{run.pk}/steps?after={after}").json()
        read, after = [*read, [step["key"] for step in page["steps"]]], page["next"]
    assert read == [["a#1", "b#1"], ["c#1"], ["d#1"]]


def test_a_step_that_failed_is_begun_again_and_each_attempt_stands_in_the_log(run, one):
    one.claim()
    one.begin("call")
    assert one.end("call", "failed", error="timeout", detail="No answer.").status_code == 201
    assert one.end("call", "failed").status_code == 200 and kind(one.end("call")) == (409, "step-settled")
    assert one.begin("call").json()["step"]["attempt"] == 2
    one.end("call")
    assert [event["data"].get("attempt") for event in data(run, "step.started", "step.failed")] == [1, 1, 2]


def test_steps_stand_in_the_log_as_told_by_the_agent(run, one, cast, sign_in):
    one.claim()
    one.begin("check_parcel")
    one.end("check_parcel", result={"text": "It is late."})
    events = data(run, "step.started", "step.completed")
    assert all(event["data"]["told"] is True and event["actor"]["kind"] == "agent" for event in events)
    assert "result" in events[1]["payloads"]
    assert "Told by the agent" in text(sign_in(cast.riley).get(f"/runs/{run.pk}"))


def test_of_twenty_that_begin_a_step_at_once_one_begins_it(run, cast):
    token = steps.claim(run, holder="here:1").token
    by = actor(cast.priya)
    begun = together([lambda: steps.begin(run, by=by, token=token, key="a", given="0" * 64) for _ in range(20)])
    assert [type(each) for each in begun] == [steps.Told] * 20
    assert AgentStep.objects.get(run=run).attempts == 1 == len(data(run, "step.started"))
    assert sum(not each.again for each in begun) == 1


def test_when_a_limit_is_used_up_nothing_new_begins_until_people_raise_it(run, one, cast):
    updates.set_budgets(run, {"steps": 2}, by=actor(cast.otto))
    one.claim()
    for key in ("a", "b"):
        assert one.begin(key).status_code == 201 and one.end(key).status_code == 201
    refused = one.begin("c")
    assert kind(refused) == (409, "budget-used") and refused.json()["budget"] == "steps"
    assert kind(one.begin("c")) == (409, "budget-used") and len(data(run, "budget.exceeded")) == 1 == len(data(run, "budget.warned"))
    row = Run.objects.get(pk=run.pk)
    assert (row.state, row.waiting["on"]) == ("waiting", "budget") and one.begin("a").json()["step"]["state"] == "done"
    updates.set_budgets(run, {"steps": 3}, by=actor(cast.otto))
    assert Run.objects.get(pk=run.pk).state == "running" and one.begin("c").status_code == 201


def test_a_run_that_has_ended_gives_its_journal_and_begins_nothing(run, one, cast):
    one.claim()
    one.begin("a")
    one.end("a", result={"text": "x"})
    signals.send(run, kind="cancel", key="c", by=actor(cast.otto))
    assert kind(one.begin("b")) == (409, "run-ended") and kind(one.beat()) == (409, "run-ended") and kind(one.claim()) == (409, "run-ended")
    assert one.client.get(f"/api/v1/runs/{run.pk}/steps").json()["steps"][0]["state"] == "done"


# silence --------------------------------------------------------------------------------------------------------------------------------


def told(run: Run) -> set[str]:
    notices = Notice.objects.filter(run=run, kind="stuck").select_related(*audience.OF_ACTION)
    return {user.name for notice in notices for user in audience.people(notice)}


def test_a_holder_that_goes_silent_leaves_a_stalled_run_and_whoever_comes_goes_on(run, one, other, cast, sign_in):
    one.claim()
    one.begin("a")
    sweep.sweep()
    assert Run.objects.get(pk=run.pk).state == "running"
    lapse(run)
    sweep.sweep()
    sweep.sweep()
    assert Run.objects.get(pk=run.pk).state == "stalled" and len(data(run, "run.stalled")) == 1
    assert told(run) == {"Otto"}
    page = text(sign_in(cast.otto).get(f"/runs/{run.pk}"))
    assert "Stuck" in page and "Its agent went silent." in page
    assert run.ref in text(sign_in(cast.otto).get("/recovery"))
    assert other.claim().status_code == 201 and Run.objects.get(pk=run.pk).state == "running"
    assert told(run) == set() and run.ref not in text(sign_in(cast.otto).get("/recovery"))


def test_a_holder_that_was_only_late_goes_on_if_nobody_has_taken_over(run, one):
    one.claim()
    lapse(run)
    sweep.sweep()
    beat = one.beat()
    assert (beat.status_code, beat.json()["state"]) == (200, "running") and Run.objects.get(pk=run.pk).state == "running"
    assert [event["data"]["reason"] for event in data(run, "run.resumed")] == ["claimed", "heard"]


def test_a_run_that_nobody_claimed_stalls_after_an_hour_of_silence_and_a_word_brings_it_back(run, one):
    old = clock.now() - timedelta(hours=2)
    Run.objects.filter(pk=run.pk).update(state_since=old)
    sweep.sweep()
    assert Run.objects.get(pk=run.pk).state == "running", "its last event is new"
    Lease.objects.filter(run=run).update(called_at=None)
    steps.SILENCE, kept = timedelta(0), steps.SILENCE
    try:
        sweep.sweep()
    finally:
        steps.SILENCE = kept
    assert Run.objects.get(pk=run.pk).state == "stalled"
    note = {"id": "a", "type": "note.posted", "texts": {"note": "Here."}}
    assert one.send(f"runs/{run.pk}/events", note).status_code == 201
    assert Run.objects.get(pk=run.pk).state == "running"


@pytest.fixture
def declared(cast, monkeypatch) -> None:
    for tool in declaring.declare(TOOL_FILE.read_bytes()):
        monkeypatch.setitem(TOOLS, tool.name, tool)
        policy.set_rule(cast.workspace.pk, tool.name, name="Outside", outcome="reviewers", by=None)


def test_while_people_have_something_to_decide_the_run_waits_and_does_not_stall(run, one, cast, declared):
    one.claim()
    first = ProposedAction.objects.get(pk=one.propose("k").json()["action"]["id"])
    second = ProposedAction.objects.get(pk=one.propose("n", "post_notice", NOTICE).json()["action"]["id"])
    row = Run.objects.get(pk=run.pk)
    assert (row.state, row.waiting["on"], row.waiting["action"]) == ("waiting", "decision", str(first.pk))
    assert one.begin("meanwhile").status_code == 201, "it may do something else"
    lapse(run)
    sweep.sweep()
    assert Run.objects.get(pk=run.pk).state == "waiting", "its agent may come back tomorrow"
    riley = actor(cast.riley)
    decisions.decide(first, reviewer=riley, verdict="approved", digest=first.digest)
    assert Run.objects.get(pk=run.pk).waiting["action"] == str(second.pk)
    decisions.decide(second, reviewer=riley, verdict="rejected", digest=second.digest, reason="Not now.")
    assert Run.objects.get(pk=run.pk).state == "running"
    sweep.sweep()
    assert Run.objects.get(pk=run.pk).state == "running", "somebody has a moment to come for it"
    lapse(run)
    sweep.sweep()
    assert Run.objects.get(pk=run.pk).state == "stalled", "approved, and nobody came for it"


# steered --------------------------------------------------------------------------------------------------------------------------------


def steer(run: Run, by: Any, kind: str, key: str, note: str = "") -> Any:
    return signals.send(run, kind=kind, key=key, by=actor(by), note=note)


def test_a_paused_run_begins_proposes_redeems_and_ends_nothing_until_it_is_resumed(run, one, cast, declared):
    one.claim()
    one.begin("read")
    approved = ProposedAction.objects.get(pk=one.propose("k").json()["action"]["id"])
    decisions.decide(approved, reviewer=actor(cast.riley), verdict="approved", digest=approved.digest)
    assert steer(run, cast.otto, "pause", "p").status == "applied"
    assert one.beat().json()["state"] == "paused"
    assert kind(one.begin("write")) == (409, "not-at-work") and kind(one.propose("n", "post_notice", NOTICE)) == (409, "not-running")
    taken = one.send(f"actions/{approved.pk}/redemption", {"digest": approved.digest, "holder": "one" * 9}, Handrail_Token=one.token)
    assert kind(taken) == (409, "not-running")
    claimed = {"outcome": "succeeded", "report": {"title": "Done", "cites": [1]}}
    assert kind(one.send(f"runs/{run.pk}/ending", claimed, Handrail_Token=one.token)) == (409, "not-at-work")
    assert one.end("read").status_code == 201, "what was under way is told"
    lapse(run)
    sweep.sweep()
    assert Run.objects.get(pk=run.pk).state == "paused", "it may stay so until tomorrow"
    assert steer(run, cast.otto, "resume", "r").status == "applied"
    assert one.beat().json()["state"] == "running" and one.begin("write").status_code == 201
    assert isinstance(verify(run), Whole)


def test_a_paused_run_may_fail(run, one, cast):
    one.claim()
    steer(run, cast.otto, "pause", "p")
    failed = {"outcome": "failed", "detail": "There is no such parcel."}
    assert one.send(f"runs/{run.pk}/ending", failed, Handrail_Token=one.token).json()["ending"]["state"] == "failed"
    assert isinstance(verify(run), Whole)


def test_a_run_that_is_resumed_waits_for_what_people_have_to_decide_still(run, one, cast, declared):
    one.claim()
    first, second = (ProposedAction.objects.get(pk=one.propose(key).json()["action"]["id"]) for key in "kn")
    steer(run, cast.otto, "pause", "p")
    decisions.decide(first, reviewer=actor(cast.riley), verdict="approved", digest=first.digest)
    steer(run, cast.otto, "resume", "r")
    row = Run.objects.get(pk=run.pk)
    assert (row.state, row.waiting["on"], row.waiting["action"]) == ("waiting", "decision", str(second.pk))
    decisions.decide(second, reviewer=actor(cast.riley), verdict="rejected", digest=second.digest, reason="Not this one.")
    assert Run.objects.get(pk=run.pk).state == "running"


@pytest.mark.parametrize("kinds", [("revise",), ("pause", "resume")])
def test_a_run_that_waits_for_a_bigger_budget_waits_on_whatever_else_is_said_to_it(run, one, cast, kinds):
    updates.set_budgets(run, {"steps": 1}, by=actor(cast.otto))
    one.claim()
    one.begin("a")
    one.end("a")
    assert kind(one.begin("b")) == (409, "budget-used")
    for each in kinds:
        assert steer(run, cast.otto, each, each, "Do it otherwise." if each == "revise" else "").status in ("accepted", "applied")
    row = Run.objects.get(pk=run.pk)
    assert (row.state, row.waiting.get("on")) == ("waiting", "budget") and len(data(run, "budget.exceeded")) == 1
    updates.set_budgets(run, {"steps": 2}, by=actor(cast.otto))
    assert Run.objects.get(pk=run.pk).state == "running" and one.begin("b").status_code == 201


def test_what_is_resumed_is_told_as_that_and_not_as_decided(run, one, cast):
    one.claim()
    for each in ("pause", "resume"):
        steer(run, cast.otto, each, each)
    assert [event["data"]["reason"] for event in data(run, "run.resumed")] == ["claimed", "signal"]
    told = str(reading.told(Run.objects.get(pk=run.pk)).story.sections)
    assert "its agent goes on" in told and "Nothing waits for people" not in told
    assert isinstance(verify(run), Whole)


@pytest.mark.parametrize("state", ["paused", "waiting"])
def test_a_run_that_people_hold_is_told_as_held_also_once_another_process_takes_it_over(run, one, other, cast, declared, state):
    one.claim()
    one.propose("k")
    if state == "paused":
        steer(run, cast.otto, "pause", "p")
    lapse(run)
    assert other.claim().status_code == 201
    now = Run.objects.get(pk=run.pk)
    told = reading.told(now).story
    assert (now.state, told.state, told.now.state) == (state, state, state)
    if state == "paused":
        steer(run, cast.otto, "resume", "r")
        now = Run.objects.get(pk=run.pk)
    assert now.waiting["on"] == "decision" and reading.told(now).story.now.waits_for, "and what it waits for is said still"


def test_what_people_add_is_read_by_the_agent_once_it_asks_and_the_log_says_so(run, one, cast, sign_in):
    one.claim()
    assert one.beat().json()["unread"] == 0
    told = steer(run, cast.otto, "context", "c", "The customer called: the card 4111 1111 1111 1111 was blocked.")
    assert told.status == "accepted" and one.beat().json()["unread"] == one.begin("a").json()["unread"] == 1
    [note] = one.read().json()["notes"]
    assert (note["kind"], note["by"]["name"]) == ("context", "Otto") and "4111 1111" in note["text"], "in full: it is for the agent"
    assert one.end("a").json()["unread"] == 0 and one.read().json()["notes"] == [
        note | {"read_at": one.read().json()["notes"][0]["read_at"]}
    ]
    assert [each["data"]["kind"] for each in data(run, "signal.applied")] == ["context"], "read twice, applied once"
    page = text(sign_in(cast.otto).get(f"/runs/{run.pk}"))
    assert "Add context" in page and "4111" not in without_ids(page)
    steer(run, cast.otto, "context", "d", "One more thing.")
    one.send(f"runs/{run.pk}/ending", {"outcome": "failed"}, Handrail_Token=one.token)
    assert signals.Signal.objects.get(key="d").reason == "never_read", "and who said it sees that"


def test_a_revision_withdraws_what_waits_and_is_read_like_a_note(run, one, cast, declared):
    one.claim()
    waits = ProposedAction.objects.get(pk=one.propose("k").json()["action"]["id"])
    assert steer(run, cast.otto, "revise", "v", "Write to her instead.").status == "accepted"
    waits.refresh_from_db()
    assert waits.state == "withdrawn" and Run.objects.get(pk=run.pk).state == "running"
    assert [(each["kind"], each["text"]) for each in one.read().json()["notes"]] == [("revise", "Write to her instead.")]


def test_only_who_holds_the_run_reads_its_notes_and_they_are_not_without_end(run, one, other, cast):
    one.claim()
    for n in range(signals.MAX_UNREAD + 1):
        told = steer(run, cast.otto, "context", f"c{n}", f"Note {n}")
    assert (told.status, told.reason) == ("refused", "too_many")
    other.token = 9
    assert kind(other.read()) == (409, "overtaken") and one.beat().json()["unread"] == signals.MAX_UNREAD
    assert len(one.read().json()["notes"]) == signals.MAX_UNREAD
