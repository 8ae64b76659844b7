"""The page of freezes: what is frozen now, freezing, lifting, and what was frozen before."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from access import places, rules
from access.errors import Refusal
from access.ids import as_uuid
from approvals import freezes, stops
from approvals.models import Freeze
from config import clock

# for how long, as the form offers it
LASTS: Mapping[str, tuple[str, timedelta | None]] = {
    "": ("Until somebody lifts it", None),
    "15": ("For 15 minutes", timedelta(minutes=15)),
    "60": ("For an hour", timedelta(hours=1)),
    "240": ("For 4 hours", timedelta(hours=4)),
    "1440": ("For a day", timedelta(days=1)),
    "10080": ("For a week", timedelta(days=7)),
}


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def freezes_page(request: HttpRequest) -> HttpResponse:
    """What is frozen; posted, freeze something. A refusal stands beside the form, with what was typed."""
    if request.method != "POST":
        rules.require(request.actor, "approvals.view")
        return _page(request)
    workspace_id = places.place(request, "approvals.freeze").id
    target, lasts = request.POST.get("target", ""), LASTS.get(request.POST.get("lasts", ""), LASTS[""])[1]
    what, _, name = target.partition(":")
    given: dict[str, Any] = {"agent_id": as_uuid(name)} if what == "agent" else {"tool": name} if what == "tool" else {}
    try:
        made = freezes.freeze(
            workspace_id,
            what=what,  # type: ignore[arg-type]  checked there
            by=request.actor,
            reason=request.POST.get("reason", ""),
            until=_whole_minute(lasts) if lasts else None,
            **given,
        )
    except Refusal as error:
        return _page(request, error=error, typed=request.POST)
    messages.success(request, f"Frozen: {freezes.target_words(made.freeze)}. Nothing of it is granted or run.")
    return HttpResponseRedirect(reverse("approvals:freezes") + places.place(request, "approvals.freeze").suffix, status=303)


@never_cache
@require_POST
def lifting(request: HttpRequest, freeze_id: UUID) -> HttpResponse:
    """Unfreeze."""
    frozen = rules.get(request.actor, Freeze, freeze_id, "approvals.freeze")
    try:
        lifted = freezes.lift(frozen, by=request.actor, reason=request.POST.get("reason", ""))
    except Refusal as error:
        return _page(request, error=error, typed=request.POST, lifted=freeze_id)
    messages.success(request, f"Unfrozen: {freezes.target_words(lifted.freeze)}. What waited for it goes on by itself.")
    return HttpResponseRedirect(reverse("approvals:freezes"), status=303)


def _page(
    request: HttpRequest, *, error: Refusal | None = None, typed: Mapping[str, Any] | None = None, lifted: UUID | None = None
) -> HttpResponse:
    actor = request.actor
    held = actor.workspaces("approvals.freeze")
    here = places.place(request, "approvals.freeze") if held else None
    standing, past = freezes.history(actor)
    context = {
        "standing": [(each, stops.shown(each, actor), each.workspace_id in held) for each in standing],
        "past": [(each, stops.shown(each, actor)) for each in past],
        "may": bool(held),
        "place": here,
        "tools": [(f"tool:{name}", title) for name, title in freezes.tools(here.id)] if here else (),
        "agents": [(f"agent:{agent.pk}", agent.name) for agent in freezes.agents(here.id)] if here else (),
        "lasts": [(key, words) for key, (words, _) in LASTS.items()],
        "error": error,
        "at": error.extra.get("field", "") if error else "",
        "lifted": lifted,
        "room": "runs",
        "typed": typed or {},
        "who": sorted({user.name for place in actor.somewhere("approvals.view") for user in rules.holders(place, "approvals.freeze")}),
    }
    return render(request, "approvals/freezes.html", context, status=error.status if error else 200)


def _whole_minute(lasts: timedelta) -> datetime:
    """Up to a whole minute, so that a double click asks for the same."""
    return (clock.now() + lasts + timedelta(minutes=1)).replace(second=0, microsecond=0)
