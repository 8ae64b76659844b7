"""Ada changes a policy: she tries it on what was proposed, reads what would have differed, and saves it. Riley approves the like."""

from uuid import UUID

import pytest
from playwright.sync_api import Browser

from tests.acceptance.triage import Person, Triage
from tests.browser.test_every_page import browsing, faults
from tests.stack import Stack


@pytest.mark.timeout(300)
def test_ada_tries_a_policy_before_she_saves_it_and_riley_approves_the_like(browser: Browser, server: Stack):
    run = Triage.start(server, again=True)
    action = run.waiting_action()
    with browsing(browser, server, "Ada", 1440, "light") as (page, complaints):
        page.goto(f"{server.base_url}/policies")
        page.get_by_role("row", name="Notes in the CRM").get_by_role("link", name="Edit").click()
        assert page.get_by_label("Tool").input_value() == "update_crm"
        page.get_by_label("Several people").check()
        page.get_by_label("How many").fill("3")
        page.get_by_text("Add a condition").first.click()
        page.get_by_label("What, condition 1").select_option(label="its agent")
        page.get_by_label("Test, condition 1").select_option(label="is")
        page.get_by_label("Value, condition 1").fill("nobody-of-ours")
        page.get_by_role("button", name="Try on the last 1,000 actions").click()
        assert "would differ" in page.get_by_role("complementary").inner_text()
        page.get_by_label("Why").fill("Tried in a browser.")
        assert not complaints and faults(page) == []
        complaints.clear()
        page.get_by_role("button", name="Save as version").click()
        page.get_by_text("is in force.").first.wait_for()
        assert "Tried in a browser." in page.get_by_role("region", name="History").inner_text()
        assert faults(page) == []
        page.get_by_role("region", name="History").get_by_role("link").nth(1).click()  # and back, also for the other tests of this stack
        page.get_by_label("Why go back to it").fill("It was only to try.")
        page.get_by_role("button", name="Try on the last 1,000 actions").click()
        page.get_by_role("button", name="Save as version").click()
        page.get_by_text("is in force.").first.wait_for()
        assert "It was only to try." in page.get_by_role("region", name="History").inner_text()
    with Person(server, "Sam") as sam:
        sam.decide(action, "approved")
    run.wait_for("succeeded")
    with browsing(browser, server, "Riley", 1440, "dark") as (page, complaints):
        page.goto(f"{server.base_url}/actions/{UUID(str(action['id']))}")
        page.get_by_role("link", name="Approve the like for an hour…").click()
        assert page.get_by_label("Tool").input_value() == "send_email"
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
