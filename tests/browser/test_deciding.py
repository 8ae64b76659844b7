"""People decide in a real browser, on the whole house: with the mouse, by keyboard, on a phone, without script, at the same time."""

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from playwright.sync_api import BrowserContext, Page, Route, WebSocketRoute, expect

from tests import proving
from tests.acceptance.triage import Triage, mailbox
from tests.browser.pictures import picture
from tests.stack import Stack
from tests.waiting import SOON, until

Context = Callable[..., BrowserContext]


@pytest.fixture
def waiting(server: Stack) -> "Waiting":
    return Waiting(server)


class Waiting:
    """A fresh triage whose reply waits for a decision."""

    def __init__(self, server: Stack) -> None:
        self.server = server
        self.run = Triage.start(server, again=True)
        self.action = self.run.waiting_action()
        self.path = f"/actions/{as_uuid(self.action['id'])}"
        self.url = server.base_url + self.path

    @property
    def state(self) -> str:
        return self.run.actions()[0]["state"]

    def decisions(self) -> list[dict[str, Any]]:
        return self.server.query("SELECT * FROM approvals_decision WHERE digest = %s", self.action["digest"])

    def sent(self) -> int:
        """How many messages of this run reached the outside: their Message-ID begins with a nonce of its own."""
        grants = self.server.query("SELECT outcome FROM approvals_grant WHERE digest = %s", self.action["digest"])
        return sum(grant["outcome"] == "executed" for grant in grants)


def as_uuid(stored: object) -> str:
    plain = str(stored).replace("-", "")
    return "-".join((plain[:8], plain[8:12], plain[12:16], plain[16:20], plain[20:]))


def sign_in(page: Page, server: Stack, name: str) -> Page:
    page.goto(f"{server.base_url}/sign-in")
    page.get_by_role("button", name=name).click()
    page.wait_for_url(lambda url: "/sign-in" not in url)
    proving.in_the_demo(page, server.base_url)
    return page


def open_live(page: Page, waiting: Waiting, name: str) -> Page:
    sign_in(page, waiting.server, name)
    page.goto(waiting.url)
    page.locator("html[data-live=open]").wait_for()
    return page


def arrived(server: Stack) -> int:
    """How many messages are outside, once nothing is on its way any more that tests before this one approved."""
    at_work = "SELECT ref FROM runs_run WHERE state IN ('queued', 'running') AND workflow <> ''"
    until(lambda: not server.query(at_work), within=SOON, what=lambda: f"{server.query(at_work)} to come to rest")
    return len(mailbox(server))


def open_rows(page: Page) -> list[str]:
    return [row.get_attribute("href") or "" for row in page.locator("#queue [data-item]").all()]


def test_riley_approves_exactly_this_and_sees_it_sent_without_a_reload(page, waiting):
    before = arrived(waiting.server)
    open_live(page, waiting, "Riley")
    expect(page.locator(".seal")).to_contain_text("none hidden")
    page.get_by_role("button", name="Approve exactly this").click()
    assert waiting.state == "waiting", "arming decides nothing"
    expect(page.get_by_role("button", name="Approve and send")).to_be_focused()
    page.get_by_role("button", name="Approve and send").click()
    expect(page.get_by_text("You approved exactly this.")).to_be_visible()
    expect(page.get_by_text("It was sent, once, and what ran is what was approved.")).to_be_visible()
    expect(page).to_have_url(waiting.url)
    assert len(waiting.decisions()) == 1 and waiting.sent() == 1
    assert len(mailbox(waiting.server)) == before + 1


@pytest.mark.parametrize("late", ["nothing", "answers", "pushes"])
def test_two_are_decided_one_after_the_other_and_one_action_is_open_at_a_time(page, waiting, late):
    own = (waiting.path, Waiting(waiting.server).path)
    sign_in(page, waiting.server, "Riley")
    order = Order(page, late)
    page.goto(f"{waiting.server.base_url}/inbox")
    page.locator("html[data-live=open]").wait_for()
    for row in own:
        if (page.locator("#panel").get_attribute("data-action") or "none") not in row:
            page.locator(f'#queue a[href="{row}"]').click()
        expect(page.locator("#panel")).to_have_attribute("data-action", row.rsplit("/", 1)[-1])
        page.get_by_role("button", name="Approve exactly this").click()
        page.get_by_role("button", name="Approve and send").wait_for()
        order.begins()
        page.get_by_role("button", name="Approve and send").click()
        expect(page.get_by_text("You approved exactly this.")).to_be_visible()
        expect(page).to_have_url(waiting.server.base_url + row)
        order.ends()
        expect(page.get_by_text("It was sent, once, and what ran is what was approved.")).to_be_visible()
        expect(page).to_have_url(waiting.server.base_url + row)
        expect(page.locator("#panel")).to_have_count(1)


class Order:
    """Lets a decision's answer come after the push that shows it, or all pushes after the answer."""

    def __init__(self, page: Page, late: str) -> None:
        self.late = late
        self.holds = False
        self.kept: list[tuple[WebSocketRoute, str | bytes]] = []
        if late == "answers":
            page.route("**/decision", lambda route: self.answer(route, page))
        if late == "pushes":
            page.route_web_socket(re.compile("/ws/"), self.between)

    def begins(self) -> None:
        self.holds = self.late == "pushes"

    def ends(self) -> None:
        self.holds = False
        while self.kept:
            socket, message = self.kept.pop(0)
            socket.send(message)

    def answer(self, route: Route, page: Page) -> None:
        answer = route.fetch()
        page.get_by_text("You approved exactly this.").wait_for()
        route.fulfill(response=answer)

    def between(self, socket: WebSocketRoute) -> None:
        def hear(message: str | bytes) -> None:
            self.kept.append((socket, message)) if self.holds else socket.send(message)

        socket.connect_to_server().on_message(hear)


def test_sam_rejects_and_must_say_why(page, waiting):
    open_live(page, waiting, "Sam")
    page.get_by_role("button", name="Reject…").click()
    reason = page.get_by_label("What should change?")
    expect(reason).to_be_focused()
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_text("Write at least one sentence. The agent reads it.")).to_be_visible()
    expect(reason).to_be_focused()
    assert waiting.state == "waiting"
    reason.fill("Attach the payment record.")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_text("You rejected this.")).to_be_visible()
    expect(page.get_by_text("“Attach the payment record.”").first).to_be_visible()
    waiting.run.wait_for("succeeded", within=SOON)
    assert waiting.sent() == 0


def test_escape_leaves_the_reason_and_r_comes_back_to_it_as_it_was_typed(page, waiting):
    open_live(page, waiting, "Sam")
    page.keyboard.press("r")
    reason = page.get_by_label("What should change?")
    expect(reason).to_be_focused()
    page.keyboard.type("Attach the")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Reject…")).to_be_visible()
    expect(reason).to_have_count(0)
    page.keyboard.press("r")
    expect(reason).to_be_focused()
    expect(reason).to_have_value("Attach the")
    page.keyboard.press("End")
    page.keyboard.type(" record, ok?")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_text("You rejected this.")).to_be_visible()
    expect(page.get_by_label("What you typed, not sent")).to_be_hidden()
    waiting.run.wait_for("succeeded", within=SOON)


def test_riley_asks_and_the_answer_comes_by_itself(page, new_context, waiting):
    open_live(page, waiting, "Riley")
    sam = open_live(new_context().new_page(), waiting, "Sam")
    page.keyboard.press("q")
    question = page.get_by_label("Your question")
    expect(question).to_be_focused()
    question.fill("Which payments are on INV-20931?")
    page.get_by_role("button", name="Ask", exact=False).click()
    expect(page.get_by_text("You asked")).to_be_visible()
    expect(page.get_by_text("support-triage answered")).to_be_visible()
    expect(sam.get_by_text("Riley Park asked")).to_be_visible()
    picture(page, "ask")
    expect(sam.locator(".msg[data-kind=agent]").get_by_text("INV-20931").first).to_be_visible()
    expect(page.get_by_label("Your question")).to_have_value("")
    assert waiting.state == "waiting", "an answer changes nothing"
    page.get_by_role("button", name="Approve exactly this").click()
    page.get_by_role("button", name="Approve and send").click()
    expect(page.get_by_text("You approved exactly this.")).to_be_visible()
    waiting.run.wait_for("succeeded", within=SOON)


def test_riley_edits_and_sam_approves_what_riley_wrote(new_context, waiting):
    before = arrived(waiting.server)
    riley, sam = (open_live(new_context().new_page(), waiting, name) for name in ("Riley", "Sam"))
    riley.keyboard.press("e")
    body = riley.get_by_role("textbox", name="Message", exact=True)
    expect(riley.get_by_text("Nothing is sent while you edit.")).to_be_visible()
    body.fill(body.input_value().rstrip() + "\n\nI am sorry for the trouble.\n")
    riley.get_by_role("button", name="See what changes").click()
    expect(riley.get_by_text("1 of")).to_be_visible()
    expect(riley.locator("#panel ins").get_by_text("sorry")).to_be_visible()
    picture(riley, "edit")
    assert waiting.state == "waiting", "looking changes nothing"
    riley.get_by_role("button", name="Propose my version").click()
    expect(riley.get_by_text("You edited this.")).to_be_visible()
    expect(riley.get_by_role("button", name="Approve exactly this")).to_have_count(0)
    # Sam had the old one open: the new one comes in its place, with what changed
    expect(sam.get_by_text("Riley Park edited this.")).to_be_visible()
    expect(sam.get_by_role("heading", name="What changed")).to_be_visible()
    sam.get_by_role("button", name="Approve exactly this").click()
    sam.get_by_role("button", name="Approve and send").click()
    expect(sam.get_by_text("You approved exactly this.")).to_be_visible()
    expect(riley.get_by_text("Sam Okafor approved this.")).to_be_visible()
    waiting.run.wait_for("succeeded", within=SOON)
    (message,) = waiting.run.messages()
    assert "I am sorry for the trouble." in message.get_body().get_content()
    assert len(mailbox(waiting.server)) == before + 1
    assert waiting.decisions() == [], "nobody decided on what the agent wrote"


def test_who_is_overtaken_sees_it_in_place_and_keeps_what_was_typed(new_context, waiting):
    riley, sam = (open_live(new_context().new_page(), waiting, name) for name in ("Riley", "Sam"))
    sam.get_by_role("button", name="Reject…").click()
    sam.get_by_label("What should change?").fill("I would say it more kindly.")
    riley.get_by_role("button", name="Approve exactly this").click()
    riley.get_by_role("button", name="Approve and send").click()
    expect(sam.get_by_text("Riley Park approved this.")).to_be_visible()
    expect(sam.get_by_role("button", name="Reject", exact=True)).to_have_count(0)
    expect(sam.get_by_label("What you typed, not sent")).to_have_value("I would say it more kindly.")
    assert [decision["verdict"] for decision in waiting.decisions()] == ["approved"]


def test_two_reviewers_at_once_give_one_decision_and_both_are_told_which(new_context, waiting):
    contexts = {"Riley": new_context(), "Sam": new_context()}
    for context in contexts.values():
        context.route_web_socket(re.compile("/ws/"), lambda socket: None)  # nobody hears of the other
    pages = {name: sign_in(context.new_page(), waiting.server, name) for name, context in contexts.items()}
    for page in pages.values():
        page.goto(waiting.url)
        page.get_by_role("button", name="Approve exactly this").click()
        page.get_by_role("button", name="Approve and send").wait_for()
    for page in pages.values():
        page.get_by_role("button", name="Approve and send").click(no_wait_after=True)
    expect(pages["Riley"].get_by_text(re.compile("(You|Sam Okafor) approved"))).to_be_visible()
    expect(pages["Sam"].get_by_text(re.compile("(You|Riley Park) approved"))).to_be_visible()
    late = [page for page in pages.values() if page.get_by_text("Your approval was not recorded.").count()]
    assert len(late) == 1 and len(waiting.decisions()) == 1
    until(lambda: waiting.sent() == 1, within=SOON, what="the message to be sent")


def test_by_keyboard_alone(page, waiting):
    second = Waiting(waiting.server)
    open_live(page, waiting, "Riley")
    page.keyboard.press("c")
    expect(page.get_by_text("Claimed by you.")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Approve and send")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Approve exactly this")).to_be_visible()
    page.keyboard.press("r")
    expect(page.get_by_label("What should change?")).to_be_focused()
    page.keyboard.type("a")
    expect(page.get_by_label("What should change?")).to_have_value("a")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Approve exactly this")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Approve and send")).to_be_focused()
    assert waiting.state == "waiting"
    rows = open_rows(page)
    after = (rows + rows)[rows.index(waiting.path) + 1]
    page.keyboard.press("Enter")
    expect(page.get_by_text("You approved exactly this.")).to_be_visible()
    expect(page.locator(f'#queue a[href="{after}"]')).to_be_focused()
    offered = page.get_by_role("link", name="Next in queue").get_attribute("href")
    page.keyboard.press("j")
    page.wait_for_url(f"**{offered}")
    expect(page.locator("#panel h2")).to_be_focused()
    assert second.state == "waiting"


def test_j_and_k_walk_the_queue_and_open_what_they_come_to(page, waiting):
    Waiting(waiting.server)
    open_live(page, waiting, "Riley")
    rows = open_rows(page)
    at = rows.index(waiting.path)
    there, key, back = (rows[at + 1], "j", "k") if at + 1 < len(rows) else (rows[at - 1], "k", "j")
    page.keyboard.press(key)
    page.wait_for_url(f"**{there}")
    expect(page.locator(f'#queue a[href="{there}"]')).to_have_attribute("aria-current", "true")
    page.keyboard.press(back)
    page.wait_for_url(f"**{waiting.path}")
    expect(page.locator("#queue .qi[aria-current]")).to_have_count(1)


def test_the_back_button_and_a_replayed_form_decide_nothing_more(page, waiting):
    sign_in(page, waiting.server, "Riley")
    page.goto(f"{waiting.server.base_url}/inbox")
    page.goto(waiting.url + "?do=approve")
    page.get_by_role("button", name="Approve and send").click()
    expect(page.get_by_text("You approved exactly this.")).to_be_visible()
    page.go_back()
    page.locator("html[data-live=open]").wait_for()
    page.go_forward()
    expect(page.get_by_text("You approved exactly this.")).to_be_visible()
    expect(page.get_by_role("button", name="Approve and send")).to_have_count(0)
    assert len(waiting.decisions()) == 1
    until(lambda: waiting.sent() == 1, within=SOON, what="the message to be sent")


def test_without_script_the_same_two_steps_decide(new_context, waiting):
    page = sign_in(new_context(java_script_enabled=False).new_page(), waiting.server, "Riley")
    page.goto(waiting.url)
    page.get_by_role("button", name="Claim").click()
    expect(page.get_by_text("Claimed by you.")).to_be_visible()
    page.get_by_role("button", name="Reject…").click()
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.get_by_text("Write at least one sentence. The agent reads it.")).to_be_visible()
    page.goto(waiting.url)
    page.get_by_role("button", name="Approve exactly this").click()
    assert waiting.state == "waiting"
    page.get_by_role("button", name="Approve and send").click()
    expect(page.get_by_text("You approved exactly this.")).to_be_visible()
    expect(page).to_have_url(waiting.url)


def test_on_a_phone_nothing_runs_off_the_screen_and_it_can_be_decided(new_context, waiting):
    page = new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).new_page()
    open_live(page, waiting, "Riley")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390, f"the page is {width} px wide"
    page.get_by_role("link", name="Edit…").tap()
    subject = page.get_by_role("textbox", name="Subject", exact=True)
    expect(subject).to_be_visible()
    field, bar = subject.bounding_box(), page.get_by_role("group", name="Your version").bounding_box()
    assert field and bar and field["y"] > 0 and field["y"] + field["height"] < bar["y"], "the fields are there at once"
    page.get_by_role("link", name="Discard changes").tap()
    page.get_by_role("button", name="Approve exactly this").tap()
    page.get_by_role("button", name="Approve and send").tap()
    expect(page.get_by_text("You approved exactly this.")).to_be_visible()


def test_what_arrives_is_there_by_itself_and_the_open_action_stays(page, waiting):
    open_live(page, waiting, "Riley")
    page.get_by_role("button", name="Approve exactly this").click()
    armed = page.get_by_role("button", name="Approve and send")
    expect(armed).to_be_focused()
    arrived = Waiting(waiting.server)
    expect(page.locator(f'#queue a[href="{arrived.path}"]')).to_be_visible()
    expect(armed).to_be_focused()
    expect(page).to_have_url(waiting.url)


def test_an_action_that_is_replaced_while_open_gives_way_to_the_new_one_with_what_changed(page, new_context, waiting):
    newer = Waiting(waiting.server)
    open_live(page, waiting, "Riley")
    page.get_by_role("button", name="Approve exactly this").click()
    page.get_by_role("button", name="Approve and send").wait_for()
    # no verb supersedes yet: the rows are made as one would leave them, and a claim says that something moved
    waiting.server.query(
        "UPDATE approvals_proposedaction SET state = 'superseded', superseded_by_id = %s, settled_at = proposed_at WHERE id = %s",
        UUID(as_uuid(newer.action["id"])),
        UUID(as_uuid(waiting.action["id"])),
    )
    sam = open_live(new_context().new_page(), newer, "Sam")
    sam.get_by_role("button", name="Claim").click()
    expect(page.get_by_role("heading", name="What changed")).to_be_visible()
    expect(page.locator("#panel")).to_have_attribute("data-action", as_uuid(newer.action["id"]))
    expect(page.get_by_role("button", name="Approve and send")).to_have_count(0)
    assert waiting.decisions() == []


def test_a_manager_watches_it_being_decided_and_sees_it_redacted(new_context, waiting):
    morgan = open_live(new_context().new_page(), waiting, "Morgan")
    expect(morgan.get_by_text("You see this redacted.")).to_be_visible()
    expect(morgan.get_by_role("button", name=re.compile("Approve|Reject"))).to_have_count(0)
    morgan.set_viewport_size({"width": 1100, "height": 700})  # where the evidence stands under the action
    action, evidence = (morgan.locator(part).bounding_box() for part in (".panel__main", ".evidence"))
    assert action and evidence and evidence["y"] >= action["y"] + action["height"] - 1
    riley = open_live(new_context().new_page(), waiting, "Riley")
    riley.get_by_role("button", name="Approve exactly this").click()
    riley.get_by_role("button", name="Approve and send").click()
    expect(morgan.get_by_text("Riley Park approved this.")).to_be_visible()
