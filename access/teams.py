"""Changing teams: the only writer of them, of who is in them, and of the agents that work for them.

Each change has a reason, stands in the team's history and in the audit trail, and is in force at once: whatever is open looks again. A run
is of its agent's team, as that was when it started; with an agent its earlier runs can go along. The runs of a team that was deleted stay
its own, so that only who sees everything sees them. docs/decisions/0022-teams.md says why.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, QuerySet, Window
from django.db.models.functions import RowNumber

from access import audit, hiding, reasons, roles, standing
from access.errors import BadInput, NotFound
from access.models import Agent, Membership, Team, TeamChange, TeamMember, User
from access.rules import Actor
from config import clock

MAX_TEAMS, MAX_NAME, SHOWN = 50, 60, 50
NAMED = 3  # people, and agents, of a team in a list of teams
Follow = Callable[[UUID, UUID | None], int]  # an agent's runs are of a team from now on; how many
_follow: list[Follow] = []


class TeamRefused(BadInput):
    """This team can’t be so."""

    what_next = "Nothing was changed. Mend what is said here."


@dataclass(frozen=True)
class Names:
    """Some names, and how many more there are."""

    listed: tuple[str, ...] = ()
    more: int = 0


def runs_follow(follow: Follow) -> None:
    """How the runs of an agent go along to another team. By the room that has them, at start-up."""
    _follow[:] = [follow]


def make(workspace_id: UUID, name: str, *, by: Actor, why: str) -> Team:
    """A new team, with nobody in it."""
    name = _fit(name)
    with transaction.atomic():
        roles.hold(workspace_id)
        if Team.objects.filter(workspace_id=workspace_id, deleted_at=None).count() >= MAX_TEAMS:
            raise TeamRefused(f"There are {MAX_TEAMS} teams already.")
        _check_free(workspace_id, name)
        team = Team.objects.create(workspace_id=workspace_id, name=name)
        _written(team, "team_made", by, why)
    return team


def rename(team: Team, name: str, *, by: Actor, why: str) -> Team:
    """The same team by another name. TeamRefused if it is its own already, or another team's."""
    name = _fit(name)
    with transaction.atomic():
        now = _held(team)
        if name == now.name:
            raise TeamRefused("That is its name already.")
        _check_free(now.workspace_id, name, but=now.pk)
        now.name = name
        Team.objects.filter(pk=now.pk).update(name=name)
        _written(now, "team_renamed", by, why)
    return now


def disband(team: Team, *, by: Actor, why: str) -> None:
    """Nobody is in it any more, and its agents are of none. Its runs stay its own: only who sees everything sees them then."""
    with transaction.atomic():
        list(Agent.objects.select_for_update(no_key=True).filter(team=team).order_by("pk"))  # before the workspace, as below
        now = _held(team)
        TeamMember.objects.filter(team=now).delete()
        Agent.objects.filter(team=now).update(team=None)
        Team.objects.filter(pk=now.pk).update(deleted_at=clock.now())
        _look_again(now.workspace_id)
        _written(now, "team_deleted", by, why)


def add(team: Team, user_id: UUID | None, *, by: Actor, why: str) -> None:
    """Somebody of the workspace comes into it."""
    with transaction.atomic():
        now = _held(team)
        member = candidates(now).filter(user_id=user_id).first() if user_id else None
        if member is None:
            raise TeamRefused("Choose somebody of this workspace who is not in it yet.")
        TeamMember.objects.create(team=now, membership=member, added_by_id=by.user_id)
        _written(now, "team_joined", by, why, user=member.user_id)


def remove(team: Team, user_id: UUID | None, *, by: Actor, why: str) -> None:
    """Somebody leaves it. What they have open of its runs closes, unless they see everything."""
    with transaction.atomic():
        now = _held(team)
        if not TeamMember.objects.filter(team=now, membership__user=user_id).delete()[0]:
            raise TeamRefused("They are not in it any more.")
        _written(now, "team_left", by, why, user=user_id)


def add_agent(team: Team, agent_id: UUID | None, *, runs: bool, by: Actor, why: str) -> int:
    """An agent works for it from now on. `runs`: those that it has so far go along. Gives how many did."""
    with transaction.atomic():
        went = _take_along(team, agent_id, team.pk) if runs else 0
        now = _held(team)
        others = Agent.objects.filter(pk=agent_id, workspace_id=now.workspace_id).exclude(team=now)
        if not others.update(team=now):
            raise TeamRefused("Choose an agent of this workspace that does not work for it yet.")
        _moved(now, "team_agent_joined", agent_id, went, by=by, why=why)
    return went


def remove_agent(team: Team, agent_id: UUID | None, *, runs: bool, by: Actor, why: str) -> int:
    """An agent is of no team from now on. `runs`: nor are those that it has so far, and only who sees everything sees them."""
    with transaction.atomic():
        went = _take_along(team, agent_id, None) if runs else 0
        now = _held(team)
        if not Agent.objects.filter(pk=agent_id, team=now).update(team=None):
            raise TeamRefused("It does not work for this team any more.")
        _moved(now, "team_agent_left", agent_id, went, by=by, why=why)
    return went


# what there is --------------------------------------------------------------------------------------------------------------------


def listed(workspace_id: UUID) -> list[Team]:
    """The teams that there are, by name. One query."""
    return sorted(Team.objects.filter(workspace_id=workspace_id, deleted_at=None), key=lambda team: team.name.lower())


def named(rows: Collection[Team]) -> list[tuple[Team, Names, Names]]:
    """Each team with its first members and its first agents, by name. Two queries, however many there are."""
    there = TeamMember.objects.filter(team__in=rows, membership__deactivated_at=None, membership__user__is_active=True)
    people = _first(there, "membership__user__name")
    works = _first(Agent.objects.filter(team__in=rows), "name")
    return [(team, people.get(team.pk, Names()), works.get(team.pk, Names())) for team in rows]


def _first(found: QuerySet[Any], name: str) -> dict[UUID, Names]:
    """By team: the first names of these, and how many there are beside."""
    place = Window(RowNumber(), partition_by="team", order_by=[name, "pk"])
    shown = found.annotate(place=place, of=Window(Count("pk"), partition_by="team")).filter(place__lte=NAMED).order_by("place")
    names: dict[UUID, Names] = {}
    for team, called, of in shown.values_list("team", name, "of"):
        listed = (*names.get(team, Names()).listed, called)
        names[team] = Names(listed, of - len(listed))
    return names


def members(team: Team) -> list[TeamMember]:
    """Who is in it, by name, with who added them."""
    rows = TeamMember.objects.filter(team=team, membership__deactivated_at=None, membership__user__is_active=True)
    return list(rows.select_related("membership__user", "membership__role", "added_by").order_by("membership__user__name"))


def agents(team: Team) -> list[Agent]:
    return list(Agent.objects.filter(team=team).select_related("owner").order_by("name"))


def candidates(team: Team) -> QuerySet[Membership]:
    """Who could come into it, by name."""
    rows = Membership.objects.filter(workspace_id=team.workspace_id, deactivated_at=None, user__is_active=True)
    return rows.exclude(in_teams__team=team).select_related("user").order_by("user__name")


def other_agents(team: Team) -> list[Agent]:
    """Those that could come to work for it, by name."""
    return list(Agent.objects.filter(workspace_id=team.workspace_id).exclude(team=team).select_related("team").order_by("name"))


def history(team: Team) -> list[TeamChange]:
    """What was changed about it, the newest first."""
    rows = TeamChange.objects.filter(team=team).select_related("user", "agent", "by").order_by("-at", "-pk")
    return list(rows[:SHOWN])


def of_people(workspace_id: UUID, users: Collection[UUID]) -> dict[UUID, list[str]]:
    """By person: the names of the teams that they are in here."""
    rows = TeamMember.objects.filter(team__workspace=workspace_id, membership__user__in=users).order_by("team__name")
    found: dict[UUID, list[str]] = {}
    for user, name in rows.values_list("membership__user", "team__name"):
        found.setdefault(user, []).append(name)
    return found


# how ------------------------------------------------------------------------------------------------------------------------------


def _held(team: Team) -> Team:
    """As it is now that nobody else changes it; NotFound once it is deleted."""
    roles.hold(team.workspace_id)
    now = Team.objects.filter(pk=team.pk, deleted_at=None).first()
    if now is None:
        raise NotFound
    return now


def _fit(name: str) -> str:
    name = " ".join(name.split())
    if trouble := hiding.unfit(name, MAX_NAME, whose="Its", another="team"):
        raise TeamRefused(trouble)
    return name


def _check_free(workspace_id: UUID, name: str, *, but: UUID | None = None) -> None:
    if Team.objects.filter(workspace_id=workspace_id, deleted_at=None, name__iexact=name).exclude(pk=but).exists():
        raise TeamRefused(f"There is a team “{name}” already.")


def _take_along(team: Team, agent_id: UUID | None, to: UUID | None) -> int:
    """The runs of an agent. First of all: whoever starts a run locks its agent, and whoever writes one locks it before its workspace."""
    found = Agent.objects.select_for_update(no_key=True).filter(pk=agent_id, workspace_id=team.workspace_id).first()
    if found is None or not _follow:
        return 0
    went = 0
    while more := _follow[0](found.pk, to):  # again, for a run that was on its way when this waited for the one it is a part of
        went += more
    return went


def _moved(team: Team, verb: str, agent_id: UUID | None, runs: int, *, by: Actor, why: str) -> None:
    _look_again(team.workspace_id)
    _written(team, verb, by, why, agent=agent_id, runs=runs)


def _look_again(workspace_id: UUID) -> None:
    """Whoever is here may see other runs now."""
    standing.raise_versions(User.objects.filter(memberships__workspace=workspace_id, memberships__deactivated_at=None))


def _written(team: Team, verb: str, by: Actor, why: str, *, user: UUID | None = None, agent: UUID | None = None, runs: int = 0) -> None:
    kept = reasons.keep(team.workspace_id, why)
    about = {"user_id": user, "agent_id": agent, "runs": runs}
    TeamChange.objects.create(team=team, what=verb.removeprefix("team_"), name=team.name, why=kept, by_id=by.user_id, **about)
    told = {"why": str(kept)} | ({"to": str(user)} if user else {}) | ({"agent": str(agent), "runs": runs} if agent else {})
    audit.record(by, verb, workspace_id=team.workspace_id, subject=("team", team.pk), **told)
