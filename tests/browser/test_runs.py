"""The pages of runs in a real browser: they move by themselves, keep what the reader opened, and work by keyboard and on a phone."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.acceptance.triage import Triage
from tests.browser.test_every_page import faults
from tests.stack import Stack
from tests.waiting import until

PHONE = {"width": 390, "height": 844}
CUT = """box => { const edge = box.querySelector("thead").getBoundingClientRect().bottom;
  return [...box.querySelectorAll("[data-row]")].map(row => row.getBoundingClientRect())
    .filter(row => row.top < edge - 1 && row.bottom > edge + 1).length }"""
Context = Callable[..., BrowserContext]


class Agent:
    """An agent outside that works on a run of its own over the API."""

    def __init__(self, server: Stack) -> None:
        token = server.manage("agentkey", "support-triage").split()[-1]
        self.http = httpx.Client(base_url=f"{server.base_url}/api/v1/", headers={"Authorization": f"Bearer {token}"}, timeout=30)
        started = {"title": "Archive review", "agent_version": "1.0"}
        self.run = self._ok(self.http.post("runs", json=started, headers={"Idempotency-Key": str(uuid4())}))
        self.url = f"{server.base_url}/runs/{self.run['id']}"

    def tell(self, kind: str, data: dict[str, Any] | None = None, **texts: str) -> None:
        event = {"id": str(uuid4()), "type": kind, "data": data or {}, "texts": texts}
        self._ok(self.http.post(f"runs/{self.run['id']}/events", json=event))

    def notes(self, *numbers: int) -> None:
        events = [{"id": str(uuid4()), "type": "note.posted", "texts": {"note": f"Looked at page {n}"}} for n in numbers]
        self._ok(self.http.post(f"runs/{self.run['id']}/events", json=events))

    def end(self) -> None:
        report = {"outcome": "succeeded", "report": {"title": "All read", "cites": [3]}}
        self._ok(self.http.post(f"runs/{self.run['id']}/ending", json=report))

    def _ok(self, response: httpx.Response) -> Any:
        assert response.is_success, response.text
        return json.loads(response.content)


@pytest.fixture
def agent(server: Stack) -> Iterator[Agent]:
    agent = Agent(server)
    yield agent
    agent.http.close()


def signed_in(page: Page, server: Stack, name: str) -> Page:
    page.goto(f"{server.base_url}/sign-in")
    page.get_by_role("button", name=re.compile(f"Continue as {name}")).click()
    page.wait_for_url(lambda url: "/sign-in" not in url)
    return page


def live(page: Page) -> Page:
    expect(page.locator("html[data-live=open]")).to_be_attached()
    return page


def test_a_run_tells_itself_while_it_is_watched(page: Page, server: Stack, agent: Agent) -> None:
    signed_in(page, server, "Morgan").goto(agent.url)
    live(page)
    expect(page.get_by_text("No plan yet.").first).to_be_visible()
    agent.tell("plan.set", {"version": 1, "steps": 2}, step_1="Read the archive", step_2="Sum it up", note="Nothing leaves the company.")
    expect(page.locator("#run-plan a")).to_have_text(["Read the archive", "Sum it up"])
    expect(page.get_by_text("No plan yet.").first).to_be_hidden()
    agent.tell("milestone.reached", {"cites": [3]}, title="Half of it is read")
    expect(page.get_by_text("Half of it is read")).to_be_visible()
    expect(page.locator("#run-live")).to_contain_text("up to #4")
    agent.end()
    expect(page.locator(".run__head .st")).to_have_text("Done")
    expect(page.locator("#run-live")).to_contain_text("Complete: #1 to #6")
    expect(page.locator("html[data-live=ended]")).to_be_attached()


def test_a_push_leaves_open_what_the_reader_opened(page: Page, server: Stack, agent: Agent) -> None:
    agent.tell("plan.set", {"version": 1, "steps": 1}, step_1="Read the archive")
    agent.tell("plan.set", {"version": 2, "steps": 1}, step_1="Read half of it")
    signed_in(page, server, "Morgan").goto(agent.url)
    live(page)
    fold = page.locator("details", has_text="1 step changed")
    fold.locator("summary").click()
    page.get_by_text("Everything", exact=True).click()
    agent.notes(1)
    expect(page.get_by_text("Looked at page 1")).to_be_visible()
    expect(fold).to_have_attribute("open", "")
    expect(page.locator("input[name=detail][value=all]")).to_be_checked()


def test_the_raw_log_is_walked_by_keyboard(page: Page, server: Stack, agent: Agent) -> None:
    agent.notes(*range(1, 31))
    signed_in(page, server, "Morgan").goto(f"{agent.url}/events")
    live(page)
    detail, selected = page.locator("#event-detail"), page.locator("[data-row][aria-selected]")
    expect(detail).to_contain_text("Looked at page 30")
    for key, seq in (("k", 31), ("k", 30), ("j", 31), ("End", 32)):
        page.keyboard.press(key)
        expect(detail).to_have_attribute("data-shows", str(seq))
        expect(selected).to_have_attribute("data-row", str(seq))


def test_an_event_opened_by_its_address_is_seen_at_once(page: Page, new_context: Context, server: Stack, agent: Agent) -> None:
    agent.notes(*range(60))
    signed_in(page, server, "Morgan")
    for seq in (1, 24, 40, 60):
        page.goto(f"{agent.url}/events/{seq}")
        row, head, foot = (
            page.locator(part).bounding_box() for part in ("[aria-selected=true]", ".vtable thead th >> nth=0", ".vtable__foot")
        )
        assert head["y"] + head["height"] <= row["y"] + 1, f"#{seq} is under the head"
        assert row["y"] + row["height"] <= foot["y"] + 1, f"#{seq} is under the foot"
    phone = signed_in(new_context(viewport=PHONE).new_page(), server, "Morgan")
    phone.goto(f"{agent.url}/events/40")
    expect(phone.locator("#event-detail h2")).to_be_in_viewport()


def test_no_row_of_the_raw_log_lies_half_under_its_foot(page: Page, server: Stack, agent: Agent) -> None:
    agent.notes(*range(60))
    page.set_viewport_size({"width": 1440, "height": 760})
    signed_in(page, server, "Morgan").goto(f"{agent.url}/events")
    live(page)
    for at in (0, 7, 15, 20, 27):
        page.locator(".vtable").evaluate("(box, at) => box.scrollTo(0, at)", at)
        assert faults(page, ["target-size"]) == []
    box, foot = (page.locator(part).bounding_box() for part in (".vtable", ".vtable__foot"))
    assert box["y"] + box["height"] <= foot["y"] + 1


def test_on_a_phone_who_it_was_and_what_it_holds_share_a_line(new_context: Context, server: Stack, agent: Agent) -> None:
    agent.notes(1)
    phone = signed_in(new_context(viewport=PHONE).new_page(), server, "Morgan")
    phone.goto(f"{agent.url}/events")
    cells = phone.locator("tr", has_text="Looked at page 1").get_by_role("cell")
    who, holds = (cells.nth(number).bounding_box() for number in (3, 5))
    assert who["y"] < holds["y"] + holds["height"] / 2 < who["y"] + who["height"], (who, holds)
    assert who["x"] + who["width"] <= holds["x"] + 1


def test_new_events_come_to_who_is_at_the_end_and_are_counted_for_who_is_not(page: Page, server: Stack, agent: Agent) -> None:
    agent.notes(*range(1, 61))
    signed_in(page, server, "Morgan").goto(f"{agent.url}/events")
    live(page)
    page.keyboard.press("End")
    agent.notes(61, 62)
    expect(page.locator("[data-row='64']")).to_be_visible()
    expect(page.locator("#event-resume")).to_contain_text("Carry on from #64")
    page.locator(".vtable").evaluate("box => box.scrollTo(0, 0)")
    agent.notes(63, 64, 65)
    news = page.get_by_role("button", name="3 new")
    expect(news).to_be_visible()
    assert page.locator(".vtable").evaluate("box => box.scrollTop") == 0
    assert page.locator("[data-row='65']").count() == 0
    news.click()
    expect(page.locator("[data-row='67']")).to_be_visible()
    expect(page.locator("[data-row='67']")).to_be_in_viewport()
    until(lambda: page.locator(".vtable").evaluate(CUT) == 0, what="a row is cut under the head")


def test_the_raw_log_is_as_high_as_what_there_is_and_no_higher_than_the_window(page: Page, server: Stack, agent: Agent) -> None:
    agent.notes(1, 2, 3)
    page.set_viewport_size({"width": 1440, "height": 900})
    signed_in(page, server, "Morgan").goto(f"{agent.url}/events")
    box = page.locator(".events__cols")
    assert box.bounding_box()["height"] < 560, "a few events leave no empty pane"
    agent.notes(*range(4, 61))
    page.reload()
    expect(page.locator("[data-row='60']")).to_be_visible()
    found = box.bounding_box()
    assert 840 < found["y"] + found["height"] <= 900
    assert page.locator(".vtable").evaluate("box => box.scrollHeight - box.clientHeight") > 200


def test_the_raw_log_is_filtered_as_one_types(page: Page, server: Stack, agent: Agent) -> None:
    agent.tell("plan.set", {"version": 1, "steps": 1}, step_1="Read the archive")
    agent.notes(1, 2, 3)
    signed_in(page, server, "Morgan").goto(f"{agent.url}/events")
    page.get_by_placeholder("Summary, actor, key").fill("page 2")
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.locator("[data-row]")).to_contain_text("Looked at page 2")
    page.get_by_placeholder("Summary, actor, key").fill("")
    page.locator("label.chip", has_text="plan").click()
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page).to_have_url(re.compile("type=plan"))


def test_a_run_that_begins_and_ends_is_seen_so_in_the_list_by_itself(page: Page, server: Stack, agent: Agent) -> None:
    signed_in(page, server, "Morgan").goto(f"{server.base_url}/runs")
    expect(live(page).locator(".topbar [data-live-indicator]")).to_have_text("Live")
    later = Agent(server)
    later.notes(1)
    row = page.locator("#runs-results tr", has_text=later.run["ref"])
    expect(row).to_contain_text("Running")
    later.end()
    later.http.close()
    expect(row).to_contain_text("Done")


def test_runs_are_found_as_one_types_and_the_back_button_undoes_it(page: Page, server: Stack, agent: Agent) -> None:
    signed_in(page, server, "Morgan").goto(f"{server.base_url}/runs")
    rows = page.locator(".runs__tbl tbody tr")
    expect(rows.first).to_be_visible()
    page.locator("#runs-q").fill(agent.run["ref"])
    expect(rows).to_have_count(1)
    expect(page.locator("#runs-q")).to_be_focused()
    page.locator("label.chip", has_text="Failed").click()
    expect(page.get_by_text(f"No failed run matches “{agent.run['ref']}”.")).to_be_visible()
    page.go_back()
    expect(rows).to_have_count(1)
    rows.first.get_by_role("link").click()
    expect(page).to_have_url(agent.url)


def test_cancelling_says_first_what_will_happen_and_then_what_did(page: Page, server: Stack) -> None:
    run = Triage.start(server, again=True)
    run.waiting_action()
    signed_in(page, server, "Otto").goto(f"{server.base_url}/runs/{run.id}")
    page.get_by_role("button", name="Cancel run…").click()
    dialog = page.get_by_role("dialog", name="Cancel this run?")
    expect(dialog).to_contain_text("Was not sent. The request for approval is withdrawn.")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("button", name="Cancel run…")).to_be_focused()
    page.get_by_role("button", name="Cancel run…").click()
    dialog.get_by_label("Why").fill("Solved by phone.")
    dialog.get_by_role("button", name="Cancel run").click()
    expect(page.get_by_text("Cancelled. Nothing more is done or sent.")).to_be_visible()
    expect(page.locator("blockquote", has_text="Solved by phone.").first).to_be_visible()
    assert run.wait_for("cancelled") and run.types()[-1] == "run.cancelled"


def test_a_lost_connection_is_said_and_what_was_missed_comes_in_order(new_context: Context, server: Stack, agent: Agent) -> None:
    page = signed_in(new_context().new_page(), server, "Morgan")  # not the fixture: its console may not complain, and here it does
    page.goto(agent.url)
    live(page)
    page.context.set_offline(True)
    server.wait_for_new("web", server.kill("web"))
    notice = page.locator("#reconnecting")
    expect(notice).to_be_visible()
    expect(notice).to_contain_text("You are reading up to #2.")
    agent.notes(1, 2)
    page.context.set_offline(False)
    expect(page.get_by_text("Looked at page 2")).to_be_visible()
    expect(notice).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_cut_off(new_context: Context, server: Stack, agent: Agent, scheme: str) -> None:
    agent.tell("plan.set", {"version": 1, "steps": 2}, step_1="Read the archive", step_2="Sum it up " * 8)
    agent.notes(1)
    page = signed_in(new_context(viewport=PHONE, color_scheme=scheme).new_page(), server, "Otto")
    for address in (f"{server.base_url}/runs", agent.url, f"{agent.url}/events", f"{server.base_url}/runs/new"):
        page.goto(address)
        assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0, address


def test_without_script_the_pages_say_the_same(new_context: Context, server: Stack, agent: Agent) -> None:
    agent.notes(1, 2)
    page = signed_in(new_context(java_script_enabled=False).new_page(), server, "Otto")
    page.goto(agent.url)
    expect(page.get_by_text("Looked at page 2")).to_be_visible()
    page.get_by_role("link", name="Raw events").click()
    page.get_by_role("link", name="Event 3").first.click()
    expect(page.locator("#event-detail")).to_contain_text("Looked at page 1")
    page.goto(f"{server.base_url}/runs?q={agent.run['ref']}&state=running")
    expect(page.locator(".runs__tbl tbody tr")).to_have_count(1)
