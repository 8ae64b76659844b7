"""The queue in a real browser: filters, keys, what is next while others decide, and deciding together on what is alike."""

import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.acceptance.triage import Person, Triage
from tests.browser.pictures import picture
from tests.browser.test_deciding import as_uuid, sign_in
from tests.browser.test_every_page import faults
from tests.stack import ROOT, Stack
from tests.waiting import SOON, until

REQUESTS = ROOT / "examples" / "back_office" / "requests"
NOTES = "/inbox?q=call_desk"


class Note:
    """A note for the help desk that waits for a decision: one of several that are alike."""

    def __init__(self, server: Stack) -> None:
        printed = server.manage("triage", str(REQUESTS / "note.eml"), "--workflow", "back-office", "--again")
        self.run = Triage(server, printed.split()[0])
        self.run.wait_for("waiting")
        (self.action,) = self.run.actions("call_desk")
        self.path = f"/actions/{as_uuid(self.action['id'])}"

    @property
    def now(self) -> dict[str, Any]:
        return self.run.actions("call_desk")[0]


@pytest.fixture
def notes(server: Stack) -> list[Note]:
    """Three of this test alone: what else is like them is decided before."""
    with Person(server, "Sam") as sam:
        rows = "SELECT id, digest FROM approvals_proposedaction WHERE tool = %s AND state = %s"
        for each in server.query(rows, "call_desk", "waiting"):
            sam.decide(each, "rejected", "Left over.")
    return [Note(server) for _ in range(3)]


def test_riley_opens_three_that_are_alike_and_decides_on_two_together(page: Page, server: Stack, notes: list[Note]):
    sign_in(page, server, "Riley")
    page.goto(server.base_url + NOTES)
    page.get_by_role("link", name="3 alike: Call the help desk").click()
    expect(page.get_by_role("heading", name="Three notes for the help desk")).to_be_visible()
    expect(page.locator(".like__c .ink").first).not_to_be_empty()  # all three say the same, and the rows say what
    expect(page.get_by_role("button", name="Approve these 3")).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("a")
    expect(page.get_by_text("3 not opened.")).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_text("1 of 3 opened")).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_text("2 of 3 opened")).to_be_visible()
    picture(page, "bulk")
    page.wait_for_load_state()  # its keys are there
    page.keyboard.press("x")
    expect(page.get_by_role("heading", name="Two notes for the help desk")).to_be_visible()
    expect(page.get_by_text("You took it out.")).to_be_visible()
    assert faults(page) == []
    with Person(server, "Sam") as sam:  # is quicker with one of the two
        overtaken, left = (note for note in notes if note.path not in page.locator(".like__out").inner_html())
        sam.decide(overtaken.action, "rejected", "Not this one.")
    page.keyboard.press("a")
    # the page says by itself that one is gone, so Riley decides on the other
    expect(page.get_by_role("heading", name="One left of those alike")).to_be_visible()
    confirm = page.get_by_role("button", name="Approve 1, each for itself")
    expect(confirm).to_be_focused()
    assert left.now["state"] == "waiting"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="One approved")).to_be_visible()
    expect(page.get_by_text("recorded as #")).to_be_visible()
    expect(page.locator(".like__done").get_by_role("link", name=re.compile(r"^#\d+$"))).to_be_visible()
    left.run.wait_for("succeeded", within=SOON)
    page.reload()  # the form again: nothing more is decided
    digests = [row["digest"] for row in server.query("SELECT digest FROM approvals_decision WHERE digest = %s", left.action["digest"])]
    assert digests == [left.action["digest"]] and len({note.now["state"] for note in notes}) == 3


def test_without_script_and_on_a_phone_two_are_decided_together(new_context: Any, server: Stack, notes: list[Note]):
    context: BrowserContext = new_context(viewport={"width": 390, "height": 844}, java_script_enabled=False)
    page = sign_in(context.new_page(), server, "Riley")
    page.goto(f"{server.base_url}/inbox/alike/{notes[0].path.rsplit('/', 1)[-1]}")
    page.get_by_role("link", name="Take this one out").click()
    for words in ("Next not opened", "Seen"):
        page.get_by_role("button", name=words).click()
    page.get_by_role("button", name="Approve these 2").click()
    page.get_by_role("button", name="Approve 2, each for itself").click()
    expect(page.get_by_role("heading", name="Two approved")).to_be_visible()
    until(
        lambda: sorted(note.now["state"] for note in notes) == ["approved", "approved", "waiting"], within=SOON, what="two to be approved"
    )


def begins_with_a_whole_row(page: Page, last: str) -> None:
    """In a low window the row of a page opened from elsewhere is in sight, and none is cut below the head of the queue."""
    size = page.viewport_size
    page.set_viewport_size({"width": 1280, "height": 420})
    page.goto(last)
    expect(page.locator("#queue .qi[aria-current=true]")).to_be_in_viewport()
    assert page.locator("#queue").evaluate("queue => queue.scrollTop") > 0
    edge = page.locator(".queue__head").evaluate("head => head.getBoundingClientRect().bottom")
    rows = page.locator("#queue li").evaluate_all("rows => rows.map(row => row.getBoundingClientRect()).map(box => [box.top, box.bottom])")
    assert not [top for top, bottom in rows if top < edge - 1 and bottom > edge + 1]
    page.set_viewport_size(size or {"width": 1280, "height": 720})


def test_filters_keys_and_what_is_next_while_others_decide(page: Page, new_context: Any, server: Stack, notes: list[Note]):
    sign_in(page, server, "Riley")
    page.goto(f"{server.base_url}/inbox")
    page.locator("html[data-live=open]").wait_for()
    page.keyboard.press("f")
    expect(page.get_by_placeholder("Find in the queue")).to_be_focused()
    page.keyboard.type("call_desk")
    page.keyboard.press("Enter")
    page.wait_for_url("**/inbox?q=call_desk")
    rows = page.locator("#queue [data-item]")
    expect(rows).to_have_count(3)
    begins_with_a_whole_row(page, server.base_url + str(rows.nth(2).get_attribute("href")))
    page.goto(f"{server.base_url}/inbox?q=call_desk")
    page.locator("html[data-live=open]").wait_for()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    # what Sam claims goes from Mine by itself, and stays in My groups
    page.get_by_role("link", name=re.compile("^Mine")).click()
    page.wait_for_url("**/inbox?view=mine&q=call_desk")
    page.locator("html[data-live=open]").wait_for()
    order = [str(row.get_attribute("href")).partition("?")[0] for row in rows.all()]
    with Person(server, "Sam") as sam:
        sam.post(f"{order[2]}/claim", {})
        expect(rows).to_have_count(2)
        expect(page.get_by_role("link", name=re.compile("^My groups 3"))).to_be_visible()
        chips = [chip.bounding_box() for chip in page.locator("#queue .chip").all()]
        assert len(chips) == 4 and len({round(box["y"]) for box in chips if box}) == 1, "they stand on one row"
        page.get_by_role("link", name=re.compile("^My groups")).click()
        expect(rows).to_have_count(3)
        page.locator("html[data-live=open]").wait_for()
        # Riley decides; then Sam decides on the row that has the focus: the next one has it, and j opens that one
        by_path = {note.path: note for note in notes}
        page.keyboard.press("a")
        expect(page.get_by_role("button", name="Approve and send")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_text("You approved exactly this.")).to_be_visible()
        expect(page.locator(f'#queue a[href^="{order[1]}"]')).to_be_focused()
        sam.decide(by_path[order[1]].action, "rejected", "Sam was on it.")
        expect(page.get_by_role("link", name="Next in queue")).to_have_attribute("href", f"{order[2]}?q=call_desk")
        expect(page.locator(f'#queue a[href^="{order[2]}"]')).to_be_focused()
        expect(page.locator(f"#gone-{order[1].rsplit('/', 1)[-1]}")).to_contain_text("Rejected by Sam")
        page.keyboard.press("j")
        page.wait_for_url(f"**{order[2]}?q=call_desk")
        expect(page.locator("#panel")).to_have_attribute("data-action", order[2].rsplit("/", 1)[-1])
