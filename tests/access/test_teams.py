"""Teams: who is in one, what follows from a change at once, and that nobody reaches another team's runs by any rule."""

import random
import threading
from contextlib import closing
from itertools import product
from uuid import UUID

import pytest
from django.db import connection

from access import audit, roles, rules, teams
from access.errors import NotFound, Refusal
from access.models import Agent, AuditEntry, Membership, Role, Team, TeamChange, User, Workspace
from access.roles import Wanted
from access.rules import SCOPED, TEAM, Actor
from approvals.models import ProposedAction
from runs import places, starting
from runs.models import Event, Run
from tests.cast import Cast
from tests.factories import actor, make_run

pytestmark = pytest.mark.django_db
WHY = "They look after invoices."


def narrow(role: Role, *held: str) -> None:
    """These rights of a role count in the own teams alone from now on."""
    role.capabilities = [each + TEAM if each in held else each for each in role.capabilities]
    role.save()


def team_of(cast: Cast, name: str, *people: User, agent: Agent | None = None) -> Team:
    by = actor(cast.ada)
    team = teams.make(cast.workspace.pk, name, by=by, why=WHY)
    for user in people:
        teams.add(team, user.pk, by=by, why=WHY)
    if agent:
        teams.add_agent(team, agent.pk, runs=False, by=by, why=WHY)
    return team


def another(cast: Cast) -> Agent:
    return Agent.objects.create(workspace=cast.workspace, name="dunning", owner=cast.priya)


# what a person reaches ------------------------------------------------------------------------------------------------------------


def test_rules_agree_with_a_plain_oracle_for_every_person_team_run_and_right(cast: Cast) -> None:
    chance = random.Random(22)
    made = [None, *(team_of(cast, name) for name in ("Billing", "Claims", "Depot"))]
    agents = [Agent.objects.create(workspace=cast.workspace, name=f"agent-{i}", owner=cast.priya, team=team) for i, team in enumerate(made)]
    runs = [make_run(cast, agent=agent, by=actor(cast.otto)) for agent in agents]
    people: list[tuple[User, frozenset[str], frozenset[UUID]]] = []
    for number in range(12):
        held = frozenset(chance.choice([each, each + TEAM]) for each in sorted(SCOPED) if chance.random() < 0.7)
        user = User.objects.create_user(f"p{number}@fernhill.example", name=f"P{number:02}")
        role = Role.objects.create(workspace=cast.workspace, name=f"role {number}", capabilities=sorted(held))
        there = Membership.objects.create(workspace=cast.workspace, user=user, role=role)
        inside = frozenset(team.pk for team in made if team and chance.random() < 0.4)
        for pk in inside:
            there.in_teams.create(team_id=pk)
        people.append((user, held, inside))

    def may(held: frozenset[str], inside: frozenset[UUID], run: Run, right: str) -> bool:
        return right in held or (right + TEAM in held and run.team_id in inside)

    for (user, held, inside), right in product(people, sorted(SCOPED)):
        who = actor(user)
        allowed = {run.pk for run in runs if may(held, inside, run, right)}
        assert {run.pk for run in rules.visible(who, Run, right)} == allowed
        assert set(rules.visible(who, Event, right).values_list("run_id", flat=True)) == allowed
        for run in runs:
            assert rules.can(who, right, run.workspace_id, run.team_id) is (run.pk in allowed)
            assert rules.can_of_run(who, right, run.workspace_id, run.pk) is (run.pk in allowed)
            assert (user in rules.holders(run.workspace_id, right, run.team_id)) is (run.pk in allowed)
            assert _got(who, run, right) is (run.pk in allowed)


def _got(who: Actor, run: Run, right: str) -> bool:
    try:
        return rules.get(who, Run, run.pk, right).pk == run.pk
    except Refusal:
        return False


def test_what_is_not_of_an_own_team_is_as_good_as_not_there(cast: Cast) -> None:
    narrow(cast.riley.memberships.get().role, "runs.view", "runs.events")
    team_of(cast, "Billing", cast.riley)
    run = make_run(cast)
    with pytest.raises(NotFound):
        rules.get(actor(cast.riley), Run, run.pk, "runs.view")
    team_of(cast, "Claims", agent=cast.agent)
    with pytest.raises(NotFound):
        rules.get(actor(cast.riley), Run, make_run(cast).pk, "runs.view")


def test_what_says_of_no_team_whose_it_is_is_reached_from_everywhere_alone(cast: Cast) -> None:
    """A model that leads to a run says so, or nobody of one team reaches its rows."""
    from django.apps import apps

    narrow(cast.riley.memberships.get().role, "runs.view")
    team_of(cast, "Billing", cast.riley)
    for model in apps.get_models():
        path = getattr(model, "workspace_path", None)
        if not path or path == "id":
            continue
        leads = "run" in path.split("__") or any(each.name in ("run", "action", "run_id") for each in model._meta.fields)
        says = getattr(model, "team_path", None) or getattr(model, "run_path", None)
        assert not (leads and getattr(model, "team_path", None) == ""), f"{model.__name__} belongs to a run"
        if not says and getattr(model, "team_path", None) is None:
            assert str(rules.within(actor(cast.riley), model, "runs.view")) == str(rules.within(rules.NOBODY, model, "runs.view")), model


def test_a_workspace_without_teams_is_as_it_was(cast: Cast, django_assert_num_queries) -> None:
    run = make_run(cast)
    assert run.team_id is None and cast.agent.team_id is None
    with django_assert_num_queries(1):
        riley = actor(cast.riley)
    assert riley.own == {cast.workspace.pk: frozenset()} and riley.teams == {cast.workspace.pk: {}}
    with django_assert_num_queries(1):
        assert cast.riley in rules.holders(run.workspace_id, "approvals.decide", run.team_id)
    assert "team" not in str(rules.visible(riley, ProposedAction, "approvals.view").query).partition("WHERE")[2]


def test_a_right_for_own_teams_is_none_at_all_to_who_is_in_none(cast: Cast) -> None:
    narrow(cast.riley.memberships.get().role, "runs.view", "approvals.decide")
    team_of(cast, "Billing", agent=cast.agent)
    run, riley = make_run(cast), actor(cast.riley)
    assert not rules.visible(riley, Run, "runs.view").exists() and not rules.can(riley, "approvals.decide", run.workspace_id, run.team_id)
    assert cast.riley not in rules.holders(run.workspace_id, "approvals.decide", run.team_id)
    assert rules.can_some(riley, "approvals.decide", run.workspace_id) and cast.riley in rules.some_holders(
        run.workspace_id, "approvals.decide"
    )


def test_teams_of_another_workspace_give_nothing_here(cast: Cast) -> None:
    narrow(cast.riley.memberships.get().role, "runs.view")
    team = team_of(cast, "Billing", agent=cast.agent)
    run = make_run(cast)
    there = Membership.objects.create(workspace=cast.elsewhere, user=cast.riley, role=cast.elsewhere.roles.first())
    there.in_teams.create(team=team)  # as nobody can do it by any page
    assert not rules.visible(actor(cast.riley), Run, "runs.view").filter(pk=run.pk).exists()


# whose a run is -------------------------------------------------------------------------------------------------------------------


def test_a_run_is_of_its_agents_team_as_that_was_when_it_started(cast: Cast) -> None:
    before = make_run(cast)
    team = team_of(cast, "Billing", agent=cast.agent)
    cast.agent.refresh_from_db()
    mine = make_run(cast)
    other = team_of(cast, "Claims")
    assert (before.team_id, mine.team_id) == (None, team.pk)
    assert teams.add_agent(other, cast.agent.pk, runs=True, by=actor(cast.ada), why=WHY) == 2
    before.refresh_from_db()
    assert before.team_id == other.pk
    assert teams.remove_agent(other, cast.agent.pk, runs=False, by=actor(cast.ada), why=WHY) == 0
    before.refresh_from_db()
    assert before.team_id == other.pk and Agent.objects.get(pk=cast.agent.pk).team_id is None


def test_a_child_and_a_fork_are_of_the_team_of_the_run_they_came_from(cast: Cast) -> None:
    team = team_of(cast, "Billing", agent=cast.agent)
    cast.agent.refresh_from_db()
    parent = make_run(cast)
    teams.remove_agent(team, cast.agent.pk, runs=False, by=actor(cast.ada), why=WHY)
    from django.db import transaction

    given = {"title": "A part", "workflow": "support-triage", "arguments": {}, "scope": {}, "budgets": {}}
    with transaction.atomic():
        assert starting.start_child(parent, step="s", **given).team_id == team.pk


def test_the_runs_next_to_a_run_are_those_that_the_person_may_see(cast: Cast) -> None:
    narrow(cast.riley.memberships.get().role, "runs.view")
    team = team_of(cast, "Billing", cast.riley)
    run, parent, fork, whole = (make_run(cast) for _ in range(4))
    lineage = {"lineage": parent.pk, "team": team}
    Run.objects.filter(pk=run.pk).update(forked_from=parent, parent=whole, **lineage)
    Run.objects.filter(pk__in=[parent.pk, fork.pk]).update(**lineage)
    Run.objects.filter(pk=fork.pk).update(forked_from=run)
    Run.objects.filter(pk=whole.pk).update(team=team)
    run.refresh_from_db()
    mine, everywhere = actor(cast.riley), actor(cast.morgan)
    assert places.kin(run, mine) == places.kin(run, everywhere) == places.Kin(parent, (fork,), whole)
    Run.objects.exclude(pk=run.pk).update(team=team_of(cast, "Claims"))
    assert not places.kin(run, mine)
    assert places.kin(run, everywhere) == places.Kin(parent, (fork,), whole)


# what a change does ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["joined", "left", "agent", "deleted"])
def test_every_change_of_a_team_is_seen_by_whom_it_concerns(cast: Cast, how: str) -> None:
    by = actor(cast.ada)
    team = team_of(cast, "Billing", *([] if how == "joined" else [cast.riley]))
    before, other = actor(cast.riley).standing, actor(cast.morgan).standing
    match how:
        case "joined":
            teams.add(team, cast.riley.pk, by=by, why=WHY)
        case "left":
            teams.remove(team, cast.riley.pk, by=by, why=WHY)
        case "agent":
            teams.add_agent(team, cast.agent.pk, runs=True, by=by, why=WHY)
        case "deleted":
            teams.disband(team, by=by, why=WHY)
    assert before in rules.changed({before, other}) and (other in rules.changed({before, other})) is (how in ("agent", "deleted"))


def test_each_change_has_a_reason_and_stands_in_the_history_and_in_the_trail(cast: Cast) -> None:
    by, team = actor(cast.ada), team_of(cast, "Billing", cast.riley, agent=cast.agent)
    teams.rename(team, "Invoices", by=by, why="It is about invoices.")
    teams.disband(team, by=by, why="It is over.")
    assert [each.what for each in teams.history(team)] == ["deleted", "renamed", "agent_joined", "joined", "made"]
    verbs = list(AuditEntry.objects.filter(subject_kind="team").order_by("at").values_list("verb", flat=True))
    assert verbs == ["team_made", "team_joined", "team_agent_joined", "team_renamed", "team_deleted"] and set(verbs) <= set(audit.VERBS)
    assert TeamChange.objects.filter(why=None).count() == 0
    assert teams.make(cast.workspace.pk, "Invoices", by=by, why="Anew.").pk != team.pk
    with pytest.raises(NotFound):
        teams.add(team, cast.sam.pk, by=by, why=WHY)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("no reason", "The reason has 0 characters"),
        ("no name", "Its name has 1 to 60"),
        ("same name", "There is a team “bILLING” already"),
        ("same to the eye", "Cyrillic small letter"),
        ("twice", "not in it yet"),
        ("a stranger", "not in it yet"),
        ("a strange agent", "Choose an agent of this workspace"),
    ],
)
def test_what_a_team_can_not_be_is_refused_and_changes_nothing(cast: Cast, what: str, said: str) -> None:
    by, team = actor(cast.ada), team_of(cast, "Billing", cast.riley)
    before = TeamChange.objects.count()
    with pytest.raises(Refusal, match=said):
        match what:
            case "no reason":
                teams.make(cast.workspace.pk, "Claims", by=by, why="")
            case "no name":
                teams.rename(team, "\u200b", by=by, why=WHY)
            case "same name":
                teams.make(cast.workspace.pk, "bILLING", by=by, why=WHY)
            case "same to the eye":
                teams.make(cast.workspace.pk, "B\u0456lling", by=by, why=WHY)
            case "twice":
                teams.add(team, cast.riley.pk, by=by, why=WHY)
            case "a stranger":
                teams.add(team, cast.olga.pk, by=by, why=WHY)
            case "a strange agent":
                teams.add_agent(team, cast.other_agent.pk, runs=True, by=by, why=WHY)
    assert TeamChange.objects.count() == before and Team.objects.count() == 1


# roles ----------------------------------------------------------------------------------------------------------------------------


def test_a_role_carries_how_far_each_right_reaches_through_its_versions(cast: Cast) -> None:
    Workspace.objects.filter(pk=cast.workspace.pk).update(second_admin=False)
    role, by = cast.riley.memberships.get().role, actor(cast.ada)
    held = frozenset(rules.held_by(role))
    wanted = (held - {"runs.view", "approvals.decide"}) | {"runs.view:team", "approvals.decide:team", "runs.events:team"}
    made = roles.ask(cast.workspace.pk, role, Wanted(role.name, wanted), base=role.version, by=by, why=WHY)
    now = frozenset(rules.held_by(made.role))
    assert "runs.view:team" in now and "runs.view" not in now and "runs.events:team" not in now, "everywhere has the own teams in it"
    assert frozenset(roles.version(made.role, 2).holds) == now and frozenset(roles.version(made.role, 1).holds) == held
    with pytest.raises(roles.KeptApart):
        roles.ask(cast.workspace.pk, made.role, Wanted(role.name, now | {"access.manage"}), base=2, by=by, why=WHY)
    with pytest.raises(roles.RoleRefused, match="nobody knows"):
        roles.ask(cast.workspace.pk, made.role, Wanted(role.name, now | {"access.manage:team"}), base=2, by=by, why=WHY)


def test_standing_knows_of_rows_that_are_made_and_removed(cast: Cast) -> None:
    team, before = team_of(cast, "Billing"), actor(cast.riley).standing
    row = cast.riley.memberships.get().in_teams.create(team=team)
    between = actor(cast.riley).standing
    row.delete()
    assert len({before, between, actor(cast.riley).standing}) == 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
def test_a_run_that_starts_while_its_agent_moves_with_its_runs_goes_along(cast):
    """The move begins when the run has read its team and is not there yet for others."""
    billing = team_of(cast, "Billing")
    moved: list[object] = []

    def move() -> None:
        with closing(connection):
            moved.append(teams.add_agent(billing, cast.agent.pk, runs=True, by=actor(cast.ada), why="They do it from now on."))

    mover = threading.Thread(target=move)

    def meanwhile(_: object) -> None:
        mover.start()
        mover.join(1)  # it waits for this run, or has gone by and left it

    run = starting.start(agent=cast.agent, owner=cast.priya, by=actor(cast.otto), title="A ticket", more=meanwhile)
    mover.join(30)
    assert moved == [1] and Run.objects.get(pk=run.pk).team_id == billing.pk
