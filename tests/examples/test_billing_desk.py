"""The billing desk: what was charged twice is put aside without asking, and a reply that was sent back comes again as it was asked for."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.test import Client

from access.rules import person
from approvals import decisions, demo, editing, exact
from approvals.models import ProposedAction
from artifacts import vault
from artifacts.models import Artifact
from examples.back_office import store
from examples.billing_desk import scripted, workflow
from examples.billing_desk.tools import hold_refund, release_hold
from examples.support_triage.intake import take_in
from runs import signals, starting
from runs.engine import executor
from runs.engine.tools import Call, Declined
from runs.engine.workflow import VERSIONS, WORKFLOWS
from runs.models import Event, Run
from tests.examples.outside import World
from tests.examples.test_drafting import BRIGHTWATER, sample

TICKETS = Path(__file__).parents[2] / "examples" / "support_triage" / "tickets"
ASKED = "Attach the payment record so their accounts team can match it, and name the card."


# registered by being loaded, and here alone: what other tests offer to people is not to grow by it
DESK = WORKFLOWS.pop("billing-desk"), VERSIONS.pop(("billing-desk", 1))


@pytest.fixture(autouse=True)
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DESK[0].function is workflow.billing_desk
    monkeypatch.setitem(WORKFLOWS, "billing-desk", DESK[0])
    monkeypatch.setitem(VERSIONS, ("billing-desk", 1), DESK[1])


@pytest.fixture(autouse=True)
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_BACK_OFFICE", str(tmp_path / "office"))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    world = World(tmp_path / "desk")
    monkeypatch.setenv("HANDRAIL_DESK_URL", world.url.rstrip("/"))
    monkeypatch.setenv("HANDRAIL_DESK_SMTP", ":".join(map(str, world.smtp)))
    yield world
    world.stop()


def begin(cast: Any) -> Run:
    demo.policies(cast.workspace)
    taken = take_in((TICKETS / "duplicate-charge.eml").read_bytes(), "message-1")
    more = {"arguments": taken.arguments, "scope": taken.scope, "workflow": "billing-desk", "title": taken.title}
    run = starting.start(agent=cast.agent, owner=cast.agent.owner, by=person(cast.agent.owner_id), **more)
    assert executor.execute(run.pk) == "waiting"
    return run


def waiting(run: Run) -> ProposedAction:
    return ProposedAction.objects.get(run=run, state="waiting")


def decide(run: Run, user: Any, verdict: str, reason: str = "") -> str:
    action = waiting(run)
    decisions.decide(action, reviewer=person(user.pk), verdict=verdict, digest=action.digest, reason=reason, seen={})
    return executor.execute(run.pk)


def holds() -> list[tuple[Any, ...]]:
    with store.reading() as db:
        return [tuple(row) for row in db.execute("SELECT payment, cents, released FROM hold").fetchall()]


def status(desk: World) -> str:
    return str(desk.http.get("/tickets").json()["tickets"][0]["status"])


@pytest.mark.django_db(transaction=True)
def test_a_reply_that_was_sent_back_comes_again_with_what_was_asked_for_and_is_sent_once(cast, desk):
    run = begin(cast)
    assert holds() == [("PAY-88121", 128400, 0)] and status(desk) == "in_progress", "both without asking"
    assert waiting(run).attachments == []
    assert decide(run, cast.riley, "rejected", ASKED) == "waiting"
    assert len(waiting(run).attachments) == 1 and Artifact.objects.filter(run_id=run.pk, name="payments-INV-20931.csv").count() == 1
    first, second = (
        vault.open_bytes(made.payload).decode() for made in Artifact.objects.filter(run_id=run.pk, name="reply.txt").order_by("version")
    )
    assert "the way it was paid" in first and "to the card ending 4417" in second and scripted.RECORD not in first
    assert decide(run, cast.riley, "approved") == "succeeded"
    assert status(desk) == "answered" and len(desk.http.get("/mail").json()["mail"]) == 1


@pytest.mark.django_db(transaction=True)
def test_its_report_cites_what_was_sent_and_not_the_draft_that_an_edit_replaced(cast, desk):
    run = begin(cast)
    old = waiting(run)
    wanted = exact.read(old).arguments | {"body": "Hello Marta,\n\nit is refunded.\n"}
    made = editing.edit(old, by=person(cast.riley.pk), arguments=wanted, digest=old.digest).action
    assert decide(run, cast.sam, "approved") == "succeeded"
    log = [orjson.loads(body) for body in Event.objects.filter(run_id=run.pk).order_by("seq").values_list("body", flat=True)]
    cited = [log[seq - 1] for seq in log[-2]["data"]["cites"]]
    assert [(each["type"], each["data"]["action"]) for each in cited] == [("action.decided", str(made.pk)), ("effect.done", str(made.pk))]


@pytest.mark.django_db(transaction=True)
def test_after_two_replies_were_sent_back_the_third_rejection_ends_it(cast, desk):
    run = begin(cast)
    assert decide(run, cast.riley, "rejected", "Shorter.") == "waiting"
    assert decide(run, cast.riley, "rejected", "Shorter still.") == "waiting"
    assert decide(run, cast.riley, "rejected", "No.") == "succeeded"
    assert status(desk) == "in_progress" and desk.http.get("/mail").json()["mail"] == []


@pytest.mark.django_db(transaction=True)
def test_cancelling_releases_the_hold_and_puts_the_ticket_back(cast, desk):
    run = begin(cast)
    signals.send(run, kind="cancel", key="c", by=person(cast.otto.pk))
    executor.execute(run.pk)
    assert Run.objects.get(pk=run.pk).state == "cancelled"
    assert holds() == [("PAY-88121", 128400, 1)] and status(desk) == "open"


def call(key: str) -> Call:
    return Call(None, "step", key, deadline=10, last_check=lambda: None)  # type: ignore[arg-type]


def test_no_more_is_put_aside_than_is_left_and_what_was_released_can_be_put_aside_again():
    whole = {"account": "00932", "payment": "PAY-88121", "amount": "1284.00", "currency": "EUR"}
    held = hold_refund(call("1"), whole)
    assert hold_refund(call("1"), whole) == held, "under the same key it is the same hold"
    with pytest.raises(Declined, match="0 cents left"):
        hold_refund(call("2"), whole | {"amount": "0.01"})
    with pytest.raises(Declined, match="no payment of customer"):
        hold_refund(call("3"), whole | {"account": "00417"})
    with pytest.raises(Declined, match="no hold"):
        release_hold(call("4"), held | {"account": "00417"})
    release_hold(call("5"), held)
    assert hold_refund(call("6"), whole)["hold"] != held["hold"]


def test_the_script_follows_what_colleagues_ask_for_and_nothing_else():
    given = {"ticket": sample("duplicate-charge.eml").as_json(), "account": BRIGHTWATER, "requests": []}
    plain = scripted.settle_reply(**given, notes=[])
    assert "VAT" not in plain["body"] and plain["files"] == []
    assert "the extra €1,284.00, including VAT, " in scripted.settle_reply(**given, notes=["Quote the amount including VAT."])["body"]
    assert scripted.settle_reply(**given, notes=["Be kind."])["body"] == plain["body"]


def test_what_was_charged_twice_is_said_in_words():
    found = scripted.paid_twice(BRIGHTWATER, ["INV-20931"])
    assert scripted.in_words(found) == "PAY-88120 and PAY-88121 both settled on 24 November for INV-20931."
    assert scripted.paid_twice(BRIGHTWATER, ["INV-19804"]) is None


def test_who_starts_it_is_told_what_it_does_before_any_approval_and_who_writes(cast: Any, client: Client, settings: Any) -> None:
    settings.HANDRAIL_PLAYED_URL = "http://127.0.0.1:9/v1"
    agent = cast.workspace.agents.create(name="billing-desk", owner=cast.priya)
    client.force_login(cast.otto)
    html = client.get(f"/runs/new?agent={agent.pk}/billing-desk").content.decode().split('id="will-t"')[1]
    told = re.findall(r"<b>([^<]+)</b>(?:<p>([^<]+)</p>)?", html)
    waits = [what for what, _ in told].index("Wait for a person")
    before, after = dict(told[:waits]), dict(told[waits:])
    early = "Before any approval, if it is called for and the policy lets it happen; else a person is asked. Once only. Can be undone."
    assert (before["Place a refund hold"], before["Set the ticket"]) == (early, early)
    assert before["Draft a reply"] == "A model that the demo plays writes it, by fixed rules."
    assert after["Update the CRM"] == "Its policy says whether a person is asked for it as well. Once only. Can be undone."
    assert "Give money back (it only places a hold), change the account" in html
    settings.HANDRAIL_PLAYED_URL = ""
    assert "A script writes it; no model is asked." in client.get(f"/runs/new?agent={agent.pk}/billing-desk").content.decode()
