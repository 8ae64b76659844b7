"""Two of Finance are asked about a large refund. Ada reads the group, can't make it too small for its rule, and makes another one."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.acceptance.triage import Person
from tests.browser.test_cards import KINDS, Asked
from tests.browser.test_every_page import browsing, faults
from tests.stack import Stack


@pytest.mark.timeout(300)
def test_two_of_finance_are_asked_about_a_large_refund_and_ada_keeps_the_group(browser: Browser, server: Stack, tmp_path: Path):
    refund = Asked(server, KINDS["payment"])
    with browsing(browser, server, "Riley", 1440, "light") as (page, complaints):
        page.goto(refund.url)
        expect(page.get_by_role("complementary", name="Evidence and rules")).to_contain_text("Two of 2 in Finance.")
        expect(page.locator(".quorum")).to_contain_text("2 people in Finance: you and 1 other.")
        expect(page.locator("form.decide")).to_contain_text("Your approval is the first of 2.")
        page.screenshot(path=tmp_path / "quorum.png")
        assert not complaints and faults(page) == []
    with browsing(browser, server, "Ada", 390, "dark") as (page, complaints):
        page.goto(f"{server.base_url}/policies")
        page.get_by_role("link", name="Reviewer groups").click()
        page.screenshot(path=tmp_path / "groups.png", full_page=True)
        assert faults(page) == [] and not complaints
        complaints.clear()
        page.get_by_role("link", name="Finance").click()
        expect(page.get_by_text("“Refunds over €1,000”, asks 2 of it.")).to_be_visible()
        page.get_by_label("Riley Park").uncheck()
        page.get_by_label("Why").fill("She moves to Support.")
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        page.get_by_role("button", name="Save as version 2").click()
        expect(page.get_by_role("alert")).to_contain_text("in which one person may decide: that could never be met.")
        expect(page.get_by_label("Why")).to_have_value("She moves to Support.")
        page.screenshot(path=tmp_path / "group-refused.png", full_page=True)
        complaints.clear()  # a 422 is told in the console
        assert faults(page) == []
        page.goto(f"{server.base_url}/groups/new")
        page.get_by_label("Name").fill("Night desk")
        page.get_by_label("Sam Okafor").check()
        page.get_by_label("Why").fill("Somebody is up.")
        page.get_by_role("button", name="Make the group").click()
        expect(page.get_by_role("heading", name="Night desk")).to_be_visible()
        expect(page.get_by_role("region", name="History")).to_contain_text("Ada Lindqvist: Sam Okafor in. Somebody is up.")
    with browsing(browser, server, "Ada", 1440, "light") as (page, complaints):
        page.goto(f"{server.base_url}/groups")
        page.screenshot(path=tmp_path / "groups-wide.png", full_page=True)
        page.get_by_role("link", name="Finance").click()
        page.screenshot(path=tmp_path / "group-wide.png", full_page=True)
        assert faults(page) == [] and not complaints
        complaints.clear()
        page.goto(f"{server.base_url}/policies")
        expect(page.get_by_role("row", name="Refunds over €1,000")).to_contain_text("Two of Finance")
        page.get_by_role("row", name="Refunds over €1,000").get_by_role("link", name="Edit").click()
        assert page.locator("select[name=from] option:checked").inner_text() == "Finance (2)"
        page.screenshot(path=tmp_path / "rule-wide.png", full_page=True)
    with Person(server, "Sam") as sam:
        sam.decide(refund.action, "rejected", "Only to see who is asked.")
