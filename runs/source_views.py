"""The page of who may send webhooks: each source with its address, a new one, a new secret, and an end."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from access import paging, rules
from access.errors import BadInput, Refusal
from access.ids import as_uuid
from access.models import Agent
from runs import webhooks
from runs.models import WebhookSource


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sources(request: HttpRequest) -> HttpResponse:
    """All of a workspace. Posted, a new one is made, and its secret shown this once."""
    workspace_id = rules.require(request.actor, "access.manage")
    if request.method != "POST":
        return _page(request, workspace_id)
    typed = {name: request.POST.get(name, "").strip() for name in ("name", "agent", "workflow")}
    try:
        agent = _agent(request, typed["agent"])
        made, secret = webhooks.make_source(agent, typed["name"], workflow=typed["workflow"], by=request.actor)
    except Refusal as refusal:
        return _page(request, workspace_id, typed=typed, error=refusal, status=refusal.status)
    return _page(request, made.workspace_id, shown=made.pk, secret=secret)


@never_cache
@require_POST
def source(request: HttpRequest, source_id: UUID) -> HttpResponse:
    """A new secret, shown this once; or nothing is taken from it any more."""
    found = rules.get(request.actor, WebhookSource, source_id, "access.manage")
    if request.POST.get("do") == "rotate" and found.closed_at is None:
        return _page(request, found.workspace_id, shown=found.pk, secret=webhooks.rotate(found, by=request.actor))
    if request.POST.get("do") == "close":
        webhooks.close_source(found, by=request.actor)
    return redirect("runs:sources")


def _agent(request: HttpRequest, given: str) -> Agent:
    found = rules.visible(request.actor, Agent, "access.manage").filter(pk=as_uuid(given)).first()
    if found is None:
        raise BadInput("Choose whose runs its webhooks are for.")
    return found


def _page(request: HttpRequest, workspace_id: UUID, *, status: int = 200, **more: Any) -> HttpResponse:
    agents = rules.visible(request.actor, Agent, "access.manage").filter(workspace_id=workspace_id).order_by("name")
    found = webhooks.listed(workspace_id)
    place = next((place for place, each in enumerate(found) if each.pk == more.get("shown")), None)
    wanted = request.GET.get("page", "") if place is None else str(place // paging.PAGE + 1)  # its secret is shown this once
    context = {
        "sources": paging.of_list(found, wanted),
        "agents": agents,
        "workflows": webhooks.startable(),
        "typed": {},
    }
    return render(request, "runs/sources.html", context | more, status=status)
