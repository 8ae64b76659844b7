"""A model is asked over HTTP: each call is told, whatever fails falls back or waits, and no prompt and no key ever shows."""

import json
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest
from django.db import connections

from access.rules import person
from approvals import asking, policy
from approvals.models import ProposedAction
from artifacts import vault
from artifacts.models import Payload
from config import clock
from examples.provider.playing import completion
from examples.provider.server import Provider
from runs import cases, reading, recovery, signals, updates
from runs.engine import lease, models, points, providers, sweep
from runs.models import Event, JournalEntry, Lease, Run
from runs.story import titles
from runs.verification import Whole, verify
from tests.approvals.mailing import text
from tests.runs import asking_models, workflows
from tests.runs.asking_models import KEYS, WORDS, Odd
from tests.runs.test_engine import start, types, walk
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def provider(settings) -> Iterator[Provider]:
    with asking_models.provider(settings) as played:
        yield played


@pytest.fixture
def run(cast, provider) -> Run:
    workflows.reset()
    return start(cast, "test-asking", {"thing": "tea"})


def told(run: Run, type_: str) -> list[dict[str, Any]]:
    bodies = Event.objects.filter(run_id=run.pk, type=type_).order_by("seq").values_list("body", flat=True)
    return [orjson.loads(body)["data"] for body in bodies]


def kept(run: Run, role: str, place: int = 0) -> dict[str, Any]:
    """What is kept of a call, opened from the vault."""
    event = Event.objects.filter(run_id=run.pk, type="model.called").order_by("seq")[place]
    return orjson.loads(vault.open_bytes(Payload.objects.get(pk=event.payloads[role])))


def story(run: Run) -> str:
    """The titles and tries of its timeline, in words."""
    items = [item for section in reading.story(run).sections for item in section.items]
    parts = [part for item in items for rich in (item.title, *item.lines, *(each.told for each in item.tries)) for part in (rich, "\n")]
    return "".join(titles.plain(part) if isinstance(part, tuple) else part for part in parts)


def test_a_call_is_told_with_the_model_the_prompt_the_tokens_the_cost_and_the_key(run):
    assert walk(run) == "succeeded"
    [called] = told(run, "model.called")
    assert (called["model"], called["version"], called["endpoint"], called["key"]) == ("large", "large-2026-11-02", "main", 1)
    assert (called["prompt"], called["prompt_version"], called["finish"]) == ("test-phrase", "1", "stop")
    assert called["prompt_digest"] == models.named("test-phrase").digest and called["tokens_in"] > 0
    assert called["cost_micro"] == called["tokens_in"] * 2 + called["tokens_out"] * 8 and called["scripted"] is False
    run.refresh_from_db()
    assert (run.tokens, run.cost_micro) == (called["tokens_in"] + called["tokens_out"], called["cost_micro"])
    assert kept(run, "input") == {"thing": "tea"} and WORDS in kept(run, "sent")["instructions"]
    assert isinstance(verify(run), Whole)


def test_no_prompt_and_no_key_is_on_a_page_in_the_log_or_in_a_log_line(cast, run, provider, sign_in, caplog):
    provider.fail("refuse_key", key=KEYS[0])
    provider.fail("limit", seconds=0)
    with caplog.at_level(logging.DEBUG):
        for name in ("openai", "httpx2", "httpcore2", "pydantic_ai"):
            assert logging.getLogger(name).getEffectiveLevel() >= logging.WARNING
        assert walk(run) == "succeeded"
    ada = sign_in(cast.ada)
    seen = [text(ada.get(f"/runs/{run.pk}")), text(ada.get(f"/runs/{run.pk}/events")), caplog.text]
    seen += [text(ada.get(f"/runs/{run.pk}/events/{event.seq}")) for event in Event.objects.filter(run=run, type__startswith="model.")]
    seen += Event.objects.filter(run=run).values_list("body", flat=True)
    seen += [shown.text for shown in vault.shown(Payload.objects.values_list("pk", flat=True)).values()]
    for secret in (WORDS, *KEYS, KEYS[0][:8], "sk-test"):
        assert not [each for each in seen if secret in each]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("limit", "limit"),
        ("fail", "unavailable"),
        ("cut", "unavailable"),
        ("hang", "timeout"),
        ("malformed", "invalid"),
        ("odd", "invalid"),
        ("words", "invalid"),
        ("length", "limit"),
        ("too_long", "limit"),
    ],
)
def test_a_model_that_gives_nothing_falls_back_to_the_next_and_that_is_told(run, provider, settings, fault, reason):
    settings.HANDRAIL_MODEL_SECONDS = 4 if fault == "hang" else 20  # in which the next one must have answered
    provider.fail(fault, seconds=20 if fault == "hang" else 0)
    assert walk(run) == "succeeded"
    failed, answered = told(run, "model.called")
    assert (failed["model"], failed["error"], answered["model"]) == ("large", reason, "small") and "error" not in answered
    assert failed["finish"] == ("length" if fault == "length" else "error")
    assert told(run, "model.switched") == [
        {"was": "large", "to": "small", "reason": reason, "endpoint": "main", "step": "model.test-phrase#1"}
    ]
    assert "Went on with small instead of large" in story(run)
    spent = failed["tokens_in"] + failed["tokens_out"]
    assert (spent > 0) == (fault in ("odd", "words", "length")) and bool(failed.get("cost_unknown")) == (
        fault in ("cut", "hang", "malformed")
    )


def test_the_other_endpoint_is_asked_when_the_first_has_no_model_left(run, provider, settings):
    other = Provider().start()
    settings.HANDRAIL_MODEL_PRICES |= {"elsewhere": (0, 0)}
    settings.HANDRAIL_MODEL_FALLBACK_URL, settings.HANDRAIL_MODEL_FALLBACK_NAMES = other.url, ("elsewhere",)
    provider.fail("fail", times=2)
    assert walk(run) == "succeeded" and len(other.calls) == 1
    other.stop()
    assert [(each["to"], each["endpoint"]) for each in told(run, "model.switched")] == [("small", "main"), ("elsewhere", "fallback")]


def test_limited_everywhere_it_waits_for_as_long_as_it_is_asked_to_and_then_goes_on(run, provider):
    provider.fail("limit", times=2, seconds=30)
    assert walk(run) == "waiting" and run.waiting["on"] == "retry"
    assert run.wake_at > clock.now() + timedelta(seconds=25)
    assert told(run, "step.retrying")[0]["wait_ms"] == 30_000 and told(run, "step.failed")[0]["error"] == "limit"
    Run.objects.filter(pk=run.pk).update(wake_at=clock.now())
    sweep.sweep()
    assert walk(run) == "succeeded"
    assert [each["attempt"] for each in told(run, "step.started")] == [1, 2]


def test_an_answer_that_never_fits_is_not_asked_for_for_ever(run, provider):
    provider.fail("odd", times=100)
    assert walk(run) == "waiting"
    Run.objects.filter(pk=run.pk).update(wake_at=clock.now())
    sweep.sweep()
    assert walk(run) == "parked" and recovery.parking(run).reason == "retries_exhausted"
    assert len(provider.calls) == 4  # two models, twice


def test_a_key_that_is_refused_is_told_and_the_next_goes_on(cast, run, provider, sign_in):
    provider.fail("refuse_key", times=100, key=KEYS[0])
    assert walk(run) == "succeeded"
    assert [(each["model"], each["key"], each.get("error")) for each in told(run, "model.called")] == [
        ("large", 1, "refused"),
        ("large", 2, None),
    ]
    [switched] = told(run, "model.switched")
    assert (switched["was_key"], switched["key"], switched["reason"]) == (1, 2, "refused")
    assert "Went on with the second key of large: the first was refused" in story(run)
    assert "the first was refused" in text(sign_in(cast.otto).get(f"/runs/{run.pk}"))
    later = start(cast, "test-asking", {"thing": "tea", "times": 3})  # nobody tries the refused key at every step
    assert walk(later) == "succeeded" and len(told(later, "model.switched")) == 1
    assert [each["key"] for each in told(later, "model.called")] == [2, 2, 2]


def test_with_every_key_refused_the_run_is_stuck_and_goes_on_when_there_is_one(cast, run, provider):
    provider.fail("refuse_key", times=2)
    assert walk(run) == "parked" and len(provider.calls) == 2
    parked = Event.objects.get(run=run, type="run.parked")
    said = next(iter(vault.shown(parked.payloads.values()).values())).text
    assert "Every key was refused" in said and "sk-" not in said
    (case,) = cases.board(person(cast.otto.pk)).cases
    assert case.quoted == cases.Quoted(case.said) and case.said == said, "of a model all words are ours"
    recovery.choose(run, "retry", at=recovery.parking(run).seq, by=person(cast.otto.pk))
    assert walk(run) == "succeeded"


def test_a_price_that_nobody_set_is_unknown_and_not_nothing(cast, run, provider, settings, sign_in):
    settings.HANDRAIL_MODEL_PRICES = {"small": (100_000, 400_000)}
    assert walk(run) == "succeeded" and told(run, "model.called")[0]["cost_unknown"] is True
    otto = sign_in(cast.otto)
    assert "Cost Not known of €5.00 Not all of it is known: this limit may come too late." in " ".join(
        text(otto.get(f"/runs/{run.pk}")).split()
    )
    both = start(cast, "test-asking", {"thing": "tea", "times": 2})
    provider.fail("odd")
    provider.answers = [{"values": {"text": "tea " * 50_000}}]
    assert walk(both) == "succeeded"
    assert "Cost At least €" in " ".join(text(otto.get(f"/runs/{both.pk}")).split())


def test_a_limit_of_cost_says_for_which_models_it_does_nothing(cast, run, provider, settings, sign_in):
    otto = sign_in(cast.otto)
    page = text(otto.get(f"/runs/{run.pk}"))
    assert "no price here" not in page and otto.get("/runs/new").context["no_price"] == ""
    settings.HANDRAIL_MODEL_PRICES = {"small": (100_000, 400_000)}
    page = " ".join(text(otto.get(f"/runs/{run.pk}")).split())
    assert page.count("large has no price here: this limit can’t count it. One of tokens can.") == 1, "beside the meter"
    assert page.count("large has no price here: a limit of cost can’t count it.") == 1, "where limits are set"
    assert otto.get("/runs/new").context["no_price"] == "large has no price here"
    updates.set_budgets(run, {"tokens": 1000}, by=person(cast.otto.pk))
    assert "this limit can’t count it" not in text(otto.get(f"/runs/{run.pk}"))


def test_a_budget_of_tokens_is_warned_of_and_then_waits_for_a_person_who_raises_it(cast, provider, sign_in):
    run = start(cast, "test-asking", {"thing": "tea", "times": 6})
    provider.answers = [{"values": {"text": "tea " * 200}}] * 6
    updates.set_budgets(run, {"tokens": 1200}, by=person(cast.otto.pk))
    assert walk(run) == "waiting" and run.waiting["on"] == "budget"
    asked = len(provider.calls)
    assert asked < 6 and {"budget.warned", "budget.exceeded"} <= set(types(run)) and run.tokens >= 1200
    page = " ".join(text(sign_in(cast.otto).get(f"/runs/{run.pk}")).split())
    assert "Waiting for a bigger budget" in page and "ou can raise it." in page
    assert f"It has used {run.tokens:,} of 1,200 tokens." in page
    updates.set_budgets(run, {"tokens": 100_000}, by=person(cast.otto.pk))
    assert walk(run) == "succeeded" and len(provider.calls) == 6


def test_a_child_run_has_what_is_left_of_the_tokens_and_its_parent_pays_for_it(cast, provider):
    run = start(cast, "test-delegating", {"thing": "tea"})
    updates.set_budgets(run, {"tokens": 50_000}, by=person(cast.otto.pk))
    assert walk(run) == "waiting"
    child = Run.objects.get(parent=run)
    assert child.budgets["tokens"] == 50_000 - run.tokens and run.tokens > 0
    assert walk(child) == "succeeded"
    Run.objects.filter(pk=run.pk).update(wake_at=clock.now())
    sweep.sweep()
    assert walk(run) == "succeeded"
    assert run.tokens > child.tokens > 0 and run.tokens == sum(each["tokens_in"] + each["tokens_out"] for each in _all_calls(run, child))


def _all_calls(*runs: Run) -> list[dict[str, Any]]:
    return [called for run in runs for called in told(run, "model.called")]


def test_while_a_model_is_slow_the_lease_holds_and_no_connection_is_held(run, provider, settings):
    settings.HANDRAIL_LEASE_SECONDS = 4
    ours, seen = connections["default"], []

    def until_when() -> datetime:
        return Lease.objects.values_list("until", flat=True).get(run_id=run.pk)

    def look() -> None:
        seen.append(ours.connection)
        first = until_when()
        until(lambda: until_when() > first, within=30, what="a heartbeat, by which it lasts longer")
        seen.append(lease.claim(run.pk))
        connections["default"].close()

    provider.while_asked = look
    assert walk(run) == "succeeded" and seen == [None, None] and types(run).count("run.resumed") == 0


@pytest.mark.parametrize("point", ["model-answered", "done"])
def test_a_worker_killed_after_the_answer_asks_again_only_if_the_answer_was_not_stored(run, provider, monkeypatch, point):
    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr(lease, "release", lambda held: None)
    if point == "done":
        monkeypatch.setattr("runs.engine.channel.Channel.report", die)
    else:
        monkeypatch.setattr(points, "reached", lambda name, _=None: die() if name == "model-answered" else None)
    with pytest.raises(Killed):
        walk(run)
    monkeypatch.undo()
    Lease.objects.filter(run=run).update(until=None)
    Run.objects.filter(pk=run.pk).update(state="running")
    assert walk(run) == "succeeded"
    again = point == "model-answered"
    assert len(provider.calls) == (2 if again else 1)
    assert [each["attempt"] for each in told(run, "step.started")] == ([1, 2] if again else [1])
    assert types(run).count("run.resumed") == 1 and types(run).count("model.called") == 1


def test_an_answer_that_comes_while_the_run_is_paused_is_kept(cast, run, provider):
    def pause() -> None:
        signals.send(run, kind="pause", key="1", by=person(cast.otto.pk))
        connections["default"].close()

    provider.while_asked = pause
    walk(run)
    assert run.state == "paused" and JournalEntry.objects.get(run=run, kind="model").state == "done"
    provider.while_asked = lambda: None
    signals.send(run, kind="resume", key="2", by=person(cast.otto.pk))
    assert walk(run) == "succeeded" and len(provider.calls) == 1


def test_a_question_of_a_reviewer_is_answered_over_http_told_and_counted(cast, provider):
    policy.set_rule(cast.workspace.pk, "say", name="Speech", outcome="reviewers", by=None)
    run = start(cast, "test-questioned", {})
    assert walk(run) == "waiting" and provider.calls == []
    action = ProposedAction.objects.get(run=run)
    Run.objects.filter(pk=run.pk).update(budgets={"tokens": run.tokens + 1})
    asking.ask(action, by=person(cast.riley.pk), question="Is there?", digest=action.digest)
    provider.fail("limit")
    provider.answers = [{"values": {"answer": "There is.", "cites": [2]}}]
    assert walk(run) == "waiting" and types(run).count("question.answered") == 1
    assert [each.get("error") for each in told(run, "model.called")] == ["limit", None] and run.tokens > 0
    assert [(each["was"], each["to"]) for each in told(run, "model.switched")] == [("large", "small")], "the fallback is told"
    assert types(run).count("budget.warned") == 1, "what an answer uses counts like any other use"
    assert told(run, "question.answered")[0]["cites"] == [2] and asking.thread(action)[0].is_open is False


# a loop over HTTP ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def loop(cast, provider) -> Run:
    workflows.reset()
    policy.set_rule(cast.workspace.pk, "note_it", name="Notes", outcome="automatic", by=None)
    return start(cast, "test-choosing", {"thing": "tea"})


def call(tool: str, arguments: Any) -> dict[str, Any]:
    return {"call": {"tool": tool, "arguments": arguments}}


DONE = {"values": {"answer": "Said."}}


def test_a_model_drives_a_loop_with_calls_of_tools_and_reads_what_they_gave(loop, provider):
    provider.answers = [call("look", {"thing": "tea"}), call("note_it", {"text": "There is tea."}), DONE]
    assert walk(loop) == "succeeded" and [what for _, what, _ in workflows.world.done] == ["note"]
    assert [(each["finish"], each["tools"]) for each in told(loop, "model.called")] == [("tool", ["look@1", "note_it@1", "say@1"])] * 3
    first, _, last = (each.body for each in provider.calls)
    assert [each["function"]["name"] for each in first["tools"]] == ["look", "note_it", "say", "done"]
    roles = [message["role"] for message in last["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert orjson.loads(last["messages"][3]["content"])["result"] == {"thing": "tea", "looks": 1}
    assert orjson.loads(last["messages"][1]["content"]) == {"thing": "tea"}


def test_a_tool_that_a_model_invents_and_arguments_that_are_none_are_refused_back_to_it(loop, provider):
    provider.fail("invent")
    provider.answers = [call("look", '{"thing": "te'), {"text": "Hm."}, call("look", {"thing": "tea"}), DONE]
    assert walk(loop) == "succeeded" and types(loop).count("block.raised") == 1
    told_back = [orjson.loads(m["content"]).get("refused") for m in provider.calls[-1].body["messages"] if m["role"] == "tool"][:2]
    assert told_back == [
        "There is no tool called wire_money. There are: look, note_it, say.",
        "The arguments are not a JSON object.",
    ]
    assert "Answer with either a call" in provider.calls[-1].body["messages"][-3]["content"]


def test_what_does_not_fit_is_left_out_the_oldest_first_and_that_is_told(loop, provider, settings):
    settings.HANDRAIL_MODEL_CONTEXT, settings.HANDRAIL_MODEL_OUTPUT = 3600, 100
    provider.answers = [call("note_it", {"text": f"{number} {'x' * 1500}"}) for number in range(4)] + [DONE]
    assert walk(loop) == "succeeded"
    left_out = [each.get("left_out", 0) for each in told(loop, "model.called")]
    assert left_out[0] == 0 and left_out[-1] >= 1
    assert "left out to fit" in orjson.dumps(kept(loop, "sent", 4)).decode() and "earlier result" in story(loop)


# providers that mean no good -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def odd(settings) -> Iterator[Odd]:
    with Odd() as server:
        settings.HANDRAIL_MODEL_URL, settings.HANDRAIL_MODEL_NAMES, settings.HANDRAIL_MODEL_KEYS = server.url, ("large",), KEYS
        providers.memory.forget()
        yield server
    providers.memory.forget()


def test_a_prompt_goes_where_the_setting_says_and_to_nowhere_it_is_sent_on_to(cast, odd):
    workflows.reset()
    with Odd() as elsewhere:
        odd.answers = 307, {"Location": elsewhere.url + "/chat/completions"}, b""
        walk(start(cast, "test-asking", {"thing": "tea"}))
        assert odd.asked >= 1 and elsewhere.asked == 0


@pytest.mark.parametrize("more", [{"usage": {"prompt_tokens": 10**30, "completion_tokens": 5, "total_tokens": 5}}, {"model": KEYS[0]}])
def test_figures_that_nobody_has_and_keys_that_come_back_are_not_believed_and_not_shown(cast, odd, more):
    workflows.reset()
    odd.answers = (
        200,
        {},
        json.dumps(
            completion({"model": "large", "messages": []}, {"call": {"tool": "answer", "arguments": {"text": "Hi"}}}, "") | more
        ).encode(),
    )
    run = start(cast, "test-asking", {"thing": "tea"})
    walk(run)
    [called] = told(run, "model.called")
    assert called["tokens_in"] <= 10**9 and KEYS[0] not in orjson.dumps(called).decode()
