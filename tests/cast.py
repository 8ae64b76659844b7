"""The cast: a few people that every test can tell a story with. Two workspaces, so that there is always somebody who may not."""

from dataclasses import dataclass
from functools import cache

import pytest
from django.contrib.auth.hashers import make_password

from access.models import Agent, Membership, Role, User, Workspace
from access.rules import ROLES


@dataclass(frozen=True)
class Cast:
    """Fernhill: Riley and Sam review, Morgan manages, Otto operates, Ada administers, Priya owns the agent. Olga is from another place."""

    workspace: Workspace
    riley: User
    sam: User
    morgan: User
    otto: User
    ada: User
    priya: User
    agent: Agent
    elsewhere: Workspace
    olga: User
    other_agent: Agent


@pytest.fixture
def cast(db: None) -> Cast:
    fernhill, elsewhere = workspace("fernhill"), workspace("elsewhere")
    people = _household(fernhill)
    olga = member(elsewhere, "olga", "reviewer", "operator", "admin")
    agent = Agent.objects.create(workspace=fernhill, name="support-triage", owner=people["priya"])
    other_agent = Agent.objects.create(workspace=elsewhere, name="support-triage", owner=olga)
    return Cast(workspace=fernhill, **people, agent=agent, elsewhere=elsewhere, olga=olga, other_agent=other_agent)


PASSWORD = "correct horse battery"
HOUSE = {"riley": "reviewer", "sam": "reviewer", "morgan": "manager", "otto": "operator", "ada": "admin", "priya": "manager"}


def _household(where: Workspace) -> dict[str, User]:
    """Those of HOUSE, as `member` would make them, all at once: most tests begin with this."""
    roles = {name: Role(workspace=where, name=name, capabilities=sorted(ROLES[name])) for name in dict.fromkeys(HOUSE.values())}
    people = {name: User(email=f"{name}@{where.slug}.example", name=name.capitalize(), password=_hashed()) for name in HOUSE}
    Role.objects.bulk_create(roles.values())
    User.objects.bulk_create(people.values())
    Membership.objects.bulk_create(Membership(workspace=where, user=people[name], role=roles[role]) for name, role in HOUSE.items())
    return people


@cache
def _hashed() -> str:
    return make_password(PASSWORD)


def workspace(slug: str) -> Workspace:
    return Workspace.objects.create(slug=slug, name=slug.capitalize(), mail_domains=[f"{slug}.example"])


def member(where: Workspace, name: str, *roles: str) -> User:
    """A person with all that these roles may do."""
    held = sorted({capability for role in roles for capability in ROLES[role]})
    role, _ = Role.objects.get_or_create(workspace=where, name="+".join(roles), defaults={"capabilities": held})
    user = User.objects.create_user(f"{name}@{where.slug}.example", PASSWORD, name=name.capitalize())
    Membership.objects.create(workspace=where, user=user, role=role)
    return user
