"""Coming in by invitation, a new password by a link, and the page on which an admin looks after people."""

import re
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client, RequestFactory

from access import invitations, keys, links, people, reasons, resets, roles, second_factors, tasks
from access.models import AuditEntry, Invitation, Membership, OpenSession, PasswordLink, Role, User
from access.rules import SYSTEM
from config import clock
from tests import proving
from tests.access.test_second_factors import with_codes
from tests.approvals.noticing import Mailbox, mail_server
from tests.cast import Cast, member
from tests.factories import actor, bearer
from tests.together import together

PASSWORD, ANOTHER = "correct horse battery", "staple a longer sentence"
NEW = "mei@fernhill.example"


@pytest.fixture
def ada(cast: Cast) -> Client:
    return entered(cast.ada)


def entered(user: User, password: str = PASSWORD) -> Client:
    client = Client()
    client.post("/sign-in", {"email": user.email, "password": password})
    return client


_boxes: list[Mailbox] = []


@pytest.fixture(autouse=True)
def box(settings) -> Iterator[Mailbox]:
    with mail_server(settings) as server:
        _boxes[:] = [server]
        yield server


def invite(ada: Client, cast: Cast, email: str = NEW, role: str = "reviewer"):
    return ada.post("/people/invitations", {"email": email, "role": cast.workspace.roles.get(name=role).pk}, follow=True)


def sent_link() -> str:
    """The address in the one letter that is sent now."""
    _boxes[0].mails.clear()
    assert links.send_due() == 1
    return re.search(r"https://handrail\.test(\S+)", _boxes[0].mails[0].get_content()).group(1)


def come_in(link: str, browser: Client | None = None, name: str = "Mei Tanaka", password: str = ANOTHER):
    return (browser or Client()).post(link, {"name": name, "password": password}, follow=True)


# invitations


def test_who_is_invited_comes_in_by_the_link_in_the_mail_with_the_role_they_were_given(cast: Cast, ada: Client, box: Mailbox) -> None:
    assert "mei@fernhill.example is invited. The link is on its way" in invite(ada, cast).content.decode()
    link = sent_link()
    assert box.mails[0]["To"] == NEW and "as reviewer, by Ada" in box.mails[0].get_content()
    assert links.send_due() == 0
    browser = Client()
    assert "Ada has invited mei@fernhill.example as reviewer" in browser.get(link).content.decode()
    assert "You are in." in come_in(link, browser).content.decode() and browser.session["signed_in"] == "password"
    mei = User.objects.get(email=NEW)
    assert (mei.name, mei.memberships.get().role.name, mei.memberships.get().workspace) == ("Mei Tanaka", "reviewer", cast.workspace)
    assert come_in(link).status_code == 410
    assert list(AuditEntry.objects.filter(verb__startswith="invit").values_list("verb", flat=True)) == ["invited", "invitation_accepted"]


def test_looking_at_a_link_uses_nothing_up_and_what_was_typed_wrong_stays(cast: Cast, ada: Client) -> None:
    invite(ada, cast)
    link = sent_link()
    for _ in range(3):
        assert Client().get(link).status_code == 200 and Client().head(link).status_code == 200
    weak = Client().post(link, {"name": "Mei", "password": "short"})
    assert weak.status_code == 422 and 'value="Mei"' in weak.content.decode() and not User.objects.filter(email=NEW).exists()
    assert come_in(link).status_code == 200


@pytest.mark.parametrize("how", ["withdrawn", "too old", "sent again", "tampered with", "of the other kind"])
def test_a_link_that_is_over_opens_nothing(cast: Cast, ada: Client, how: str) -> None:
    invite(ada, cast)
    link, made = sent_link(), Invitation.objects.get()
    match how:
        case "withdrawn":
            ada.post(f"/people/invitations/{made.pk}", {"do": "withdraw"})
        case "too old":
            Invitation.objects.update(expires_at=clock.now() - timedelta(seconds=1))
        case "sent again":
            ada.post(f"/people/invitations/{made.pk}", {"do": "again"})
        case "tampered with":
            link = link[:-2] + ("aa" if link[-2:] != "aa" else "bb")
        case "of the other kind":
            link = link.replace("/invitations", "/passwords")
    refused = come_in(link)
    assert refused.status_code == 410 and not User.objects.filter(email=NEW).exists()
    if how == "sent again":
        assert come_in(sent_link()).status_code == 200


def test_without_a_mail_server_the_link_is_shown_once_to_hand_over(cast: Cast, ada: Client, settings) -> None:
    settings.HANDRAIL_MAIL = False
    page = invite(ada, cast).content.decode()
    link = re.search(r'id="link">https://handrail\.test([^<]+)<', page).group(1)
    assert "shown now and never again" in page and link not in ada.get("/people").content.decode()
    assert come_in(link).status_code == 200 and links.send_due() == 0


def test_an_address_that_only_a_database_takes_for_somebodys_is_another_one(cast: Cast) -> None:
    """With a role that waits for a second admin, too: an ı without a dot is no I."""
    member(cast.workspace, "rafael", "admin")
    role, given = cast.workspace.roles.get(name="admin"), {"by": actor(cast.ada), "by_mail": False, "why": "A second admin for nights."}
    with pytest.raises(invitations.AlreadyIn):
        invitations.ask(cast.workspace.pk, email="RILEY@fernhill.example", role=role, **given)
    assert invitations.ask(cast.workspace.pk, email="r\u0131ley@fernhill.example", role=role, **given).state == "waiting"


def test_nobody_is_invited_twice_or_who_is_in_already(cast: Cast, ada: Client) -> None:
    assert "They are here already." in invite(ada, cast, "RILEY@fernhill.example").content.decode()
    invite(ada, cast)
    again = invite(ada, cast, "Mei@Fernhill.example")
    assert again.status_code == 409 and "They have been invited already." in again.content.decode()
    assert invite(ada, cast, "no address").status_code == 422
    Invitation.objects.update(expires_at=clock.now())
    assert invite(ada, cast).status_code == 200 and Invitation.objects.filter(withdrawn_at=None).count() == 1


def test_who_has_an_account_elsewhere_signs_in_and_joins(cast: Cast, ada: Client) -> None:
    invite(ada, cast, cast.olga.email)
    link = sent_link()
    assert "Sign in to join" in Client().get(link).content.decode()
    assert "signed in as somebody else" in entered(cast.riley).get(link).content.decode()
    assert entered(cast.riley).post(link).status_code == 200
    assert entered(cast.olga).post(link).headers["Location"] == "/"
    assert set(cast.olga.memberships.values_list("workspace__slug", flat=True)) == {"elsewhere", "fernhill"}


def test_a_letter_that_could_not_be_sent_is_tried_again_under_the_same_link(cast: Cast, ada: Client, box: Mailbox) -> None:
    invite(ada, cast)
    box.answer = "451 Later"
    assert links.send_due() == 0
    box.answer = "250 OK"
    assert links.send_due() == 0 and "On its way" in ada.get("/people").content.decode()
    Invitation.objects.update(next_at=clock.now())
    assert come_in(sent_link()).status_code == 200


# a new password


def test_a_link_made_while_the_one_before_is_being_sent_is_sent_too(cast: Cast, ada: Client, monkeypatch) -> None:
    invite(ada, cast)
    made, mail = Invitation.objects.get(), links._mail

    def meanwhile(link: Invitation) -> object:
        monkeypatch.setattr(links, "_mail", mail)
        invitations.again(made, by=actor(cast.ada), by_mail=True)
        return mail(link)

    monkeypatch.setattr(links, "_mail", meanwhile)
    over = sent_link()
    assert Client().get(over).status_code == 410 and Client().get(sent_link()).status_code == 200


def test_a_forgotten_password_is_chosen_anew_by_a_link_that_opens_once(cast: Cast) -> None:
    here = entered(cast.riley)
    asked = Client().post("/sign-in/forgot", {"email": "Riley@fernhill.example"})
    assert "If that address has an account here" in asked.content.decode()
    link = sent_link()
    assert "too short" in Client().post(link, {"password": "short"}).content.decode()
    chosen = Client().post(link, {"password": ANOTHER}, follow=True).content.decode()
    assert "Your new password counts from now on" in chosen
    assert here.get("/account").status_code == 302, "what the old one opened has ended"
    assert Client().post(link, {"password": PASSWORD}).status_code == 410
    assert entered(cast.riley, ANOTHER).get("/account").status_code == 200
    assert entered(cast.riley, PASSWORD).get("/account").status_code == 302


def test_an_address_that_nobody_has_gets_the_same_answer_and_no_letter(cast: Cast, box: Mailbox) -> None:
    pages = [Client().post("/sign-in/forgot", {"email": email}) for email in (cast.riley.email, "stranger@fernhill.example")]
    pages = [re.sub(r'content="20[^"]+"|"X-CSRFToken": "[^"]+"', "", page.content.decode()) for page in pages]
    assert pages[0] == pages[1] and PasswordLink.objects.count() == 2
    sent_link()
    for _ in range(5):
        Client().post("/sign-in/forgot", {"email": cast.riley.email})
    links.send_due()
    assert len(box.mails) == 3  # an hour has room for three


# people


def test_an_admin_sees_finds_and_turns_the_pages_of_people(cast: Cast, ada: Client, django_assert_max_num_queries) -> None:
    role = cast.workspace.roles.get(name="reviewer")
    more = User.objects.bulk_create(User(email=f"n{n}@fernhill.example", name=f"Number {n:03}") for n in range(60))
    Membership.objects.bulk_create(Membership(workspace=cast.workspace, user=user, role=role) for user in more)
    with django_assert_max_num_queries(16):
        page = ada.get("/people").content.decode()
    assert "1 to 50 of " in page and "page=2" in page and page.count("/people/0") == 50 and "olga" not in page.lower()
    assert "Riley" in ada.get("/people?page=2").content.decode()
    found = ada.get("/people?q=number+01&role=reviewer").content.decode()
    assert found.count("/people/0") == 11 and "Nobody is called so." in ada.get("/people?q=zzz").content.decode()


def test_somebody_who_goes_can_do_nothing_from_then_on_and_neither_can_their_agents(cast: Cast, ada: Client) -> None:
    priyas, token = entered(cast.priya), token_of(cast)
    before = User.objects.get(pk=cast.priya.pk).access_version
    page = ada.get(f"/people/{cast.priya.pk}").content.decode()
    assert "The keys of support-triage let nobody in" in page
    refused = ada.post(f"/people/{cast.priya.pk}/changes", {"do": "deactivate", "why": ""})
    assert refused.status_code == 422 and "needs a reason" in refused.content.decode()
    ada.post(f"/people/{cast.priya.pk}/changes", {"do": "deactivate", "why": "Left in November."})
    assert priyas.get("/account").status_code == 302 and not OpenSession.objects.filter(user=cast.priya).exists()
    assert User.objects.get(pk=cast.priya.pk).access_version > before
    assert bearer(token).kind == "nobody" and entered(cast.priya).get("/account").status_code == 302
    assert "Deactivated" in ada.get(f"/people/{cast.priya.pk}").content.decode() and "Priya" in ada.get("/people?gone=1").content.decode()
    entry = AuditEntry.objects.get(verb="person_deactivated")
    assert (entry.subject_id, entry.data["ended"]) == (str(cast.priya.pk), 1) and "November" not in str(entry.data)
    assert list(reasons.shown([entry.data["why"]]).values()) == ["Left in November."]
    ada.post(f"/people/{cast.priya.pk}/changes", {"do": "reactivate", "why": "Came back."})
    assert entered(cast.priya).get("/account").status_code == 200 and bearer(token).kind == "agent"


def token_of(cast: Cast) -> str:
    return keys.make(cast.agent, name="test", by=SYSTEM)[1]


def test_a_role_that_is_changed_counts_at_once(cast: Cast, ada: Client) -> None:
    rileys, manager = entered(cast.riley), cast.workspace.roles.get(name="manager")
    done = ada.post(f"/people/{cast.riley.pk}/changes", {"do": "role", "role": manager.pk, "why": "A new task."}, follow=True)
    assert "The role of Riley is changed." in done.content.decode()
    assert actor(cast.riley).role == "manager" and "Manager" in rileys.get("/account").content.decode()
    assert AuditEntry.objects.get(verb="role_given").data | {"why": ""} == {
        "why": "",
        "role": "manager",
        "was": "reviewer",
        "lost": ["approvals.decide"],
    }
    again = ada.post(f"/people/{cast.riley.pk}/changes", {"do": "role", "role": manager.pk, "why": "A new task."})
    assert again.status_code == 409 and "Nothing to change." in again.content.decode()
    foreign = cast.elsewhere.roles.first()
    assert ada.post(f"/people/{cast.riley.pk}/changes", {"do": "role", "role": foreign.pk, "why": "No."}).status_code == 422


@pytest.mark.parametrize(("do", "words"), [("deactivate", "You can’t do that to yourself."), ("role", "You can’t do that to yourself.")])
def test_nobody_lets_themselves_go(cast: Cast, ada: Client, do: str, words: str) -> None:
    sent = {"do": do, "role": cast.workspace.roles.get(name="manager").pk, "why": "Enough of it."}
    refused = ada.post(f"/people/{cast.ada.pk}/changes", sent)
    assert refused.status_code == 409 and words in refused.content.decode()


def test_the_last_who_manages_people_stays(cast: Cast, ada: Client) -> None:
    second = User.objects.create_user("mei@fernhill.example", PASSWORD, name="Mei")
    keeper = Role.objects.create(workspace=cast.workspace, name="keeper", capabilities=["access.manage"])
    Membership.objects.create(workspace=cast.workspace, user=second, role=keeper)
    sent = {"do": "deactivate", "why": "Both of us go."}
    assert entered(second).post(f"/people/{cast.ada.pk}/changes", sent).status_code == 302
    User.objects.filter(pk=cast.ada.pk).update(is_active=True)
    Membership.objects.filter(user=cast.ada).update(role=cast.workspace.roles.get(name="reviewer"), deactivated_at=None)
    other = Membership.objects.create(
        workspace=cast.workspace,
        user=cast.olga,
        role=Role.objects.create(workspace=cast.workspace, name="half", capabilities=["access.manage"]),
    )
    Membership.objects.filter(pk=other.pk).update(deactivated_at=clock.now())
    by = actor(cast.ada)
    with pytest.raises(roles.LastAdmin):
        people.deactivate(Membership.objects.get(user=second), by=by, why="Both of us go.")


def test_nobody_comes_to_a_role_that_was_retired_or_changed_since_it_was_looked_at(cast: Cast) -> None:
    ada, keeper = actor(cast.ada), Role.objects.create(workspace=cast.workspace, name="keeper", capabilities=["runs.view"])
    Membership.objects.filter(user=cast.sam).update(role=keeper)
    sam, riley = (people.one(ada, cast.workspace.pk, user.pk) for user in (cast.sam, cast.riley))
    people.deactivate(sam, by=ada, why="He left us today.")
    sam.refresh_from_db()
    Role.objects.filter(pk=keeper.pk).update(version=2, capabilities=["access.manage"])
    with pytest.raises(people.NoChange, match="another by now"):
        people.give_role(riley, keeper, by=ada, why="She keeps it now.")
    Role.objects.filter(pk=keeper.pk).update(retired_at=clock.now())
    with pytest.raises(people.NoChange, match="retired"):
        people.reactivate(sam, by=ada, why="He is back again.")
    with pytest.raises(people.NoChange, match="retired"):
        people.give_role(riley, keeper, by=ada, why="She keeps it now.")
    assert Membership.objects.filter(role=keeper, deactivated_at=None).count() == 0


def test_who_lost_their_telephone_gets_new_ways_in_from_an_admin(cast: Cast, ada: Client, settings) -> None:
    with_codes(cast.riley)
    assert "Remove passkeys and codes" in ada.get(f"/people/{cast.riley.pk}").content.decode()
    ada.post(f"/people/{cast.riley.pk}/changes", {"do": "factors", "why": "Her telephone is gone."})
    assert entered(cast.riley).session["signed_in"] == "password"
    ada.post(f"/people/{cast.riley.pk}/changes", {"do": "link"})
    assert "an admin made this link" in Client().get(sent_link()).content.decode()
    settings.HANDRAIL_MAIL = False
    page = ada.post(f"/people/{cast.riley.pk}/changes", {"do": "link"}).content.decode()
    assert "hand this link over yourself" in page and 'id="link">https://handrail.test/passwords?link=' in page


def test_changes_of_people_ask_first_who_it_is_and_go_on_afterwards(cast: Cast, ada: Client) -> None:
    proving.shown(ada, ago=timedelta(hours=1))
    sent = {"do": "deactivate", "why": "Left in November."}
    asked = ada.post(f"/people/{cast.riley.pk}/changes", sent)
    assert asked.status_code == 403 and 'value="Left in November."' in asked.content.decode()
    assert Membership.objects.get(user=cast.riley).deactivated_at is None
    more = {"hr_to": f"/people/{cast.riley.pk}/changes", "hr_method": "post", "hr_with": "password", "hr_password": PASSWORD}
    assert "data-go-on" in ada.post("/confirm", sent | more).content.decode()
    assert ada.post(f"/people/{cast.riley.pk}/changes", sent).status_code == 302


def test_an_invitation_to_a_role_that_was_withdrawn_in_the_same_moment_lets_nobody_in(cast: Cast) -> None:
    made = invitations.invite(cast.workspace.pk, email=NEW, role=cast.workspace.roles.first(), by=actor(cast.ada), by_mail=True)
    held = invitations.find(links.address(made).partition("link=")[2])
    assert invitations.withdraw(made, by=actor(cast.ada)) and not invitations.withdraw(made, by=actor(cast.ada))
    with pytest.raises(invitations.InvitationOver):
        invitations.accept_as(held, User(email=NEW))


@pytest.mark.parametrize("name", ["\u200b\u2060", "Ada\u202eyeliR", "A\0da", "Ada\u3164", "x" * 121, "Rile\u0443 P\u0430rk"])
def test_nobody_comes_in_under_a_name_that_others_can_not_see(cast: Cast, ada: Client, name: str) -> None:
    invite(ada, cast)
    refused = come_in(sent_link(), name=name)
    assert refused.status_code == 422 and not User.objects.filter(email=NEW).exists()


def test_of_two_who_come_in_by_one_link_at_the_same_moment_one_is_told_that_it_is_over(cast: Cast, ada: Client) -> None:
    invite(ada, cast)
    found = Invitation.objects.get()
    first, second = (RequestFactory().post("/invitations") for _ in range(2))
    for request in (first, second):
        request.session = SessionStore()
    invitations.accept(first, found, name="Mei", password=ANOTHER)
    with pytest.raises(invitations.InvitationOver):
        invitations.accept(second, found, name="Mei", password=ANOTHER)
    assert invitations.accept_by_address(NEW, "Mei") is None and Membership.objects.filter(user__email=NEW).count() == 1


@pytest.mark.django_db(transaction=True)
def test_who_is_let_go_by_two_workspaces_at_once_has_no_account_afterwards(cast: Cast) -> None:
    role = Role.objects.create(workspace=cast.elsewhere, name="onlooker", capabilities=["runs.view"])
    Membership.objects.create(workspace=cast.elsewhere, user=cast.riley, role=role)
    by = [(actor(cast.ada), cast.workspace), (actor(cast.olga), cast.elsewhere)]
    going = [partial(people.deactivate, people.one(who, at.pk, cast.riley.pk), by=who, why="She left us today.") for who, at in by]
    assert sorted(together(going)) == [False, True]
    cast.riley.refresh_from_db()
    assert not cast.riley.is_active


def let_go(cast: Cast) -> None:
    rafael = member(cast.workspace, "rafael", "admin")
    people.deactivate(people.one(actor(rafael), cast.workspace.pk, cast.ada.pk), by=actor(rafael), why="They left us today.")


def test_who_was_let_go_leaves_no_invitation_behind_to_come_back_by(cast: Cast, ada: Client) -> None:
    invite(ada, cast, role="admin")
    link = sent_link()
    let_go(cast)
    assert come_in(link).status_code == 410 and not User.objects.filter(email=NEW).exists()
    assert invitations.accept_by_address(NEW, "Mei") is None


def test_sent_again_by_another_admin_it_opens_and_with_a_grave_right_it_does_not_go_on(cast: Cast, ada: Client) -> None:
    invite(ada, cast, role="operator")
    invite(ada, cast, "uma@fernhill.example", role="admin")
    let_go(cast)
    plain, grave = (Invitation.objects.get(role__name=name) for name in ("operator", "admin"))
    rafael = actor(User.objects.get(email="rafael@fernhill.example"))
    made = invitations.again(plain, by=rafael, by_mail=False)
    with pytest.raises(invitations.InvitationOver, match="invite them anew"):
        invitations.again(grave, by=rafael, by_mail=False)
    assert "You are in." in come_in(links.address(made).removeprefix("https://handrail.test")).content.decode()


def test_who_was_let_go_has_no_link_to_the_password_of_somebody_else_any_more(cast: Cast) -> None:
    made = resets.make(people.one(actor(cast.ada), cast.workspace.pk, cast.riley.pk), by=actor(cast.ada), by_mail=False)
    link = links.address(made).removeprefix("https://handrail.test")
    assert Client().get(link).status_code == 200
    let_go(cast)
    assert Client().post(link, {"password": ANOTHER}).status_code == 410
    cast.riley.refresh_from_db()
    assert cast.riley.check_password(PASSWORD)


def test_a_link_that_an_admin_made_opens_nothing_once_its_person_is_of_another_workspace_too(cast: Cast) -> None:
    made = resets.make(people.one(actor(cast.ada), cast.workspace.pk, cast.riley.pk), by=actor(cast.ada), by_mail=False)
    link, held = links.address(made).removeprefix("https://handrail.test"), resets.find(links.address(made).partition("link=")[2])
    Membership.objects.create(workspace=cast.elsewhere, user=cast.riley, role=cast.elsewhere.roles.first())
    assert Client().post(link, {"password": ANOTHER}).status_code == 410
    with pytest.raises(resets.LinkOver):  # nor if they joined while the page was open
        resets.choose(held, password=ANOTHER)
    cast.riley.refresh_from_db()
    assert cast.riley.check_password(PASSWORD)


@pytest.mark.parametrize("do", ["link", "factors"])
def test_the_admin_of_one_workspace_takes_over_nobodys_account_in_another(cast: Cast, ada: Client, do: str) -> None:
    role = cast.workspace.roles.get(name="reviewer")
    Membership.objects.create(workspace=cast.workspace, user=cast.olga, role=role)  # who manages people elsewhere
    secret, _ = with_codes(cast.olga)
    refused = ada.post(f"/people/{cast.olga.pk}/changes", {"do": do, "why": "She asked me to."}, follow=True)
    assert refused.status_code == 409 and "They are of another workspace too." in refused.content.decode()
    assert not PasswordLink.objects.exists() and second_factors.held(cast.olga).codes is not None


def test_an_address_that_asks_for_very_many_links_waits_and_writes_nothing_more(cast: Cast) -> None:
    def ask(at: str) -> int:
        return Client().post("/sign-in/forgot", {"email": cast.riley.email}, REMOTE_ADDR=at).status_code

    assert [ask("192.0.2.7") for _ in range(52)] == [200] * 50 + [429] * 2
    assert AuditEntry.objects.filter(verb="password_link_asked").count() == PasswordLink.objects.count() == 50
    assert ask("198.51.100.9") == 200


def test_links_that_open_nothing_any_more_are_forgotten_a_day_later_and_those_that_do_are_not(cast, monkeypatch):
    resets.ask(cast.riley.email)
    resets.ask("nobody@fernhill.example")
    made = resets.make(people.one(actor(cast.ada), cast.workspace.pk, cast.riley.pk), by=actor(cast.ada), by_mail=False)
    tasks.tidy()
    assert PasswordLink.objects.count() == 3
    monkeypatch.setattr(clock, "offset", lambda: timedelta(hours=26))
    tasks.tidy()
    assert list(PasswordLink.objects.all()) == [made], "it was over two hours ago"
    assert AuditEntry.objects.filter(verb="password_link_asked").count() == 2
    monkeypatch.setattr(clock, "offset", lambda: timedelta(hours=49))
    tasks.tidy()
    assert not PasswordLink.objects.exists()
