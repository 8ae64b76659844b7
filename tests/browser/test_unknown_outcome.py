"""The answer to an e-mail is lost, and the outside can't tell: Otto looks himself and says what happened, and the run goes on."""

import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.acceptance.triage import Person, Triage
from tests.browser.test_every_page import LOOKS, faults
from tests.stack import Stack
from tests.waiting import SOON, until

PHONE = {"width": 390, "height": 844}
Context = Callable[..., BrowserContext]


@pytest.fixture
def desk(server: Stack) -> Iterator[httpx.Client]:
    """The outside, which misbehaves on demand; well again after the test."""
    with httpx.Client(base_url=server.desk_url, trust_env=False) as desk:
        yield desk
        desk.delete("/faults").raise_for_status()


@pytest.fixture
def lost(server: Stack, desk: httpx.Client) -> "Lost":
    return Lost(server, desk)


class Lost:
    """A reply that Riley approved: it arrived, nobody heard so, and the mail server answers no look-up."""

    def __init__(self, server: Stack, desk: httpx.Client) -> None:
        self.server, self.desk = server, desk
        self.run = Triage.start(server, again=True)
        self.action = self.run.waiting_action()
        self.fault("smtp", 1)
        self.fault("effect.read", 1000)
        self.decide(self.action)
        until(lambda: self.outcome == "unknown", within=SOON, what=lambda: f"the outcome to be unknown, not {self.outcome}")
        self.run.wait_for("waiting", within=SOON)
        self.path = f"/actions/{UUID(str(self.action['id']))}/outcome"
        self.url = server.base_url + self.path

    def fault(self, where: str, times: int) -> None:
        self.desk.post("/faults", json={"where": where, "fault": "drop_answer", "times": times}).raise_for_status()

    def decide(self, action: dict[str, Any]) -> None:
        with Person(self.server, "Riley") as riley:
            riley.decide(action, "approved")

    @property
    def outcome(self) -> str:
        return self.run.grant(self.action)["outcome"]

    def said(self) -> int:
        return self.run.types().count("action.resolved")


def sign_in(page: Page, server: Stack, name: str) -> Page:
    page.goto(f"{server.base_url}/sign-in")
    page.get_by_role("button", name=re.compile(f"Continue as {name}")).click()
    page.wait_for_url(lambda url: "/sign-in" not in url)
    return page


def open_live(page: Page, lost: Lost, name: str = "Otto") -> Page:
    sign_in(page, lost.server, name).goto(lost.url)
    page.locator("html[data-live=open]").wait_for()
    return page


def waiting_for_otto(page: Page) -> int:
    """As the bar says: other tests of this stack leave some waiting too."""
    return int(re.match(r"\d+", page.locator("#inbox-count").text_content() or "")[0])


def test_otto_finds_it_looks_himself_and_says_that_it_happened(page: Page, new_context: Context, lost: Lost) -> None:
    riley = open_live(new_context().new_page(), lost, "Riley")
    expect(riley.get_by_text("This needs the right").first).to_be_visible()
    expect(riley.get_by_role("button", name="Record this")).to_have_count(0)

    sign_in(page, lost.server, "Otto").goto(f"{lost.server.base_url}/runs/{lost.run.id}")
    expect(page.get_by_text("Waiting for a person to say what happened.")).to_be_visible()
    page.goto(f"{lost.server.base_url}/inbox")
    before = waiting_for_otto(page)
    page.locator(f"#queue a[href='{lost.path}']").click()
    expect(page.get_by_role("heading", name=re.compile("did it happen"))).to_be_visible()
    for words in ("Riley Park approved exactly this", "Request left for the mail server", "A second one is blocked."):
        expect(page.get_by_text(words)).to_be_visible()
    expect(page.get_by_role("cell", name="No answer", exact=True)).to_have_count(1)  # three in a row that gave the same
    expect(page.get_by_text("3 times, to")).to_be_visible()

    page.get_by_role("radio", name="It happened").check()
    page.get_by_label(re.compile("Reference")).fill("Queue 77120")
    page.get_by_role("button", name="Record this").click()
    expect(page.get_by_text("Say what you saw, in at least one sentence. Nothing was recorded.")).to_be_visible()
    expect(page.get_by_label(re.compile("What you saw"))).to_be_focused()
    expect(page.get_by_label(re.compile("Reference"))).to_have_value("Queue 77120")
    assert lost.outcome == "unknown"

    page.get_by_label(re.compile("What you saw")).fill("The mail server’s log shows it accepted.")
    page.get_by_role("button", name="Record this").dblclick()
    expect(page.get_by_text("Otto Brandt said that it happened.")).to_be_visible()
    until(lambda: waiting_for_otto(page) == before - 1, within=SOON, what=lambda: f"one less than {before} to wait for Otto")
    expect(riley.get_by_text("Otto Brandt said that it happened.")).to_be_visible()  # by itself
    lost.run.wait_for("succeeded", within=SOON)
    page.reload()
    expect(page.get_by_text("Reference Queue 77120")).to_be_visible()
    assert (lost.outcome, lost.said(), len(lost.run.messages())) == ("executed", 1, 1)
    lost.run.verify()


def test_on_a_phone_otto_finds_it_in_the_inbox_too_and_its_page_is_for_everybody(new_context: Context, lost: Lost) -> None:
    page = sign_in(new_context(viewport=PHONE).new_page(), lost.server, "Otto")
    page.goto(f"{lost.server.base_url}/inbox")
    page.locator(f"#queue a[href='{lost.path}']").click()
    expect(page.get_by_role("button", name="Record this")).to_be_visible()
    page.locator("html[data-live=open]").wait_for()
    wrong = {}
    for width, theme in LOOKS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)
        wrong[width, theme] = faults(page)
    assert not any(wrong.values()), wrong


def test_looking_again_finds_it_once_the_outside_can_tell(page: Page, lost: Lost) -> None:
    open_live(page, lost)
    page.get_by_role("button", name="Look again now").click()
    expect(page.get_by_text("4 times, to")).to_be_visible()
    expect(page.get_by_role("button", name="Look again now")).to_be_visible()
    assert lost.outcome == "unknown"
    lost.desk.delete("/faults").raise_for_status()
    page.get_by_role("button", name="Record this").click()  # looking again is what stands chosen
    expect(page.get_by_text("A look-up found that it happened.")).to_be_visible()
    expect(page.get_by_role("button", name="Record this")).to_have_count(0)
    lost.run.wait_for("succeeded", within=SOON)
    assert (lost.outcome, len(lost.run.messages())) == ("executed", 1)


def test_what_did_not_happen_is_proposed_anew_and_riley_decides_again(page: Page, lost: Lost) -> None:
    open_live(page, lost)
    page.get_by_role("radio", name="It did not").check()
    page.get_by_label(re.compile("What you saw")).fill("Nothing of it in the mail server’s log.")
    page.get_by_role("button", name="Record this").click()
    expect(page.get_by_text("Otto Brandt said that it did not happen.")).to_be_visible()
    again = until(
        lambda: next((each for each in lost.run.actions() if each["state"] == "waiting"), None),
        within=SOON,
        what="it to be proposed anew",
    )
    assert again["digest"] != lost.action["digest"] and lost.outcome == "failed"
    lost.run.wait_for("waiting", within=SOON)
    assert lost.run.types()[-1] == "run.waiting", "nothing is sent before somebody decides again"
    lost.decide(again)
    lost.run.wait_for("succeeded", within=SOON)
    assert lost.run.grant(again)["outcome"] == "executed"
    assert [message["Message-ID"] for message in lost.run.messages()].count(f"<{lost.run.nonce(again)}@fernhill.example>") == 1


def test_who_is_overtaken_sees_it_in_place_and_keeps_what_was_typed(page: Page, new_context: Context, lost: Lost) -> None:
    slow = open_live(new_context(viewport=PHONE).new_page(), lost)
    slow.get_by_label(re.compile("What you saw")).fill("I am still reading the log.")
    open_live(page, lost)
    page.get_by_role("radio", name="It happened").check()
    page.get_by_label(re.compile("What you saw")).fill("It is in the customer’s mailbox.")
    page.get_by_label(re.compile("Reference")).fill("Their answer of today")
    page.get_by_role("button", name="Record this").click()
    expect(slow.get_by_text("Otto Brandt said that it happened.")).to_be_visible()
    expect(slow.get_by_label("What you typed, not recorded")).to_have_value("I am still reading the log.")
    expect(slow.get_by_role("button", name="Record this")).to_have_count(0)
    expect(page.get_by_label("What you typed, not recorded")).to_be_hidden()


def test_without_script_a_form_does_the_same(new_context: Context, lost: Lost) -> None:
    page = sign_in(new_context(java_script_enabled=False).new_page(), lost.server, "Otto")
    page.goto(lost.url)
    page.get_by_role("radio", name="It happened").check()
    page.get_by_label(re.compile("What you saw")).fill("It is in the outbox.")
    page.get_by_role("button", name="Record this").click()
    expect(page.get_by_text("Name the reference under which it happened. Nothing was recorded.")).to_be_visible()
    expect(page.get_by_label(re.compile("What you saw"))).to_have_value("It is in the outbox.")
    page.get_by_label(re.compile("Reference")).fill("42")
    page.get_by_role("button", name="Record this").click()
    expect(page).to_have_url(lost.url)
    expect(page.get_by_text("Otto Brandt said that it happened.")).to_be_visible()
    assert (lost.outcome, lost.said()) == ("executed", 1)
