"""The page of permissions and of a role: who may what is read there, and changed with a reason, by two where there are two."""

import re

import pytest
from django.test import Client

from access import permissions, roles, rules, teams
from access.models import Role, RoleChange, User
from tests import proving
from tests.approvals.mailing import text
from tests.cast import Cast, member
from tests.factories import actor, make_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
WHY = "Operators asked to read who changed what."


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    proving.shown(client)
    return client


def role(cast: Cast, name: str = "operator") -> Role:
    return Role.objects.get(workspace=cast.workspace, name=name)


def form(of: Role, *, more: set[str] = frozenset(), less: set[str] = frozenset(), **given: str) -> dict[str, str]:
    """The form of a role as a browser sends it."""
    holds = (set(rules.held_by(of)) | more) - less
    return (
        {f"may.{each}": "everywhere" if each in holds else "no" for each in rules.PEOPLES}
        | {
            "name": of.name,
            "base": str(of.version),
            "do": "ask",
            "why": WHY,
        }
        | given
    )


def test_the_matrix_says_in_words_what_each_role_may(cast: Cast, django_assert_max_num_queries) -> None:
    ada = browser(cast.ada)
    with django_assert_max_num_queries(13):
        page = ada.get("/permissions")
    html = page.content.decode()
    assert [re.sub(r"<[^>]+>", "", each).split() for each in re.findall(r'<th scope="col" class="c">(.*?)</th>', html)] == [
        ["Reviewer", "2", "people"],
        ["Manager", "2", "people"],
        ["Operator", "1", "person"],
        ["Admin", "1", "person"],
    ]
    rows = {re.sub(r"<[^>]+>", "", name): re.sub(r"<[^>]+>", " ", cells).split() for name, cells in re.findall(_ROW, html)}
    assert rows["Approve, edit, reject, ask"] == ["Yes", "No", "No", "No"]
    assert rows["Decide on a run they own"] == ["No"] * 4
    assert permissions.cell("reveal.personal", ["approvals.decide"]).words == "Open action only"
    assert "Last changed" not in html and "Not changed yet" in html and "New role" in html
    member(cast.workspace, "rafael", "admin")
    assert "Needs a second admin" in text(ada.get("/permissions"))
    for user, there in ((cast.ada, True), (cast.morgan, True), (cast.riley, False), (cast.otto, False)):
        assert ('href="/permissions"' in browser(user).get("/runs").content.decode()) is there, user


_ROW = r'<tr><th scope="row">(.*?)</th>(.*?)</tr>'


def test_a_draft_says_in_numbers_what_it_would_mean_and_changes_nothing(cast: Cast) -> None:
    make_run(cast)
    make_run(cast, title="Another")
    of, ada = role(cast), browser(cast.ada)
    page = text(ada.post(f"/permissions/roles/{of.pk}", form(of, more={"audit.view"}, less={"runs.events"}, do="look")))
    assert "2 changes" in page and "Widens and narrows access" in page
    assert "1 person could read who changed, revealed and was refused what." in page
    assert "1 person could no longer read the event lists of 2 runs." in page
    assert "There is no second admin, so a change is in force at once." in page
    assert role(cast).version == 1 and not RoleChange.objects.exists()


def test_a_change_in_force_stands_in_the_history_with_its_reason_and_can_be_undone(cast: Cast) -> None:
    of, ada, morgan = role(cast), browser(cast.ada), browser(cast.morgan)
    made = ada.post(f"/permissions/roles/{of.pk}", form(of, more={"audit.view"}))
    assert made.status_code == 302 and rules.can(actor(cast.otto), "audit.view", cast.workspace.pk)
    page = text(morgan.get(f"/permissions/roles/{of.pk}"))
    assert "Version 2 is in force" in page and WHY in page and "Put in force" not in page and "Ada" in page
    assert "What is in force differs Access log No Everywhere" in text(morgan.get(f"/permissions/roles/{of.pk}/versions/1"))
    assert WHY in text(morgan.get("/permissions/history")) and "Last changed" in text(morgan.get("/permissions"))
    draft = ada.get(f"/permissions/roles/{of.pk}?restore=1")
    assert "As version 1 was." in text(draft) and 'name="restores" value="1"' in draft.content.decode()
    ada.post(f"/permissions/roles/{of.pk}", form(role(cast), less={"audit.view"}, restores="1"))
    assert roles.history(of)[0].restores == 1 and not rules.can(actor(cast.otto), "audit.view", cast.workspace.pk)
    assert ada.get(f"/permissions/roles/{of.pk}/versions/9").status_code == 404


def test_a_role_that_nobody_holds_is_retired_and_brought_back_as_it_was(cast: Cast) -> None:
    ada = browser(cast.ada)
    ada.post("/permissions/roles/new", form(role(cast), name="Night desk", base="0"))
    made = Role.objects.get(name="Night desk")
    draft = ada.post(f"/permissions/roles/{made.pk}", form(made, retired="1", do="look")).content.decode()
    assert "Retired." in draft and 'name="retired" value="1"' in draft and Role.objects.get(pk=made.pk).retired_at is None
    ada.post(f"/permissions/roles/{made.pk}", form(made, retired="1"))
    page = ada.get(f"/permissions/roles/{made.pk}")
    assert "restore one of its versions" in text(page) and 'value="ask"' not in page.content.decode()
    assert "Night desk" not in text(ada.get("/permissions"))
    page = ada.get(f"/permissions/roles/{made.pk}?restore=1").content.decode()
    assert 'value="ask"' in page and 'name="retired"' not in page
    ada.post(f"/permissions/roles/{made.pk}", form(role(cast), name="Night desk", base="2", restores="1"))
    assert "Night desk" in text(ada.get("/permissions")) and roles.history(made)[0].restores == 1


def test_what_is_refused_is_said_in_place_and_what_was_chosen_is_kept(cast: Cast) -> None:
    of, ada = role(cast), browser(cast.ada)
    short = ada.post(f"/permissions/roles/{of.pk}", form(of, more={"audit.view"}, why="x"))
    assert short.status_code == 422 and "The reason has 1 characters" in text(short) and 'role="alert"' in short.content.decode()
    chosen = r'name="may.audit.view" value="everywhere" checked'
    assert chosen in short.content.decode()
    ada.post(f"/permissions/roles/{of.pk}", form(of, more={"policies.manage"}))
    late = ada.post(f"/permissions/roles/{of.pk}", form(of, more={"audit.view"}))
    assert late.status_code == 409 and "Version 2 is in force by now; yours was made from version 1." in text(late)
    assert chosen in late.content.decode() and WHY in late.content.decode()
    assert "Change approval policies Everywhere No" in text(late), "what changed meanwhile stands among the differences"
    apart = ada.post("/permissions/roles/new", form(of, more={"approvals.decide", "access.manage"}, name="Both", base="0"))
    assert apart.status_code == 422 and "who writes the rules does not use them" in text(apart)
    assert not Role.objects.filter(name="Both").exists()


def test_the_second_admin_confirms_what_the_first_one_asked_for(cast: Cast, django_assert_max_num_queries) -> None:
    rafael, ada = browser(member(cast.workspace, "rafael", "admin")), browser(cast.ada)
    of = role(cast)
    asked = ada.post(f"/permissions/roles/{of.pk}", form(of, more={"audit.view"}))
    at = asked["Location"]
    hers = ada.get(at)
    assert "You asked for this, so you can’t confirm it." in text(hers) and 'value="confirm"' not in hers.content.decode()
    assert ada.post(at, {"do": "confirm"}).status_code == 403
    assert "Ada asked for a change of Operator." in text(rafael.get("/permissions"))
    with django_assert_max_num_queries(30):
        his = rafael.get(at)
    assert "Waiting for a second admin" in text(his) and WHY in text(his) and 'value="confirm"' in his.content.decode()
    assert "Would change Access log" in text(his) and text(his).count("Access log Who changed") == 1, "what is asked for comes first"
    assert 'value="confirm"' not in browser(cast.morgan).get(at).content.decode()
    assert rafael.post(at, {"do": "confirm"}).status_code == 302
    assert rules.can(actor(cast.otto), "audit.view", cast.workspace.pk)
    assert "Ada, confirmed by Rafael" in text(ada.get(f"/permissions/roles/{of.pk}"))
    assert "Rafael confirmed" in text(ada.get(at)) and rafael.post(at, {"do": "confirm"}).status_code == 409
    assert "as second admin; Ada asked" in text(ada.get("/permissions/history"))


def test_asking_and_confirming_take_a_session_that_has_just_shown_who_it_is(cast: Cast) -> None:
    rafael, of, stale = member(cast.workspace, "rafael", "admin"), role(cast), Client()
    stale.force_login(cast.ada)
    assert "confirm" in stale.post(f"/permissions/roles/{of.pk}", form(of, more={"audit.view"})).content.decode().lower()
    assert not RoleChange.objects.exists()
    asked = browser(cast.ada).post(f"/permissions/roles/{of.pk}", form(of, more={"audit.view"}))
    stale.force_login(rafael)
    stale.post(asked["Location"], {"do": "confirm"})
    assert RoleChange.objects.get().state == "waiting"


def test_a_new_role_that_waits_can_be_refused(cast: Cast) -> None:
    rafael, ada = browser(member(cast.workspace, "rafael", "admin")), browser(cast.ada)
    asked = ada.post("/permissions/roles/new", form(role(cast), name="Night desk", base="0"))
    assert "Night desk" in text(rafael.get(asked["Location"])) and rafael.post(asked["Location"], {"do": "refuse"}).status_code == 422
    assert rafael.post(asked["Location"], {"do": "refuse", "why": "No night desk."}).status_code == 302
    said = text(ada.get(asked["Location"]))
    assert "Rafael refused" in said and "No night desk." in said and not Role.objects.filter(name="Night desk").exists()


def test_what_a_change_leaves_alone_is_told_with_how_far_it_reaches_and_what_is_not_let_is_not(cast: Cast) -> None:
    now = {"runs.view", "reveal.internal" + rules.TEAM, "approvals.decide", "runs.start"}
    moved = permissions.moved(now, now - {"runs.start"})
    assert [each.capability for each in moved] == ["runs.start"]
    told = {group.name: [(right.title, reaches) for right, reaches in group.rights] for group in permissions.stays(now, moved)}
    assert told == {
        "See": [
            ("Runs and evidence", "Everywhere"),
            ("Reveal internal values", "Own team"),
            ("Reveal personal data, with a reason", "Open action only"),
        ],
        "Decide": [("Approve, edit, reject, ask", "Everywhere")],
    }


def test_the_page_folds_rights_that_are_seldom_looked_for_and_names_who_is_in_a_team(cast: Cast) -> None:
    ada = browser(cast.ada)
    page = ada.get("/permissions").content.decode()
    assert page.count('<tr class="rest">') == len(permissions.SELDOM) and f"{len(permissions.SELDOM)} more rights" in page
    assert {right.capability for group in permissions.groups() for right in group.rights} >= permissions.SELDOM
    assert "There are no teams" in page
    team = teams.make(cast.workspace.pk, "Billing", by=actor(cast.ada), why="They are many.")
    teams.add(team, cast.riley.pk, by=actor(cast.ada), why="Works there.")
    row = re.search(r"Billing</a>.*?</tr>", ada.get("/permissions").content.decode())[0]
    assert ">Riley</td>" in row and "None yet" in row


@pytest.mark.both_databases  # a window of its own
def test_of_a_large_team_the_first_are_named_and_the_others_counted(cast: Cast, django_assert_num_queries) -> None:
    by = actor(cast.ada)
    first, second = (teams.make(cast.workspace.pk, name, by=by, why="They are many.") for name in ("Billing", "Claims"))
    for user in (cast.otto, cast.priya, cast.ada, cast.riley, cast.sam):
        teams.add(first, user.pk, by=by, why="Works there.")
    teams.add(second, cast.riley.pk, by=by, why="Works there.")
    teams.add_agent(second, cast.agent.pk, runs=False, by=by, why="It works there.")
    page = browser(cast.ada).get("/permissions").content.decode()
    assert ">Ada, Otto, Priya and 2 more</td>" in page and "None yet" in re.search(r"Billing</a>.*?</tr>", page)[0]
    with django_assert_num_queries(2):
        found = teams.named([first, second])
    assert found == [
        (first, teams.Names(("Ada", "Otto", "Priya"), 2), teams.Names()),
        (second, teams.Names(("Riley",)), teams.Names((cast.agent.name,))),
    ]
