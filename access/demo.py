"""The demo's people, as whom anybody on this machine may look around. Only in the demo, only from this machine."""

import ipaddress
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest

from access.models import Membership, User

# role that everybody has → what it does, in the order people are offered
ABOUT = {
    "reviewer": "Decides: approves or rejects what the agents ask for.",
    "manager": "Sees every run of the team and its evidence. Decides nothing.",
    "operator": "Starts, steers, stops and recovers runs.",
    "admin": "Changes roles and policies, with a second admin.",
}
OTHER = "Has a role that an admin made here."
SECOND = {"reviewer": "Decides too. Large refunds need both of them."}
FORWARDED = ("HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PROTO", "HTTP_X_REAL_IP", "HTTP_VIA")


class Person(NamedTuple):
    id: UUID
    name: str
    role: str
    about: str
    more: bool = False  # another one of a role of which one is enough to look around

    @property
    def first_name(self) -> str:
        return self.name.split()[0] if self.name.split() else self.name


def is_open(request: HttpRequest) -> bool:
    """In the demo, asked from this machine itself, and not through a proxy that may speak for another one."""
    return settings.DEMO and is_loopback(request.META.get("REMOTE_ADDR", "")) and not any(request.META.get(name) for name in FORWARDED)


def is_address(host: str) -> bool:
    """A number, and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(address: str) -> bool:
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


def people() -> list[Person]:
    """The active people at invented addresses (`.example`), so that a real account added to a demo is never offered.

    Who owns the example's agents is left out: what they ask for is not theirs to decide, and the demo would look broken to them. Who came
    in and has an agent of their own since may come in again.
    """
    members = (
        Membership.objects.filter(deactivated_at=None, user__is_active=True, user__email__endswith=".example")
        .exclude(user__agents__isnull=False, user__last_login=None)
        .select_related("user", "role")
        .order_by("user__created_at", "user__name")
    )
    found = {m.user_id: Person(m.user_id, m.user.name, m.role.name, ABOUT.get(m.role.name, OTHER)) for m in members}
    ordered = sorted(found.values(), key=lambda person: [*ABOUT, person.role].index(person.role))  # roles made here come last
    return [_among(ordered[:at], person) for at, person in enumerate(ordered)]


def _among(before: list[Person], person: Person) -> Person:
    """Somebody of a role that another one before them has is said as the second of it."""
    again = any(each.role == person.role for each in before)
    return person._replace(more=again and person.role == "admin", about=SECOND.get(person.role, person.about)) if again else person


def person(user_id: str) -> User | None:
    """The user behind one of `people()`, by the id on the button."""
    chosen = next((one for one in people() if str(one.id) == user_id), None)
    return User.objects.get(pk=chosen.id) if chosen else None
