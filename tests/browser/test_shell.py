"""The shell in a real browser: the socket that comes back, what a push must not take away, keys, times, copying, refusals.

Pages are drawn by the real templates and served, with the real policy, by a small server of this test; the socket's other end is here
too, so that it can misbehave on purpose.
"""

import mimetypes
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from django.conf import settings
from django.template import engines
from django.test import RequestFactory
from playwright.sync_api import BrowserContext, Page, expect
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from access.rules import Actor
from config import clock
from tests.waiting import until

STATIC = Path(__file__).resolve().parents[2] / "static"
POLICY = "; ".join(f"{name} {' '.join(words)}" for name, words in settings.CONTENT_SECURITY_POLICY["DIRECTIVES"].items())
RILEY = Actor("human", str(uuid4()), "Riley", {uuid4(): frozenset({"runs.view", "approvals.view"})}, role="reviewer", signed_in="demo")

STREAM = """{% load handrail %}<h1>Run</h1>{% include "_connection.html" with seq=0 %}
<div ws-connect="/ws?after=0" hidden></div><ol id="list"></ol><div id="part">first</div>
<span class="live" data-live-indicator hidden><span><span data-live-text></span> #<span data-live-seq>0</span></span></span>
<code data-live-cursor>0</code>"""


def drawn(main: str, **context: object) -> str:
    request = RequestFactory().get("/")
    request.actor = RILEY
    source = '{% extends "base.html" %}{% block title %}Test{% endblock %}{% block main %}' + main + "{% endblock %}"
    return engines["django"].from_string(source).render({"inbox_count": 3, "frozen_now": [], **context}, request)


@dataclass
class Site:
    """One page, and what its socket does. `asked` is every cursor that a reader came with; while `down`, nobody gets in."""

    html: str = ""
    down: bool = False
    speak: Callable[["Site", ServerConnection, int], None] = lambda site, client, after: None
    asked: list[int] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/"

    def answer(self, client: ServerConnection, request: Request) -> Response | None:
        path = urlsplit(request.path).path
        if path == "/ws":
            return _response(503, b"", "text/plain") if self.down else None
        file = STATIC / path.removeprefix("/static/")
        if path.startswith("/static/") and file.is_file():
            return _response(200, file.read_bytes(), mimetypes.guess_type(file.name)[0] or "text/plain")
        if path == "/":
            return _response(200, self.html.encode(), "text/html; charset=utf-8")
        return _response(404, drawn('{% include "_sorry.html" with head="There is nothing here." %}').encode(), "text/html; charset=utf-8")

    def talk(self, client: ServerConnection) -> None:
        after = int(parse_qs(urlsplit(client.request.path).query)["after"][0])
        self.asked.append(after)
        self.speak(self, client, after)
        for _ in client:  # until the reader leaves
            pass


def _response(status: int, body: bytes, kind: str) -> Response:
    headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Content-Security-Policy": POLICY, "Connection": "close"}
    return Response(status, "", Headers(headers), body)


@contextmanager
def serving(site: Site) -> Iterator[None]:
    with serve(site.talk, "localhost", site.port, process_request=site.answer, close_timeout=0.2) as server:
        site.port = server.socket.getsockname()[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join(10)


@pytest.fixture
def site() -> Iterator[Site]:
    served = Site(html=drawn("<h1>Test</h1>"))
    with serving(served):
        yield served


@pytest.fixture
def page(new_context: Callable[..., BrowserContext]) -> Iterator[Page]:
    page = new_context(timezone_id="Europe/Lisbon", permissions=["clipboard-read", "clipboard-write"]).new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if "WebSocket connection" not in message.text else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    assert not [line for line in said if not line.startswith("Failed to load resource: the server responded with a status of 404")]


def push(client: ServerConnection, seq: int, html: str = "") -> None:
    client.send(html or f'<div hx-swap-oob="beforeend:#list"><li data-seq="{seq}">{seq}</li></div>')


def numbers(page: Page) -> list[int]:
    return [int(text) for text in page.locator("#list li").all_inner_texts()]


# --- the socket ----------------------------------------------------------------------------------------------------------------------


def test_a_reader_cut_off_in_any_way_gets_every_event_once_and_in_order(site, page):
    cuts = [1000, 1011, 1012, 1013, 3000, 4000, None, None]

    def speak(site, client, after):
        for seq in range(after + 1, after + 4):
            push(client, seq)
        if len(site.asked) <= len(cuts):
            code = cuts[len(site.asked) - 1]
            if code is None:
                client.socket.shutdown(socket.SHUT_RDWR)  # as when a cable is pulled: no close frame
            else:
                client.close(code)

    site.html, site.speak = drawn(STREAM), speak
    page.goto(site.url)
    expect(page.locator("#list li")).to_have_count(27)
    assert numbers(page) == list(range(1, 28))
    assert site.asked == list(range(0, 27, 3))


def test_what_was_drawn_before_is_not_drawn_twice(site, page):
    def speak(site, client, after):
        for seq in (1, 2, 2, 1, 3):
            push(client, seq)

    site.html, site.speak = drawn(STREAM), speak
    page.goto(site.url)
    expect(page.locator("[data-live-indicator] [data-live-seq]")).to_have_text("3")
    assert numbers(page) == [1, 2, 3]


def test_the_newest_number_has_its_thousands_apart_for_people_and_not_for_machines(site, page):
    site.html, site.speak = drawn(STREAM), lambda site, client, after: push(client, 1234)
    page.goto(site.url)
    expect(page.locator("[data-live-indicator] [data-live-seq]")).to_have_text("1,234")
    expect(page.locator("[data-live-cursor]")).to_have_text("1234")


def test_a_page_that_is_left_says_once_how_far_it_was_drawn(site, page):
    form = '<form hidden action="/glances" data-glance><input name="token" value="t"></form>'
    site.html = drawn(f'<div id="run-head" data-seq="41"></div>{form}<script src="/static/js/map.js" defer></script>')
    page.add_init_script("window.said = []; navigator.sendBeacon = (url, form) => said.push([new URL(url).pathname, ...form.values()])")
    page.goto(site.url)
    page.evaluate("() => { document.getElementById('run-head').dataset.seq = '44'; }")  # as a push does
    assert page.evaluate("said") == []
    for _ in range(2):
        page.evaluate("() => { window.dispatchEvent(new Event('pagehide')); }")
    assert page.evaluate("said") == [["/glances", "t", "44"]]


def test_what_is_about_something_no_longer_open_is_left_out_and_the_rest_is_drawn(site, page):
    site.html = drawn(STREAM + '<p id="here">Old</p>')
    gone = '<p id="gone" hx-swap-oob="morph" data-seq="1">Gone</p>'
    site.speak = lambda site, client, after: push(client, 1, gone + '<p id="here" hx-swap-oob="morph" data-seq="1">New</p>')
    page.goto(site.url)
    expect(page.locator("#here")).to_have_text("New")
    expect(page.locator("html")).to_have_attribute("data-live", "open")
    assert site.asked == [0]


def test_a_lost_connection_is_told_with_the_place_and_the_notice_goes_by_itself(site, page):
    page.clock.install()
    go = threading.Event()

    def speak(site, client, after):
        for seq in range(after + 1, 5):
            push(client, seq)
        if not after:
            go.wait(20)
            client.close(1011)

    site.html, site.speak = drawn(STREAM), speak
    page.goto(site.url)
    expect(page.locator("#list li")).to_have_count(4)
    notice = page.locator("[data-live-notice]")
    page.clock.pause_at(page.evaluate("() => Date.now()") + 10_000)  # from here on it comes back only when the test says so
    site.down = True
    go.set()
    expect(page.locator("html[data-live=lost]")).to_have_count(1)
    page.clock.run_for(2000)
    expect(notice).to_be_hidden()
    page.clock.run_for(3100)
    expect(notice).to_contain_text("Connection lost. You are reading up to #4.")
    expect(notice).to_contain_text(re.compile(r"Trying (again in \d+ seconds?|now), from #5 on, so that nothing is missed\."))
    expect(page.locator("#say")).to_have_text("Connection lost. Trying again.")
    expect(page.locator("html[data-live=lost]")).to_have_count(1)  # an attempt that is under way would come through by itself
    site.down = False
    notice.get_by_role("button", name="Try now").click()
    expect(notice).to_be_hidden()
    until(lambda: site.asked == [0, 4], what=lambda: f"one more reader, who comes with its place, not {site.asked}")


def test_a_refusal_to_go_on_offers_to_reload(site, page):
    page.clock.install()
    site.html, site.speak = drawn(STREAM), lambda site, client, after: client.close(4403)
    page.goto(site.url)
    expect(page.locator("html[data-live=lost]")).to_have_count(1)
    page.clock.run_for(1000)  # one look at the clock: what was refused does not come back by itself, as what was lost may
    notice = page.locator("[data-live-notice]")
    expect(notice).to_contain_text("You may no longer see this.")
    page.clock.resume()
    notice.get_by_role("button", name="Reload the page").click()
    expect(page.locator("html[data-live=lost]")).to_have_count(1)
    assert len(site.asked) == 2


def test_after_the_end_nobody_asks_again(site, page):
    def speak(site, client, after):
        push(client, 1, '<p id="part" hx-swap-oob="morph" data-seq="1" data-live-end>ended</p>')

    site.html, site.speak = drawn(STREAM), speak
    page.goto(site.url)
    expect(page.locator("html[data-live=ended]")).to_have_count(1)
    expect(page.locator("[data-live-text]")).to_have_text("Complete")
    page.evaluate("() => dispatchEvent(new Event('online'))")
    assert site.asked == [0]


def test_a_push_leaves_the_form_you_are_in_the_fold_you_opened_and_the_focus(site, page):
    inside = "<details><summary>More</summary>at {n}</details><form><textarea name='why'>{n}</textarea></form><p>{n}</p>"
    part = '<div id="part"{oob}>' + inside + "</div>"
    go = threading.Event()

    def speak(site, client, after):
        go.wait(20)
        push(client, 7, part.format(oob=' hx-swap-oob="morph" data-seq="7"', n=7))

    site.html = drawn(STREAM.replace('<div id="part">first</div>', part.format(oob="", n=1)))
    site.speak = speak
    page.goto(site.url)
    page.locator("summary").click()
    page.locator("textarea").fill("because")
    go.set()
    expect(page.locator("#part p")).to_have_text("7")
    expect(page.locator("details")).to_have_js_property("open", True)
    expect(page.locator("textarea")).to_have_value("because")
    expect(page.locator("textarea")).to_be_focused()


def test_what_you_typed_is_kept_when_the_form_itself_is_overtaken(site, page):
    form = '<form id="part"{oob}><textarea name="why" data-kept="why"></textarea><button>{n}</button></form>'
    go = threading.Event()

    def speak(site, client, after):
        go.wait(20)
        push(client, 7, form.format(oob=' hx-swap-oob="true" data-seq="7"', n="new"))

    site.html, site.speak = drawn(STREAM.replace('<div id="part">first</div>', form.format(oob="", n="old"))), speak
    page.goto(site.url)
    page.locator("textarea").fill("because")
    go.set()
    expect(page.locator("#part button")).to_have_text("new")
    expect(page.locator("textarea")).to_have_value("because")
    expect(page.locator("textarea")).to_be_focused()


# --- refusals ------------------------------------------------------------------------------------------------------------------------


def test_a_refused_request_says_so_beside_its_form_and_swaps_nothing(site, page):
    site.html = drawn(
        '<div id="card">card</div><form hx-get="/gone" hx-target="#card"><div data-outcome></div><button>Do it</button></form>'
    )
    page.goto(site.url)
    page.get_by_role("button", name="Do it").click()
    expect(page.locator("form [data-outcome]")).to_contain_text("There is nothing here.")
    expect(page.locator("form [role=alert]")).to_be_focused()
    expect(page.locator("#card")).to_have_text("card")


# --- keys, dialogs, copying, theme, times --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("goes", "title"), [("", "Test · Handrail"), (' hx-push-url="true"', "Elsewhere · Handrail")])
def test_a_part_of_another_page_leaves_the_title_unless_the_reader_goes_there(site, page, goes, title):
    site.html = drawn(f'<button id="part" hx-get="/?elsewhere" hx-select="#part" hx-swap="outerHTML"{goes}>Here</button>')
    page.goto(site.url)
    site.html = drawn('<p id="part">There</p>').replace("<title>Test", "<title>Elsewhere")
    page.locator("#part").click()
    expect(page.locator("#part")).to_have_text("There")
    expect(page).to_have_title(title)


def test_what_does_not_come_leaves_the_way_to_it_and_not_its_shape(site, page):
    shape = '{{% include "_skeleton.html" with url="/list" word="{}" %}}'
    site.html = drawn(
        f'<div hx-get="/never" hx-trigger="load">{shape.format("Open the list")}</div><div>{shape.format("Open it too")}</div>'
    )
    page.goto(site.url)
    expect(page.get_by_role("link", name="Open the list")).to_be_visible()
    expect(page.locator(".skeleton").first).to_be_hidden()
    expect(page.locator(".skeleton").last).to_be_visible()  # this one may come yet
    expect(page.get_by_role("link", name="Open it too")).to_be_hidden()


def test_keys_act_except_while_typing_behind_a_dialog_or_switched_off(site, page):
    site.html = drawn('<input id="field"><button id="r" data-key="r" data-copy="r">Reject</button><div id="log"></div>')
    page.goto(site.url)
    toast = page.locator(".toast")
    page.keyboard.press("r")
    expect(toast).to_have_text("Copied")
    page.evaluate("() => document.querySelector('.toast').remove()")

    page.locator("#field").press("r")
    page.keyboard.press("Escape")
    page.keyboard.press("Alt+r")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("r")
    page.get_by_label("Use these keys in this browser").uncheck()
    page.get_by_role("button", name="Close").click()
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("r")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_hidden()
    expect(toast).to_have_count(0)
    expect(page.locator("#field")).to_have_value("r")


def test_j_and_k_walk_and_the_key_of_a_locked_button_only_goes_there(site, page):
    items = "".join(f'<a href="#{n}" data-item id="i{n}">{n}</a>' for n in range(3))
    site.html = drawn(f'<nav data-list>{items}</nav><button data-key="a" aria-disabled="true" data-copy="a">Approve</button>')
    page.goto(site.url)
    for key, where in (("j", "#i0"), ("j", "#i1"), ("j", "#i2"), ("j", "#i2"), ("k", "#i1")):
        page.keyboard.press(key)
        expect(page.locator(where)).to_be_focused()
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Approve")).to_be_focused()
    expect(page.locator(".toast")).to_have_count(0)


def test_the_whole_digest_is_copied(site, page):
    site.html = drawn("{% load handrail %}{% digest whole %}", whole="41b7" + "0" * 60)
    page.goto(site.url)
    page.get_by_role("button", name="Copy full digest").click()
    expect(page.locator(".toast")).to_have_text("Copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == "41b7" + "0" * 60


def test_the_theme_changes_at_once_and_is_kept(site, page):
    page.goto(site.url)
    page.get_by_role("button", name="account").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html[data-theme=dark]")).to_have_count(1)
    assert [cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "theme"] == ["dark"]
    page.get_by_role("button", name="System").click()
    expect(page.locator("html[data-theme]")).to_have_count(0)


def test_the_letters_are_ours_and_no_two_of_them_are_drawn_as_one(site, page):
    site.html = drawn("""<p>-&gt;</p><p>-<i></i>&gt;</p><p><code>!==</code></p><p><code>!<i></i>=<i></i>=</code></p>""")
    page.goto(site.url)
    page.evaluate("document.fonts.ready")
    loaded = page.evaluate("[...document.fonts].filter((face) => face.status === 'loaded').map((face) => face.family)")
    assert loaded == ["Inter", "JetBrains Mono"]
    drawings = [each.screenshot() for each in page.locator("main p").all()]
    assert drawings[0] == drawings[1] and drawings[2] == drawings[3]


def test_times_are_in_the_viewers_zone_and_counted_by_the_servers_clock(site, page):
    now = clock.now()
    source = (
        """{% load handrail %}<p id="a">{% ago past %}</p><p id="f">{% fuse until since "left" %}</p><p id="c">{% clock summer %}</p>"""
    )
    context = {"past": now - timedelta(minutes=34), "until": now + timedelta(minutes=44, seconds=30), "since": now - timedelta(minutes=44)}
    site.html = drawn(source, summer=now.replace(year=2025, month=7, day=1, hour=12, minute=30), **context)
    page.clock.install(time=now + timedelta(hours=5))  # a viewer whose clock is wrong
    page.goto(site.url)
    expect(page.locator("#a")).to_have_text("34 min ago")
    expect(page.locator("#f")).to_have_text("44 min left")
    expect(page.locator("#c")).to_have_text("1 Jul 2025, 13:30")
    page.clock.fast_forward(10 * 60 * 1000)
    expect(page.locator("#a")).to_have_text("44 min ago")
    expect(page.locator("#f")).to_have_text("34 min left")
    page.clock.fast_forward(21 * 60 * 1000)
    expect(page.locator("#f .fuse")).to_have_class("fuse hot")
    expect(page.locator("#f .fuse")).to_have_attribute("data-p", "14")


def test_hostile_text_is_text_and_the_policy_is_never_broken(site, page):
    hostile = "\"'><img src=x onerror=alert(1)><script>alert(1)</script>\u202e {{ 1 }} \x1b[31m"
    site.html = drawn(
        '{% load handrail %}<p id="t">{% glyphs text %}</p>{% include "_note.html" with strong=text text=text %}', text=hostile
    )
    page.goto(site.url)
    expect(page.locator("#t")).to_contain_text("<script>alert(1)</script>U+202E {{ 1 }} U+001B[31m")
    expect(page.locator("main img, main script")).to_have_count(0)
