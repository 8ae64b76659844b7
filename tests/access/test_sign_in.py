"""Signing in and out: who gets in, how that is remembered, and what the audit trail says."""

import pytest
from django.test import Client

from access import demo
from access.models import Agent, AuditEntry, Membership, Role, User, Workspace
from access.rules import ROLES

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]
PASSWORD = "a long enough sentence"


@pytest.fixture
def fernhill():
    return Workspace.objects.create(slug="fernhill", name="Fernhill")


def member(workspace: Workspace, name: str, role: str, *, domain: str = "fernhill.example", **user: object) -> User:
    held, _ = Role.objects.get_or_create(workspace=workspace, name=role, defaults={"capabilities": list(ROLES[role])})
    person = User.objects.create_user(f"{name.lower()}@{domain}", PASSWORD, name=name)
    User.objects.filter(pk=person.pk).update(**user)
    Membership.objects.create(workspace=workspace, user=person, role=held)
    return person


@pytest.fixture
def riley(fernhill):
    return member(fernhill, "Riley", "reviewer")


@pytest.fixture
def browser():
    return Client()


def sign_in(browser: Client, email: str = "riley@fernhill.example", password: str = PASSWORD, **more: str):
    return browser.post("/sign-in", {"email": email, "password": password, **more})


def test_a_person_signs_in_with_their_password_and_it_is_remembered_how(browser, riley, fernhill):
    assert sign_in(browser).headers["Location"] == "/"
    assert browser.session["signed_in"] == "password"
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.actor_id, entry.workspace_id, entry.data) == ("signed_in", str(riley.pk), fernhill.pk, {"how": "password"})


def test_the_case_of_an_address_does_not_matter(browser, riley):
    assert sign_in(browser, email="RILEY@Fernhill.example").status_code == 302


def test_the_session_is_a_new_one_after_signing_in(browser, riley):
    browser.session.save()
    before = browser.session.session_key
    sign_in(browser)
    assert browser.session.session_key != before


@pytest.mark.parametrize(
    "wrong", [{"password": "wrong"}, {"email": "nobody@fernhill.example"}, {"email": "not an address"}, {"password": ""}]
)
def test_a_wrong_answer_signs_nobody_in_and_says_the_same_each_time(browser, riley, wrong):
    answer = sign_in(browser, **wrong)
    assert answer.status_code == 422
    assert "That e-mail and password don’t match." in answer.content.decode() and 'role="alert"' in answer.content.decode()
    assert "_auth_user_id" not in browser.session


def test_a_refused_sign_in_names_the_account_but_never_what_was_typed(browser, riley):
    sign_in(browser, password="hunter2 hunter2")
    sign_in(browser, email="stranger@elsewhere.example", password="hunter2 hunter2")
    known, unknown = AuditEntry.objects.order_by("at")
    assert (known.verb, known.actor_kind, known.subject_id) == ("sign_in_refused", "nobody", str(riley.pk))
    assert (unknown.verb, unknown.subject_id, unknown.workspace_id) == ("sign_in_refused", "", None)
    assert "hunter2" not in str([known.data, unknown.data]) and "stranger" not in str([known.data, unknown.data])


def test_a_deactivated_person_is_refused(browser, fernhill):
    member(fernhill, "Dana", "reviewer", is_active=False)
    assert sign_in(browser, email="dana@fernhill.example").status_code == 422


def test_the_password_is_never_in_the_page(browser, riley):
    assert b"hunter2" not in sign_in(browser, password="hunter2 hunter2").content


@pytest.mark.parametrize("place", ["/runs?q=a", "/actions/0192"])
def test_after_signing_in_a_person_is_where_they_wanted_to_be(browser, riley, place):
    assert sign_in(browser, next=place).headers["Location"] == place


@pytest.mark.parametrize(
    "place",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "http:///evil.example",
        "\t//evil.example",
        "/sign-out",
    ],
)
def test_nobody_is_sent_elsewhere(browser, riley, place):
    assert sign_in(browser, next=place).headers["Location"] == "/"
    assert f'value="{place}"' not in Client().get("/sign-in", {"next": place}).content.decode()


def test_who_is_signed_in_does_not_see_the_form_again(browser, riley):
    sign_in(browser)
    assert browser.get("/sign-in", {"next": "/runs"}).headers["Location"] == "/runs"


def test_signing_out_forgets_the_session_and_is_written_down(browser, riley):
    sign_in(browser)
    assert browser.post("/sign-out").headers["Location"] == "/sign-in"
    assert "_auth_user_id" not in browser.session
    assert AuditEntry.objects.filter(verb="signed_out", actor_id=str(riley.pk)).count() == 1
    assert "You are signed out." in browser.get("/sign-in").content.decode()


def test_signing_out_needs_a_post_and_the_token_of_our_own_form(riley):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(riley)
    assert strict.get("/sign-out").status_code == 405
    refused = strict.post("/sign-out")
    assert refused.status_code == 403 and "Nothing was recorded" in refused.content.decode()
    assert "_auth_user_id" in strict.session


def test_an_ended_session_moves_the_whole_page_not_a_part_of_it(browser):
    answer = browser.get("/sign-in", {"next": "/inbox"}, headers={"HX-Request": "true"})
    assert answer.headers["HX-Redirect"] == "/sign-in?next=%2Finbox" and not answer.content


# --- the demo ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def in_demo(settings):
    settings.DEMO = True


def test_the_demo_offers_its_people_and_lets_anybody_on_this_machine_in(browser, in_demo, riley, fernhill):
    member(fernhill, "Ada", "admin")
    page = browser.get("/sign-in").content.decode()
    assert page.index("Continue as Riley, reviewer") < page.index("Continue as Ada, admin")
    assert browser.post("/sign-in/as", {"as": str(riley.pk)}).status_code == 302
    assert browser.session["signed_in"] == "demo"
    assert AuditEntry.objects.get().data == {"how": "demo"}


FAR = [
    {"REMOTE_ADDR": "192.0.2.7"},
    {"REMOTE_ADDR": "10.0.0.1"},
    {"REMOTE_ADDR": ""},
    {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "127.0.0.1"},
    {"REMOTE_ADDR": "127.0.0.1", "HTTP_FORWARDED": "for=127.0.0.1"},
    {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_REAL_IP": "127.0.0.1"},
    {"REMOTE_ADDR": "127.0.0.1", "HTTP_VIA": "1.1 proxy"},
]


@pytest.mark.parametrize("far", FAR)
def test_the_demo_lets_nobody_in_from_another_machine(browser, in_demo, riley, far):
    assert "Continue as" not in browser.get("/sign-in", **far).content.decode()
    assert browser.post("/sign-in/as", {"as": str(riley.pk)}, **far).status_code == 404
    assert "_auth_user_id" not in browser.session


def test_outside_the_demo_there_is_no_such_door(browser, settings, riley):
    settings.DEMO = False
    assert "Continue as" not in browser.get("/sign-in").content.decode()
    assert browser.post("/sign-in/as", {"as": str(riley.pk)}).status_code == 404


def test_a_real_account_in_a_demo_is_not_offered(browser, in_demo, riley, fernhill):
    real = member(fernhill, "Mei", "admin", domain="company.org")
    gone = member(fernhill, "Gone", "admin", is_active=False)
    for person in (real, gone):
        assert browser.post("/sign-in/as", {"as": str(person.pk)}).status_code == 404
    assert [person.name for person in demo.people()] == ["Riley"]


def test_the_owner_of_an_agent_is_not_offered(browser, in_demo, riley, fernhill):
    Agent.objects.create(workspace=fernhill, name="triage", owner=member(fernhill, "Priya", "manager"))
    assert [person.name for person in demo.people()] == ["Riley"]


def test_who_came_in_and_made_an_agent_of_their_own_comes_in_again(browser, in_demo, riley, fernhill):
    browser.post("/sign-in/as", {"as": str(riley.pk)})
    Agent.objects.create(workspace=fernhill, name="mine", owner=riley)
    assert [person.name for person in demo.people()] == ["Riley"]


def test_who_was_given_a_role_that_an_admin_made_is_offered_with_it_last(browser, in_demo, riley, fernhill):
    lead = Role.objects.create(workspace=fernhill, name="lead", capabilities=list(ROLES["manager"]))
    morgan = member(fernhill, "Morgan", "manager")
    Membership.objects.filter(user=morgan).update(role=lead)
    member(fernhill, "Ada", "admin")
    page = browser.get("/sign-in").content.decode()
    assert page.index("Continue as Ada, admin") < page.index("Continue as Morgan, lead") < page.index("Has a role that an admin made here.")
    assert browser.post("/sign-in/as", {"as": str(morgan.pk)}).status_code == 302


@pytest.mark.parametrize("odd", ["", "riley", "' OR 1=1", "\x00"])
def test_an_odd_choice_is_nobody(browser, in_demo, riley, odd):
    assert browser.post("/sign-in/as", {"as": odd}).status_code == 404


@pytest.mark.parametrize(
    ("address", "here"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("::ffff:127.0.0.1", True), ("::ffff:10.0.0.1", False), ("x", False)],
)
def test_this_machine_is_told_from_others(address, here):
    assert demo.is_loopback(address) is here


# --- the theme -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "kept"), [("dark", "dark"), ("light", "light"), ("system", "system"), ('"><script>', None)])
def test_the_theme_is_kept_without_script(browser, word, kept):
    answer = browser.post("/theme", {"theme": word, "next": "/sign-in"})
    assert answer.status_code == 302
    assert (answer.cookies["theme"].value if "theme" in answer.cookies else None) == kept
    assert ('data-theme="dark"' in browser.get("/sign-in").content.decode()) is (kept == "dark")


@pytest.mark.parametrize("wanted", ["foo", "sign_in", "?x", "#x", "%00", "é", "9" * 30, "."])
def test_what_is_no_path_is_nowhere_to_go_and_breaks_nothing(browser, riley, wanted):
    assert sign_in(browser, next=wanted).headers["Location"] == "/"
    assert browser.get("/sign-in", {"next": wanted}).headers["Location"] == "/"


def test_a_page_that_a_request_says_to_come_from_and_that_is_no_address_breaks_nothing(browser, riley):
    assert browser.post("/account/sessions/end-others", HTTP_REFERER="http://[x").headers["Location"] == "/sign-in?next=%2F"
    asked = browser.get("/account", HTTP_HX_REQUEST="true", HTTP_HX_CURRENT_URL="http://[x")
    assert (asked.status_code, asked.headers["HX-Redirect"]) == (401, "/sign-in?next=%2F")
