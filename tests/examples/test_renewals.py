"""Renewing a contract: nothing leaves before it is approved, then the run waits for the signed one; called off, it takes its notes back."""

import threading
from dataclasses import replace

import httpx
import orjson
import pytest
from django.test import Client

from access.rules import SYSTEM, person
from approvals import demo, presenting
from approvals.models import ProposedAction
from config import clock
from config.management.commands import demo_runs
from config.management.commands.demo_runs import RENEWED
from examples.support_triage import renewals
from examples.support_triage.tools import account_page
from runs import log, signals, standard_webhooks, starting, webhooks
from runs.engine import executor, workflow
from runs.engine.workflow import Link, Record
from runs.models import Run, WebhookSource
from tests.approvals.mailing import Proposed
from tests.examples.outside import World
from tests.examples.test_back_office import approve
from tests.examples.test_desk_hooks import Listener
from tests.factories import make_run
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)
CUSTOMER, ACCOUNT, EMAIL = RENEWED


@pytest.fixture
def renewal(cast, world: World, monkeypatch: pytest.MonkeyPatch) -> Proposed:
    """A renewal whose offer waits for a decision."""
    monkeypatch.setenv("HANDRAIL_DESK_URL", world.url.rstrip("/"))
    monkeypatch.setenv("HANDRAIL_DESK_SMTP", "{}:{}".format(*world.smtp))
    demo.policies(cast.workspace)
    webhooks.make_source(cast.agent, "contracts", by=SYSTEM)
    asked = {"arguments": {"email": EMAIL}, "scope": {"email": [EMAIL], "account": [ACCOUNT]}}
    owner = cast.agent.owner
    run = starting.start(agent=cast.agent, owner=owner, by=person(owner.pk), title=CUSTOMER, workflow="renewals", **asked)
    assert executor.execute(run.pk) == "waiting"
    return Proposed(run, ProposedAction.objects.get(run=run, tool="send_offer"))


def notes(http: httpx.Client) -> list[tuple[str, bool]]:
    found = http.get(f"/accounts/{ACCOUNT}/notes").json()["notes"]
    return [(note["text"], note["removed_at"] is None) for note in found]


def test_the_offer_goes_out_once_approved_and_the_signed_contract_ends_the_run(cast, world: World, renewal: Proposed):
    assert not world.http.get("/mail").json()["mail"] and len(notes(world.http)) == 2
    assert approve(renewal, cast.riley) == "waiting"
    assert [mail["subject"] for mail in world.http.get("/mail").json()["mail"]] == ["Your plan in 2027"]
    assert Run.objects.get(pk=renewal.run.pk).waiting["on"] == "webhook"
    source = webhooks.listed(cast.workspace.pk)[0]
    body = orjson.dumps({"type": "contract.signed", "data": {"account": ACCOUNT}})
    stamp = int(clock.now().timestamp())
    signed = standard_webhooks.signature(webhooks.rotate(source, by=SYSTEM), "msg_1", stamp, body)
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(stamp), "webhook-signature": signed}
    assert Client().post(f"/api/v1/webhooks/{source.pk}", body, content_type="application/json", headers=headers).status_code < 300
    webhooks.apply_due()
    assert renewal.walk() == "succeeded"
    assert ("Renewed for 2027.", True) in notes(world.http)


def test_while_it_waits_its_page_says_where_the_contract_is_signed_if_the_demo_tells_where_its_desk_is(
    cast, world: World, renewal: Proposed, monkeypatch: pytest.MonkeyPatch
):
    link = f'href="{world.url.rstrip("/")}/crm/accounts/{ACCOUNT}"'
    riley = Client()
    riley.force_login(cast.riley)
    assert link not in riley.get(f"/runs/{renewal.run.pk}").content.decode()
    with log.holding(make_run(cast).pk) as other:  # another run waits for another account's
        webhooks.open_wait(other, WebhookSource.objects.get(name="contracts"), "wait.contracts#1", {"data.account": "00932"})
    assert approve(renewal, cast.riley) == "waiting"
    page = riley.get(f"/runs/{renewal.run.pk}").content.decode()
    assert link in page and "Sign the contract at the help desk" in page and page.count("/crm/accounts/") == 1
    monkeypatch.delenv("HANDRAIL_DESK_URL")
    assert "Sign the contract" not in riley.get(f"/runs/{renewal.run.pk}").content.decode()


def test_a_workflow_whose_code_fails_to_say_where_a_webhook_is_sent_breaks_no_page():
    broken = replace(workflow.VERSIONS["renewals", 1], where=lambda match: Link("Sign it", match["nothing"]))
    assert workflow.link(broken, {"data.account": ACCOUNT}) is None


def test_what_a_workflow_says_of_where_is_a_link_only_if_it_is_a_web_address():
    for address, there in (("https://desk.example/a?x=1", True), ("javascript:alert(1)", False), ("//desk.example", False), (None, False)):
        told = replace(workflow.VERSIONS["renewals", 1], where=lambda match, address=address: Link("Sign it", address))
        assert (workflow.link(told, {}) is not None) == there


def test_the_name_of_an_account_leads_to_no_other_page_of_the_desk():
    assert account_page("../../mail?x#").endswith("/crm/accounts/..%2F..%2Fmail%3Fx%23")


def test_each_figure_of_the_offers_reason_stands_in_what_is_shown_of_the_account_that_was_read(cast, world: World, renewal: Proposed):
    riley = person(cast.riley.pk)
    shown = presenting.panel(presenting.find(riley, renewal.action.pk), riley)
    [account] = [each for each in shown.course.background.evidence if each.tool == "check_account"]
    assert account.title == CUSTOMER and "€4,960.00" in shown.reason and "31 December 2026" in shown.reason
    for figure in ("Business, 20 places", "31 December 2026", "2027", "€4,960.00", "18 December"):
        assert figure in shown.reason and figure in account.text, figure


@pytest.mark.parametrize("ticket", [demo_runs.CONTRACTS, ""])
def test_the_contract_is_signed_on_the_accounts_page_once_and_by_no_other_page(world: World, ticket: str):
    page = f"/crm/accounts/{ACCOUNT}"
    assert "Sign the contract" not in world.http.get(page).text and world.http.post(f"{page}/contract").status_code == 404
    listener = Listener()
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    hook = {"url": f"http://127.0.0.1:{listener.server_port}/", "secret": standard_webhooks.new_secret()}
    world.http.post("/hooks", json=hook | {"ticket": ticket}).raise_for_status()
    assert "Sign the contract" in world.http.get(page).text and "Sign the contract" not in world.http.get("/crm/accounts/00932").text
    for elsewhere in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://evil.example"}):
        assert world.http.post(f"{page}/contract", headers=elsewhere).status_code == 403
    guessed = {"Idempotency-Key": f"contract-{ACCOUNT}-2027"}  # no other effect is taken for the signature, whatever its key
    for key in (guessed, {"Idempotency-Key": f"contract {ACCOUNT} 2027"}):
        world.http.post(f"/accounts/{ACCOUNT}/notes", json={"text": "Not signed."}, headers=key)
    assert "Sign the contract" in world.http.get(page).text
    own = str(world.http.base_url).rstrip("/")
    for headers in ({"Sec-Fetch-Site": "same-origin"}, {"Origin": own}):
        assert world.http.post(f"{page}/contract", headers=headers).headers["Location"] == page
    until(lambda: listener.came, what="the webhook")
    assert "Sign the contract" not in world.http.get(page).text and '<span class="tag good">Signed</span>' in world.http.get(page).text
    wanted = {"type": "contract.signed", "data": {"account": ACCOUNT, "term": "2027"}}
    assert [{name: orjson.loads(body)[name] for name in wanted} for _, body in listener.came] == [wanted]
    assert len(world.http.get("/hooks").json()["deliveries"]) == 1
    listener.shutdown()
    listener.server_close()


def test_an_offer_to_an_address_that_is_no_contact_greets_nobody_by_name():
    terms = {"ends": "31 December", "term": "2027", "price": "1,200.00", "held_until": "24 December"}
    contacts = [Record(name="Ana Ruiz", email="ana@b.example")]
    account = Record(name="Brightwater", plan="Team", renewal=Record(terms), contacts=contacts)
    assert renewals._offer(account, "ana@b.example").startswith("Hello Ana,")
    assert renewals._offer(account, "info@b.example").startswith("Hello there,")


def test_what_it_noted_is_taken_back_when_it_is_called_off(cast, world: World, renewal: Proposed):
    signals.send(renewal.run, kind="cancel", key="k", by=person(cast.otto.pk), note="They stay.")
    assert renewal.walk() == "compensated" and Run.objects.get(pk=renewal.run.pk).state == "cancelled"
    assert [there for _, there in notes(world.http)] == [False, False] and not world.http.get("/mail").json()["mail"]
