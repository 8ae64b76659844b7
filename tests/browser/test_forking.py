"""Otto forks a run that is done, with another wish; Riley decides on what it proposes; both stand beside each other afterwards."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.triage import Person, Triage
from tests.browser.test_deciding import sign_in
from tests.browser.test_every_page import browsing, look_at
from tests.stack import Stack

WISH = "We will offer a credit note on the next invoice."


@pytest.mark.timeout(300)
def test_a_run_is_forked_with_another_wish_and_both_stand_beside_each_other(page: Page, browser: Browser, server: Stack) -> None:
    run = Triage.start(server, "wrong-vat-number.eml", again=True)
    with Person(server, "Riley") as riley:
        riley.decide(run.waiting_action(), "approved")
        run.wait_for("succeeded")
        fork = forked_by_otto(page, server, run)
        riley.decide(fork.waiting_action(), "approved")
        fork.wait_for("succeeded")
    page.goto(f"{server.base_url}/runs/{run.id}")
    page.get_by_role("link", name=fork.ref).click()
    expect(page.locator("#run-timeline").get_by_text("forked it from")).to_be_visible()
    pair = f"/runs/{fork.id}/compare?with={run.id}"
    page.goto(server.base_url + pair)
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"They part after #\d+"))
    expect(page.get_by_text("Otto Brandt changed the input")).to_be_visible()
    expect(page.locator(".leg.diff ins").filter(has_text="credit note").first).to_be_visible()
    note = page.locator("li.same").filter(has_text="Note on account")
    expect(note).to_have_count(1)  # the same note, in both; it was written once
    expect(page.locator(".pair__tbl tr.same").filter(has_text="People who decided")).to_be_visible()
    forks, replay = f"/runs/{run.id}/forks?step=model.draft-reply%231", f"/runs/{fork.id}/replay"
    for width in (1440, 390):
        with browsing(browser, server, "Otto", width, "light") as (look, complaints):
            assert look_at(look, complaints, server.base_url, [pair, forks, replay]) == {}


def forked_by_otto(page: Page, server: Stack, run: Triage) -> Triage:
    sign_in(page, server, "Otto")
    page.goto(f"{server.base_url}/runs/{run.id}")
    page.get_by_role("button", name="Fork…").click()
    place = page.locator(".place").filter(has=page.locator('[value="model.draft-reply#1"]'))
    expect(place.get_by_text("Change its input")).to_be_hidden()
    place.get_by_role("radio").check()
    place.get_by_text("Change its input").click()
    place.get_by_label(re.compile("^wishes")).fill(WISH)
    page.get_by_label(re.compile("^Why")).fill("She asked for a credit note on the phone.")
    page.get_by_role("button", name="Fork the run").click()
    expect(page.get_by_text(f"This is the fork. {run.ref} stays as it ended.")).to_be_visible()
    expect(page.locator(".run__head").get_by_role("link", name=re.compile(run.ref))).to_be_visible()
    return Triage(server, server.query("SELECT ref FROM runs_run WHERE forked_from_id = %s", run.id)[0]["ref"])
