"""Coming in by invitation, a passkey and codes in a real Chromium with an authenticator of its own, and being let go."""

import re
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from allauth.mfa.totp.internal import auth as totp
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.triage import Triage
from tests.browser.test_every_page import browsing, faults
from tests.stack import Stack

pytestmark = pytest.mark.long
DANA = "dana@fernhill.example"
NAME, PASSWORD = "Dana Kim", "a sentence for coming in"


def test_somebody_is_invited_comes_in_keeps_a_passkey_and_codes_and_is_let_go(browser: Browser, server: Stack) -> None:
    base = f"http://localhost:{server.port}"  # a passkey is bound to a name
    with browsing(browser, server, "", 1440, "light") as (ada, complaints):
        ada.goto(f"{server.base_url}/sign-in")
        ada.get_by_role("button", name="Continue as Ada").click()
        ada.wait_for_url(lambda url: "/sign-in" not in url)
        link = invited(ada, server, DANA)
        complaints.clear()  # refused on purpose: it asks first who she is
        with browsing(browser, server, "", 1440, "light") as (dana, said):
            authenticator(dana)
            dana.goto(f"{base}{link}")
            assert faults(dana) == []
            said.clear()
            dana.get_by_label("Your name").fill(NAME)
            dana.locator("input[name=password]").fill(PASSWORD)
            dana.get_by_role("button", name="Come in").click()
            expect(dana.get_by_role("heading", name="Your account")).to_be_visible()
            keeps_a_passkey(dana)
            recovery = sets_up_codes(dana, base)
            assert not said, said
            looks_right(dana, base, "/account")
            said.clear()
            signs_in_by_passkey(dana, base)
            signs_in_with_recovery_code(dana, base, recovery[0])
            assert not said, said
            dana.goto(f"{base}/runs")
            expect(dana.locator("html[data-live=open]")).to_be_attached()
            let_go(ada, server, NAME)
            expect(dana.locator("html[data-live=lost]")).to_be_attached()  # what she has open is cut off by itself, and says why
            expect(dana.locator("#reconnecting")).to_contain_text("You are signed out.")
            dana.goto(f"{base}/account")
            expect(dana).to_have_url(re.compile("/sign-in"))
        looks_right(ada, server.base_url, "/people")


def test_a_demo_person_keeps_a_passkey_and_signs_in_by_it(browser: Browser, server: Stack) -> None:
    with browsing(browser, server, "", 390, "dark") as (riley, said):
        authenticator(riley)
        riley.goto(f"{server.base_url}/account")
        riley.get_by_role("link", name="Use a passkey").click()
        expect(riley).to_have_url(re.compile(rf"^http://localhost:{server.port}/sign-in"))
        riley.get_by_role("button", name="Continue as Riley").click()
        expect(riley.get_by_role("heading", name="Your account")).to_be_visible()
        riley.get_by_role("button", name="Add a passkey").click()
        riley.get_by_role("button", name="It is me, in the demo").click()  # a click was no proof of who she is
        said.clear()
        riley.get_by_label("Name of the passkey").fill("Her laptop")
        riley.get_by_role("button", name="Add a passkey").click()
        expect(riley.get_by_text("Your passkey is kept.")).to_be_visible()
        riley.get_by_role("button", name="account").click()
        riley.locator("#account").get_by_role("button", name="Sign out").click()
        riley.get_by_role("button", name="Use a passkey").click()
        expect(riley).not_to_have_url(re.compile("/sign-in"))
        riley.goto(f"http://localhost:{server.port}/account")
        expect(riley.get_by_text("Riley Park, riley@fernhill.example, reviewer")).to_be_visible()
        riley.get_by_role("button", name="Remove the passkey Her laptop").click()
        expect(riley.locator("#factors").get_by_text("Her laptop")).to_have_count(0)
        assert not said, said


def invited(ada: Page, server: Stack, email: str) -> str:
    """The path of the link that Ada gets to hand over, after a click that shows who she is."""
    ada.goto(f"{server.base_url}/people")
    ada.get_by_label("Work e-mail").fill(email)
    ada.get_by_role("form", name="Invite somebody").locator("select").select_option(label="Operator")
    ada.get_by_role("button", name="Invite").click()
    expect(ada.get_by_role("heading", name="Show that it is you")).to_be_visible()
    assert faults(ada) == []
    ada.get_by_role("button", name="It is me, in the demo").click()
    shown = ada.locator("#link").inner_text()  # what was typed went on by itself
    parts = urlsplit(shown)
    return f"{parts.path}?{parts.query}"


def authenticator(page: Page) -> None:
    """A device that keeps passkeys and is always unlocked."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options: dict[str, Any] = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options | {"isUserVerified": True, "automaticPresenceSimulation": True}})


def keeps_a_passkey(dana: Page) -> None:
    dana.get_by_label("Name of the passkey").fill("Her laptop")
    dana.get_by_role("button", name="Add a passkey").click()
    expect(dana.get_by_text("Your passkey is kept.")).to_be_visible()
    expect(dana.locator("#factors").get_by_text("Her laptop")).to_be_visible()
    expect(dana.locator("#factors").get_by_text("None made yet")).to_be_visible()  # recovery codes come with those of an app


def sets_up_codes(dana: Page, base: str) -> list[str]:
    dana.get_by_role("link", name="Set up codes of an app").click()
    secret = dana.locator("#secret").inner_text().replace(" ", "")
    dana.get_by_label("The code it shows").fill(code_of(secret))
    dana.get_by_role("button", name="Turn on codes").click()
    codes = dana.locator("#recovery-codes code")
    expect(codes).to_have_count(10)
    texts = codes.all_inner_texts()
    dana.get_by_role("link", name="I have kept them").click()
    expect(dana.get_by_text("10 left, each opens once")).to_be_visible()
    return texts


def code_of(secret: str) -> str:
    return totp.format_hotp_value(totp.hotp_value(secret, sorted(totp.yield_hotp_counters_from_time())[1]))


def signs_out(dana: Page, base: str) -> None:
    dana.goto(f"{base}/account")
    dana.locator("#sessions").get_by_role("button", name="Sign out").click()
    expect(dana.get_by_text("You are signed out.")).to_be_visible()


def signs_in_by_passkey(dana: Page, base: str) -> None:
    signs_out(dana, base)
    dana.get_by_role("button", name="Use a passkey").click()
    dana.wait_for_url(lambda url: "/sign-in" not in url)
    dana.goto(f"{base}/account")
    expect(dana.locator("#sessions").get_by_text("by passkey")).to_be_visible()


def signs_in_with_recovery_code(dana: Page, base: str, code: str) -> None:
    signs_out(dana, base)
    dana.get_by_label("Work e-mail").fill(DANA)
    dana.locator("input[name=password]").fill(PASSWORD)
    dana.get_by_role("button", name="Sign in").click()
    dana.locator("input[name=code]").fill(code)
    dana.get_by_role("button", name="Sign in").click()
    dana.wait_for_url(lambda url: "/sign-in" not in url)


def let_go(ada: Page, server: Stack, name: str) -> None:
    ada.goto(f"{server.base_url}/people")
    ada.get_by_role("link", name=name).click()
    form = ada.get_by_role("form", name="Let them go")
    form.get_by_label("Why").fill("Left in November.")
    form.get_by_role("button", name="Deactivate").click()
    expect(ada.get_by_text(f"{name} is deactivated.")).to_be_visible()


def looks_right(page: Page, base: str, path: str) -> None:
    """Axe finds nothing, and nothing sticks out, wide and on a phone, in light and dark."""
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(base + path)
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, (path, width)
        for theme in ("dark", "light"):
            page.emulate_media(color_scheme=theme)
            assert faults(page) == [], (path, width, theme)
    page.set_viewport_size({"width": 1440, "height": 900})


def test_approving_something_grave_asks_on_the_card_who_it_is_and_goes_on_with_the_decision(browser: Browser, server: Stack) -> None:
    run = Triage.start(server, again=True)
    action = run.waiting_action()
    server.query("UPDATE approvals_proposedaction SET risk = 3 WHERE id = %s", UUID(str(action["id"])))
    with browsing(browser, server, "", 1440, "light") as (riley, complaints):
        riley.goto(f"{server.base_url}/sign-in")
        riley.get_by_role("button", name="Continue as Riley").click()
        riley.wait_for_url(lambda url: "/sign-in" not in url)
        riley.goto(f"{server.base_url}/actions/{UUID(str(action['id']))}")
        riley.get_by_role("button", name="Approve exactly this").click()
        riley.get_by_role("button", name="Approve and send").click()
        expect(riley.get_by_role("heading", name="Show that it is you")).to_be_visible()
        assert run.actions()[0]["state"] == "waiting"
        riley.get_by_role("button", name="It is me, in the demo").click()
        riley.wait_for_url(lambda url: "/confirm" not in url)
        run.wait_for("succeeded")
        assert not complaints, complaints
