"""In which workspace a page is, for people who are in several: `?workspace=` with its short name. Who is in one never meets it."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest

from access import rules
from access.errors import NotFound
from access.models import Workspace


@dataclass(frozen=True)
class Place:
    """The workspace that is meant. `all`: (short name, name) of those that may be chosen here; empty if there is no choice."""

    id: UUID
    slug: str = ""
    name: str = ""
    all: tuple[tuple[str, str], ...] = ()

    @property
    def suffix(self) -> str:
        """The end of an address that stays in it."""
        return f"?workspace={self.slug}" if self.all else ""

    @property
    def more(self) -> str:
        """The same, for an address that has a query already."""
        return self.suffix.replace("?", "&", 1)


def place(request: HttpRequest, *capabilities: str, within: UUID | None = None) -> Place:
    """Where this person may do one of these: what the address names, else the first. NotFound if they may not there.

    `within`: it is known already. No query for who may do it in one workspace alone.
    """
    first = rules.require(request.actor, *capabilities)
    held = [each for each in request.actor.grants if any(rules.can_some(request.actor, one, each) for one in capabilities)]
    if len(held) == 1:
        return Place(within or first)
    found = {each.slug: each for each in Workspace.objects.filter(pk__in=held).order_by("name")}
    wanted = request.GET.get("workspace", "")
    here = next((each for each in found.values() if each.pk == (within or first)), None) if within or not wanted else found.get(wanted)
    if here is None:
        raise NotFound
    return Place(here.pk, here.slug, here.name, tuple((each.slug, each.name) for each in found.values()))
