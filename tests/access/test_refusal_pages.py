"""What a person sees when they may not, when there is nothing, and when something broke."""

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.template import loader
from django.test import Client, RequestFactory

from access import pages
from access.errors import BadInput, Forbidden, NotFound, NotSignedIn, Refusal
from access.models import Membership
from access.rules import NOBODY
from tests.cast import Cast


class Overtaken(Refusal):
    """Somebody else was faster."""

    what_next = "Open it again to see what stands."


def answer(error: Exception, method: str = "get", **headers: str):
    request = getattr(RequestFactory(headers=headers), method)("/runs/1?after=2")
    request.actor, request.session = NOBODY, SessionStore()
    request._messages = []
    request._messages = type("Kept", (list,), {"add": lambda self, level, text, extra: self.append(text)})()
    return pages.RefusalPages(lambda r: None).process_exception(request, error)


@pytest.mark.parametrize(("error", "status"), [(Forbidden("No."), 403), (NotFound(), 404), (BadInput("Odd."), 422), (Overtaken(), 409)])
def test_a_refusal_becomes_a_page_with_its_status_and_what_to_do_next(error, status):
    page = answer(error)
    assert page.status_code == status
    assert error.what_next in page.content.decode() and "data-refused" in page.content.decode()


def test_a_refused_change_says_that_nothing_was_changed():
    assert "Nothing was changed." in answer(BadInput("Odd."), "post").content.decode()


def test_who_may_not_even_open_a_page_is_not_told_that_they_may_see_it():
    opened, done = (answer(Forbidden("No."), method).content.decode() for method in ("get", "post"))
    assert "You can’t open this page." in opened and "You may see this" not in opened
    assert "You may see this, but not do that." in done


def test_who_is_not_signed_in_is_sent_to_sign_in_and_back():
    assert answer(NotSignedIn()).headers["Location"] == "/sign-in?next=%2Fruns%2F1%3Fafter%3D2"
    posted = answer(NotSignedIn(), "post", referer="http://testserver/actions/7?x=1")
    assert posted.headers["Location"] == "/sign-in?next=%2Factions%2F7%3Fx%3D1"


def test_a_part_of_a_page_that_may_not_be_had_moves_the_whole_page():
    page = answer(NotSignedIn(), "get", hx_request="true", hx_current_url="http://testserver/inbox")
    assert page.status_code == 401 and page.headers["HX-Redirect"] == "/sign-in?next=%2Finbox"


def test_other_errors_are_left_alone():
    assert answer(ValueError()) is None


def test_what_a_refusal_says_is_text():
    assert "&lt;script&gt;" in answer(BadInput("<script>alert(1)</script>")).content.decode()


def test_who_lacks_a_right_reads_who_can_do_it_and_who_can_give_it_of_their_own_workspace_alone(cast: Cast, client: Client):
    client.force_login(cast.riley)
    refused = client.get("/runs/new")
    assert refused.status_code == 403 and "Otto can do it. Ada can give you the right." in refused.content.decode()
    assert "ask Ada for access" in client.get("/there/is/nothing").content.decode()
    client.force_login(cast.ada)  # the only one who could give it
    refused = client.get("/runs/new").content.decode()
    assert "Otto can do it." in refused and "can give" not in refused and "Olga" not in refused
    Membership.objects.create(workspace=cast.elsewhere, user=cast.riley, role=cast.elsewhere.roles.get())
    client.force_login(cast.riley)  # in two places, where either answer might be of the other one
    page = client.get("/there/is/nothing").content.decode()
    assert "ask an admin of the workspace for access" in page and "Olga" not in page


@pytest.mark.parametrize("name", ["400.html", "403.html", "403_csrf.html", "404.html", "500.html", "503.html"])
def test_an_error_page_needs_nothing_to_be_drawn(name):
    html = loader.get_template(name).render()
    assert "<h1" in html and "data-refused" in html and 'id="main"' in html


@pytest.mark.django_db
def test_a_wrong_address_gets_our_page():
    page = Client().get("/there/is/nothing")
    assert page.status_code == 404 and "There is nothing here that you may see." in page.content.decode()


def test_a_broken_page_names_the_request_in_the_log():
    request = RequestFactory().get("/")
    request.id = "8f3a"
    page = pages.broken(request)
    assert page.status_code == 500 and "8f3a" in page.content.decode()
