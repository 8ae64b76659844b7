"""Agents outside: they propose over the API, wait, redeem by digest, run it themselves and report."""

import hashlib
import re
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.apps import apps
from django.test import Client

from access import keys
from access.models import Agent, AuditEntry
from access.rules import SYSTEM, person
from approvals import asking, decisions, editing, execution, freezes, outside, policy, presenting, taking_back, threads, unknown
from approvals.models import Grant, ProposedAction
from approvals.notifications import wording
from approvals.notifications.models import Notice
from approvals.sourcing import MOST_EVENTS
from artifacts import vault
from config import clock
from runs import context, signals, steps, updates
from runs.engine import outside as declaring
from runs.engine.outside import BadDeclaration
from runs.engine.tools import TOOLS
from runs.models import Event, Lease, Run
from tests.approvals.mailing import propose_mail, text
from tests.factories import actor
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)
TOOL_FILE = Path(__file__).parents[2] / "examples/outside_loop/tools.json"
VOUCHER = {"customer": "ACC-1", "amount": "40.00"}
NOTICE = {"channel": "newsroom", "headline": "Late", "text": "Parcels are late."}
HOLDER = str(uuid4())


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    for tool in declaring.declare(TOOL_FILE.read_bytes()):
        monkeypatch.setitem(TOOLS, tool.name, tool)


class Outside:
    """An agent outside with its key, in a run of its own."""

    def __init__(self, cast, agent: Agent | None = None) -> None:
        self.cast, agent = cast, agent or cast.agent
        self.client = Client(headers={"Authorization": f"Bearer {keys.make(agent, name='test', by=SYSTEM)[1]}"})
        started = {"title": "A late parcel", "agent_version": "1", "scope": {"customer": ["ACC-1"]}}
        self.run = Run.objects.get(pk=self.post("runs", started, key="a").json()["id"])

    def post(self, path: str, body: Any, key: str = "") -> Any:
        more = {"headers": {"Idempotency-Key": key}} if key else {}
        return self.client.post(f"/api/v1/{path}", body, content_type="application/json", **more)

    def propose(self, tool: str = "issue_voucher", arguments: Any = VOUCHER, key: str = "k", **more: Any) -> Any:
        body = {"tool": tool, "tool_schema": 1, "arguments": arguments} | more
        return self.post(f"runs/{self.run.pk}/actions", body, key)

    def put_up(self, *given: Any, **more: Any) -> ProposedAction:
        answer = self.propose(*given, **more)
        assert answer.status_code == 201, answer.content
        return ProposedAction.objects.get(pk=answer.json()["action"]["id"])

    def approved(self, *given: Any, **more: Any) -> ProposedAction:
        action = self.put_up(*given, **more)
        decisions.decide(action, reviewer=actor(self.cast.riley), verdict="approved", digest=action.digest)
        return action

    def told(self, action: ProposedAction) -> dict[str, Any]:
        return self.client.get(f"/api/v1/actions/{action.pk}").json()

    def redeem(self, action: ProposedAction, digest: str = "", holder: str = HOLDER) -> Any:
        return self.post(f"actions/{action.pk}/redemption", {"digest": digest or action.digest, "holder": holder})

    def report(self, action: ProposedAction, outcome: str = "executed", holder: str = HOLDER, **more: Any) -> Any:
        return self.post(f"actions/{action.pk}/outcome", {"holder": holder, "outcome": outcome} | more)

    def log(self, *types: str) -> list[dict[str, Any]]:
        rows = Event.objects.filter(run_id=self.run.pk, type__in=types).order_by("seq").values_list("body", flat=True)
        return [orjson.loads(body) for body in rows]


@pytest.fixture
def agent(cast) -> Outside:
    for tool in ("issue_voucher", "post_notice"):
        policy.set_rule(cast.workspace.pk, tool, name="Outside", outcome="reviewers", by=None)
    return Outside(cast)


def kind(answer: Any) -> tuple[int, str]:
    assert answer.headers["Content-Type"] == "application/problem+json", answer.content
    return answer.status_code, answer.json()["type"].rpartition(":")[2]


def silent(action: ProposedAction) -> Grant:
    """The agent says nothing until its time to report is over."""
    Grant.objects.filter(action=action).update(report_by=clock.now() - timedelta(seconds=1))
    assert (outside.silent_due(), outside.silent_due()) == (1, 0)
    return Grant.objects.get(action=action)


# the way ---------------------------------------------------------------------------------------------------------------------------------


def test_what_was_approved_is_redeemed_by_its_digest_run_by_the_agent_and_reported(agent):
    action = agent.put_up(reason="We promised it.")
    told = agent.told(action)
    assert (told["state"], told["executor"], told["subject"]) == ("waiting", "agent", "Issue a voucher of 40.00 EUR to ACC-1")
    assert kind(agent.redeem(action)) == (409, "nothing-granted")
    decisions.decide(action, reviewer=actor(agent.cast.riley), verdict="approved", digest=action.digest)
    exact = agent.told(action)["exact"]
    assert hashlib.sha256(exact.encode()).hexdigest() == action.digest
    assert orjson.loads(exact)["arguments"] == VOUCHER | {"currency": "EUR", "note": ""}
    taken = agent.redeem(action)
    assert taken.status_code == 201 and taken.json()["redemption"]["exact"] == exact
    said = agent.report(action, facts={"voucher": "V-1"})
    assert said.status_code == 201 and said.json()["action"]["grant"]["outcome"] == "executed"
    assert said.json()["action"]["grant"]["verified_at"] is None, "nobody saw it"
    assert [
        each["type"] for each in agent.log("action.delivered", "action.redeemed", "action.executed", "effect.done", "action.verified")
    ] == [
        "action.delivered",
        "action.redeemed",
        "action.executed",
        "effect.done",
    ]
    assert agent.log("action.executed")[0]["actor"]["kind"] == "agent"


def test_over_a_limit_it_proposes_nothing_new_and_what_it_had_put_up_stands(agent):
    first = agent.approved(key="k")
    updates.set_budgets(agent.run, {"tokens": 1000}, by=actor(agent.cast.otto))
    used = {"type": "model.called", "data": {"model": "m", "prompt": "p", "prompt_version": "1", "tokens_in": 1200}, "id": "m-1"}
    assert agent.post(f"runs/{agent.run.pk}/events", used).status_code in (200, 201)
    refused = agent.propose(key="k2", arguments=VOUCHER | {"amount": "41.00"})
    assert kind(refused) == (409, "budget-used") and refused.json()["budget"] == "tokens"
    run = Run.objects.get(pk=agent.run.pk)
    assert (run.state, run.waiting["on"]) == ("waiting", "budget") and len(agent.log("budget.exceeded")) == 1
    assert agent.propose(key="k").status_code == 200 and agent.redeem(first).status_code == 201
    assert ProposedAction.objects.filter(run=run).count() == 1
    updates.set_budgets(run, {"tokens": 5000}, by=actor(agent.cast.otto))
    assert agent.propose(key="k2", arguments=VOUCHER | {"amount": "41.00"}).status_code == 201


def test_the_run_waits_for_people_and_says_for_all_that_it_needs_of_them(agent):
    action = agent.put_up()
    agent.put_up("post_notice", NOTICE, key="n")
    browser = Client()
    browser.force_login(agent.cast.riley)

    def page() -> str:
        return text(browser.get(f"/runs/{agent.run.pk}"))

    assert "A reviewer has to decide: Issue a voucher of 40.00 EUR to ACC-1" in page()
    assert "A reviewer has to decide: Post on newsroom: Late" in page()
    assert "Run by the agent; Handrail cannot see the call." in page()
    decisions.decide(action, reviewer=actor(agent.cast.riley), verdict="approved", digest=action.digest)
    agent.redeem(action)
    silent(action)
    assert "A person has to say what became of it: Issue a voucher" in page()
    agent.report(action)
    assert "The agent says so." in page()


def test_a_rejection_reaches_the_agent_with_its_reason_in_full(agent):
    action = agent.put_up()
    reason = "Not to marta@brightwater.example, who had one in May."
    decisions.decide(action, reviewer=actor(agent.cast.riley), verdict="rejected", digest=action.digest, reason=reason)
    assert (agent.told(action)["state"], agent.told(action)["rejection"]) == ("rejected", reason)
    assert kind(agent.redeem(action)) == (409, "nothing-granted")


def test_an_edit_takes_its_place_and_the_agent_runs_that(agent):
    action = agent.put_up()
    newer = editing.edit(
        action, by=actor(agent.cast.riley), arguments=VOUCHER | {"currency": "EUR", "note": "", "amount": "20.00"}, digest=action.digest
    ).action
    assert agent.told(action)["superseded_by"] == str(newer.pk)
    decisions.decide(newer, reviewer=actor(agent.cast.sam), verdict="approved", digest=newer.digest)
    refused = agent.redeem(action)
    assert kind(refused) == (409, "nothing-granted") and refused.json()["superseded_by"] == str(newer.pk)
    assert newer.executor == "agent" and orjson.loads(agent.told(newer)["exact"])["arguments"]["amount"] == "20.00"
    assert kind(agent.redeem(newer, digest=action.digest)) == (409, "digest-mismatch")
    assert agent.redeem(newer).status_code == 201


def test_a_question_reaches_the_agent_in_full_and_is_answered_once(agent):
    action = agent.put_up()
    asking.ask(action, by=actor(agent.cast.riley), question="Is marta@brightwater.example told?", digest=action.digest)
    [question] = agent.told(action)["questions"]
    assert question["question"] == "Is marta@brightwater.example told?"
    path, body = f"actions/{action.pk}/answers", {"question": question["id"], "answer": "Not yet."}
    assert [agent.post(path, body).status_code for _ in range(2)] == [201, 200]
    assert kind(agent.post(path, body | {"answer": "Yes."})) == (409, "already-answered")
    assert kind(agent.post(path, body | {"question": str(uuid4())})) == (422, "no-such-question")
    assert agent.told(action)["questions"] == [] and agent.told(action)["state"] == "waiting"
    assert len(agent.log("question.answered")) == 1


def test_an_answer_that_names_very_many_events_has_no_more_read_than_it_is_held_against(agent, monkeypatch):
    action = agent.put_up()
    asking.ask(action, by=actor(agent.cast.riley), question="Which of them?", digest=action.digest)
    steps = {f"step_{n}": f"Say {n}" for n in range(1, 100)}
    told = [{"id": f"n{n}", "type": "note.posted", "texts": {"note": f"It is INV-{n}."}} for n in range(60)]
    told.append({"id": "plan", "type": "plan.set", "data": {"version": 1, "steps": 99}, "texts": steps})
    events = agent.post(f"runs/{agent.run.pk}/events", told).json()["accepted"]
    cites = [events[-1]["seq"], *(each["seq"] for each in events[:-1])]
    body = {"question": agent.told(action)["questions"][0]["id"], "answer": "All of them: INV-59.", "cites": cites}
    assert agent.post(f"actions/{action.pk}/answers", body).status_code == 201
    read, shown = [], vault.shown
    monkeypatch.setattr(vault, "shown", lambda ids: shown([pk for pk in ids if read.append(pk) is None]))
    threads.exchanges(action, actor(agent.cast.riley), waits=True)
    assert len(read) < MOST_EVENTS + threads.TEXTS + 5


def test_what_the_agent_withdraws_is_decided_by_nobody(agent):
    action = agent.put_up()
    assert agent.post(f"actions/{action.pk}/withdrawal", {"reason": "The parcel came."}).status_code == 201
    assert agent.told(action)["state"] == "withdrawn"
    assert kind(agent.redeem(action)) == (409, "nothing-granted")


def test_attachments_are_artifacts_of_the_run_and_told_by_their_sum(agent):
    kept = agent.client.post(
        f"/api/v1/runs/{agent.run.pk}/artifacts?name=proof.txt", "late", content_type="text/plain", headers={"Idempotency-Key": "f"}
    )
    seq = kept.json()["seq"]
    action = agent.approved("post_notice", NOTICE, attachments=[seq])
    assert agent.redeem(action).json()["redemption"]["attachments"] == [
        {"name": "proof.txt", "sha256": hashlib.sha256(b"late").hexdigest()}
    ]
    assert agent.propose("post_notice", NOTICE, key="l", attachments=[1]).status_code == 422
    assert agent.propose("post_notice", NOTICE, key="l", attachments=[seq, seq]).status_code == 422


# what is refused -------------------------------------------------------------------------------------------------------------------------


def test_the_same_key_again_is_the_same_action_and_with_something_else_it_is_refused(agent):
    first, again = agent.propose(), agent.propose()
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["action"]["id"] == again.json()["action"]["id"]
    assert kind(agent.propose(arguments=VOUCHER | {"amount": "41.00"})) == (409, "proposal-reused")
    assert ProposedAction.objects.count() == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "more", "reason"),
    [
        ("drop_table", {"x": 1}, {}, "unregistered"),
        ("issue_voucher", VOUCHER | {"customer": "ACC-2"}, {}, "out_of_scope"),
    ],
)
def test_what_nobody_registered_or_scoped_is_refused_and_told_once(agent, tool, arguments, more, reason):
    for _ in range(3):
        refused = agent.propose(tool, arguments)
        assert kind(refused) == (403, "tool-refused") and refused.json()["reason"] == reason
    assert [each["data"]["reason"] for each in agent.log("block.raised")] == [reason]
    assert not ProposedAction.objects.exists()


def test_values_are_never_converted_and_odd_ones_are_refused(agent):
    for odd in ({"amount": 40}, {"amount": "4"}, {"currency": "USD"}, {"customer": ""}, {"self": 1}, {"customer": None}, {"more": "x"}):
        assert kind(agent.propose(arguments=VOUCHER | odd)) == (422, "arguments-refused"), odd
    assert kind(agent.propose(tool_schema=2)) == (409, "schema-changed")
    assert not ProposedAction.objects.exists()


def test_a_tool_that_handrail_runs_is_not_for_an_agent_outside_nor_the_other_way_round(agent):
    assert kind(agent.propose("send_mail", {})) == (409, "not-outside")
    mail = propose_mail(agent.cast)
    assert kind(agent.redeem(mail.action)) == (409, "not-outside")
    assert kind(agent.post(f"runs/{mail.run.pk}/actions", {"tool": "issue_voucher", "tool_schema": 1, "arguments": VOUCHER}, "m")) == (
        409,
        "not-outside",
    )


def test_nobody_knows_what_an_agent_outside_has_read_so_what_it_sends_takes_a_person(agent):
    for tool in ("issue_voucher", "post_notice"):
        policy.set_rule(agent.cast.workspace.pk, tool, name="Freely", outcome="automatic", by=None)
    assert agent.put_up().state == "approved"
    action = agent.put_up("post_notice", NOTICE, key="n")
    assert action.state == "waiting"
    panel = presenting.panel(presenting.find(actor(agent.cast.riley), action.pk), actor(agent.cast.riley))
    assert [leg.title for leg in panel.legs] == ["May have read private data", "May have read outside text", "Sends data out"]


def test_a_forged_digest_redeems_nothing_and_is_told_in_log_and_audit_trail_once(agent):
    action = agent.approved()
    for _ in range(3):
        assert kind(agent.redeem(action, digest="0" * 64)) == (409, "digest-mismatch")
    assert [each["data"]["reason"] for each in agent.log("block.raised")] == ["digest_mismatch"]
    assert AuditEntry.objects.filter(verb="digest_mismatch").count() == 1
    assert Grant.objects.get().redeemed_at is None
    assert agent.redeem(action).status_code == 201, "what was approved can still be run"


def test_the_same_holder_is_answered_the_same_and_another_holder_or_key_gets_nothing(agent):
    action = agent.approved()
    first, again = agent.redeem(action), agent.redeem(action)
    assert (first.status_code, again.status_code) == (201, 200)
    same = [{**each.json()["redemption"], "again": None} for each in (first, again)]
    assert same[0] == same[1]
    assert kind(agent.redeem(action, holder="another-holder-here")) == (409, "held-by-another")
    assert kind(agent.report(action, holder="another-holder-here")) == (409, "held-by-another")
    stranger = Outside(agent.cast, Agent.objects.create(workspace=agent.cast.workspace, name="notes", owner=agent.cast.priya))
    assert [kind(stranger.redeem(action))[0], kind(stranger.report(action))[0]] == [404, 404]
    assert len(agent.log("action.redeemed")) == 1


def test_a_report_stands_once(agent):
    action = agent.approved()
    assert kind(agent.report(action)) == (409, "nothing-granted")
    agent.redeem(action)
    given = {"facts": {"voucher": "V-1"}}
    assert [agent.report(action, **given).status_code for _ in range(2)] == [201, 200]
    assert kind(agent.report(action, facts={"voucher": "V-2"})) == (409, "outcome-known")
    assert kind(agent.report(action, outcome="failed")) == (409, "outcome-known")
    assert kind(agent.redeem(action)) == (409, "outcome-known")
    assert len(agent.log("action.executed")) == 1
    assert kind(agent.report(action, facts={"x": "y" * 70_000})) == (422, "bad-input")


def test_nothing_of_a_frozen_tool_is_granted_or_redeemed(agent):
    action = agent.approved()
    by = actor(agent.cast.ada)
    freeze = freezes.freeze(agent.cast.workspace.pk, what="tool", tool="issue_voucher", by=by, reason="Look first.").freeze
    assert kind(agent.redeem(action)) == (409, "frozen")
    policy.set_rule(agent.cast.workspace.pk, "issue_voucher", name="Freely", outcome="automatic", by=None)
    assert kind(agent.propose(key="l", arguments=VOUCHER | {"amount": "1.00"})) == (409, "frozen")
    freezes.lift(freeze, by=by, reason="It is fine.")
    assert agent.redeem(action).status_code == 201


def test_what_can_still_be_recalled_is_not_redeemed_and_a_recall_reaches_the_agent_with_its_reason(agent):
    policy.set_rule(
        agent.cast.workspace.pk, "issue_voucher", name="Slowly", outcome="reviewers", by=None, recall_delay=timedelta(minutes=5)
    )
    action = agent.approved()
    refused = agent.redeem(action)
    assert (
        kind(refused) == (409, "nothing-granted")
        and "recalled" in refused.json()["detail"]
        and refused.json()["recall_until"]
        and agent.told(action)["recall_until"]
    )
    taking_back.recall(action, by=actor(agent.cast.riley), reason="Wrong customer.")
    assert (agent.told(action)["state"], agent.told(action)["rejection"]) == ("recalled", "Wrong customer.")
    assert kind(agent.redeem(action)) == (409, "nothing-granted")


def test_what_an_agent_asks_takes_few_queries_however_much_there_is(agent, django_assert_max_num_queries):
    first = agent.approved()
    for n in range(6):
        agent.approved(key=f"more-{n}", arguments=VOUCHER | {"amount": f"{n + 1}.00"})
    with django_assert_max_num_queries(47):
        assert agent.propose(key="last", arguments=VOUCHER | {"amount": "9.00"}).status_code == 201
    with django_assert_max_num_queries(5):
        outside.for_agent(first)
    with django_assert_max_num_queries(24):
        assert agent.redeem(first).status_code == 201
    with django_assert_max_num_queries(24):
        assert agent.report(first).status_code == 201


# silence, expiry, cancel -----------------------------------------------------------------------------------------------------------------


def test_silence_after_the_redemption_is_an_unknown_outcome_that_a_person_resolves(agent):
    action = agent.approved()
    agent.redeem(action)
    lost = silent(action)
    assert lost.outcome == "unknown" and not outside._silent(lost.pk, action.run_id), "whoever found it at the same time says nothing"
    assert [told["data"]["reason"] for told in agent.log("action.unknown")] == ["silent"]
    assert kind(agent.redeem(action)) == (409, "outcome-known"), "it never returns to the pool"
    otto = actor(agent.cast.otto)
    known = unknown.read(presenting.find(otto, action.pk), otto)
    assert known.open and known.outside and known.may and not known.looking and not known.asks
    browser = Client()
    browser.force_login(agent.cast.otto)
    page = browser.get(f"/actions/{action.pk}/outcome").content.decode()
    assert "never said what became of it" in page and "cannot see the agent’s call" in page
    with pytest.raises(Exception, match="can’t look it up"):
        execution.resolve(action, by=otto, outcome="look_again")
    execution.resolve(action, by=otto, outcome="did_not_happen", note="No voucher there.")
    assert agent.told(action)["grant"]["outcome"] == "failed"
    assert kind(agent.report(action)) == (409, "outcome-known"), "a person has said"


def test_an_agent_that_went_silent_over_an_unknown_outcome_leaves_a_question_and_no_reassurance(agent):
    action = agent.approved()
    agent.redeem(action)
    silent(action)
    otto, asks = Client(), f'href="/actions/{action.pk}/outcome"'
    otto.force_login(agent.cast.otto)
    assert asks in otto.get(f"/runs/{agent.run.pk}").content.decode(), "its agent is at work, and says nothing of it"
    Run.objects.filter(pk=agent.run.pk).update(state_since=clock.now() - timedelta(days=1))
    Lease.objects.filter(run=agent.run).update(until=clock.now() - timedelta(hours=1))
    assert steps.stall_due() == 1
    answer = otto.get(f"/runs/{agent.run.pk}")
    page, moment = text(answer), text(answer).partition("Now ")[2].partition("Next for you")[0]
    assert moment.startswith("A person has to say what became of it: ") and "Its agent went silent." in moment
    assert "Nothing is done twice" not in page and "Say what happened" in page and asks in answer.content.decode()
    answer = otto.get("/recovery")
    board = text(answer)
    assert "Waiting for somebody to say what happened 1" in board and "Agents that went silent" not in board
    assert asks in answer.content.decode() and ">1<" in context.drawn_count(person(agent.cast.otto.pk))
    told = Notice(kind="stuck", run=Run.objects.get(pk=agent.run.pk))
    assert wording.item(told, "UTC").text == wording.UNCLEAR, "it is not started again before that is known"
    execution.resolve(action, by=actor(agent.cast.otto), outcome="did_not_happen", note="No voucher there.")
    assert wording.item(told, "UTC").text == wording.SILENT
    assert "Agents that went silent 1" in text(otto.get("/recovery"))
    assert "Nothing is done twice" in text(otto.get(f"/runs/{agent.run.pk}"))


def test_the_session_of_the_guide_plans_before_it_acts_and_keeps_a_checkpoint_for_whoever_goes_on(agent):
    guide = (TOOL_FILE.parents[2] / "docs/agents-outside.md").read_text()
    before, after = guide.split("send runs/$RUN/actions", 1)
    told = [[orjson.loads(body) for body in re.findall(r"send runs/\$RUN/events '([^']+)'", part)] for part in (before, after)]
    for event in told[0]:
        assert agent.post(f"runs/{agent.run.pk}/events", event).status_code == 201
    action = agent.approved()
    for event in told[1]:
        assert agent.post(f"runs/{agent.run.pk}/events", event).status_code == 201
    agent.redeem(action)
    agent.report(action)
    assert [each["data"]["done"] for each in agent.log("checkpoint.saved")] == [1]
    rows = agent.client.get(f"/api/v1/runs/{agent.run.pk}/evidence").json()
    assert {each["key"]: each["answer"] for each in rows["answers"]}["plan"] == "pass"


def test_the_guide_says_that_notes_are_read_with_the_token():
    guide = (TOOL_FILE.parents[2] / "docs/agents-outside.md").read_text()
    about = next(point for point in guide.split("\n- ") if "`POST runs/{id}/notes`" in point)
    assert "`Handrail-Token`" in about


def test_a_run_without_a_plan_is_not_called_just_started_once_it_acted(agent):
    action, otto = agent.approved(), Client()
    otto.force_login(agent.cast.otto)
    agent.redeem(action)
    agent.report(action)
    page = text(otto.get(f"/runs/{agent.run.pk}"))
    assert "The agent is working." in page and "Nothing is planned or done so far." not in page and "No plan yet." not in page


def test_a_late_word_of_the_agent_is_taken_while_nobody_else_has_said(agent):
    action = agent.approved()
    agent.redeem(action)
    silent(action)
    assert agent.report(action).status_code == 201
    grant = Grant.objects.get()
    assert (grant.outcome, grant.unknown_at) == ("executed", None)


def test_who_never_comes_for_it_is_called_gone_and_comes_too_late(agent):
    action = agent.approved()
    Grant.objects.update(expires_at=clock.now() - timedelta(seconds=1))
    riley = person(agent.cast.riley.pk)
    drawn = presenting.course(presenting.find(riley, action.pk), riley)
    assert drawn.state_word == "Agent gone, not run"
    assert "never came for it" in drawn.outcome.text
    assert kind(agent.redeem(action)) == (409, "nothing-granted")


def test_a_cancel_ends_once_the_outcome_of_what_was_redeemed_is_known(agent):
    taken, left = agent.approved(), agent.approved(key="l", arguments=VOUCHER | {"amount": "10.00"})
    agent.redeem(taken)
    signals.send(agent.run, kind="cancel", key="c", by=actor(agent.cast.otto))
    agent.run.refresh_from_db()
    assert agent.run.state == "cancelling"
    told = agent.told(left)
    assert (told["state"], told["run_state"]) == ("withdrawn", "cancelling")
    assert kind(agent.redeem(left)) == (409, "not-running")
    assert kind(agent.propose(key="m")) == (409, "not-running")
    assert agent.report(taken).status_code == 201
    agent.run.refresh_from_db()
    assert agent.run.state == "cancelled"


def test_a_run_does_not_end_while_its_agent_has_something_in_its_hands(agent):
    action = agent.approved()
    agent.redeem(action)
    ending = {"outcome": "failed", "detail": "I give up."}
    assert kind(agent.post(f"runs/{agent.run.pk}/ending", ending)) == (409, "in-flight")
    agent.report(action, outcome="failed", detail="The service refused it.")
    assert agent.post(f"runs/{agent.run.pk}/ending", ending).status_code == 200


# at once ---------------------------------------------------------------------------------------------------------------------------------


def test_of_twenty_holders_at_once_one_has_it(agent):
    action = agent.approved()
    answers = together([lambda n=n: agent.redeem(action, holder=f"holder-number-{n:04}") for n in range(20)])
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 19
    assert len(agent.log("action.redeemed")) == 1


def test_redeem_cancel_and_silence_at_once_have_one_outcome(agent):
    otto = actor(agent.cast.otto)
    for n in range(4):
        each = Outside(agent.cast, Agent.objects.create(workspace=agent.cast.workspace, name=f"racer-{n}", owner=agent.cast.priya))
        action = each.approved()
        took, cancelled = together([partial(each.redeem, action), partial(signals.send, each.run, kind="cancel", key="c", by=otto)])
        each.run.refresh_from_db()
        if took.status_code == 201:
            assert (cancelled.status, each.run.state) == ("delivered", "cancelling")
            Grant.objects.filter(action=action).update(report_by=clock.now() - timedelta(seconds=1))
            said, _ = together([partial(each.report, action), outside.silent_due])
            assert said.status_code == 201, "silence or not, the word of the holder counts"
            each.run.refresh_from_db()
        assert each.run.state == "cancelled"
        assert len(each.log("action.executed")) == (1 if took.status_code == 201 else 0)
        assert len(each.log("run.cancelled")) == 1


def test_redeem_and_expiry_of_the_decision_at_once_have_one_outcome(agent):
    action = agent.put_up()
    ProposedAction.objects.filter(pk=action.pk).update(expires_at=clock.now() - timedelta(seconds=1))
    took, _ = together([lambda: agent.redeem(action), decisions.expire_due])
    assert kind(took) == (409, "nothing-granted")
    assert agent.told(action)["state"] == "expired"


# declaring -------------------------------------------------------------------------------------------------------------------------------

TOOL = {
    "name": "try_it",
    "version": 1,
    "title": "Try it",
    "effect": "write",
    "reads_private": False,
    "reads_untrusted": False,
    "sends_out": False,
    "schema": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]},
}
A = TOOL["schema"]["properties"]["a"]


def schema(**properties: Any) -> dict[str, Any]:
    return TOOL | {"schema": {"type": "object", "properties": properties, "required": list(properties)}}


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (TOOL | {"name": "Try it"}, "name"),
        (TOOL | {"name": "send_email"}, "of its own"),
        (TOOL | {"made_up": 1}, "made_up"),
        ({name: value for name, value in TOOL.items() if name != "sends_out"}, "sends_out"),
        (TOOL | {"recipients": ["to"]}, "no argument called “to”"),
        (TOOL | {"subject": "For {whom}"}, "no argument called “whom”"),
        (TOOL | {"schema": {"type": "array", "items": A}}, "is an object"),
        (schema(a=A | {"format": "date"}), "“format” is not understood"),
        (schema(a={"type": "object", "additionalProperties": True}), "no other properties"),
        (schema(a={"anyOf": [A]}), "its type is one of"),
        (schema(a={"type": "string", "pattern": "("}), "in its bounds"),
        (schema(model_dump=A), "can’t be called"),
        (TOOL | {"schema": TOOL["schema"] | {"required": []}}, "needs a default"),
        (TOOL | {"schema": {"type": "object", "properties": {"a": A | {"default": 0}}}}, "default does not fit"),
    ],
)
def test_a_declaration_that_is_not_wholly_understood_is_refused(declared, said):
    with pytest.raises(BadDeclaration, match=said):
        declaring.declare(orjson.dumps({"tools": [declared]}))
    assert "try_it" not in TOOLS


def test_nothing_starts_with_a_declaration_that_is_not_understood(settings, tmp_path):
    bad = tmp_path / "tools.json"
    bad.write_text('{"tools": [{}]}')
    for file, said in ((bad, "tools.0.name"), (tmp_path / "none.json", "can’t be read")):
        settings.HANDRAIL_OUTSIDE_TOOLS = (str(file),)
        with pytest.raises(SystemExit, match=f"Handrail: HANDRAIL_OUTSIDE_TOOLS: {file}.*{said}"):
            apps.get_app_config("runs").ready()


def test_what_a_schema_says_holds_to_any_depth(monkeypatch):
    deep = {
        "type": "array",
        "maxItems": 2,
        "items": {"type": "object", "properties": {"n": {"type": ["number", "null"]}}, "required": ["n"]},
    }
    [tool] = declaring.declare(orjson.dumps({"tools": [schema(lines=deep)]}))
    monkeypatch.delitem(TOOLS, tool.name)
    assert tool.checked(lines=[{"n": 1.5}, {"n": None}]) == {"lines": [{"n": 1.5}, {"n": None}]}
    for odd in ([{"n": "1"}], [{"n": 1}] * 3, [{}], [{"n": 1, "m": 2}], [{"n": True}]):
        with pytest.raises(Exception, match="try_it"):
            tool.checked(lines=odd)
