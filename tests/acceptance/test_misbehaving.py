"""Each misbehaviour of the demo, with real processes: the run comes to where the command says, and the outside has everything once."""

import re
from collections.abc import Iterator

import pytest

from tests.acceptance.triage import Person, Triage, ledger
from tests.stack import Stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One house for all of them: each test has a run of its own in it."""
    with Stack(tmp_path_factory.mktemp("misbehaving"), desk=True, first=["demo_seed"]) as stack:
        yield stack


@pytest.fixture(scope="module")
def riley(stack: Stack) -> Iterator[Person]:
    with Person(stack, "Riley") as riley:
        yield riley


@pytest.fixture(scope="module")
def otto(stack: Stack) -> Iterator[Person]:
    with Person(stack, "Otto") as otto:
        yield otto


def misbehaving(stack: Stack, name: str) -> Triage:
    return Triage(stack, stack.manage("misbehave", name).split()[0])


@pytest.mark.parametrize("name", ["killed-worker", "crm-answer-lost", "crm-half-answer", "crm-fails-after", "sent-answer-lost"])
def test_it_recovers_by_itself_and_everything_happens_once(stack, riley, name):
    run = misbehaving(stack, name)
    riley.decide(run.waiting_action(), "approved")
    run.wait_for("succeeded")
    assert len(run.messages()) == 1
    notes = [effect for effect in ledger(stack, "crm.note") if effect["key"] == run.grant_key("update_crm")]
    assert [effect["done"] for effect in notes] == [1]
    run.verify()


def test_a_desk_that_is_down_leaves_the_run_stuck_and_it_goes_on_when_otto_tries_again(stack, riley, otto):
    run = misbehaving(stack, "desk-down")
    run.wait_for("parked")
    stack.manage("misbehave", "clear")
    choose(otto, run, "retry")
    riley.decide(run.waiting_action(), "approved")
    run.wait_for("succeeded")
    assert len(run.messages()) == 1


def test_an_answer_that_does_not_fit_is_not_tried_again(stack, otto):
    run = misbehaving(stack, "changed-schema")
    run.wait_for("parked")
    assert run.types().count("step.failed") == 1 and "customer" in otto.http.get("/recovery").text
    choose(otto, run, "give_up")
    assert run.state == "failed"


def test_a_refused_key_changes_nothing_and_people_are_asked_anew(stack, riley, otto):
    run = misbehaving(stack, "key-refused")
    riley.decide(run.waiting_action(), "approved")
    run.wait_for("parked")
    assert run.messages() == []
    choose(otto, run, "retry")
    run.wait_for("waiting", "succeeded")
    run.verify()


def choose(otto: Person, run: Triage, choice: str) -> None:
    page = otto.http.get("/recovery").text
    at = re.search(rf'value="{run.id}@(\d+)"', page)
    assert at, page[-3000:]
    assert otto.post(f"/runs/{run.id}/recovery", {"choice": choice, "at": at[1]}).status_code == 200
