"""Single sign-on against a provider that is a process of its own: who gets in, and which answers of it are not believed."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from django.test import Client

from access import invitations
from access.models import AuditEntry, Membership, SsoIdentity, User
from config import clock
from tests import proving
from tests.cast import Cast
from tests.factories import actor
from tests.migrated import ROOT
from tests.stack import free_ports
from tests.waiting import until


@pytest.fixture(scope="module")
def provider() -> Iterator[httpx.Client]:
    port = free_ports(1)
    command = [sys.executable, "-m", "tests.access.provider", "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with httpx.Client(base_url=f"http://localhost:{port}", timeout=10) as client:
        try:
            until(lambda: answers(client), within=120, what="the provider")
            yield client
        finally:
            process.kill()
            process.wait()


def answers(client: httpx.Client) -> bool:
    with suppress(httpx.HTTPError):
        return client.get("/.well-known/openid-configuration").is_success
    return False


@pytest.fixture(autouse=True)
def set_up(provider: httpx.Client, settings: Any) -> None:
    issuer = str(provider.base_url).rstrip("/")
    settings.HANDRAIL_SSO = {"issuer": issuer, "client_id": "handrail", "client_secret": "s3cret", "name": "Fernhill SSO"}
    provider.put("/faults", json={})


def somebody(provider: httpx.Client, sub: str, email: str, *, verified: Any = True, **more: Any) -> None:
    provider.put(f"/users/{sub}", json={"email": email, "email_verified": verified, "name": "Somebody", **more})


def back(provider: httpx.Client, browser: Client, sub: str, *, path: str = "/sign-in/sso?next=/runs") -> str:
    """From our link to the provider and through its form. The address that it sends the browser back to."""
    away = browser.get(path)
    assert away.status_code == 302, away.content
    sent = provider.post(away.headers["Location"], data={"sub": sub})
    parts = urlsplit(sent.headers["location"])
    assert (parts.netloc, parts.path) == ("handrail.test", "/sign-in/sso/callback")
    return f"{parts.path}?{parts.query}"


def by_sso(provider: httpx.Client, sub: str, browser: Client | None = None) -> Any:
    browser = browser or Client()
    return browser.get(back(provider, browser, sub))


def test_somebody_known_by_a_verified_address_gets_in_with_code_pkce_state_and_nonce(cast: Cast, provider: httpx.Client) -> None:
    somebody(provider, "r1", "Riley@fernhill.example")
    browser = Client()
    assert 'href="/sign-in/sso?next=/">Continue with Fernhill SSO' in browser.get("/sign-in").content.decode()
    assert by_sso(provider, "r1", browser).headers["Location"] == "/runs"
    assert browser.session["signed_in"] == "sso" and browser.get("/account").status_code == 200
    seen = provider.get("/seen").json()
    assert (seen["response_type"], seen["code_challenge_method"], seen["client_id"]) == ("code", "S256", "handrail")
    assert seen["state"] and seen["nonce"] and set(seen["scope"].split()) == {"openid", "email", "profile"}
    assert AuditEntry.objects.filter(verb="signed_in").latest("at").data == {"how": "sso"}


def test_afterwards_they_are_known_by_who_they_are_there_whatever_their_address(cast: Cast, provider: httpx.Client) -> None:
    somebody(provider, "r2", cast.riley.email)
    by_sso(provider, "r2")
    somebody(provider, "r2", "riley.park@elsewhere.example", verified=False)
    assert by_sso(provider, "r2").headers["Location"] == "/runs"
    somebody(provider, "r3", cast.riley.email)  # the address is another's now
    refused = by_sso(provider, "r3")
    assert refused.status_code == 403 and "belongs to another account at Fernhill SSO" in refused.content.decode()
    assert SsoIdentity.objects.get().subject == "r2"


@pytest.mark.parametrize(
    ("fault", "why"),
    [({"nonce": "another"}, "nonce"), ({"lasts": -3600}, "expired"), ({"issuer": "https://evil.example"}, "issuer"), ({"key": "x"}, "key")],
)
def test_an_answer_that_is_wrong_is_not_believed(cast: Cast, provider: httpx.Client, fault: dict[str, Any], why: str) -> None:
    somebody(provider, "r4", cast.riley.email)
    provider.put("/faults", json=fault)
    browser = Client()
    refused = by_sso(provider, "r4", browser)
    assert refused.status_code == 403 and "could not be trusted, so nothing happened" in refused.content.decode()
    assert "open_session" not in browser.session and not SsoIdentity.objects.exists()
    assert AuditEntry.objects.get().data == {"how": "sso", "why": "untrusted"}


def test_an_answer_to_another_browser_or_a_second_time_is_not_believed(cast: Cast, provider: httpx.Client) -> None:
    somebody(provider, "r5", cast.riley.email)
    mine, theirs = Client(), Client()
    address = back(provider, mine, "r5")
    assert theirs.get(address).status_code == 403
    query = parse_qs(urlsplit(address).query)
    assert mine.get(f"/sign-in/sso/callback?code={query['code'][0]}&state=another").status_code == 403
    assert mine.get(address).status_code == 302
    assert mine.get(address).status_code == 403


@pytest.mark.parametrize(
    ("email", "verified", "words"),
    [
        ("stranger@fernhill.example", True, "Nobody has invited you here."),
        ("riley@fernhill.example", False, "has not verified your e-mail address"),
        ("riley@fernhill.example", "true", "has not verified your e-mail address"),
        ("", True, "has not verified your e-mail address"),
        ("r\u0131ley@fernhill.example", True, "Nobody has invited you here."),
        ("ri\u029fey@fernhill.example", True, "Nobody has invited you here."),
    ],
)
def test_who_is_not_known_for_sure_is_refused_with_words_and_nobody_is_made(cast, provider, email, verified, words) -> None:
    somebody(provider, "s1", email, verified=verified)
    people = User.objects.count()
    refused = by_sso(provider, "s1")
    assert refused.status_code == 403 and words in refused.content.decode() and 'role="alert"' in refused.content.decode()
    assert User.objects.count() == people and not SsoIdentity.objects.exists()


@pytest.mark.parametrize("how", ["account", "membership"])
def test_somebody_who_was_deactivated_stays_out(cast: Cast, provider: httpx.Client, how: str) -> None:
    if how == "account":
        User.objects.filter(pk=cast.riley.pk).update(is_active=False)
    else:
        Membership.objects.filter(user=cast.riley).update(deactivated_at=clock.now())
    somebody(provider, "r6", cast.riley.email)
    refused = by_sso(provider, "r6")
    assert refused.status_code == 403 and "Your account here is deactivated." in refused.content.decode()


def test_somebody_who_was_invited_comes_in_by_it(cast: Cast, provider: httpx.Client) -> None:
    role = cast.workspace.roles.get(name="reviewer")
    made = invitations.invite(cast.workspace.pk, email="mei@fernhill.example", role=role, by=actor(cast.ada), by_mail=True)
    somebody(provider, "m1", "mei@fernhill.example")
    assert by_sso(provider, "m1").headers["Location"] == "/runs"
    mei = User.objects.get(email="mei@fernhill.example")
    assert (mei.name, mei.memberships.get().role, mei.has_usable_password()) == ("Somebody", role, False)
    made.refresh_from_db()
    assert made.used_at and made.user == mei


def test_it_shows_again_who_somebody_is_if_they_gave_it_just_now(cast: Cast, provider: httpx.Client) -> None:
    somebody(provider, "r7", cast.riley.email)
    browser = Client()
    by_sso(provider, "r7", browser)
    proving.shown(browser, ago=timedelta(hours=1))
    assert "Continue with Fernhill SSO" in browser.get("/account/codes").content.decode()
    again = "/sign-in/sso?for=confirm&next=/account/codes"
    provider.put("/faults", json={"auth_time": int(clock.now().timestamp()) - 3600})
    assert browser.get(back(provider, browser, "r7", path=again)).status_code == 403, "an hour ago"
    assert provider.get("/seen").json()["prompt"] == "login"
    provider.put("/faults", json={})
    somebody(provider, "sam", cast.sam.email)
    assert browser.get(back(provider, browser, "sam", path=again)).status_code == 403, "somebody else"
    assert browser.get("/account/codes").status_code == 403
    assert browser.get(back(provider, browser, "r7", path=again)).headers["Location"] == "/account/codes"
    assert browser.get("/account/codes").status_code == 200


def test_who_leaves_at_the_provider_is_told_that_nothing_happened(cast: Cast, provider: httpx.Client) -> None:
    browser = Client()
    away = browser.get("/sign-in/sso")
    state = parse_qs(urlsplit(away.headers["Location"]).query)["state"][0]
    refused = browser.get(f"/sign-in/sso/callback?error=access_denied&state={state}")
    assert refused.status_code == 403 and "Nothing happened." in refused.content.decode()


def test_a_provider_that_does_not_answer_is_told_and_other_ways_in_stay(cast: Cast, settings: Any) -> None:
    settings.HANDRAIL_SSO = settings.HANDRAIL_SSO | {"issuer": f"http://localhost:{free_ports(1)}"}
    page = Client().get("/sign-in/sso")
    assert (
        page.status_code == 403 and "does not answer at the moment" in page.content.decode() and 'type="password"' in page.content.decode()
    )


def test_the_sign_in_page_offers_what_is_set_up_and_nothing_else(cast: Cast, settings: Any) -> None:
    settings.HANDRAIL_SIGN_IN = ("sso",)
    page = Client().get("/sign-in").content.decode()
    assert "Continue with" in page and 'type="password"' not in page and "Use a passkey" not in page
    assert Client().post("/sign-in", {"email": cast.riley.email, "password": "correct horse battery"}).status_code == 404
    assert Client().post("/sign-in/passkey", {"credential": "{}"}).status_code == 404
    settings.HANDRAIL_SIGN_IN = ("password",)
    page = Client().get("/sign-in").content.decode()
    assert "Continue with" not in page and 'type="password"' in page and Client().get("/sign-in/sso").status_code == 404


def test_no_address_is_compared_by_what_a_database_takes_for_the_same_letter(cast: Cast) -> None:
    """PostgreSQL in most languages takes ı for I and ſ for S in any case: a mailbox at `rıley@` would be Riley's account."""
    assert User.objects.by_email(" RILEY@fernhill.EXAMPLE ").get() == cast.riley
    assert not User.objects.by_email("Rıley@fernhill.example").exists()
    written = [path for path in (ROOT / "access").rglob("*.py") if "email__iexact" in path.read_text()]
    assert written == []


def test_a_name_at_the_provider_that_nobody_could_see_is_not_taken_over(cast: Cast, provider: httpx.Client) -> None:
    role = cast.workspace.roles.get(name="reviewer")
    invitations.invite(cast.workspace.pk, email="mei@fernhill.example", role=role, by=actor(cast.ada), by_mail=True)
    somebody(provider, "m2", "Mei@fernhill.example", name="\u202eadA\0")
    assert by_sso(provider, "m2").headers["Location"] == "/runs"
    assert User.objects.get(email="mei@fernhill.example").name == "mei"
