"""Somebody who is in several workspaces chooses on which of them a page acts; nobody chooses one that they are not in."""

import pytest
from django.test import Client

from access import rules
from access.models import Agent, Membership
from approvals.models import Freeze, PolicySet, ReviewerGroup
from approvals.notifications import chasing
from config import clock
from tests import proving
from tests.approvals.mailing import text
from tests.approvals.test_policy_versions import rule, save

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
PAGES = ("/policies", "/policies/rule", "/groups", "/groups/new", "/freezes", "/notifications/nobody-answers")


@pytest.fixture
def both(cast) -> Client:
    """Ada, who is an admin elsewhere as well."""
    Membership.objects.create(workspace=cast.elsewhere, user=cast.ada, role=cast.elsewhere.roles.get())
    browser = Client()
    browser.force_login(cast.ada)
    return browser


def test_each_page_acts_on_the_workspace_that_its_address_names(cast, both):
    save(cast, rule(cast, "reviewers", "send_mail"))
    assert "Version 1 is in force" in text(both.get("/policies"))
    there = both.get("/policies?workspace=elsewhere")
    assert "There is no rule yet" in text(there) and 'href="/policies/rule?workspace=elsewhere"' in there.content.decode()
    assert "Fernhill" in text(there) and 'aria-current="true">Elsewhere</a>' in there.content.decode()
    made = both.post("/groups/new?workspace=elsewhere", {"name": "Finance", "member": [str(cast.olga.pk)], "why": "They know the books."})
    assert made.status_code == 302 and ReviewerGroup.objects.get().workspace == cast.elsewhere
    assert "?workspace=elsewhere" in both.get(made["Location"]).content.decode()
    frozen = both.post("/freezes?workspace=elsewhere", {"target": "workspace", "reason": "Look first.", "lasts": "60"})
    assert frozen["Location"] == "/freezes?workspace=elsewhere" and Freeze.objects.get().workspace == cast.elsewhere
    chain = both.post("/notifications/nobody-answers?workspace=elsewhere", {"do": "step", "minutes": "30", "to": str(cast.olga.pk)})
    assert chain["Location"].endswith("?workspace=elsewhere")
    assert [step.to for step in chasing.steps(cast.elsewhere.pk)] == [cast.olga] and chasing.steps(cast.workspace.pk) == []
    assert both.get("/api/v1/policies?workspace=elsewhere").json()["version"] == 0 and PolicySet.objects.count() == 1


def test_nobody_chooses_a_workspace_in_which_they_may_not_and_who_is_in_one_never_meets_the_choice(cast, both, client):
    for address in PAGES:
        assert both.get(f"{address}?workspace=nowhere").status_code == 404, address
        assert both.get(f"{address}?workspace=elsewhere").status_code == 200, address
    client.force_login(cast.morgan)
    assert client.get("/policies?workspace=elsewhere").status_code == 200
    page = client.get("/policies")
    assert "Fernhill" not in text(page) and "?workspace" not in page.content.decode()


def test_people_are_changed_in_the_workspace_whose_list_they_were_chosen_from(cast, both):
    Membership.objects.create(workspace=cast.elsewhere, user=cast.morgan, role=cast.elsewhere.roles.get())
    at = f"/people/{cast.morgan.pk}?workspace=elsewhere"
    proving.shown(both)
    there = both.get("/people?workspace=elsewhere").content.decode()
    assert f'href="{at}"' in there and "gone=1&amp;workspace=elsewhere" in there and cast.riley.email not in there
    assert f'action="/people/{cast.morgan.pk}/changes?workspace=elsewhere"' in both.get(at).content.decode()
    done = both.post(at.replace("?", "/changes?"), {"do": "deactivate", "why": "She left Elsewhere."})
    assert done["Location"] == at and "there they are signed in still" in text(both.get(at))
    gone = Membership.objects.filter(user=cast.morgan).exclude(deactivated_at=None)
    assert [each.workspace for each in gone] == [cast.elsewhere]
    assert both.get(f"/people/{cast.riley.pk}?workspace=elsewhere").status_code == 404


def test_the_first_workspace_stays_the_first_and_an_agent_is_made_where_the_address_says(cast, both):
    Membership.objects.filter(user=cast.ada, workspace=cast.workspace).update(deactivated_at=None)  # PostgreSQL moves what is written
    assert [rules.person(cast.ada.pk).home, rules.home_of(cast.ada.pk)] == [cast.workspace.pk] * 2
    proving.shown(both)
    made = both.post("/api/v1/agents?workspace=elsewhere", {"name": "billing"}, content_type="application/json")
    assert made.status_code == 201 and Agent.objects.get(name="billing").workspace == cast.elsewhere
    Membership.objects.filter(user=cast.ada, workspace=cast.workspace).update(deactivated_at=clock.now())
    assert rules.home_of(cast.ada.pk) == cast.elsewhere.pk
