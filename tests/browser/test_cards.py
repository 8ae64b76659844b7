"""Each kind of action on its own card, wide and on a phone: every argument is there and counted, nothing sticks out, axe finds nothing.

The requests of the back office are the cast. One of each kind is approved and is done outside, once.
"""

import gzip
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.acceptance.triage import Person, Triage
from tests.browser.test_deciding import as_uuid, sign_in
from tests.browser.test_every_page import browsing, faults
from tests.stack import ROOT, Stack
from tests.waiting import SOON, until

pytestmark = pytest.mark.long
REQUESTS = ROOT / "examples" / "back_office" / "requests"


@dataclass(frozen=True)
class Kind:
    """A request, the tool that it leads to, what its card shows, and the sum that its seal states."""

    request: str
    tool: str
    seal: str
    approve: str
    shows: tuple[str, ...]
    counts: tuple[tuple[str, int], ...] = ()  # selectors, and how many of each there are


KINDS = {
    "record": Kind(
        "change-of-address",
        "update_customer",
        "10 arguments: 6 shown, 4 folded, none hidden",
        "this one change",
        ("Only if still at version 57", "Hutnicza 12", "Nabrzeże 4", "No value", "7 other fields stay as they are", "Halden Marine"),
        ((".change tbody tr", 3), (".change del", 2), (".change ins", 3)),
    ),
    "payment": Kind(
        "refund",
        "refund_payment",
        "10 arguments: 5 shown, 5 folded, none hidden",
        "",  # two of Finance are asked
        ("€1,284.00", "PAY-88121", "FERNHILL REFUND", "nothing is left to give back after this", "Limit", "€0.00 of €5,000.00"),
        ((".sums", 0), (".amount", 1)),  # all of it: no bar, but the words
    ),
    "sql": Kind(
        "prices",
        "run_sql",
        "10 arguments: 7 shown, 3 folded, none hidden",
        "this one statement",
        ("UPDATE stock", "price_cents < ?", "mounts", "3 of 8 rows", "Passed", "At most, rows"),
        ((".code:not(.box) .ln", 4), (".facts > div", 4)),
    ),
    "http": Kind(
        "note",
        "call_desk",
        "7 arguments: 3 shown, 4 folded, none hidden",
        "this one request",
        ("POST", "/accounts/00932/notes", "Content-Type", "application/json", "Call Marta", "Idempotency-Key"),
        ((".req b:not(.tag)", 1),),
    ),
    "command": Kind(
        "report",
        "run_command",
        "7 arguments: 4 shown, 3 folded, none hidden",
        "this one command",
        ("gzip", "--best", "stock-2026-11.csv", "No shell: each line is taken as it is"),
        ((".code:not(.box) .ln", 5),),
    ),
    "generic": Kind(
        "access",
        "schedule_removal",
        "9 arguments: 6 shown, 3 folded, none hidden",
        "this one call of “Schedule access removal”",
        ("Schedule access removal", "Rafael Costa", "Data warehouse", "Billing admin", "Tell the manager", "Yes", "Empty"),
        ((".fields .tag", 2),),
    ),
}


class Asked:
    """A request of the back office whose action waits for a decision."""

    def __init__(self, server: Stack, kind: Kind) -> None:
        self.server = server
        printed = server.manage("triage", str(REQUESTS / f"{kind.request}.eml"), "--workflow", "back-office", "--again")
        self.run = Triage(server, printed.split()[0])
        self.run.wait_for("waiting")
        (self.action,) = self.run.actions(kind.tool)
        self.url = f"{server.base_url}/actions/{as_uuid(self.action['id'])}"


@pytest.fixture(scope="module")
def asked(server: Stack) -> dict[str, Asked]:
    return {name: Asked(server, kind) for name, kind in KINDS.items()}


def unfold(page: Page) -> None:
    for summary in page.locator("[data-card] details > summary").all():
        summary.click()


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_action_has_a_card_that_shows_all_of_it(
    browser: Browser, server: Stack, asked: dict[str, Asked], name: str, width: int, theme: str
):
    kind = KINDS[name]
    with browsing(browser, server, "Riley", width, theme) as (page, complaints):
        page.goto(asked[name].url)
        card = page.locator("[data-card]")
        expect(card).to_have_attribute("data-kind", name)
        expect(card.locator(".seal")).to_contain_text(kind.seal)
        lead = f"You approve {kind.approve}" if kind.approve else "Your approval is the first of 2."
        expect(page.locator("form.decide")).to_contain_text(lead)
        for text in kind.shows:
            expect(card).to_contain_text(text)
        for selector, count in kind.counts:
            expect(card.locator(selector)).to_have_count(count)
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        unfold(page)
        assert not complaints
        assert faults(page) == []


def test_who_may_not_decide_sees_each_card_redacted(browser: Browser, server: Stack, asked: dict[str, Asked]):
    with browsing(browser, server, "Morgan", 1440, "light") as (page, complaints):
        for name, each in asked.items():
            page.goto(each.url)
            expect(page.locator("[data-card]")).to_have_attribute("data-kind", name)
            expect(page.locator(".seal").last).to_contain_text("drawn redacted")
            assert not complaints
            assert faults(page) == []
            complaints.clear()  # what axe makes the page complain of is not the page’s


def office(server: Stack, question: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(server.data / "back-office" / "office.sqlite3", timeout=20)) as db:
        return db.execute(question).fetchall()


def notes(server: Stack) -> list[Any]:
    return httpx.get(f"{server.desk_url}/accounts/00932/notes", trust_env=False).json()["notes"]


def packed(server: Stack) -> list[bytes]:
    reports = server.data / "back-office" / "reports"
    return [gzip.decompress(file.read_bytes()) for file in reports.glob("*.gz")]


OUTSIDE: dict[str, Callable[[Stack], Any]] = {
    "record": lambda server: office(server, "SELECT version, json_extract(record, '$.invoice_contact') FROM customer WHERE id = '01371'"),
    "payment": lambda server: office(server, "SELECT payment, cents FROM refund"),
    "sql": lambda server: office(server, "SELECT sku, price_cents FROM stock WHERE category = 'mounts' ORDER BY sku"),
    "http": lambda server: [note["text"][:19] for note in notes(server)],
    "command": lambda server: [text[:17] for text in packed(server)],
    "generic": lambda server: office(server, "SELECT person, systems FROM removal"),
}
AFTER = {
    "record": [(58, "Tomasz Zieliński")],
    "payment": [("PAY-88121", 128400)],
    "sql": [("M2-BLACK", 9345), ("M2-GREY", 9345), ("M4-WALL", 14500), ("M5-POLE", 10448)],
    "http": ["Refund of PAY-88121"],
    "command": [b"sku,name,quantity"],
    "generic": [("Rafael Costa", "Data warehouse, Billing admin")],
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_approved_on_its_card_is_done_outside_once(
    new_context: Callable[..., BrowserContext], server: Stack, asked: dict[str, Asked], name: str
):
    each = asked[name]
    before = OUTSIDE[name](server)
    assert before != AFTER[name]
    if name == "payment":  # over €1,000: two of Finance
        with Person(server, "Sam") as sam:
            sam.decide(each.action, "approved")
    page = sign_in(new_context(viewport={"width": 1440, "height": 900}).new_page(), server, "Riley")
    page.goto(each.url)
    page.get_by_role("button", name="Approve as second" if name == "payment" else "Approve exactly this").click()
    assert OUTSIDE[name](server) == before, "arming does nothing"
    page.get_by_role("button", name="Approve and").click()
    expect(page.get_by_text("You approved exactly this.")).to_be_visible()
    each.run.wait_for("succeeded", within=SOON)
    assert until(lambda: OUTSIDE[name](server) == AFTER[name], within=SOON, what=f"{name} to be done outside")
    assert each.run.grant(each.action)["outcome"] == "executed"
    expect(page.get_by_text("what ran is what was approved.")).to_be_visible()


def test_a_request_is_started_from_the_page_and_comes_to_its_card(
    new_context: Callable[..., BrowserContext], server: Stack, tmp_path: Path
):
    message = tmp_path / "note.eml"
    message.write_text((REQUESTS / "note.eml").read_text().replace("00932", "01184").replace("Sofia\n", "Sofia Berg\n"))
    page = sign_in(new_context(viewport={"width": 1440, "height": 900}).new_page(), server, "Otto")
    page.goto(f"{server.base_url}/runs/new")
    page.locator("select[name=agent]").select_option(label="back-office 2")
    expect(page.get_by_role("complementary", name="What will happen")).to_contain_text("Work out what to do")
    page.set_input_files("input[type=file]", message)
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}$"))
    page.locator("#run-now").get_by_role("link", name="Read the request").click()
    expect(page.locator(".seal").last).to_contain_text("drawn redacted")  # who started the run does not decide on it
    expect(page.locator("[data-card]")).to_have_attribute("data-kind", "http")


def test_a_refund_beyond_what_is_left_can_not_be_approved(new_context: Callable[..., BrowserContext], server: Stack, tmp_path: Path):
    # once the payment is given back, whoever asks again finds Approve locked, with the reason beside the amount
    if not OUTSIDE["payment"](server):
        first = Asked(server, KINDS["payment"])
        for name in ("Riley", "Sam"):
            with Person(server, name) as one:
                one.decide(first.action, "approved")
        first.run.wait_for("succeeded", within=SOON)
    again = Asked(server, KINDS["payment"])
    page = sign_in(new_context(viewport={"width": 1440, "height": 900}).new_page(), server, "Sam")
    page.goto(again.url)
    expect(page.locator("[data-card]")).to_contain_text("This is more than is left to pay back.")
    expect(page.locator("[data-card]")).to_contain_text("1 earlier, to the same account")
    approve = page.get_by_role("button", name="Approve as first")
    expect(approve).to_have_attribute("aria-disabled", "true")
    expect(page.locator("form.decide")).to_contain_text("Approve is locked: This is more than is left to pay back.")
    approve.click(force=True)
    expect(page.get_by_role("button", name="Approve and")).to_have_count(0)
    page.screenshot(path=tmp_path / "payment-locked.png")
    assert faults(page) == []
    assert office(server, "SELECT count(*) FROM refund") == [(1,)]
