"""Who holds rights for their own team alone: what they are shown, asked and told of, and what closes when they leave it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from access import teams
from access.models import Agent, Team, User
from access.rules import SCOPED, TEAM
from approvals import decisions, exact, inbox, standing_grants
from approvals.notifications import audience, chasing
from approvals.notifications.models import Escalation, Notice
from runs.hub import in_thread
from tests.access.test_permission_pages import browser
from tests.approvals.mailing import Proposed, propose_mail
from tests.approvals.noticing import Clock
from tests.approvals.test_inbox_stream import ended, hear, stream_of
from tests.cast import Cast
from tests.factories import actor, note

pytestmark = pytest.mark.django_db(transaction=True)
WHY = "They look after invoices."


def own_team_alone(user: User) -> None:
    role = user.memberships.get().role
    role.capabilities = [each + TEAM if each in SCOPED else each for each in role.capabilities]
    role.save()


def team(cast: Cast, name: str, agent: Agent, *people: User) -> Team:
    by = actor(cast.ada)
    made = teams.make(cast.workspace.pk, name, by=by, why=WHY)
    teams.add_agent(made, agent.pk, runs=False, by=by, why=WHY)
    for user in people:
        teams.add(made, user.pk, by=by, why=WHY)
    agent.refresh_from_db()
    return made


@pytest.fixture
def two(cast: Cast) -> Iterator[tuple[Proposed, Proposed]]:
    """Riley is of Billing, Sam of Claims, and an agent of each proposes an e-mail. Reviewers decide in their own team alone."""
    dunning = Agent.objects.create(workspace=cast.workspace, name="dunning", owner=cast.priya)
    own_team_alone(cast.riley)
    team(cast, "Billing", cast.agent, cast.riley)
    team(cast, "Claims", dunning, cast.sam)
    yield propose_mail(cast, title="A charge of Brightwater"), propose_mail(replace(cast, agent=dunning), title="A claim of Halden")


def test_a_reviewer_of_a_team_is_shown_and_asked_about_its_actions_alone(cast: Cast, two: tuple[Proposed, Proposed]) -> None:
    ours, theirs = two
    riley = actor(cast.riley)
    assert [row.id for row in inbox.queue(riley).rows] == [ours.action.pk] and inbox.waiting_count(riley) == 1
    assert [row.id for row in inbox.queue(riley, inbox.Wanted(view="all")).rows] == [ours.action.pk]
    assert [row.id for row in inbox.queue(actor(cast.otto)).rows] != [], "who sees everywhere sees both"
    assert decisions.who_may(ours.action) == [cast.riley] and decisions.who_may(theirs.action) == [cast.sam]
    assert isinstance(decisions.may_decide(ours.action, riley), decisions.Yes)
    assert isinstance(decisions.may_decide(theirs.action, riley), decisions.No)
    client = browser(cast.riley)
    for address in ("/inbox", "/runs", "/inbox?view=all", "/runs?q=claim"):
        page = client.get(address).content.decode()
        assert theirs.run.ref not in page and str(theirs.action.pk) not in page and "Halden" not in page, address
    assert "Brightwater" in client.get("/runs").content.decode()
    for address in (f"/runs/{theirs.run.pk}", f"/actions/{theirs.action.pk}", f"/inbox?action={theirs.action.pk}"):
        assert client.get(address).status_code in (200, 404) and "Halden" not in client.get(address).content.decode(), address
    said = {"verdict": "approved", "digest": theirs.action.digest}
    assert client.post(f"/actions/{theirs.action.pk}/decision", said).status_code == 404


def test_nobody_of_another_team_is_told_escalated_to_or_asked(cast: Cast, two: tuple[Proposed, Proposed], monkeypatch) -> None:
    ours, theirs = two
    told = {notice.action_id: audience.people(notice) for notice in Notice.objects.filter(kind="waits")}
    assert told == {ours.action.pk: [cast.riley], theirs.action.pk: [cast.sam]}
    by = actor(cast.ada)
    chasing.add_step(cast.workspace.pk, after=timedelta(minutes=5), to=cast.sam.pk, by=by)
    Clock(monkeypatch).on(minutes=6)
    assert chasing.escalate_due() == 1 and list(Escalation.objects.values_list("action_id", flat=True)) == [theirs.action.pk]


def test_a_standing_grant_covers_only_what_its_owner_may_decide_on(cast: Cast, two: tuple[Proposed, Proposed]) -> None:
    ours, theirs = two
    of = standing_grants.wanted(cast.workspace.pk, tool="send_mail", asks=[], budget=5, lasts=timedelta(hours=1))
    riley = actor(cast.riley)
    assert standing_grants.back_test(of, riley).of == 1
    made = standing_grants.make(of, by=riley, shown=standing_grants.token(of, riley))
    for proposed, covered in ((ours, True), (theirs, False)):
        found = standing_grants.fit([made], proposed.action, exact.whole(proposed.action))
        assert list(found) == ([made] if covered else [])


@pytest.mark.asyncio
async def test_what_is_open_of_a_team_s_run_closes_when_somebody_is_taken_out_of_it(cast: Cast, two: tuple[Proposed, Proposed]) -> None:
    ours = two[0]
    async with stream_of(cast.riley, f"/ws/pages/runs/{ours.run.pk}?after=0") as mine:
        await hear(mine, 'id="inbox-count"')
        billing = await in_thread(Team.objects.get)(name="Billing")
        by = await in_thread(actor)(cast.ada)
        await in_thread(teams.remove)(billing, cast.riley.pk, by=by, why="She moved on.")
        await in_thread(note)(ours.run)
        assert await ended(mine) == 4403
