"""What comes twice from outside, and clocks that run twice: with real processes, each thing happens once."""

from collections.abc import Iterator

import httpx
import pytest

from tests.acceptance.triage import Person, Triage, ledger
from tests.stack import Stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    env = {"LEASE_SECONDS": "12"}  # so that nobody else takes over from a worker that stands still for a while, and repeats a read
    with Stack(tmp_path_factory.mktemp("once"), desk=True, first=["demo_seed"], env=env) as stack:
        yield stack


def misbehaving(stack: Stack, name: str) -> Triage:
    return Triage(stack, stack.manage("misbehave", name).split()[0])


def test_a_webhook_that_comes_twice_at_once_feeds_the_run_once(stack):
    run = misbehaving(stack, "webhook-twice")
    run.wait_for("succeeded")
    assert run.types().count("webhook.received") == 1
    came = stack.query("SELECT state FROM runs_receivedwebhook WHERE run_id = %s", run.id)
    assert [row["state"] for row in came] == ["applied"]
    [told] = httpx.get(f"{stack.desk_url}/hooks", trust_env=False).json()["deliveries"]
    assert told["status"] in (None, 200, 201), "both are acknowledged"
    run.verify()


def test_with_two_beats_at_once_everything_happens_once(stack):
    run = misbehaving(stack, "two-beats")
    action = run.waiting_action()
    with Person(stack, "Riley") as riley:
        riley.decide(action, "approved")
    run.wait_for("succeeded")
    types = run.types()
    assert types.count("run.waiting") == types.count("run.queued") and types.count("step.retrying") == 2
    assert len(run.messages()) == 1
    assert [effect["done"] for effect in ledger(stack, "crm.note") if effect["key"] == run.grant_key("update_crm")] == [1]
    run.verify()
