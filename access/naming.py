"""What the ids in the audit trail are called, for the eye. Asked on read, so that a name that changed is the one of now.

This room knows people, roles, agents and keys. Others register what they know at start-up: kind → a function from ids to names.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.urls import reverse

from access.ids import as_number, as_uuid
from access.models import Agent, AgentKey, BreakGlass, ProvisionerKey, Role, Team, User


@dataclass(frozen=True)
class Named:
    """What a thing is called. `where`, `url`: the page it is found on, and the words of the link; `why`: the reason kept with it."""

    name: str
    where: str = ""
    url: str = ""
    why: str = ""


# of a workspace, for ids that may be of another one: those are not known. One query or two, however many ids
Names = Callable[[UUID, Collection[str]], Mapping[str, Named]]
_names: dict[str, Names] = {}
_runs: list[Callable[[UUID, str], UUID | None]] = []  # (workspace, what somebody typed) → the run that is meant
_within: list[Callable[[UUID], Iterable[str]]] = []  # run → ids of what belongs to it


def register(kind: str, names: Names) -> None:
    _names[kind] = names


def register_runs(find: Callable[[UUID, str], UUID | None]) -> None:
    _runs[:] = [find]


def register_within(ids: Callable[[UUID], Iterable[str]]) -> None:
    """What else an entry about a run may name: the ids of its actions."""
    if ids not in _within:
        _within.append(ids)


def of(workspace_id: UUID, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Named]:
    """(kind, id) → name, of those that are known in a workspace; a query or two a kind. An id is what somebody asked for: it may be none
    at all, or of something in another workspace, which has no name here."""
    by_kind: dict[str, set[str]] = {}
    for kind, pk in wanted:
        if kind in _names and pk:
            by_kind.setdefault(kind, set()).add(pk)
    return {(kind, pk): named for kind, ids in by_kind.items() for pk, named in _names[kind](workspace_id, ids).items()}


def run(workspace_id: UUID, typed: str) -> UUID | None:
    """The run that somebody means by a reference or an id."""
    return _runs[0](workspace_id, typed) if _runs else None


def within(run_id: UUID) -> list[str]:
    return [pk for ids in _within for pk in ids(run_id)]


def uuids(ids: Iterable[str]) -> list[UUID]:
    """Those that are ids at all."""
    return [found for each in ids if (found := as_uuid(each))]


def people(ids: Iterable[str]) -> dict[str, str]:
    """What the people of these ids are called now; what is no id, or nobody's, is left out. One query, or none without ids."""
    return {str(pk): name for pk, name in User.objects.filter(pk__in=uuids(ids)).values_list("pk", "name")}


def _users(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    rows = User.objects.filter(pk__in=uuids(ids), memberships__workspace_id=workspace_id)
    return {str(pk): Named(name) for pk, name in rows.values_list("pk", "name")}


def _agents(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    return {
        str(pk): Named(name) for pk, name in Agent.objects.filter(workspace_id=workspace_id, pk__in=uuids(ids)).values_list("pk", "name")
    }


def _keys(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    rows = AgentKey.objects.filter(agent__workspace_id=workspace_id, pk__in=uuids(ids)).values_list("pk", "agent__name", "name")
    return {str(pk): Named(f"{agent} ({name})") for pk, agent, name in rows}


def _provisioners(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    """By their line: the name is that of the newest."""
    rows = ProvisionerKey.objects.filter(workspace_id=workspace_id, line__in=uuids(ids)).order_by("created_at").values_list("line", "name")
    return {str(line): Named(f"Provisioner {name}") for line, name in rows}


def _provisioner_keys(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    rows = ProvisionerKey.objects.filter(workspace_id=workspace_id, pk__in=uuids(ids))
    return {str(pk): Named(name) for pk, name in rows.values_list("pk", "name")}


def _glasses(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    rows = BreakGlass.objects.filter(workspace_id=workspace_id, pk__in=uuids(ids)).values_list("pk", "user__name")
    return {str(pk): Named(name, "Break-glass", reverse("access:break_glass")) for pk, name in rows}


def _roles(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    numbers = [number for each in ids if (number := as_number(each, digits=18)) is not None]
    rows = Role.objects.filter(workspace_id=workspace_id, pk__in=numbers).values_list("pk", "name")
    return {str(pk): Named(name.capitalize(), "Roles", reverse("access:role", args=[pk])) for pk, name in rows}


def _teams(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    return {
        str(pk): Named(name) for pk, name in Team.objects.filter(workspace_id=workspace_id, pk__in=uuids(ids)).values_list("pk", "name")
    }


register("team", _teams)
register("user", _users)
register("human", _users)
register("agent", _agents)
register("agent_key", _keys)
register("provisioner", _provisioners)
register("provisioner_key", _provisioner_keys)
register("glass", _glasses)
register("role", _roles)
