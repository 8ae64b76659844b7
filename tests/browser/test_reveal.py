"""A reviewer reveals what must be judged, in a real browser: from the card and from the artifact's page; a manager sees who did."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.triage import Triage
from tests.browser.test_deciding import as_uuid, sign_in
from tests.browser.test_every_page import browsing, faults
from tests.stack import Stack

WHY = "Checking that this is the customer who wrote."


class Asked:
    """The reply to Ines, which waits for a decision and carries a PDF."""

    def __init__(self, server: Stack) -> None:
        self.run = Triage.start(server, "wrong-vat-number.eml", again=True)
        action = as_uuid(self.run.waiting_action()["id"])
        rows = server.query("SELECT id, name FROM artifacts_artifact WHERE run_id = %s", self.run.id)
        self.action = f"{server.base_url}/actions/{action}"
        self.pages = {row["name"]: f"{server.base_url}/artifacts/{as_uuid(row['id'])}" for row in rows}

    @property
    def ticket(self) -> str:
        return next(url for name, url in self.pages.items() if name.startswith("ticket-"))


def reveal(page: Page, why: str = WHY) -> None:
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Details").fill(why)
    dialog.get_by_role("button", name="Reveal and record").click()
    expect(dialog).to_have_count(0)


def sound(page: Page, complaints: list[str], where: Path) -> None:
    page.screenshot(path=where, full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert not complaints
    assert faults(page) == []
    complaints.clear()  # what axe makes the page complain of is not the page’s


@pytest.mark.long
def test_riley_reveals_to_judge_and_morgan_sees_who_did(page: Page, browser: Browser, server: Stack, tmp_path: Path) -> None:
    asked = Asked(server)
    sign_in(page, server, "Riley")
    page.goto(asked.action)
    page.get_by_label("Your question").fill("Which invoice?")
    page.locator("[data-frame=file] [data-ask]").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()  # it is fetched first
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.locator("[data-frame=file] [data-ask]").first.press("Enter")
    reveal(page)
    expect(page.get_by_text("Shown to you alone")).to_be_visible()
    picture = page.locator("figure.drawn img:visible").first
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("image => image.decode().then(() => true)")
    expect(page.get_by_label("Your question")).to_have_value("Which invoice?"), "the card is as it was"

    page.goto(asked.ticket)
    expect(page.locator("#paper")).to_contain_text("e-mail address hidden")
    page.locator("#paper .redacted").first.click()
    reveal(page)
    expect(page.locator("#paper")).not_to_contain_text("e-mail address hidden")
    expect(page.locator("#revealed-by")).to_contain_text(WHY)
    page.reload()
    expect(page.locator("#paper")).not_to_contain_text("e-mail address hidden")
    newest = "SELECT id FROM artifacts_reveal ORDER BY at DESC LIMIT 1"
    server.query(f"UPDATE artifacts_reveal SET ended_at = at WHERE id = ({newest})")  # it is over, and the page notices by its time
    page.evaluate("document.querySelector('[data-reveal]').dataset.until = new Date(0).toISOString()")
    expect(page.locator("[data-reveal]")).to_have_count(0)
    expect(page.locator("#paper")).to_contain_text("e-mail address hidden")
    page.goto(asked.action)
    page.get_by_role("button", name="Hide now").first.click()
    expect(page.locator("[data-frame=file] [data-ask]").first).to_be_visible()
    page.goto(asked.ticket)
    page.go_back()
    page.go_forward()
    expect(page.locator("#paper")).to_contain_text("e-mail address hidden")

    for width, theme in ((1440, "light"), (390, "dark")):
        with browsing(browser, server, "Morgan", width, theme) as (morgan, complaints):
            morgan.goto(asked.ticket)
            expect(morgan.locator("#revealed-by")).to_contain_text("Riley")
            expect(morgan.locator("#paper")).to_contain_text("e-mail address hidden")
            expect(morgan.locator("[data-ask]")).to_have_count(0)
            expect(morgan.locator("#artifact-around .prov")).to_be_visible()
            sound(morgan, complaints, tmp_path / f"morgan-{width}-{theme}.png")
        with browsing(browser, server, "Riley", width, theme) as (riley, complaints):
            riley.goto(asked.ticket)
            riley.locator("[data-ask]").click()
            expect(riley.get_by_role("dialog")).to_be_visible()
            sound(riley, complaints, tmp_path / f"ask-{width}-{theme}.png")
