"""The pages of teams: made, filled, renamed and deleted with a reason; and a role that reaches its own team alone."""

import pytest

from access import rules
from access.models import AuditEntry, Team, Workspace
from tests.access.test_permission_pages import browser, form, role
from tests.approvals.mailing import text
from tests.cast import Cast
from tests.factories import actor, make_run

pytestmark = pytest.mark.django_db(transaction=True)
WHY = "They look after invoices."


def test_ada_makes_a_team_and_a_reviewer_sees_its_runs_alone(cast: Cast, django_assert_max_num_queries) -> None:
    ada, riley = browser(cast.ada), browser(cast.riley)
    before = make_run(cast, title="From before")
    assert "There are no teams" in text(ada.get("/permissions")) and "Own team" not in text(ada.get(f"/permissions/roles/{role(cast).pk}"))
    made = ada.post("/permissions/teams/new", {"name": "Billing", "why": WHY}, follow=True)
    team = Team.objects.get()
    assert made.redirect_chain[-1][0] == f"/permissions/teams/{team.pk}" and "Billing is there" in text(made)
    for sent in ({"do": "add", "who": str(cast.riley.pk)}, {"do": "add_agent", "who": str(cast.agent.pk)}):
        assert ada.post(f"/permissions/teams/{team.pk}", sent | {"why": WHY}).status_code == 302
    cast.agent.refresh_from_db()
    mine = make_run(cast, title="Of the team")
    Workspace.objects.filter(pk=cast.workspace.pk).update(second_admin=False)
    of = role(cast, "reviewer")
    sent = form(of) | {"may.runs.view": "own", "may.approvals.decide": "own"}
    looked = text(ada.post(f"/permissions/roles/{of.pk}", sent | {"do": "look"}))
    assert "Runs and evidence Everywhere Own team" in looked and "2 changes Narrows access" in looked and "Riley , Billing" in looked
    assert ada.post(f"/permissions/roles/{of.pk}", sent).status_code == 302
    assert {"runs.view:team", "approvals.decide:team"} <= set(rules.held_by(role(cast, "reviewer")))
    assert "Runs and evidence Own team" in text(ada.get("/permissions"))
    then = text(ada.get(f"/permissions/roles/{of.pk}/versions/2"))
    assert "Runs and evidence Own team" in then and "Proposed actions Everywhere" in then and "Access log No" in then
    assert riley.get(f"/runs/{mine.pk}").status_code == 200 and riley.get(f"/runs/{before.pk}").status_code == 404
    with django_assert_max_num_queries(14):
        page = text(ada.get(f"/permissions/teams/{team.pk}"))
    assert "Reviewer says “Own team”" in page and "Riley came in" in page and "They look after invoices." in page
    assert "Took Riley into the team Billing" in text(ada.get("/permissions/log"))


def test_what_is_refused_is_said_in_place_and_what_was_typed_is_kept(cast: Cast) -> None:
    ada = browser(cast.ada)
    bad = ada.post("/permissions/teams/new", {"name": "Billing", "why": ""})
    assert bad.status_code == 422 and "This needs a reason." in text(bad) and 'value="Billing"' in bad.content.decode()
    ada.post("/permissions/teams/new", {"name": "Billing", "why": WHY})
    address = f"/permissions/teams/{Team.objects.get().pk}"
    bad = ada.post(address, {"do": "add", "who": str(cast.olga.pk), "why": "She is good at it."})
    assert bad.status_code == 422 and "who is not in it yet" in text(bad) and "She is good at it." in bad.content.decode()
    assert ada.post(address, {"do": "remove_all"}).status_code == 422


def test_a_team_that_is_deleted_says_so_and_its_runs_stay_its_own(cast: Cast) -> None:
    ada = browser(cast.ada)
    ada.post("/permissions/teams/new", {"name": "Billing", "why": WHY})
    team = Team.objects.get()
    run = make_run(cast)
    ada.post(f"/permissions/teams/{team.pk}", {"do": "add_agent", "who": str(cast.agent.pk), "runs": "1", "why": WHY})
    gone = ada.post(f"/permissions/teams/{team.pk}", {"do": "delete", "why": "It is over."}, follow=True)
    assert "Billing is deleted" in text(gone) and "There are no teams" in text(gone)
    assert (
        "Deleted" in text(ada.get(f"/permissions/teams/{team.pk}"))
        and ada.post(f"/permissions/teams/{team.pk}", {"do": "x"}).status_code == 422
    )
    run.refresh_from_db()
    cast.agent.refresh_from_db()
    assert run.team_id == team.pk and cast.agent.team_id is None and rules.can(actor(cast.otto), "runs.view", run.workspace_id, team.pk)
    assert AuditEntry.objects.filter(verb="team_deleted").count() == 1


def test_many_teams_are_listed_a_page_at_a_time(cast: Cast, django_assert_max_num_queries) -> None:
    Team.objects.bulk_create(Team(workspace=cast.workspace, name=f"Team {n:02}") for n in range(30))
    ada = browser(cast.ada)
    with django_assert_max_num_queries(30):
        page = ada.get("/permissions")
    first = text(page)
    assert 'rel="next" href="?teams=2#teams"' in page.content.decode()
    assert "1 to 25 of 30" in first and "Team 24" in first and "Team 25" not in first
    assert "Team 29" in text(ada.get("/permissions?teams=2"))
