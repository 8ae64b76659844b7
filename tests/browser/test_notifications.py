"""One story in a real browser: Riley chooses what reaches her, sets up a webhook, goes away and names Sam; on a phone, without script."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from playwright.sync_api import BrowserContext, Page, expect

from tests.acceptance.triage import Triage
from tests.browser.pictures import picture
from tests.browser.test_deciding import as_uuid, sign_in
from tests.stack import Stack


def changed(page: Page) -> None:
    """The bar counts what is not saved, and offers to undo it."""
    save = page.get_by_role("button", name="Save", exact=True)
    expect(save).to_be_disabled()
    page.get_by_label("And all of Saturday and Sunday").check()
    expect(page.get_by_text("1 change not saved")).to_be_visible()
    page.get_by_label("Time zone").select_option("Europe/Lisbon")
    expect(page.get_by_text("2 changes not saved")).to_be_visible()
    page.get_by_role("button", name="Undo changes").click()
    expect(save).to_be_disabled()
    expect(page.get_by_label("And all of Saturday and Sunday")).not_to_be_checked()


def choose(page: Page) -> None:
    changed(page)
    page.get_by_label("A request is yours to decide, e-mail").uncheck()
    hours = page.get_by_role("region", name="Quiet hours")
    hours.get_by_role("combobox", name="From", exact=True).select_option("18:30")
    hours.get_by_role("combobox", name="To", exact=True).select_option("08:00")
    page.get_by_label("Time zone").select_option("Europe/Lisbon")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved. It applies to messages from now on.")).to_be_visible()
    expect(page.get_by_label("A request is yours to decide, e-mail")).not_to_be_checked()
    expect(page.get_by_label("Time zone")).to_have_value("Europe/Lisbon")
    expect(hours).to_contain_text("18:30 to 08:00")


def test_riley_chooses_what_reaches_her_and_names_sam_while_she_is_away(
    page: Page, server: Stack, new_context: Callable[..., BrowserContext]
):
    sign_in(page, server, "Riley")
    page.get_by_role("button", name="account").click()
    page.get_by_role("link", name="Your notifications").click()
    choose(page)
    page.get_by_label("Address").fill("https://user:pass@example.org/")
    page.get_by_role("button", name="Set up").click()
    expect(page.get_by_role("alert")).to_contain_text("may hold no name, password")
    expect(page.get_by_label("Address")).to_have_value("https://user:pass@example.org/")
    page.get_by_label("Address").fill("https://example.org/handrail")
    page.get_by_role("button", name="Set up").click()
    expect(page.get_by_text("shown now and never again")).to_be_visible()
    expect(page.locator("#secret")).to_contain_text("whsec_")
    page.goto(f"{server.base_url}/notifications")
    expect(page.locator("#secret")).to_have_count(0)
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("Nothing is posted any more.")).to_be_visible()

    phone = new_context(viewport={"width": 390, "height": 844}, java_script_enabled=False).new_page()
    sign_in(phone, server, "Riley")
    phone.goto(f"{server.base_url}/notifications")
    today = datetime.now(UTC).date()
    away = phone.get_by_role("region", name="While you are away")
    away.get_by_label("From", exact=True).fill(today.isoformat())
    away.get_by_label("To, included").fill((today + timedelta(days=4)).isoformat())
    away.get_by_label("Decides for you").select_option(label="Sam Okafor")
    away.get_by_role("button", name="Hand over").click()
    expect(away.get_by_text("Sam Okafor decides for you")).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390

    run = Triage.start(server, again=True)
    action = run.waiting_action()
    page.goto(f"{server.base_url}/actions/{as_uuid(action['id'])}")
    last = today + timedelta(days=4)
    expect(page.get_by_text(f"Sam Okafor, for you, until {last.day} {last:%b}.")).to_be_visible()
    picture(page, "delegate")
    away.get_by_role("button", name="End it now").click()
    expect(away.get_by_text("Sam Okafor decides for you")).to_have_count(0)
    page.reload()
    expect(page.get_by_text("for you, until")).to_have_count(0)
