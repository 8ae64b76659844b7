"""Each misbehaviour of the demo, with real processes: the run comes to where the command says, and the outside has everything once."""

import json
import re
from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.acceptance.triage import PATIENCE, Person, Triage, ledger
from tests.stack import Stack
from tests.waiting import until


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One house for all of them: each test has a run of its own in it."""
    env = {"LEASE_SECONDS": "12"}  # so that of a worker that stands still for a while nobody else takes over what it was told to go through
    with Stack(tmp_path_factory.mktemp("misbehaving"), desk=True, provider=True, first=["demo_seed"], env=env) as stack:
        yield stack


@pytest.fixture(scope="module")
def riley(stack: Stack) -> Iterator[Person]:
    with Person(stack, "Riley") as riley:
        yield riley


@pytest.fixture(scope="module")
def otto(stack: Stack) -> Iterator[Person]:
    with Person(stack, "Otto") as otto:
        yield otto


def misbehaving(stack: Stack, otto: Person, name: str) -> Triage:
    """By the button of the demo's page, which does what the command does."""
    return begun(stack, otto, misbehave=name)


def begun(stack: Stack, otto: Person, **what: str) -> Triage:
    page = otto.post("/demo/runs", what)
    assert page.url.path.startswith("/runs/"), page.text
    run = UUID(page.url.path.rpartition("/")[2])
    told = stack.query(
        "SELECT r.ref, r.owner_id, e.body FROM runs_run r JOIN runs_event e ON e.run_id = r.id AND e.seq = 1 WHERE r.id = %s", run
    )
    assert json.loads(told[0]["body"])["actor"]["id"] != str(told[0]["owner_id"])  # whoever pressed it
    return Triage(stack, told[0]["ref"])


@pytest.fixture(scope="module")
def slow(stack, riley, otto) -> Triage:
    """One whose note takes longer than anybody waits for; the others go on meanwhile."""
    run = misbehaving(stack, otto, "crm-times-out")
    riley.decide(run.waiting_action(), "approved")
    until(lambda: ledger(stack, "crm.note"), within=PATIENCE, what="the note to be written")
    return run


@pytest.mark.parametrize("name", ["killed-worker", "crm-answer-lost", "crm-half-answer", "crm-fails-after", "sent-answer-lost"])
def test_it_recovers_by_itself_and_everything_happens_once(stack, riley, otto, slow, name):
    run = misbehaving(stack, otto, name)
    riley.decide(run.waiting_action(), "approved")
    everything_once(run)


def test_an_answer_that_comes_too_late_is_looked_up_and_nothing_is_done_again(slow):
    everything_once(slow)
    assert '"outcome":"unknown"' in slow.bodies("tool.ended")


def everything_once(run: Triage) -> None:
    run.wait_for("succeeded")
    assert len(run.messages()) == 1
    notes = [effect for effect in ledger(run.stack, "crm.note") if effect["key"] == run.grant_key("update_crm")]
    assert [effect["done"] for effect in notes] == [1]
    run.verify()


def test_a_desk_that_is_down_leaves_the_run_stuck_and_it_goes_on_when_otto_tries_again(stack, riley, otto):
    run = misbehaving(stack, otto, "desk-down")
    run.wait_for("parked")
    assert otto.post("/demo/desk", {}).url.path == "/demo"
    choose(otto, run, "retry")
    riley.decide(run.waiting_action(), "approved")
    run.wait_for("succeeded")
    assert len(run.messages()) == 1


def test_an_answer_that_does_not_fit_is_not_tried_again(stack, otto):
    run = misbehaving(stack, otto, "changed-schema")
    run.wait_for("parked")
    assert run.types().count("step.failed") == 1 and "customer" in otto.http.get("/recovery").text
    choose(otto, run, "give_up")
    assert run.state == "failed"


def test_a_refused_key_changes_nothing_and_it_goes_on_under_the_approval_that_it_has(stack, riley, otto):
    run = misbehaving(stack, otto, "key-refused")
    riley.decide(run.waiting_action(), "approved")
    run.wait_for("parked")
    assert run.messages() == []
    choose(otto, run, "retry")
    run.wait_for("succeeded")
    assert len(run.messages()) == 1 and len(run.actions("send_email")) == 1
    run.verify()


def test_what_nobody_knows_waits_for_a_person_and_is_not_repeated(stack, riley, otto):
    run = misbehaving(stack, otto, "nobody-knows")
    action = run.waiting_action()
    riley.decide(action, "approved")
    run.wait_until_it_waits("outcome", without="until")  # which stands there while it looks by itself
    said = {"outcome": "happened", "note": "It is in the mailbox.", "reference": run.messages()[0]["Message-ID"]}
    assert otto.post(f"/actions/{UUID(str(action['id']))}/outcome", said).status_code == 200
    run.wait_for("succeeded")
    assert len(run.messages()) == 1
    run.verify()


def test_a_key_that_is_rotated_in_mid_run_loses_nothing_and_is_told(stack, riley, otto):
    run = misbehaving(stack, otto, "key-rotated")
    riley.decide(run.waiting_action(), "approved")
    run.wait_for("succeeded")
    assert len(run.messages()) == 1
    calls = run.told("model.called")
    assert {call["key"] for call in calls[:3]} == {1} and [call for call in calls if call.get("error")] == [calls[3]]
    assert {call["key"] for call in calls[4:]} == {2} and len(run.told("model.switched")) >= 1
    page = riley.http.get(f"/runs/{run.id}").text
    assert "the first was refused" in page and "played-key" not in page + stack.output()
    run.verify()


def test_a_limited_model_falls_back_and_a_used_up_budget_of_tokens_waits_for_a_person(stack, riley, otto):
    run = misbehaving(stack, otto, "model-limited")
    action = run.waiting_action()
    assert ("played-large", "played-small", "limit") in [(each["was"], each["to"], each["reason"]) for each in run.told("model.switched")]
    page = otto.http.get(f"/runs/{run.id}").text
    assert "its rate limit" not in page and "a limit was reached" in page
    otto.post(f"/runs/{run.id}/limits", {"tokens": str(run.row["tokens"])})
    riley.decide(action, "approved")
    run.wait_until_it_waits("budget")
    assert len(run.messages()) == 1  # what was approved is done all the same
    assert "You can raise it." in otto.http.get(f"/runs/{run.id}").text
    otto.post(f"/runs/{run.id}/limits", {"tokens": "400000"})
    run.wait_for("succeeded")
    run.verify()


def test_a_run_is_resumed_from_the_middle_and_then_forked_with_another_wish(stack, riley, otto):
    run = misbehaving(stack, otto, "resume-from-the-middle")
    run.wait_for("parked")
    choose(otto, run, "retry")
    until(lambda: run.types().count("run.parked") == 2, within=PATIENCE, what="it to fail again on what the CRM said, which is recorded")
    choose(otto, run, "retry", step="check_account#1")
    riley.decide(run.waiting_action(), "approved")
    run.wait_for("succeeded")
    assert run.types().count("artifact.created") >= 3 and len(run.messages()) == 1
    assert stack.manage("replay", run.ref).startswith(f"{run.ref}: same.")
    fork = forked(otto, run, "model.draft-reply#1", wishes="We offer a credit note as well.")
    riley.decide(fork.waiting_action(), "approved")
    fork.wait_for("succeeded")
    assert len(run.messages()) == 1 and "credit note" in fork.messages()[0].get_body(("plain",)).get_content()
    notes = [effect for effect in ledger(stack, "crm.note") if effect["key"] == run.grant_key("update_crm")]
    assert [effect["done"] for effect in notes] == [1]  # the same note, under the same key
    assert "It was exactly this" in riley.http.get(f"/actions/{UUID(str(fork.actions('update_crm')[0]['id']))}").text
    fork.verify()


def forked(otto: Person, run: Triage, step: str, **edits: str) -> Triage:
    key = re.search(r'name="key" value="([0-9a-f]+)"', otto.http.get(f"/runs/{run.id}/forks").text)
    assert key
    form = {"key": key[1], "place": step} | {f"edit|{step}|{name}": text for name, text in edits.items()}
    page = otto.post(f"/runs/{run.id}/forks", form)
    assert page.status_code == 200, page.text[-3000:]
    ref = run.stack.query("SELECT ref FROM runs_run WHERE forked_from_id = %s", run.id)[0]["ref"]
    return Triage(run.stack, ref)


def test_a_newsletter_has_nothing_sent_and_orders_in_a_message_are_marked_and_not_followed(stack, riley, otto):
    nothing = begun(stack, otto, ticket="more/newsletter")
    nothing.wait_for("succeeded")
    assert nothing.actions() == [] and "Nothing to send" in otto.http.get(f"/runs/{nothing.id}").text
    run = begun(stack, otto, ticket="more/orders-inside")
    action = run.waiting_action()
    assert "It holds what reads like orders to a machine." in riley.http.get(f"/actions/{UUID(str(action['id']))}").text
    exact = run.stored_action()
    assert exact["recipients"] == ["marta.oyelaran@brightwater.example"] and "brightvvater" not in str(exact["arguments"])


def test_what_stands_half_done_is_undone_and_what_is_not_known_is_looked_up_and_not_done_twice(stack, otto):
    half = misbehaving(stack, otto, "terms-half-done")
    half.wait_for("parked")
    assert half.types().count("effect.done") == 5
    choose(otto, half, "compensate")
    half.wait_for("failed")
    assert half.types().count("effect.undone") == 5
    unclear = misbehaving(stack, otto, "terms-not-known")
    unclear.wait_for("parked")
    page = otto.http.get("/recovery").text
    assert "Nordkontor: 14 days to pay</b><p>Not known." in page and 'value="compensate" disabled' in page
    choose(otto, unclear, "retry")
    unclear.wait_for("succeeded")
    done = [each["done"] for each in ledger(stack, "crm.terms") if each["target"] == "accounts/01355/terms" and each["key"]]
    assert unclear.types().count("effect.done") == 6 and set(done) == {1}
    unclear.verify()


def choose(otto: Person, run: Triage, choice: str, step: str = "") -> None:
    page = otto.http.get("/recovery").text
    at = re.search(rf'value="{run.id}@(\d+)"', page)
    assert at, page[-3000:]
    given = {"choice": choice, "at": at[1], "step": step, "sure": "yes"}
    assert otto.post(f"/runs/{run.id}/recovery", given).status_code == 200
