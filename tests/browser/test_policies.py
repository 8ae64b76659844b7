"""Ada changes a policy: she tries it on what was proposed, reads what would differ, and Rafael confirms it. Riley approves the like."""

from pathlib import Path
from uuid import UUID

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.triage import Person, Triage
from tests.browser.test_every_page import browsing, faults
from tests.browser.test_permissions import sign_in_as_the_second, wide
from tests.stack import Stack


@pytest.mark.timeout(300)
def test_ada_tries_a_policy_before_she_saves_it_and_riley_approves_the_like(browser: Browser, server: Stack, tmp_path: Path):
    run = Triage.start(server, again=True)
    action = run.waiting_action()
    with browsing(browser, server, "Ada", 1440, "light") as (page, complaints):
        page.goto(f"{server.base_url}/policies")
        page.get_by_role("row", name="Notes in the CRM").get_by_role("link", name="Edit").click()
        expect(page.get_by_label("Tool")).to_have_value("update_crm")
        page.get_by_label("Several people").check()
        page.get_by_label("How many").fill("3")
        page.get_by_text("Add a condition").first.click()
        page.get_by_label("What, condition 1").select_option(label="its agent")
        page.get_by_label("Test, condition 1").select_option(label="is")
        page.get_by_label("Value, condition 1").fill("nobody-of-ours")
        page.get_by_label("Value, condition 1").press("Enter")  # tries it, and takes nothing out
        page.get_by_role("button", name="Try again").wait_for()
        expect(page.get_by_label("Value, condition 1")).to_have_value("nobody-of-ours")
        expect(page.get_by_role("button", name="Remove this rule…")).to_be_visible()
        expect(page.get_by_role("complementary")).to_contain_text("would differ")
        page.get_by_label("Why").fill("Tried in a browser.")
        assert not complaints and faults(page) == []
        complaints.clear()
        page.get_by_role("button", name="Ask Rafael Costa to confirm").click()
        page.get_by_role("button", name="It is me, in the demo").click()  # and what was typed goes on from there
        confirmed_by_rafael(browser, server, page, tmp_path)
        expect(page.get_by_role("region", name="History")).to_contain_text("confirmed by Rafael Costa. Tried in a browser.")
        assert faults(page) == []
        page.get_by_role("region", name="History").get_by_role("link").nth(1).click()  # and back, also for the other tests of this stack
        page.get_by_label("Why go back to it").fill("It was only to try.")
        page.get_by_role("button", name="Try on the last 1,000 actions").click()
        page.get_by_role("button", name="Ask Rafael Costa to confirm").click()
        confirmed_by_rafael(browser, server, page, tmp_path)
        expect(page.get_by_role("region", name="History")).to_contain_text("It was only to try.")
    with Person(server, "Sam") as sam:
        sam.decide(action, "approved")
    run.wait_for("succeeded")
    with browsing(browser, server, "Riley", 1440, "dark") as (page, complaints):
        page.goto(f"{server.base_url}/actions/{UUID(str(action['id']))}")
        expect(page.get_by_text("Its like can’t be approved beforehand")).to_be_visible()
        expect(page.get_by_role("link", name="Approve the like for an hour…")).to_have_count(0)
        assert faults(page) == []
        page.goto(f"{server.base_url}/standing-grants/new?action={UUID(str(action['id']))}")
        expect(page.get_by_text("The action that you come from would not be covered.")).to_be_visible()
        expect(page.get_by_label("Tool")).to_have_value("send_email")
        page.set_viewport_size({"width": 390, "height": 844})
        page.get_by_role("button", name="Try on past actions").click()
        page.get_by_role("button", name="Let it stand").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert not complaints and faults(page) == []
        complaints.clear()
        page.get_by_role("button", name="Let it stand").click()
        page.get_by_role("button", name="Revoke").click()
        page.get_by_text("Revoked by Riley").wait_for()
        assert not complaints


def confirmed_by_rafael(browser: Browser, server: Stack, ada: Page, pictures: Path) -> None:
    """The second admin reads what would change, and confirms it; Ada, who can't, goes back to the policies."""
    expect(ada.get_by_text("You asked for this, so you can’t confirm it.")).to_be_visible()
    ada.screenshot(path=pictures / "asked-wide.png", full_page=True)
    with browsing(browser, server, "", 390, "dark") as (rafael, complaints):
        sign_in_as_the_second(rafael, server)
        rafael.goto(ada.url)
        expect(rafael.get_by_role("region", name="What would change")).to_contain_text("Rule “Notes in the CRM”")
        rafael.screenshot(path=pictures / "asked-narrow.png", full_page=True)
        assert complaints == [] and wide(rafael) <= 0 and faults(rafael) == []
        complaints.clear()
        rafael.get_by_role("button", name="Confirm").click()
        rafael.get_by_role("button", name="It is me, in the demo").click()
        expect(rafael.get_by_text("is in force.").first).to_be_visible()
    expect(ada.locator("#second")).to_contain_text("Rafael Costa confirmed")  # what she has open says so by itself
    ada.goto(f"{server.base_url}/policies")
