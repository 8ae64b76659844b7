"""Ada changes what managers may do and says why, Rafael confirms it, and what Morgan has open follows at once. Then they undo it."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from config.management.commands.demo_seed import AGENTS, PEOPLE
from tests.browser.test_every_page import browsing, faults
from tests.stack import Stack

MANAGERS = {*(name for name, role in PEOPLE if role == "manager"), *AGENTS.values()}  # who owns an agent is one too


@pytest.mark.timeout(300)
def test_two_admins_change_a_role_with_a_reason_and_what_is_open_elsewhere_follows(browser: Browser, server: Stack, tmp_path: Path):
    with (
        browsing(browser, server, "Morgan", 1440, "light") as (morgan, _),
        browsing(browser, server, "Ada", 1440, "light") as (ada, of_ada),
        browsing(browser, server, "", 390, "dark") as (rafael, of_rafael),
    ):
        morgan.goto(f"{server.base_url}/runs")
        expect(morgan.locator("[data-live-indicator]")).to_be_visible()
        ada.goto(f"{server.base_url}/permissions")
        expect(ada.get_by_role("table", name="Rules in order")).to_be_visible()  # of another room, by a request of its own
        expect(ada.get_by_role("table", name="What each role may do")).to_contain_text("Needs a second admin")
        assert of_ada == [] and wide(ada) <= 0 and faults(ada) == []
        of_ada.clear()
        ada.get_by_role("link", name="Manager").click()
        ada.get_by_role("group", name="Runs and evidence").get_by_text("No", exact=True).click()
        expect(ada.locator("#change")).to_contain_text(f"{len(MANAGERS)} people could no longer see")
        expect(ada.locator("#change")).to_contain_text("Narrows access")
        ada.get_by_label("Why").fill("Only to see who is asked.")
        assert of_ada == [] and faults(ada) == []
        of_ada.clear()
        ada.get_by_role("button", name="Ask Rafael Costa to confirm").click()
        ada.get_by_role("button", name="It is me, in the demo").click()  # and what was typed goes on from there
        expect(ada.get_by_text("You asked for this, so you can’t confirm it.")).to_be_visible()
        sign_in_as_the_second(rafael, server)
        rafael.goto(f"{server.base_url}/permissions")
        rafael.get_by_role("link", name="Look at it").click()
        expect(rafael.locator("#change")).to_contain_text("Only to see who is asked.")
        assert rafael.locator("#change").bounding_box()["y"] < rafael.locator("#role").bounding_box()["y"]  # on a phone it comes first
        assert of_rafael == [] and wide(rafael) <= 0 and faults(rafael) == []
        of_rafael.clear()
        rafael.get_by_role("button", name="Confirm").click()
        rafael.get_by_role("button", name="It is me, in the demo").click()
        expect(rafael.get_by_text("Version 2 of manager is in force.")).to_be_visible()
        expect(morgan.get_by_text("Not live")).to_be_visible()  # what Morgan had open was closed at once
        morgan.reload()
        expect(morgan.get_by_text("This needs the right “See runs and evidence”.").first).to_be_visible()
        expect(ada.locator("#second")).to_contain_text("Rafael Costa confirmed")  # what she has open says so by itself
        undo(ada, rafael, server)
        morgan.goto(f"{server.base_url}/runs")
        expect(morgan.locator("[data-live-indicator]")).to_be_visible()


def undo(ada: Page, rafael: Page, server: Stack) -> None:
    ada.get_by_role("link", name="See the role as it is now").click()
    ada.get_by_role("region", name="History").get_by_role("link").last.click()
    ada.get_by_role("link", name="Restore this version…").click()
    ada.get_by_label("Why").fill("It was only to try.")
    ada.get_by_role("button", name="Ask Rafael Costa to confirm").click()
    expect(ada.get_by_text("As version 1 was.")).to_be_visible()
    rafael.goto(ada.url)
    rafael.get_by_role("button", name="Confirm").click()
    expect(rafael.get_by_role("region", name="History")).to_contain_text("As version 1 was. It was only to try.")


def sign_in_as_the_second(page: Page, server: Stack) -> None:
    page.goto(f"{server.base_url}/sign-in")
    page.get_by_text("A second admin, to confirm a change of roles").click()
    page.get_by_role("button", name="Continue as Rafael").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)


def wide(page: Page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.mark.timeout(300)
def test_ada_tries_a_past_action_and_reads_who_could_decide(browser: Browser, server: Stack):
    with browsing(browser, server, "Ada", 390, "light") as (page, complaints):
        page.goto(f"{server.base_url}/permissions")
        sections = page.get_by_role("navigation", name="On this page")
        expect(sections.locator("[aria-current=true]")).to_have_text("Roles")
        page.get_by_role("link", name="All ").last.scroll_into_view_if_needed()  # in the head of the access log
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        expect(sections.locator("[aria-current=true]")).to_have_text("Access log")
        page.goto(f"{server.base_url}/people")
        page.goto(f"{server.base_url}/permissions#simulator")
        expect(page.locator("#sim")).to_be_visible()
        expect(page.get_by_role("heading", name="Try an action")).to_be_in_viewport()  # what came in above it did not push it away
        page.locator("#sim select[name=tool]").select_option(label="Send the reply")
        page.locator("#sim").get_by_label("To several with commas").fill("t.zielinski@haldenmarine.example")
        for name in ("Subject", "Body"):
            page.locator("#sim").get_by_label(name).fill("Hello")
        page.get_by_label("The run read private data").check()
        page.get_by_role("button", name="Try it").click()
        expect(page.locator("#sim-out")).to_contain_text("2 people could decide: Riley Park and Sam Okafor.")
        expect(page.locator("#sim-out")).to_contain_text("Without rule")
        assert complaints == [] and wide(page) <= 0 and faults(page) == []
        page.get_by_role("link", name="Type all arguments as JSON").click()
        page.locator("#sim [name=arguments]").fill("{")
        page.get_by_role("button", name="Try it").click()
        expect(page.locator("#sim-out").get_by_role("alert")).to_contain_text("not JSON")
