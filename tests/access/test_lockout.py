"""Too many wrong answers: who has to wait, who doesn't, and that nobody learns from it whether an account exists."""

import re
from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core.management import call_command
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from access import addresses, lockout
from access.models import AuditEntry
from config import clock
from tests.cast import Cast

PASSWORD = "correct horse battery"
RILEY, STRANGER = "riley@fernhill.example", "nobody@fernhill.example"


def attempt(email: str = RILEY, password: str = "wrong", at: str = "192.0.2.7", browser: Client | None = None):
    return (browser or Client()).post("/sign-in", {"email": email, "password": password}, REMOTE_ADDR=at)


def some_time_ago(passed: timedelta) -> None:
    for each in AccessAttempt.objects.all():
        AccessAttempt.objects.filter(pk=each.pk).update(attempt_time=each.attempt_time - passed)


@pytest.mark.parametrize("email", [RILEY, STRANGER])
def test_after_five_wrong_answers_an_account_waits_whether_or_not_it_exists(cast: Cast, email: str) -> None:
    pages = [attempt(email, at=f"192.0.2.{n}") for n in range(5)]
    assert [page.status_code for page in pages] == [422] * 4 + [429]
    assert "You have 4 tries left before a 15 minute wait." in pages[0].content.decode()
    assert "You have 1 try left" in pages[3].content.decode()
    told = pages[4].content.decode()
    assert "Too many wrong answers." in told and "Try again at <time" in told and 0 < int(pages[4].headers["Retry-After"]) <= 900
    right = attempt(email, PASSWORD)
    assert right.status_code == 429 and "sessionid" not in right.cookies


def test_a_locked_account_opens_again_when_the_time_that_was_told_has_come(cast: Cast) -> None:
    for _ in range(5):
        attempt()
    until = lockout.tries(RequestFactory().post("/sign-in"), RILEY).until
    assert until and timedelta(minutes=14) < until - clock.now() <= timedelta(minutes=15)
    attempt()  # knocking while it is locked makes it no longer
    assert lockout.tries(RequestFactory().post("/sign-in"), RILEY).until == until
    some_time_ago(timedelta(minutes=15, seconds=1))
    assert attempt(password=PASSWORD).status_code == 302


def test_that_an_account_was_locked_is_written_down_once_without_what_was_typed(cast: Cast) -> None:
    for _ in range(7):
        attempt(password="hunter2 hunter2")
    verbs = list(AuditEntry.objects.order_by("at", "id").values_list("verb", flat=True))
    assert verbs == ["sign_in_refused"] * 5 + ["sign_in_locked"]
    locked = AuditEntry.objects.get(verb="sign_in_locked")
    assert (locked.subject_id, locked.workspace_id) == (str(cast.riley.pk), cast.workspace.pk)
    kept = str(list(AccessAttempt.objects.values())) + str(list(AuditEntry.objects.values()))
    assert "hunter2" not in kept and RILEY not in kept


def test_others_are_let_in_while_one_is_locked_out(cast: Cast) -> None:
    for _ in range(5):
        attempt()
    assert attempt("sam@fernhill.example", PASSWORD).status_code == 302


def test_an_address_that_tries_many_accounts_waits_and_getting_in_itself_does_not_help_it(cast: Cast) -> None:
    for n in range(49):
        attempt(f"person{n}@fernhill.example")
    assert attempt("sam@fernhill.example", PASSWORD).status_code == 302
    attempt("person50@fernhill.example")
    assert attempt("sam@fernhill.example", PASSWORD).status_code == 429
    assert attempt("sam@fernhill.example", PASSWORD, at="198.51.100.9").status_code == 302


def test_getting_in_wipes_out_the_wrong_answers_before(cast: Cast) -> None:
    for _ in range(4):
        attempt()
    assert attempt(password=PASSWORD).status_code == 302
    assert "You have 4 tries left" in attempt().content.decode()


def test_an_unknown_account_is_told_from_a_known_one_by_nothing(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    encode = MD5PasswordHasher.encode
    monkeypatch.setattr(MD5PasswordHasher, "encode", lambda self, *given: hashed.append("x") or encode(self, *given))
    seen = []
    for email in (RILEY, STRANGER):
        hashed.clear()
        with CaptureQueriesContext(
            connection,
        ) as queries:
            page = attempt(email)
        text = re.sub(r'name="csrfmiddlewaretoken" value="[^"]+"|content="20[^"]+"|"X-CSRFToken": "[^"]+"', "", page.content.decode())
        seen.append((len(hashed), len(queries), page.status_code, text.replace(email, "")))
    assert seen[0] == seen[1] and seen[0][0] == 1


@pytest.mark.parametrize(
    ("trusted", "told", "asked_by", "found"),
    [
        (False, "203.0.113.5", "192.0.2.7", "192.0.2.7"),
        (True, "203.0.113.5", "192.0.2.7", "203.0.113.5"),
        (True, "10.9.9.9, 203.0.113.5", "192.0.2.7", "203.0.113.5"),
        (True, "junk", "192.0.2.7", "192.0.2.7"),
        (True, "", "::ffff:192.0.2.7", "192.0.2.7"),
        (False, "", "", ""),
    ],
)
def test_a_forwarded_address_counts_from_a_trusted_proxy_alone(settings, trusted, told, asked_by, found) -> None:
    settings.TRUST_PROXY = trusted
    assert addresses.of(RequestFactory().get("/", headers={"X-Forwarded-For": told}, REMOTE_ADDR=asked_by)) == found


def test_of_ipv6_a_whole_network_is_counted_as_one() -> None:
    one, other = (RequestFactory().get("/", REMOTE_ADDR=f"2001:db8:1:2::{n}") for n in (1, 2))
    assert addresses.home(one) == addresses.home(other) == "2001:db8:1:2::"


def test_the_checks_of_the_framework_have_nothing_to_say() -> None:
    call_command("check", fail_level="WARNING")


def test_who_is_signed_in_shows_again_who_they_are_whatever_others_try_at_the_door(cast: Cast) -> None:
    inside = Client()
    attempt(password=PASSWORD, browser=inside)
    for n in range(6):
        attempt(at=f"192.0.2.{n}")
    again = {"hr_to": "/account", "hr_method": "get", "hr_with": "password"}
    for _ in range(4):
        assert inside.post("/confirm", again | {"hr_password": "wrong"}).status_code == 422
    assert inside.post("/confirm", again | {"hr_password": PASSWORD}).headers["Location"] == "/account"
    for _ in range(5):
        inside.post("/confirm", again | {"hr_password": "wrong"})
    assert inside.post("/confirm", again | {"hr_password": PASSWORD}).status_code == 429


def test_a_few_wrong_passkeys_lock_out_nobody_else_behind_the_same_address(cast: Cast) -> None:
    def tried() -> int:
        return Client().post("/sign-in/passkey", {"credential": "{}"}, REMOTE_ADDR="192.0.2.7").status_code

    assert [tried() for _ in range(49)] == [422] * 49
    assert (tried(), tried()) == (429, 429)
