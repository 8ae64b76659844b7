"""Every page, in light and dark, wide and narrow: axe finds nothing (WCAG 2.2 AA), nothing sticks out, the console is empty.

The runs that are shown come from an ordinary message and from one that tries everything; what it tries shows as text.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from uuid import UUID

import pytest
from playwright.sync_api import Browser, Page

from tests.acceptance.triage import Person, Triage
from tests.browser.hostile import message
from tests.browser.test_story import signed_in
from tests.stack import Stack
from tests.waiting import SOON

pytestmark = pytest.mark.long
AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
OF_COLOURS = ["color-contrast", "link-in-text-block"]  # axe's rules that look at colours; to all others a theme is the same page
THEMES = ("dark", "light")
LOOKS = [(width, theme) for width in (1440, 390) for theme in THEMES]


@pytest.fixture(scope="module")
def runs(server: Stack, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Triage]:
    """One that waits, one that is done, and one whose message is hostile."""
    file = tmp_path_factory.mktemp("hostile") / "hostile.eml"
    file.write_bytes(message())
    told = {
        "waiting": Triage.start(server, again=True),
        "done": Triage.start(server, "wrong-vat-number.eml", again=True),
        "hostile": Triage.start(server, str(file), again=True),
    }
    with Person(server, "Sam") as sam:
        sam.decide(told["done"].waiting_action(), "approved")
    told["done"].wait_for("succeeded")
    for name in ("waiting", "hostile"):
        told[name].waiting_action()
    return told


def run_pages(run: Triage) -> list[str]:
    action = UUID(str(run.actions()[0]["id"]))
    artifact = run.stack.query("SELECT id FROM artifacts_artifact WHERE run_id = %s ORDER BY created_at", run.id)[0]["id"]
    return [f"/runs/{run.id}", f"/runs/{run.id}/events", f"/actions/{action}", f"/artifacts/{UUID(str(artifact))}"]


@contextmanager
def browsing(browser: Browser, server: Stack, who: str, width: int, theme: str) -> Iterator[tuple[Page, list[str]]]:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce")
    context.set_default_timeout(SOON * 1000)
    page, complaints = context.new_page(), []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"a dialog: {dialog.message}") or dialog.dismiss())
    try:
        yield (signed_in(page, server, who) if who else page), complaints
    finally:
        context.close()


def faults(page: Page, rules: list[str] = RULES) -> list[str]:
    """What axe finds. It asks for style sheets and puts in styles, which the page’s policy refuses: look at the console before."""
    page.wait_for_load_state()  # of a page that is only half there it finds what is not so
    if not page.evaluate("typeof window.axe?.run === 'function'"):
        page.evaluate(AXE)
    found = page.evaluate("rules => axe.run(document, {runOnly: rules, preload: false})", rules)["violations"]
    return [f"{v['id']}: {node['html'][:160]} ({node['failureSummary'][:200]})" for v in found for node in v["nodes"]]


def shown(page: Page, complaints: list[str], base: str, path: str) -> list[str]:
    """What is wrong with a page as it comes: its status, its console, its width, whether a script of a message ran, what axe finds in
    light and in dark."""
    answer = page.goto(base + path)
    page.wait_for_load_state("load")
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    wrong = [] if answer and answer.status == 200 else [f"answered {answer and answer.status}"]
    wrong += [f"{wide} px wider than the window"] if wide > 0 else []
    wrong += ["a script of the message ran"] if page.evaluate("window.owned") else []
    wrong += complaints
    for theme, rules in zip(THEMES, (RULES, OF_COLOURS), strict=True):
        page.emulate_media(color_scheme=theme)
        wrong += [f"{theme}: {fault}" for fault in faults(page, rules)]
    page.goto("about:blank")  # what axe makes the page complain of is not the page’s
    complaints.clear()
    return wrong


def look_at(page: Page, complaints: list[str], base: str, paths: list[str]) -> dict[str, list[str]]:
    """Path → what is wrong there."""
    wrong = {path: shown(page, complaints, base, path) for path in paths}
    return {path: found for path, found in wrong.items() if found}


@pytest.mark.timeout(600)  # twenty pages; axe takes a second or more for each
@pytest.mark.parametrize("width", [1440, 390])
def test_every_page_is_fit_for_everybody(browser: Browser, server: Stack, runs: dict[str, Triage], width: int):
    own = ["/inbox", "/notifications", "/runs", "/runs?q=nothing-like-this", "/runs?state=waiting"]
    pages = own + [path for run in runs.values() for path in run_pages(run)]
    with browsing(browser, server, "Riley", width, "light") as (page, complaints):
        assert look_at(page, complaints, server.base_url, pages) == {}
    with browsing(browser, server, "Otto", width, "light") as (page, complaints):
        theirs = ["/inbox", "/notifications/undelivered", "/runs/new", f"/runs/{runs['waiting'].id}"]
        assert look_at(page, complaints, server.base_url, theirs) == {}
    with browsing(browser, server, "", width, "light") as (page, complaints):
        assert look_at(page, complaints, server.base_url, ["/sign-in"]) == {}


def test_what_a_message_tries_shows_as_text(browser: Browser, server: Stack, runs: dict[str, Triage]):
    run = runs["hostile"]
    with browsing(browser, server, "Riley", 1440, "light") as (page, complaints):
        page.goto(f"{server.base_url}/runs/{run.id}")
        assert "<script>" in page.locator("h1").inner_text()
        assert "49" not in page.locator("h1").inner_text()
        assert page.locator("h1 .glyph").count() > 0  # what can't be seen is drawn
        assert not complaints


def test_a_message_on_its_way_in_shows_as_text(browser: Browser, server: Stack, tmp_path: Path):
    file = tmp_path / "x.eml"
    file.write_bytes(message())
    with browsing(browser, server, "Otto", 390, "dark") as (page, complaints):
        page.goto(f"{server.base_url}/runs/new")
        page.set_input_files("input[type=file]", file)
        page.wait_for_url(re.compile("message="))
        assert not complaints
        assert faults(page) == []
        assert not page.evaluate("window.owned")


def test_no_page_allows_what_is_unsafe(server: Stack, runs: dict[str, Triage]):
    with Person(server, "Riley") as riley:
        for path in ["/sign-in", "/inbox", "/runs", "/nowhere", *run_pages(runs["hostile"])]:
            policy = riley.http.get(path).headers["content-security-policy"]
            assert "unsafe" not in policy and "default-src 'none'" in policy, path
