"""Riley breaks the glass and ends it; Ada finds it in the access log, reviews it, exports the log, and makes and revokes a key."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.test_every_page import browsing, faults
from tests.stack import Stack

WHY = "The desk is down, and nobody answers."


@pytest.mark.timeout(300)
def test_rights_taken_for_a_while_are_told_marked_and_reviewed_and_a_key_is_shown_once(browser: Browser, server: Stack, tmp_path: Path):
    with browsing(browser, server, "Riley", 1440, "light") as (page, complaints):
        page.goto(f"{server.base_url}/runs")
        page.get_by_role("button", name="account").click()  # it hangs in the menu of those who lack the rights that it gives
        page.get_by_role("link", name="Break-glass").click()
        page.screenshot(path=tmp_path / "glass.png", full_page=True)
        assert faults(page) == [] and not complaints
        complaints.clear()
        page.get_by_label("Steer and cancel runs").check()
        page.get_by_label("Why").fill(WHY)
        page.get_by_role("button", name="Break the glass").click()
        banner = page.get_by_role("complementary", name="Break-glass")
        expect(banner).to_contain_text("You hold more rights than your role gives, until")
        page.goto(f"{server.base_url}/runs")
        expect(banner).to_be_visible()
        page.screenshot(path=tmp_path / "glass-now.png")
        assert faults(page) == [] and not complaints
        complaints.clear()
        banner.get_by_role("button", name="End it now").click()
        expect(banner).to_have_count(0)
        assert page.goto(f"{server.base_url}/permissions/log").status == 403
    with browsing(browser, server, "Ada", 1440, "light") as (page, complaints):
        page.goto(f"{server.base_url}/permissions/log")
        taken = page.get_by_role("article", name="Riley Park took 1 right")  # and not what she held before
        expect(taken).to_contain_text(WHY)
        expect(page.get_by_role("row", name="Took rights by break-glass, 30 minutes")).to_contain_text(WHY)
        page.screenshot(path=tmp_path / "log.png", full_page=True)
        assert faults(page) == [] and not complaints
        complaints.clear()
        taken.get_by_label("What you found").fill("Rightly done; the desk is up again.")
        taken.get_by_role("button", name="Mark as reviewed").click()
        expect(page.get_by_role("row", name="Riley Park")).to_contain_text("Rightly done")
        page.screenshot(path=tmp_path / "reviewed.png", full_page=True)
        page.goto(f"{server.base_url}/permissions/log?what=refused")
        expect(page.get_by_role("row", name="Refused: see the access log")).to_be_visible()
        with page.expect_download() as coming:
            page.get_by_role("button", name="CSV").click()
        assert "Riley Park" in coming.value.path().read_text("utf-8-sig")
        page.goto(f"{server.base_url}/permissions/agents")
        page.get_by_role("region", name="support-triage", exact=True).get_by_text("Make a key").click()
        page.screenshot(path=tmp_path / "agents.png", full_page=True)
        assert faults(page) == [] and not complaints
        complaints.clear()
        form = page.get_by_role("form", name="Make a key for support-triage")
        form.get_by_label("What it is for").fill("nightly")
        form.get_by_role("button", name="Make the key").click()
        page.get_by_role("button", name="It is me, in the demo").click()
        complaints.clear()
        key = page.locator("#new-key").inner_text()
        assert key.startswith("hr_")
        page.screenshot(path=tmp_path / "key.png", full_page=True)
        assert faults(page) == [] and not complaints
        complaints.clear()
        page.get_by_role("link", name="I have it").click()
        row = page.get_by_role("row", name=key[:9])
        expect(page.locator("#new-key")).to_have_count(0)
        assert key not in page.content()
        row.get_by_text("Rotate or revoke").click()
        row.get_by_role("button", name="Revoke now").click()
        expect(page.get_by_role("row", name=key[:9])).to_contain_text("Revoked")
    with browsing(browser, server, "Ada", 390, "dark") as (page, complaints):
        for name, path in (("log", "log"), ("agents", "agents"), ("glass", "break-glass")):
            page.goto(f"{server.base_url}/permissions/{path}")
            page.screenshot(path=tmp_path / f"{name}-phone.png", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name
            assert faults(page) == [] and not complaints
            complaints.clear()
