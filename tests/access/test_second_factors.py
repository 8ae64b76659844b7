"""Codes of an app, recovery codes, passkeys and showing again that it is you, as far as no browser is needed."""

import re
from datetime import timedelta
from urllib.parse import parse_qs

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.test import Client

from access import second_factors, step_up
from access.models import AuditEntry, User
from config import clock
from tests.cast import Cast

PASSWORD = "correct horse battery"


def code_of(secret: str, later: int = 0) -> str:
    now = sorted(totp.yield_hotp_counters_from_time())[1]
    return totp.format_hotp_value(totp.hotp_value(secret, now + later))


def entered(user: User) -> Client:
    client = Client()
    client.post("/sign-in", {"email": user.email, "password": PASSWORD})
    return client


def with_codes(user: User) -> tuple[str, list[str]]:
    """The secret and the recovery codes of a person who has just set them up."""
    client = entered(user)
    page = client.get("/account/codes").content.decode()
    secret = re.search(r'id="secret">([A-Z2-7 ]+)<', page).group(1).replace(" ", "")
    done = client.post("/account/codes", {"code": code_of(secret)}).content.decode()
    return secret, re.findall(r"<li><code>(\d{10})</code></li>", done)


def test_who_has_set_up_codes_is_asked_for_one_after_the_password(cast: Cast) -> None:
    secret, recovery = with_codes(cast.riley)
    assert len(set(recovery)) == 10
    door = Client()
    halfway = door.post("/sign-in", {"email": cast.riley.email, "password": PASSWORD, "next": "/runs"})
    assert halfway.headers["Location"] == "/sign-in/second?next=%2Fruns"
    assert door.get("/account").status_code == 302 and "open_session" not in door.session
    assert door.post("/sign-in/second", {"code": "000000"}).status_code == 422
    done = door.post("/sign-in/second", {"code": code_of(secret), "next": "/runs"})
    assert done.headers["Location"] == "/runs" and door.session["signed_in"] == "password+totp"
    assert AuditEntry.objects.filter(verb="signed_in").latest("at").data == {"how": "password+totp"}


def test_a_code_counts_once_and_so_does_a_recovery_code(cast: Cast) -> None:
    secret, recovery = with_codes(cast.riley)
    code = code_of(secret)
    assert [second_factors.check_code(cast.riley, each) for each in (code, code, recovery[3], recovery[3])] == ["totp", "", "recovery", ""]
    assert second_factors.held(cast.riley).recovery_left == 9
    assert second_factors.check_code(cast.sam, code_of(secret, 1)) == ""


def test_wrong_codes_lock_the_account_as_wrong_passwords_do(cast: Cast) -> None:
    secret, _ = with_codes(cast.riley)
    door = entered(cast.riley)
    pages = [door.post("/sign-in/second", {"code": "000000"}) for _ in range(5)]
    assert pages[-1].status_code == 429 and "Too many wrong answers." in pages[-1].content.decode()
    assert door.post("/sign-in/second", {"code": code_of(secret)}).status_code == 429
    assert entered(cast.riley).get("/account").status_code == 302


def test_the_step_between_lasts_ten_minutes(cast: Cast) -> None:
    secret, _ = with_codes(cast.riley)
    door = entered(cast.riley)
    session = door.session
    session["half_in"] |= {"at": (clock.now() - timedelta(minutes=11)).isoformat()}
    session.save()
    assert door.post("/sign-in/second", {"code": code_of(secret)}).headers["Location"].startswith("/sign-in?")


def test_secrets_lie_sealed_and_open_after_the_master_key_was_changed(cast: Cast, settings) -> None:
    secret, recovery = with_codes(cast.riley)
    kept = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert secret not in kept and not any(code in kept for code in recovery)
    settings.HANDRAIL_VAULT_KEY_OLD, settings.HANDRAIL_VAULT_KEY = (settings.HANDRAIL_VAULT_KEY,), b"n" * 32
    assert second_factors.check_code(cast.riley, code_of(secret)) == "totp"


def test_new_recovery_codes_take_the_old_ones_and_the_last_factor_takes_them_all(cast: Cast) -> None:
    _, recovery = with_codes(cast.riley)
    fresh = second_factors.renew_recovery(cast.riley)
    assert second_factors.check_code(cast.riley, recovery[0]) == "" and second_factors.check_code(cast.riley, fresh[0]) == "recovery"
    assert second_factors.remove(cast.riley, second_factors.held(cast.riley).codes.pk)
    assert not Authenticator.objects.exists()
    assert entered(cast.riley).session["signed_in"] == "password"


@pytest.mark.parametrize("said", ["", "{}", "[]", '{"response": {}}', '{"response": {"userHandle": "eA"}}', '{"response": 1}', "\x00"])
def test_what_is_no_passkey_opens_nothing(cast: Cast, said: str) -> None:
    door = Client()
    assert door.post("/sign-in/passkey/options").json()["userVerification"] == "required"
    refused = door.post("/sign-in/passkey", {"credential": said})
    assert refused.status_code == 422 and "opens nothing here" in refused.content.decode()
    assert "open_session" not in door.session


def test_something_grave_is_asked_for_again_after_a_quarter_of_an_hour_and_goes_on_with_what_was_typed(cast: Cast) -> None:
    here = entered(cast.riley)
    assert here.get("/account/codes").status_code == 200
    long_ago(here)
    asked = here.post("/account/passkeys", {"name": "My <laptop>", "credential": "{}", "x": ["1", "2"]})
    page = asked.content.decode()
    assert asked.status_code == 403 and "Show that it is you" in page and 'name="name" value="My &lt;laptop&gt;"' in page
    sent = {"hr_to": "/account/passkeys", "hr_method": "post", "name": "My <laptop>", "x": ["1", "2"]}
    refused = here.post("/confirm", sent | {"hr_with": "password", "hr_password": "not it"})
    wrong = refused.content.decode()
    assert refused.status_code == 422 and "That is not your password." in wrong and 'value="My &lt;laptop&gt;"' in wrong
    assert "not it" not in wrong
    on = here.post("/confirm", sent | {"hr_with": "password", "hr_password": PASSWORD}).content.decode()
    assert '<form method="post" action="/account/passkeys" data-go-on' in on and PASSWORD not in on
    kept = re.findall(r'name="(name|x)" value="([^"]*)"', on.partition("data-go-on")[2])
    assert kept == [("name", "My &lt;laptop&gt;"), ("x", "1"), ("x", "2")]
    assert here.get("/account/codes").status_code == 200
    assert AuditEntry.objects.get(verb="confirmed_again").data == {"how": "password"}


def test_a_page_that_asks_for_it_is_come_back_to(cast: Cast) -> None:
    here = entered(cast.riley)
    long_ago(here)
    asked = here.get("/account/codes?a=1").content.decode()
    assert 'name="hr_to" value="/account/codes?a=1"' in asked
    sent = {"hr_method": "get", "hr_with": "password", "hr_password": PASSWORD}
    assert here.post("/confirm", sent | {"hr_to": "/account/codes?a=1"}).headers["Location"] == "/account/codes?a=1"
    assert here.post("/confirm", sent | {"hr_to": "https://evil.example/"}).headers["Location"] == "/"


def test_a_form_sent_by_htmx_gets_the_whole_page_that_asks(cast: Cast) -> None:
    here = entered(cast.riley)
    long_ago(here)
    asked = here.post("/account/recovery-codes", headers={"HX-Request": "true"})
    assert (asked.status_code, asked.headers["HX-Retarget"]) == (200, "body") and "Show that it is you" in asked.content.decode()


def test_in_the_demo_a_click_shows_it_and_says_so_and_nowhere_else(cast: Cast, settings) -> None:
    settings.DEMO = True
    here = Client()
    here.post("/sign-in/as", {"as": str(cast.riley.pk)})
    assert here.get("/account/codes").status_code == 403
    assert "Demo people have no password" in here.get("/confirm").content.decode()
    sent = {"hr_to": "/account/codes", "hr_method": "get", "hr_with": "demo"}
    assert here.post("/confirm", sent, REMOTE_ADDR="192.0.2.1").status_code == 422
    assert here.post("/confirm", sent).headers["Location"] == "/account/codes"
    assert here.get("/account/codes").status_code == 200
    settings.DEMO = False
    long_ago(here)
    assert here.post("/confirm", sent).status_code == 422


@pytest.mark.django_db
def test_passkeys_are_offered_at_a_name_and_not_at_a_number(settings) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    offered = {host: "Use a passkey" in Client().get("/sign-in", headers={"Host": host}).content.decode() for host in HOSTS}
    assert offered == HOSTS


HOSTS = {"localhost:8000": True, "handrail.example": True, "127.0.0.1:8000": False, "[::1]:8000": False, "127.0.0.1": False}


def long_ago(client: Client) -> None:
    session = client.session
    session[step_up.MARK] = (clock.now() - timedelta(minutes=15, seconds=1)).isoformat()
    session.save()


def test_the_uri_of_an_app_names_the_house_and_the_person(cast: Cast) -> None:
    uri = second_factors.Adapter().build_totp_url(cast.riley, "ABC")
    assert uri.startswith("otpauth://totp/riley%40fernhill.example?") and parse_qs(uri.partition("?")[2])["issuer"] == ["Handrail"]


def test_where_no_passkey_opens_alone_it_is_the_second_step_of_its_owner(cast: Cast, settings, monkeypatch) -> None:
    settings.HANDRAIL_SIGN_IN = ("password",)
    Authenticator.objects.create(user=cast.riley, type="webauthn", data={})
    whose = [cast.sam]
    monkeypatch.setattr(second_factors, "by_passkey", lambda said: whose[0])  # a device is needed to sign; tests/browser has one
    door = Client()
    assert door.post("/sign-in/passkey", {"credential": "{}"}).status_code == 404
    assert "/sign-in/second" in door.post("/sign-in", {"email": cast.riley.email, "password": PASSWORD})["Location"]
    assert door.post("/sign-in/passkey", {"credential": "{}"}).status_code == 422 and "_auth_user_id" not in door.session
    whose[:] = [cast.riley]
    door.post("/sign-in/passkey", {"credential": "{}"})
    assert door.session["signed_in"] == "password+passkey" and door.session["_auth_user_id"] == str(cast.riley.pk)
