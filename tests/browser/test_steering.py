"""Steering and recovering in a real browser: Otto changes a run's course while Riley looks on, and helps one that is stuck."""

import re
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.acceptance.triage import Person, Triage
from tests.browser.pictures import picture
from tests.browser.test_deciding import Waiting, open_live, sign_in
from tests.browser.test_every_page import LOOKS, browsing, shown
from tests.stack import ROOT, Stack

Context = Callable[..., BrowserContext]


@pytest.fixture
def down(server: Stack) -> Iterator[Triage]:
    """A run that got stuck because the help desk was down. It is up again after the test: the stack is shared."""
    run = Triage(server, server.manage("misbehave", "desk-down").split()[0])
    run.wait_for("parked")
    server.manage("misbehave", "clear")
    yield run


def test_otto_has_a_run_plan_anew_and_riley_sees_the_old_action_go(page: Page, new_context: Context, server: Stack) -> None:
    waiting = Waiting(server)
    riley = open_live(new_context().new_page(), waiting, "Riley")
    sign_in(page, server, "Otto")
    page.goto(f"{server.base_url}/runs/{waiting.run.id}")
    steer = page.locator("#run-steer")
    expect(steer.get_by_text("The agent reads it when it asks next.")).to_be_visible()
    steer.get_by_text("Revise", exact=True).click()
    expect(steer.get_by_text("open requests for approval are withdrawn")).to_be_visible()
    steer.get_by_label("Message to the agent").fill("Tell her the refund goes out on Friday.")
    picture(page, "revise")
    plan = page.locator("#run-plan").bounding_box()
    steer.get_by_role("button", name="Send signal").click()
    # it is said beside the form, and the page stays where it was
    expect(page.locator(".run__rail").get_by_text("The agent plans anew; what waited for approval is withdrawn.")).to_be_visible()
    assert page.locator("#run-plan").bounding_box()["y"] == plan["y"]

    expect(riley.get_by_text(re.compile("withdrawn|withdrew")).first).to_be_visible()  # by itself
    second = waiting.run.waiting_action()
    expect(page.get_by_text("Otto Brandt asked for a change of plan")).to_be_visible()
    expect(page.get_by_text(re.compile("Plan changed"))).to_be_visible()
    riley.goto(f"{server.base_url}/actions/{UUID(str(second['id']))}")
    expect(riley.get_by_text("The refund goes out on Friday.").first).to_be_visible()
    assert waiting.state == "withdrawn" and waiting.sent() == 0

    steer.get_by_text("Pause", exact=True).click()
    steer.get_by_role("button", name="Send signal").click()
    expect(page.locator(".run__head .st")).to_have_text(re.compile("Paused"))
    steer.get_by_text("Resume", exact=True).click()
    steer.get_by_role("button", name="Send signal").click()
    expect(page.locator(".run__head .st")).to_have_text(re.compile("Waiting"))


def test_otto_tries_a_stuck_run_again(page: Page, browser: Browser, server: Stack, down: Triage) -> None:
    for width, theme in LOOKS:
        with browsing(browser, server, "Otto", width, theme) as (look, complaints):
            assert shown(look, complaints, server.base_url, "/recovery") == []
        with browsing(browser, server, "Otto", width, theme) as (look, _):
            look.goto(f"{server.base_url}/recovery")
            look.locator("article.case", has_text=down.ref).get_by_role("checkbox").check()
            bar = look.locator(".bulk").bounding_box()
            for part in (".bulk__said", ".bulk__do"):
                box = look.locator(part).bounding_box()
                assert bar["y"] + 3 <= box["y"] and box["y"] + box["height"] <= bar["y"] + bar["height"] - 3, (width, part)
    sign_in(page, server, "Otto")
    page.get_by_role("link", name="Recovery").click()
    case = page.locator("article.case", has_text=down.ref)
    expect(case.get_by_text("Its attempts are used up.").first).to_be_visible()
    expect(case.get_by_text("Nothing.")).to_be_visible()
    picture(page, "recovery")
    expect(page.locator("#recovery-count")).to_have_text(re.compile(r"^[1-9]\d* stuck"))
    again = page.get_by_role("button", name=re.compile("Try (the ticked ones|1) again"))
    expect(again).to_be_hidden()
    case.get_by_role("checkbox").check()
    expect(again).to_have_text("Try 1 again")
    case.get_by_role("checkbox").uncheck()
    expect(again).to_be_hidden()
    case.get_by_role("radio", name=re.compile("Hand to a person")).check()
    case.get_by_label("To whom").select_option(label="Otto Brandt")
    case.get_by_role("button", name="Hand to a person").click()
    expect(case.get_by_text("Otto Brandt looks after it")).to_be_visible()
    case.get_by_role("radio", name=re.compile("Try again")).check()
    case.get_by_label(re.compile("^Why")).fill("The desk is up again.")
    case.get_by_role("button", name="Try again", exact=True).click()
    expect(page.get_by_text("It is tried again, from the last completed step.")).to_be_visible()
    expect(case).to_have_count(0)
    down.waiting_action()
    page.goto(f"{server.base_url}/runs/{down.id}")
    expect(page.get_by_text("Otto Brandt chose to try again")).to_be_visible()


def test_what_to_look_for_stays_where_a_word_about_steering_goes_once_the_run_has_ended(page: Page) -> None:
    notes = '<p class="note">Its worker is killed.</p><p class="note" data-s="done">The limits are set.</p>'
    page.set_content(f'<aside class="run__rail"><div id="said" data-while-live>{notes}</div><div id="run-steer">Pause</div></aside>')
    page.add_style_tag(path=ROOT / "static/css/pages/run.css")
    expect(page.get_by_text("The limits are set.")).to_be_visible()
    page.evaluate("document.getElementById('run-steer').hidden = true")
    expect(page.get_by_text("The limits are set.")).to_be_hidden()
    expect(page.get_by_text("Its worker is killed.")).to_be_visible()


def test_an_open_page_of_an_ended_run_loses_its_undo_by_itself_once_that_was_asked_for(
    page: Page, new_context: Context, server: Stack
) -> None:
    waiting = Waiting(server)
    with Person(server, "Riley") as riley:
        riley.decide(waiting.action, "approved").raise_for_status()
    assert waiting.run.wait_for("succeeded")
    sign_in(page, server, "Otto")
    page.clock.install()
    page.goto(f"{server.base_url}/runs/{waiting.run.id}")
    offered = page.get_by_role("link", name="Undo…")
    expect(offered).to_have_count(2)  # on the row of the note, and among what was done outside
    other = sign_in(new_context().new_page(), server, "Otto")
    other.goto(page.url)
    other.get_by_role("link", name="Undo…").first.click()
    other.get_by_label("Why").fill("The note is of another customer.")
    other.get_by_role("button", name="Undo this").click()
    page.clock.fast_forward("01:00")  # it asks once a minute whether anybody did, and often from then on
    expect(offered).to_have_count(0)
    expect(page.locator("#run-effects")).to_contain_text("Undone by RN-")
    expect(page.locator("#run-effects [hx-get]")).to_have_count(0)  # nothing more can come
