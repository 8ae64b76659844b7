"""What takes a second admin beside roles: who holds a role, who is invited, the policies, what is hidden. One way for all of them."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from access import people, roles, rules, second_admin, second_factors
from access.change_models import AskedChange
from access.ids import uuid7
from access.models import AuditEntry, Invitation, Membership, PasswordLink, Role, User
from approvals import policy
from approvals.models import PolicySet
from approvals.notifications import audience, wording
from approvals.notifications.models import Notice
from artifacts.models import RedactionPolicy
from config import clock
from tests import proving
from tests.access.test_second_factors import with_codes
from tests.approvals.mailing import propose_mail, text
from tests.approvals.noticing import Clock, Mailbox, mail_server, tick
from tests.approvals.test_policy_page import form, tried
from tests.cast import Cast, member
from tests.factories import actor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
WHY = "Morgan takes over from Ada in May."


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return proving.shown(client)


@pytest.fixture
def rafael(cast: Cast) -> User:
    return member(cast.workspace, "rafael", "admin")


@pytest.fixture
def box(settings: Any) -> Iterator[Mailbox]:
    with mail_server(settings) as server:
        yield server


def give(cast: Cast, to: str = "admin", user: User | None = None, by: User | None = None) -> Any:
    sent = {"do": "role", "role": Role.objects.get(workspace=cast.workspace, name=to).pk, "why": WHY}
    return browser(by or cast.ada).post(f"/people/{(user or cast.morgan).pk}/changes", sent)


def test_a_change_is_looked_for_only_within_what_somebody_may_reach(cast: Cast, rafael: User, client: Client) -> None:
    """Nobody asks the database of it, and the entry about an outsider does not tell by the right that it needs whether it is there."""
    fields = {"event": "*", "tool": "*", "path": "$.b", "kind": "secret"}
    change = second_admin.ask(cast.workspace.pk, "hidden", wanted=fields, by=actor(cast.ada), why="To see.", base=0)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(f"/permissions/asked/{change.pk}").status_code == 302
    assert not [each for each in queries if "askedchange" in each["sql"]]
    olga = browser(cast.olga)
    for send in (olga.get, olga.post):
        assert {send(f"/permissions/asked/{pk}").status_code for pk in (change.pk, uuid7())} == {404}
    refused = AuditEntry.objects.filter(verb="refused", actor_id=str(cast.olga.pk))
    assert refused.count() >= 2 and len({entry.data["right"] for entry in refused}) == 1


def test_more_rights_count_once_another_admin_confirms_who_is_told_by_mail(
    cast: Cast, rafael: User, box: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = give(cast)
    change = AskedChange.objects.get()
    assert asked["Location"] == f"/permissions/asked/{change.pk}" and not rules.can(actor(cast.morgan), "access.manage", cast.workspace.pk)
    notice = Notice.objects.get(kind="confirm")
    assert [user.name for user in audience.people(notice)] == ["Rafael"], "whoever asked can't confirm it"
    tick()
    Clock(monkeypatch).on(seconds=10)
    tick()
    assert [mail["To"] for mail in box.mails] == [rafael.email]
    letter = box.mails[0].get_body(("plain",)).get_content()
    assert f"/permissions/asked/{change.pk}" in letter and WHY not in letter and "Morgan" not in wording.item(notice, "UTC").text
    assert [second_admin.waiting_for(actor(each)) for each in (rafael, cast.ada, cast.morgan, cast.olga)] == [1, 0, 0, 0]

    page, theirs = text(browser(rafael).get(asked["Location"])), text(browser(cast.ada).get(asked["Location"]))
    assert "Role of Morgan Manager Admin" in page and "Change people and roles No Everywhere" in page and WHY in page and "Confirm" in page
    assert "you can’t confirm it" in theirs and browser(cast.ada).post(asked["Location"], {"do": "confirm"}).status_code == 403
    assert "Who may confirm it sees what would change." in text(browser(cast.priya).get(asked["Location"])), "a manager reads the trail"
    assert "asked for a change of who holds a role" in text(browser(rafael).get("/permissions"))
    assert "Look at it" in text(browser(rafael).get(f"/people/{cast.morgan.pk}"))

    before = User.objects.get(pk=cast.morgan.pk).access_version
    done = browser(rafael).post(asked["Location"], {"do": "confirm"}, follow=True)
    assert "Morgan is admin from now on" in text(done) and rules.can(actor(cast.morgan), "access.manage", cast.workspace.pk)
    assert User.objects.get(pk=cast.morgan.pk).access_version == before + 1 and audience.people(notice) == []
    verbs = (
        AuditEntry.objects.filter(verb__in=["change_asked", "role_given", "change_confirmed"])
        .order_by("at")
        .values_list("verb", "actor_id")
    )
    assert list(verbs) == [("change_asked", str(cast.ada.pk)), ("role_given", str(cast.ada.pk)), ("change_confirmed", str(rafael.pk))]
    assert "Rafael confirmed it" in text(browser(rafael).post(asked["Location"], {"do": "refuse", "why": "No."}))


def test_fewer_rights_count_at_once_as_do_more_where_there_is_one_admin(cast: Cast) -> None:
    assert give(cast)["Location"] == f"/people/{cast.morgan.pk}", "there is nobody else to ask"
    assert rules.can(actor(cast.morgan), "access.manage", cast.workspace.pk)
    Membership.objects.filter(user=cast.ada).update(role=Role.objects.get(workspace=cast.workspace, name="admin"))
    Role.objects.create(workspace=cast.workspace, name="onlooker", capabilities=["runs.view"])
    assert give(cast, "onlooker", user=cast.riley)["Location"] == f"/people/{cast.riley.pk}"
    assert not AskedChange.objects.exists()


def test_it_is_refused_with_a_reason_or_withdrawn_and_nothing_changes(cast: Cast, rafael: User) -> None:
    at = give(cast)["Location"]
    without = browser(rafael).post(at, {"do": "refuse", "why": " "})
    assert without.status_code == 422 and AskedChange.objects.get().state == "waiting"
    browser(rafael).post(at, {"do": "refuse", "why": "Morgan leaves in June."})
    assert "Morgan leaves in June." in text(browser(cast.ada).get(at)) and "Rafael refused" in text(browser(cast.ada).get(at))
    again = give(cast)["Location"]
    assert browser(rafael).post(again, {"do": "withdraw"}).status_code == 409
    browser(cast.ada).post(again, {"do": "withdraw"})
    assert sorted(AskedChange.objects.values_list("state", flat=True)) == ["refused", "withdrawn"]
    assert not rules.can(actor(cast.morgan), "access.manage", cast.workspace.pk)


def test_what_changed_meanwhile_overtakes_it_and_what_waited_too_long_lapses(cast: Cast, rafael: User) -> None:
    at = give(cast)["Location"]
    assert give(cast).status_code == 409, "one waits for each person"
    Role.objects.filter(workspace=cast.workspace, name="admin").update(version=7)  # the role is another by now
    told = browser(rafael).post(at, {"do": "confirm"})
    assert told.status_code == 409 and "Something else changed" in text(told) and "Overtaken" in text(browser(rafael).get(at))
    assert AskedChange.objects.get().state == "overtaken" and AuditEntry.objects.filter(verb="change_overtaken").count() == 1
    late = give(cast)["Location"]
    AskedChange.objects.filter(state="waiting").update(lapses_at=clock.now() - timedelta(seconds=1))
    assert "Lapsed" in text(browser(rafael).get(late)) and browser(rafael).post(late, {"do": "confirm"}).status_code == 409
    gone = give(cast)["Location"]
    people.deactivate(people.one(actor(rafael), cast.workspace.pk, cast.ada.pk), by=actor(rafael), why=WHY)
    assert "may not do it any more" in text(browser(rafael).post(gone, {"do": "confirm"}))
    assert sorted(AskedChange.objects.values_list("state", flat=True)) == ["lapsed", "overtaken", "overtaken"]
    assert not rules.can(actor(cast.morgan), "access.manage", cast.workspace.pk)


def test_who_is_invited_to_manage_takes_two_and_who_is_not_takes_one(cast: Cast, rafael: User, box: Mailbox) -> None:
    def invite(role: str, email: str, why: str = WHY) -> Any:
        pk = Role.objects.get(workspace=cast.workspace, name=role).pk
        return browser(cast.ada).post("/people/invitations", {"email": email, "role": pk, "why": why})

    assert invite("operator", "mei@fernhill.example")["Location"] == "/people" and Invitation.objects.count() == 1
    assert invite("reviewer", "ada.too@fernhill.example", why="").status_code == 422, "an admin would decide under another address"
    assert invite("admin", "nora@fernhill.example", why="").status_code == 422 and not AskedChange.objects.exists()
    at = invite("admin", "nora@fernhill.example")["Location"]
    assert (
        Invitation.objects.count() == 1 and "nora@" in text(browser(rafael).get(at)) and "nora@" not in text(browser(cast.morgan).get(at))
    )
    browser(rafael).post(at, {"do": "confirm"})
    made = Invitation.objects.get(email="nora@fernhill.example")
    assert (made.role.name, made.invited_by, made.by_mail) == ("admin", cast.ada, True)
    assert "nora" not in str(list(AuditEntry.objects.values_list("data", flat=True)))

    people.deactivate(people.one(actor(cast.ada), cast.workspace.pk, rafael.pk), by=actor(cast.ada), why=WHY)
    nina = member(cast.workspace, "nina", "admin")
    back = browser(cast.ada).post(f"/people/{rafael.pk}/changes", {"do": "reactivate", "why": WHY})["Location"]
    assert not rules.can(actor(rafael), "access.manage", cast.workspace.pk)
    browser(nina).post(back, {"do": "confirm"})
    assert rules.can(actor(rafael), "access.manage", cast.workspace.pk)


def test_a_policy_is_in_force_once_another_one_who_may_change_policies_confirms_it(cast: Cast, rafael: User) -> None:
    propose_mail(cast)
    ada, before = browser(cast.ada), policy.newest(cast.workspace.pk)
    page = ada.post("/policies/rule", form(cast))
    assert "Rafael must confirm it." in text(page)
    at = ada.post("/policies/rule", form(cast, do="save", tried=tried(page)))["Location"]
    assert policy.newest(cast.workspace.pk) == before and "Look at it" in text(ada.get("/policies"))
    said = text(browser(rafael).get(at))
    assert "One reviewer. Expires after" in said and "Two reviewers. Expires after" in said and said.count("Number ") == 2
    browser(rafael).post(at, {"do": "confirm"})
    made = policy.newest(cast.workspace.pk)
    assert (made.version, made.saved_by) == (before.version + 1, cast.ada) and policy.in_force(cast.workspace.pk, "send_mail").quorum == 2
    assert made.digest == AskedChange.objects.get().wanted["digest"]
    assert "Ada, confirmed by Rafael. After the ZN-4710 review." in text(ada.get("/policies"))

    page = ada.post("/policies/rule", form(cast, quorum="3"))
    late = ada.post("/policies/rule", form(cast, quorum="3", do="save", tried=tried(page)))["Location"]
    policy.set_rule(cast.workspace.pk, "send_mail", name="Send", outcome="never", by=None)  # as the installation may
    assert "Version 3 is in force" not in text(browser(rafael).post(late, {"do": "confirm"}))
    assert policy.in_force(cast.workspace.pk, "send_mail").outcome == "never" and PolicySet.objects.count() == made.version + 1
    assert AskedChange.objects.order_by("asked_at").last().state == "overtaken"


def test_what_is_hidden_takes_two_on_the_page_over_the_api_and_by_command(
    cast: Cast, rafael: User, capsys: pytest.CaptureFixture[str]
) -> None:
    ada, fields = browser(cast.ada), {"event": "", "tool": "crm_*", "path": "$.notes", "kind": "secret"}
    at = ada.post("/permissions/redaction/new", fields | {"do": "save", "base": "0", "why": WHY})["Location"]
    assert not RedactionPolicy.objects.exists() and "Look at it" in text(ada.get("/permissions/redaction"))
    assert "$.notes Hidden as" in text(browser(rafael).get(at)) and "tools crm_*" in text(browser(rafael).get(at))
    browser(rafael).post(at, {"do": "confirm"})
    row = RedactionPolicy.objects.get()
    assert (row.made_by, row.path, row.kind) == (cast.ada, "$.notes", "secret")
    told = ada.post(f"/api/v1/redaction-policies/{row.pk}/withdrawal", {"why": WHY, "version": 1}, content_type="application/json")
    assert told.status_code == 202 and RedactionPolicy.objects.get().withdrawn_at is None
    browser(rafael).post(re.search(r"/permissions/asked/\S+", told.json()["waiting"]["page"])[0], {"do": "confirm"})
    assert RedactionPolicy.objects.get().withdrawn_by == cast.ada
    call_command("redaction", "--workspace", "fernhill", "--add", "$.plan", "--why", WHY, "--by", cast.ada.email)
    assert "Nothing changes until another admin" in capsys.readouterr().out and RedactionPolicy.objects.count() == 1


def test_the_workspace_says_for_all_of_it_whether_it_takes_two(cast: Cast, rafael: User) -> None:
    roles.say_second(cast.workspace.pk, False, by=rules.SYSTEM)
    assert give(cast)["Location"] == f"/people/{cast.morgan.pk}" and not AskedChange.objects.exists()
    roles.say_second(cast.workspace.pk, True, by=rules.SYSTEM)
    Membership.objects.exclude(user=cast.ada).filter(role__name="admin").update(deactivated_at=clock.now())
    assert "nobody who could confirm" in text(give(cast, "operator", user=cast.riley))


def test_no_admin_alone_makes_a_way_in_as_somebody_with_a_grave_right(cast: Cast, rafael: User, settings: Any) -> None:
    with_codes(rafael)
    at, why = f"/people/{rafael.pk}/changes", "His telephone is gone."
    asked = browser(cast.ada).post(at, {"do": "factors", "why": why})
    assert asked["Location"] == f"/permissions/asked/{AskedChange.objects.get().pk}" and second_factors.held(rafael).any
    assert "Rafael Passkeys and codes None of them" in text(browser(cast.ada).get(asked["Location"]))
    nora = member(cast.workspace, "nora", "admin")
    assert "open nothing any more" in text(browser(nora).post(asked["Location"], {"do": "confirm"}, follow=True))
    assert not second_factors.held(rafael).any
    settings.HANDRAIL_MAIL = False
    refused = browser(cast.ada).post(at, {"do": "link"})
    assert refused.status_code == 409 and "manage.py changepassword" in text(refused) and not PasswordLink.objects.exists()
    assert "hand this link over yourself" in text(browser(cast.ada).post(f"/people/{cast.otto.pk}/changes", {"do": "link"}))
