"""A person's own page: where they are signed in, ending that, another password."""

import pytest
from django.contrib.sessions.models import Session
from django.db import DatabaseError, OperationalError, connection
from django.test import Client

from access import audit, devices, open_sessions
from access.models import AuditEntry, OpenSession, User
from tests.cast import Cast

PASSWORD, ANOTHER = "correct horse battery", "staple a longer sentence"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0"
SAFARI = "Mozilla/5.0 (iPhone; CPU iPhone OS 19_1 like Mac OS X) AppleWebKit/605.1.15 Version/19.1 Mobile/15E148 Safari/604.1"


def signed_in(user: User, *, browser: str = FIREFOX, password: str = PASSWORD, at: str = "192.0.2.7") -> Client:
    client = Client(headers={"User-Agent": browser}, REMOTE_ADDR=at)
    assert client.post("/sign-in", {"email": user.email, "password": password}).status_code == 302
    return client


def row(client: Client) -> OpenSession:
    return OpenSession.objects.get(pk=client.session["open_session"])


def is_in(client: Client) -> bool:
    return client.get("/account").status_code == 200


def test_a_person_sees_where_they_are_signed_in_this_one_first(cast: Cast) -> None:
    signed_in(cast.riley, browser=SAFARI, at="198.51.100.9")
    here, _ = signed_in(cast.riley), signed_in(cast.sam)
    page = here.get("/account").content.decode()
    assert page.index("Firefox on Linux") < page.index("Mobile Safari on iOS") and page.count("This one") == 1
    assert "198.51.100.9" in page and "by password" in page
    assert page.count('aria-label="End ') == 1


def test_ending_a_session_leaves_its_cookie_worth_nothing(cast: Cast) -> None:
    here, there, sams = signed_in(cast.riley), signed_in(cast.riley), signed_in(cast.sam)
    before, others = (User.objects.get(pk=each.pk).access_version for each in (cast.riley, cast.sam))
    assert here.post(f"/account/sessions/{row(there).pk}/end").headers["Location"] == "/account"
    assert not is_in(there) and is_in(here)
    assert "That session had ended already." in here.post(f"/account/sessions/{row(sams).pk}/end", follow=True).content.decode()
    assert is_in(sams)
    versions = [User.objects.get(pk=each.pk).access_version for each in (cast.riley, cast.sam)]
    assert versions[0] > before and versions[1] == others
    assert AuditEntry.objects.filter(verb="session_ended", actor_id=str(cast.riley.pk)).count() == 1


def test_ending_all_others_leaves_this_one(cast: Cast) -> None:
    here, *there = (signed_in(cast.riley) for _ in range(3))
    assert "2 other sessions ended." in here.post("/account/sessions/end-others", follow=True).content.decode()
    assert is_in(here) and not any(map(is_in, there))


def test_no_session_ends_of_which_nothing_is_written_down(cast: Cast, monkeypatch) -> None:
    here, there = signed_in(cast.riley), signed_in(cast.riley)
    ended = [f"/account/sessions/{row(there).pk}/end", "/account/sessions/end-others", "/sign-out"]
    monkeypatch.setattr(audit, "record", full)
    for client in (here, there):
        client.raise_request_exception = False
    assert [here.post(address).status_code for address in ended] == [500] * 3
    monkeypatch.undo()
    assert is_in(here) and is_in(there) and OpenSession.objects.filter(user=cast.riley).count() == 2


@pytest.mark.django_db(transaction=True)
def test_what_was_asked_for_is_done_though_the_use_of_the_session_can_not_be_noted(cast: Cast) -> None:
    here = signed_in(cast.riley)

    def no_notes(execute, sql, *given):
        if sql.startswith('UPDATE "access_opensession"'):
            raise OperationalError("database is locked")
        return execute(sql, *given)

    open_sessions._noted.clear()
    with connection.execute_wrapper(no_notes):
        assert here.get("/account").status_code == 200
    assert str(row(here).pk) not in open_sessions._noted, "the next one notes it"


def full(*_: object, **__: object) -> None:
    raise DatabaseError("disk full")


def test_signing_out_and_running_out_take_a_session_off_the_list(cast: Cast) -> None:
    here, gone, old = (signed_in(cast.riley) for _ in range(3))
    gone.post("/sign-out")
    Session.objects.filter(session_key=row(old).key).delete()
    assert here.get("/account").content.decode().count('<tr role="row">') == 2  # the head, and this one
    assert OpenSession.objects.count() == 1


def test_another_password_takes_the_old_one_and_ends_the_other_sessions(cast: Cast) -> None:
    here, there = signed_in(cast.riley), signed_in(cast.riley)
    wrong = here.post("/account/password", {"old": "not it", "new": ANOTHER})
    assert wrong.status_code == 422 and "That is not your password.</strong>" in wrong.content.decode()
    assert "Nothing was changed." in wrong.content.decode()
    weak = here.post("/account/password", {"old": PASSWORD, "new": "riley"})
    assert weak.status_code == 422 and "too short" in weak.content.decode() and is_in(there)
    done = here.post("/account/password", {"old": PASSWORD, "new": ANOTHER}, follow=True).content.decode()
    assert "Your password is changed. 1 other session ended." in done
    assert is_in(here) and not is_in(there) and row(here).key == here.session.session_key
    signed_in(cast.riley, password=ANOTHER)
    assert Client().post("/sign-in", {"email": cast.riley.email, "password": PASSWORD}).status_code == 422
    assert AuditEntry.objects.get(verb="password_changed").data == {"ended": 1}


def test_who_guesses_the_old_password_on_the_account_page_is_locked_out_too(cast: Cast) -> None:
    here = signed_in(cast.riley)
    for _ in range(5):
        here.post("/account/password", {"old": "not it", "new": ANOTHER})
    refused = here.post("/account/password", {"old": PASSWORD, "new": ANOTHER})
    assert "Too many wrong answers: try again at" in refused.content.decode()


def test_the_page_asks_little_however_many_sessions_there_are(cast: Cast, django_assert_max_num_queries) -> None:
    for _ in range(5):
        here = signed_in(cast.riley)
    here.get("/account")
    with django_assert_max_num_queries(12):
        here.get("/account")


@pytest.mark.parametrize(
    ("agent", "words"), [(FIREFOX, "Firefox on Linux"), ("curl/8.1", "curl"), ("", "A browser"), ("\x00<b>", "A browser")]
)
def test_a_browser_is_named_by_what_it_says(agent: str, words: str) -> None:
    assert devices.words(agent) == words
