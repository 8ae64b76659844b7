"""Ada makes a team and lets reviewers see their own team alone: Riley sees its runs, and no others."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_every_page import browsing, faults
from tests.browser.test_permissions import wide
from tests.stack import Stack

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
WHY = "They look after tickets."
BACK = """
from access.models import Agent, Role, Team, TeamMember; from runs.models import Run; from config import clock
Run.objects.exclude(team=None).update(team=None); Agent.objects.update(team=None); TeamMember.objects.all().delete()
Team.objects.update(deleted_at=clock.now())
role = Role.objects.get(name="reviewer"); role.capabilities = [each.removesuffix(":team") for each in role.capabilities]; role.save()
"""


@pytest.fixture
def house(server: Stack) -> Iterator[Stack]:
    """The shared one, where one admin is enough; afterwards it has no teams again."""
    server.manage("secondadmin", "fernhill", "never")
    server.manage("triage", str(EXAMPLES / "back_office" / "requests" / "note.eml"), "--workflow", "back-office", "--again")
    server.manage("triage", str(EXAMPLES / "support_triage" / "tickets" / "duplicate-charge.eml"), "--again")
    try:
        yield server
    finally:
        server.manage("shell", "-c", BACK)
        server.manage("secondadmin", "fernhill", "two")


@pytest.mark.timeout(300)
def test_ada_makes_a_team_and_riley_sees_it_alone(browser: Browser, house: Stack) -> None:
    with (
        browsing(browser, house, "Riley", 1440, "light") as (riley, of_riley),
        browsing(browser, house, "Ada", 390, "dark") as (ada, of_ada),
    ):
        riley.goto(f"{house.base_url}/runs")
        agents = riley.get_by_role("navigation", name="Views").get_by_role("checkbox")
        expect(agents.first).to_be_visible()
        assert agents.count() > 1
        ada.goto(f"{house.base_url}/permissions")
        expect(ada.get_by_text("There are no teams")).to_be_visible()
        ada.get_by_role("link", name="New team").click()
        ada.get_by_label("Name").fill("Tickets")
        ada.get_by_label("Why").fill(WHY)
        ada.get_by_role("button", name="Make the team").click()
        ada.get_by_role("button", name="It is me, in the demo").click()
        expect(ada.get_by_role("heading", name="Tickets")).to_be_visible()
        of_ada.clear()  # that it was asked for again is a refusal
        fill(ada, "Add somebody", "Riley Park", "Add to the team")
        expect(ada.get_by_text("They are in it.")).to_be_visible()
        fill(ada, "Let an agent work for it", "support-triage", "Let it work for the team", runs=True)
        expect(ada.get_by_role("region", name="History")).to_contain_text("support-triage works for it, with")
        assert of_ada == [] and wide(ada) <= 0 and faults(ada) == []
        of_ada.clear()
        ada.goto(f"{house.base_url}/permissions")
        ada.get_by_role("link", name="Reviewer", exact=True).click()
        for right in ("Runs and evidence", "Proposed actions", "Approve, edit, reject, ask"):
            ada.get_by_role("group", name=right).get_by_text("Own team", exact=True).click()
        expect(ada.locator("#change")).to_contain_text("3 changes")
        expect(ada.locator("#change")).to_contain_text("the runs of their own teams")
        ada.get_by_label("Why").fill("Each team decides on its own.")
        assert of_ada == [] and wide(ada) <= 0 and faults(ada) == []
        ada.get_by_role("button", name="Put in force").click()
        expect(ada.get_by_text("Version 2 of reviewer is in force.")).to_be_visible()
        expect(riley.get_by_text("Not live")).to_have_count(0)
        riley.reload()
        expect(agents).to_have_count(1)
        expect(riley.locator("#runs-results")).not_to_contain_text("back-office")
        expect(riley.locator("#runs-results")).to_contain_text("support-triage")
        riley.goto(f"{house.base_url}/inbox?team=Tickets")
        expect(riley.locator("#queue")).to_be_visible()
        assert of_riley == [] and wide(riley) <= 0 and faults(riley) == []


def fill(page: Page, form: str, who: str, button: str, *, runs: bool = False) -> None:
    if not page.get_by_role("form", name=form).is_visible():
        page.get_by_text(form, exact=True).click()
    asked = page.get_by_role("form", name=form)
    asked.get_by_role("combobox").select_option(label=who)
    if runs:
        asked.get_by_role("checkbox").check()
    asked.get_by_label("Why").fill(WHY)
    asked.get_by_role("button", name=button).click()
