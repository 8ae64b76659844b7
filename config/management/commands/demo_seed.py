"""`manage.py demo_seed`: the demo's workspace, people, agents and policies. Safe to repeat; changes nothing that is there."""

from typing import Any
from unicodedata import normalize

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from access import roles
from access.models import Agent, Membership, Role, User, Workspace
from approvals import demo as approvals_demo

PEOPLE = (
    ("Riley Park", "reviewer"),
    ("Sam Okafor", "reviewer"),
    ("Morgan Bell", "manager"),
    ("Otto Brandt", "operator"),
    ("Ada Lindqvist", "admin"),
    ("Rafael Costa", "admin"),  # so that a change of roles takes two
)
# each with who answers for it and for its runs: a manager, who decides nothing, and so Riley and Sam may
AGENTS = {
    "support-triage": "Priya Nair",
    "triage-loop": "Sofia Berg",
    "triage-played": "Sofia Berg",
    "back-office": "Tomás Ruiz",
    "billing-desk": "Priya Nair",
    "outside-loop": "Mei Tanaka",
    "renewals": "Lena Fischer",
}


class Command(BaseCommand):
    help = "Put the demo's people, agents and policies in place. Safe to repeat."

    def handle(self, **_: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This is not the demo (HANDRAIL_DEMO=1), so nothing was put in.")
        workspace, _created = Workspace.objects.get_or_create(
            slug="fernhill", defaults={"name": "Fernhill", "mail_domains": ["fernhill.example"]}
        )
        held = roles.set_up(workspace)
        for name, role in PEOPLE:
            _person(workspace, name, held[role])
        owners = {name: _person(workspace, name, held["manager"]) for name in dict.fromkeys(AGENTS.values())}
        for name, owner in AGENTS.items():
            Agent.objects.get_or_create(workspace=workspace, name=name, defaults={"owner": owners[owner]})
        approvals_demo.policies(workspace)
        approvals_demo.first(workspace)


def _person(workspace: Workspace, name: str, role: Role) -> User:
    first = normalize("NFKD", name.split()[0].lower()).encode("ascii", "ignore").decode()  # mail is addressed in plain letters
    email = f"{first}@fernhill.example"
    user = User.objects.filter(email=email).first() or User.objects.create_user(email, None, name=name)
    Membership.objects.get_or_create(workspace=workspace, user=user, defaults={"role": role})
    return user
