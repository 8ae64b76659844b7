"""Whose turn it is, in a real browser: one claims, two must agree, nobody answers and it goes on to another, nobody decides in time."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.acceptance.triage import set_clock
from tests.browser.pictures import picture
from tests.browser.test_deciding import Waiting, as_uuid, open_live, sign_in
from tests.stack import Stack

Context = Callable[..., BrowserContext]
QUORUM = "from approvals.models import Policy; Policy.objects.filter(tool='send_email').update(quorum={})"


@pytest.fixture
def waiting(server: Stack) -> Waiting:
    return Waiting(server)


@pytest.fixture
def two_needed(server: Stack) -> Iterator[None]:
    """A rule by which two people must approve an e-mail; as before after the test: the stack is shared."""
    server.manage("shell", "-c", QUORUM.format(2))
    yield
    server.manage("shell", "-c", QUORUM.format(1))


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    """Seconds by which every clock of `elsewhen` is moved."""
    (tmp_path / "clock").write_text("0")
    return tmp_path / "clock"


@pytest.fixture
def elsewhen(new_stack: Callable[..., Stack], clock: Path) -> Stack:
    """A house of the test's own, because its clocks are moved."""
    return new_stack(desk=True, first=["demo_seed"], env={"HANDRAIL_CLOCK_FILE": str(clock)})


def test_riley_claims_it_and_sam_sees_that_she_is_on_it(page: Page, new_context: Context, waiting: Waiting) -> None:
    sam = open_live(new_context().new_page(), waiting, "Sam")
    open_live(page, waiting, "Riley")
    page.get_by_role("button", name="Claim", exact=True).click()
    expect(page.get_by_text("Claimed by you.")).to_be_visible()
    row = f'#queue a[href^="{waiting.path}"]'
    expect(sam.locator(f"#status-{waiting.path.rpartition('/')[2]}")).to_contain_text("Riley Park is on it.")  # by itself
    expect(sam.locator(row)).to_contain_text("Riley is on it")
    picture(sam, "claim")
    sam.keyboard.press("c")  # what is hers he can't claim
    page.get_by_role("button", name="Release").click()
    expect(sam.get_by_role("button", name="Claim", exact=True)).to_be_visible()
    sam.locator("body").press("c")
    expect(sam.get_by_text("Claimed by you.")).to_be_visible()
    expect(page.locator(row)).to_contain_text("Sam is on it")
    assert waiting.state == "waiting" and waiting.decisions() == []
    page.get_by_role("button", name="Approve exactly this").click()  # a claim keeps order; it takes no right from anybody
    page.get_by_role("button", name="Approve and send").click()
    expect(sam.get_by_text("Riley Park approved this.")).to_be_visible()
    waiting.run.wait_for("succeeded")


def test_two_must_agree_and_nothing_is_sent_before_the_second(page: Page, new_context: Context, server: Stack, two_needed: None) -> None:
    waiting = Waiting(server)
    sam = open_live(new_context().new_page(), waiting, "Sam")
    open_live(page, waiting, "Riley")
    expect(page.get_by_text("2 people: you and 1 other.")).to_be_visible()
    page.get_by_role("button", name="Approve as first").click()
    page.locator("form[data-decides]").get_by_role("button", name="Approve as first").click()
    expect(page.locator("#panel").get_by_text("1 of 2 approved").first).to_be_visible()
    expect(sam.get_by_text("Only you can give the last approval.")).to_be_visible()  # by itself
    expect(sam.locator(".quorum")).to_contain_text("Riley Park approved digest")
    picture(sam, "quorum")
    assert (waiting.state, waiting.sent()) == ("waiting", 0)
    sam.get_by_role("button", name="Approve as second").click()
    sam.get_by_role("button", name="Approve and send").click()
    expect(page.get_by_text("It was sent, once, and what ran is what was approved.")).to_be_visible()
    assert sorted(vote["verdict"] for vote in waiting.decisions()) == ["approved", "approved"]
    assert waiting.sent() == 1


def test_nobody_answers_and_it_goes_on_to_sam_and_at_the_end_expires(
    page: Page, new_context: Context, elsewhen: Stack, clock: Path
) -> None:
    ada = sign_in(new_context().new_page(), elsewhen, "Ada")
    ada.goto(f"{elsewhen.base_url}/notifications/nobody-answers")
    ada.get_by_label("After, in minutes").fill("20")
    ada.get_by_label("It goes to").select_option(label="Sam Okafor")
    ada.get_by_role("button", name="Add").click()
    expect(ada.get_by_text("After 20 min, to Sam Okafor")).to_be_visible()

    waiting = Waiting(elsewhen)
    open_live(page, waiting, "Riley")
    set_clock(clock, minutes=21)
    expect(page.get_by_text(re.compile("to Sam Okafor"))).to_be_visible()  # by itself
    picture(page, "escalate")
    assert (waiting.state, waiting.decisions()) == ("waiting", [])

    set_clock(clock, hours=5)
    expect(page.get_by_text("Nobody decided in time, so nothing was sent.")).to_be_visible()
    expect(page.get_by_role("button", name="Approve exactly this")).to_have_count(0)
    picture(page, "expire")
    waiting.run.wait_for("succeeded", "failed", "waiting")
    assert (waiting.state, waiting.sent(), len(waiting.run.messages())) == ("expired", 0, 0)
    waiting.run.verify()


def test_enter_opens_what_is_next_for_whoever_may_decide_and_presses_what_has_the_focus(page: Page, waiting: Waiting) -> None:
    run = f"{waiting.server.base_url}/runs/{as_uuid(waiting.run.id)}"
    sign_in(page, waiting.server, "Riley")
    page.goto(run)
    page.locator("html[data-live=open]").wait_for()
    page.get_by_role("link", name="Raw events").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/events"))
    page.goto(run)
    page.locator("html[data-live=open]").wait_for()
    page.locator("body").press("Enter")
    page.wait_for_url(re.compile(waiting.path))
