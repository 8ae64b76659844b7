"""Stopping in a real browser: Otto freezes a tool while Riley looks at what it would do; Riley takes back what she has just approved."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.pictures import picture
from tests.browser.test_deciding import Waiting, open_live, sign_in
from tests.browser.test_every_page import LOOKS, browsing, shown
from tests.stack import Stack

Context = Callable[..., BrowserContext]
LIFT = "from approvals.models import Freeze; from approvals import freezes; from access.rules import person; "
LIFT += "[freezes.lift(f, by=person(f.by_id), reason='After the test.') for f in freezes.standing()]"
DELAY = "from datetime import timedelta; from approvals.models import Policy; "
DELAY += "Policy.objects.filter(tool='send_email').update(recall_delay=timedelta(seconds={}))"


@pytest.fixture
def waiting(server: Stack) -> Waiting:
    return Waiting(server)


@pytest.fixture
def thawed(server: Stack) -> Iterator[None]:
    """Whatever the test froze is lifted after it: the stack is shared."""
    yield
    server.manage("shell", "-c", LIFT)


@pytest.fixture
def two_minutes(server: Stack) -> Iterator[None]:
    """A rule that lets an approved e-mail be recalled for two minutes; as before after the test."""
    server.manage("shell", "-c", DELAY.format(120))
    yield
    server.manage("shell", "-c", DELAY.format(0))


def test_otto_freezes_sending_and_riley_approves_once_it_is_lifted(
    browser: Browser, page: Page, new_context: Context, waiting: Waiting, thawed: None
) -> None:
    riley = open_live(new_context().new_page(), waiting, "Riley")
    sign_in(page, waiting.server, "Otto")
    page.goto(f"{waiting.server.base_url}/runs/{waiting.run.id}")
    page.get_by_role("link", name="Freeze an agent or a tool").click()
    page.locator("select[name=target]").select_option("tool:send_email")
    page.get_by_role("textbox", name=re.compile("^Why")).fill("The mail server sends everything twice.")
    page.get_by_role("button", name="Freeze", exact=True).click()
    expect(page.get_by_role("article").get_by_text("Frozen by you")).to_be_visible()

    note = riley.locator("[data-frozen]")  # by itself, without a reload
    expect(note).to_contain_text("Frozen by Otto")
    expect(note).to_contain_text("The mail server sends everything twice.")
    expect(riley.locator("#frozen-now")).to_contain_text("All that is frozen")
    approve = riley.get_by_role("button", name="Approve exactly this")
    expect(approve).to_be_disabled()
    expect(riley.get_by_text("Approve is off while this is frozen.")).to_be_visible()
    riley.keyboard.press("a")
    expect(approve).to_be_focused()  # it says why, and does nothing
    assert (waiting.state, waiting.decisions(), waiting.sent()) == ("waiting", [], 0)
    for width, theme in LOOKS:
        with browsing(browser, waiting.server, "Otto", width, theme) as (look, complaints):
            for path in ("/freezes", waiting.path):
                assert shown(look, complaints, waiting.server.base_url, path) == []

    page.get_by_label("Why it can go on").fill("Mended.")
    page.get_by_role("button", name="Unfreeze").click()
    expect(page.get_by_text("Nothing is frozen.")).to_be_visible()
    expect(riley.locator("#frozen-now")).to_be_hidden()
    expect(note).to_have_count(0)
    expect(approve).to_be_enabled()
    approve.click()
    riley.get_by_role("button", name="Approve and send").click()
    expect(riley.get_by_text("It was sent, once, and what ran is what was approved.")).to_be_visible()
    assert waiting.sent() == 1


def test_riley_recalls_an_approval_before_it_is_sent(page: Page, new_context: Context, server: Stack, two_minutes: None) -> None:
    waiting = Waiting(server)
    sam = open_live(new_context().new_page(), waiting, "Sam")
    open_live(page, waiting, "Riley")
    page.get_by_role("button", name="Approve exactly this").click()
    page.get_by_role("button", name="Approve and send").click()
    expect(page.get_by_text("You approved exactly this.")).to_be_visible()
    form = page.get_by_role("form", name="Recall the approval")
    expect(form.locator(".fuse")).to_contain_text(re.compile("min|s left"))  # it counts down
    form.scroll_into_view_if_needed()
    picture(page, "recall")
    expect(sam.get_by_role("form", name="Recall the approval")).to_be_visible()
    form.get_by_label(re.compile("^Why")).fill("The amount is wrong.")
    form.get_by_role("button", name="Recall the approval").click()
    expect(page.get_by_text("You recalled the approval.")).to_be_visible()
    expect(sam.get_by_text("Riley Park recalled the approval.")).to_be_visible()  # by itself
    expect(sam.locator("[data-ended=recalled]")).to_contain_text("The amount is wrong.")
    waiting.run.wait_for("succeeded")
    assert (waiting.state, waiting.sent(), len(waiting.run.messages())) == ("recalled", 0, 0)
    waiting.run.verify()
