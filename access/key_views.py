"""The page of agents and their keys. A key is shown once, in the answer to the form that made it, and never by a GET."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from access import keys, paging, places, rules, step_up
from access.errors import NotFound, Refusal
from access.ids import as_uuid
from access.models import Agent, AgentKey, ProvisionerKey, User
from access.paging import Paged
from access.places import Place
from access.rules import AGENT_CAPABILITIES, CAPABILITIES, PROVISIONER_CAPABILITIES

OVERLAPS = {"0": "At once", "60": "In an hour", "1440": "In a day", "10080": "In a week"}  # minutes
AGENTS, KEYS = 20, 5  # on a page, and of each of them there
GOOD = ("on", "rotated")  # what a key is that can be rotated or revoked
LASTS = {"7": "7 days", "30": "30 days", "90": "90 days", "365": "a year"}
Row = tuple[Any, str, list[str]]  # a key, what it is now, what it is good for


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def agents(request: HttpRequest) -> HttpResponse:
    """The agents, their owners and keys. Posted: make an agent."""
    here = places.place(request, "access.manage")
    if request.method != "POST":
        return _page(request, here)

    def made() -> HttpResponse:
        owner = _person(here, request.POST.get("owner", ""))
        found = keys.create_agent(here.id, name=request.POST.get("name", "").strip(), owner=owner, by=request.actor)
        messages.success(request, f"Agent {found.name} is there. It can do nothing until it has a key.")
        return _back(here)

    return _tried(request, here, made, at="agent")


@never_cache
@require_POST
def new_key(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    agent = rules.get(request.actor, Agent, agent_id, "access.manage")
    here = places.place(request, "access.manage", within=agent.workspace_id)

    def made() -> HttpResponse:
        scope = {
            "capabilities": request.POST.getlist("right"),
            "workflows": _listed(request, "workflows"),
            "tools": _listed(request, "tools"),
        }
        return _shown(request, here, *keys.make(agent, name=request.POST.get("name", ""), **_common(request), **scope))

    return _tried(request, here, made, at=str(agent.pk), only=str(agent.pk))


@never_cache
@require_POST
def new_provisioner(request: HttpRequest) -> HttpResponse:
    here = places.place(request, "access.manage")

    def made() -> HttpResponse:
        name, held = request.POST.get("name", ""), request.POST.getlist("right")
        made = keys.make_provisioner(here.id, name=name, owner=request.user, capabilities=held, **_common(request))
        return _shown(request, here, *made)

    return _tried(request, here, made, at="provisioner")


@never_cache
@require_POST
def rotation(request: HttpRequest, kind: str, key_id: UUID) -> HttpResponse:
    key = _key(request, kind, key_id)
    here = places.place(request, "access.manage", within=keys.workspace_of(key))

    def made() -> HttpResponse:
        overlap = request.POST.get("overlap", "")
        minutes = int(overlap) if overlap in OVERLAPS else 0
        return _shown(request, here, *keys.rotate(key, overlap=timedelta(minutes=minutes), **_common(request)))

    return _tried(request, here, made, at=str(key.pk), only=str(key.agent_id) if isinstance(key, AgentKey) else "")


@never_cache
@require_POST
def revocation(request: HttpRequest, kind: str, key_id: UUID) -> HttpResponse:
    """No second look at who asks: what may be in the wrong hands ends at once."""
    key = _key(request, kind, key_id)
    keys.revoke(key, by=request.actor)
    messages.success(request, f"The key {key.prefix}… is revoked. What it had open is closed.")
    return _back(places.place(request, "access.manage", within=keys.workspace_of(key)))


# what they share ------------------------------------------------------------------------------------------------------------------


def _tried(request: HttpRequest, here: Place, made: Callable[[], HttpResponse], *, at: str, only: str = "") -> HttpResponse:
    step_up.require(request)
    try:
        return made()
    except Refusal as error:
        return _page(request, here, error=error, at=at, only=only, typed=request.POST, status=error.status)


def _common(request: HttpRequest) -> dict[str, Any]:
    days = request.POST.get("days", "")
    return {"by": request.actor, "days": int(days) if days in LASTS else keys.DAYS, "asked": as_uuid(request.POST.get("asked", ""))}


def _listed(request: HttpRequest, name: str) -> list[str]:
    return request.POST.get(name, "").replace(",", " ").split()


def _person(here: Place, pk: str) -> User:
    found = User.objects.filter(pk=as_uuid(pk), memberships__workspace=here.id, memberships__deactivated_at=None, is_active=True).first()
    if found is None:
        raise keys.AgentRefused("Choose the person who answers for it.")
    return found


def _key(request: HttpRequest, kind: str, key_id: UUID) -> AgentKey | ProvisionerKey:
    if kind == "agent":
        return rules.get(request.actor, AgentKey, key_id, "access.manage", related=("agent",))
    return rules.get(request.actor, ProvisionerKey, key_id, "access.manage")


def _back(here: Place) -> HttpResponse:
    return redirect(reverse("access:agents") + here.suffix)


def _shown(request: HttpRequest, here: Place, key: AgentKey | ProvisionerKey, token: str) -> HttpResponse:
    """The one answer that has the key in it."""
    name = key.agent.name if isinstance(key, AgentKey) else "the provisioner"
    context = {"key": key, "token": token, "of": name, "place": here, "room": "permissions"}
    return render(request, "access/key_made.html", context, status=201)


def _page(
    request: HttpRequest, here: Place, *, error: Refusal | None = None, at: str = "", only: str = "", typed: Any = None, status: int = 200
) -> HttpResponse:
    """`at`: at which form something is wrong; `only`: the agent that this is about."""
    wanted, page = only or request.GET.get("agent", ""), request.GET.get("page", "")
    found = Agent.objects.filter(workspace_id=here.id).select_related("owner", "team").annotate(held=Count("keys")).order_by("name")
    alone = found.filter(pk=as_uuid(wanted)).first() if wanted else None  # with all its keys, a page at a time
    if wanted and alone is None:
        raise NotFound
    paged: Paged[Any] = paging.of_query(keys.in_order(alone.keys.all()) if alone else found, page, size=paging.PAGE if alone else AGENTS)
    held = {alone.pk: paged.rows} if alone else keys.first_of(paged.rows, most=KEYS)
    made = ProvisionerKey.objects.filter(workspace_id=here.id).select_related("owner")
    provisioners = paging.of_query(keys.in_order(made), request.GET.get("made", ""))
    people = User.objects.filter(memberships__workspace=here.id, memberships__deactivated_at=None, is_active=True).order_by("name")
    drawn, provisioning = [(each, _keys(held[each.pk])) for each in ([alone] if alone else paged.rows)], _keys(provisioners.rows)
    context = {
        "place": here,
        "agents": drawn,
        "alone": alone,
        "paged": paged,
        "made": provisioners,
        "kept": paging.kept(here.suffix, agent=str(alone.pk) if alone else "", made=request.GET.get("made", "")),
        "kept_made": paging.kept(here.suffix, page=page),
        "provisioners": provisioning,
        "people": people,
        "rights": [(each, CAPABILITIES[each]) for each in AGENT_CAPABILITIES],
        "provisioner_rights": [(each, CAPABILITIES[each]) for each in PROVISIONER_CAPABILITIES],
        "lasts": LASTS.items(),
        "overlaps": OVERLAPS.items(),
        "asked": uuid4(),
        "error": error,
        "at": at,
        "apart": error is not None and at not in _forms(drawn, provisioning),
        "typed": typed or {},
        "room": "permissions",
    }
    return render(request, "access/agents.html", context, status=status)


def _forms(agents: Sequence[tuple[Agent, list[Row]]], provisioners: list[Row]) -> set[str]:
    """Where on the page something can be said to be wrong. A key that is over, or of another page, has no form there."""
    rows = [*(row for _, keys in agents for row in keys), *provisioners]
    return {"agent", "provisioner", *(str(agent.pk) for agent, _ in agents), *(str(key.pk) for key, state, _ in rows if state in GOOD)}


def _keys(found: Sequence[AgentKey | ProvisionerKey]) -> list[Row]:
    """Each key with what it is now and what it is good for."""
    return [(key, _state(key), [CAPABILITIES[each] for each in rules.held_by_key(key)]) for key in found]


def _state(key: AgentKey | ProvisionerKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if not keys.is_on(key):
        return "over"
    return "rotated" if key.successor_id else "on"
