"""The page of break-glass: taking rights, ending it, and what waits for a review."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from access import break_glass, places, reasons, rules, step_up
from access.errors import Forbidden, Refusal
from access.glass_models import BreakGlass
from access.places import Place
from access.rules import CAPABILITIES, PEOPLES

RIGHTS = {"runs.recover": "Recover stuck runs", "runs.steer": "Steer and cancel runs", "approvals.freeze": "Freeze and unfreeze"}
RIGHTS |= {"artifacts.view": "Open artifacts", "audit.view": "Read the access log", "reveal.personal": "Reveal personal data"}


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def glass(request: HttpRequest) -> HttpResponse:
    """What can be taken and what was. Posted: take it."""
    here = _here(request)
    if request.method != "POST":
        return _page(request, here)
    step_up.require(request)
    try:
        minutes = request.POST.get("minutes", "")
        made = break_glass.take(
            here.id,
            request.POST.getlist("right"),
            by=request.actor,
            reason=request.POST.get("reason", ""),
            minutes=int(minutes) if minutes.isdecimal() and len(minutes) < 4 else 0,
        )
    except Refusal as error:
        return _page(request, here, error=error, at="take", status=error.status)
    messages.warning(request, f"You hold more rights until {made.until:%H:%M} UTC. Admins and managers were told, and each step is marked.")
    return _back(here)


@never_cache
@require_POST
def ending(request: HttpRequest, glass_id: UUID) -> HttpResponse:
    found = break_glass.find(request.actor, glass_id)
    break_glass.end(found, by=request.actor)
    messages.info(request, "It is over. Another admin reviews it.")
    return _back(_here(request, found))


@never_cache
@require_POST
def review(request: HttpRequest, glass_id: UUID) -> HttpResponse:
    found = break_glass.find(request.actor, glass_id)
    try:
        break_glass.review(found, by=request.actor, note=request.POST.get("note", ""))
    except Refusal as error:
        return _page(request, _here(request, found), error=error, at=str(found.pk), status=error.status)
    messages.success(request, "Reviewed.")
    return _back(_here(request, found))


def _here(request: HttpRequest, found: BreakGlass | None = None) -> Place:
    if request.actor.kind not in ("human", "nobody"):
        raise Forbidden("Only people take rights.")
    return places.place(request, *sorted(PEOPLES), within=found.workspace_id if found else None)


def _back(here: Place) -> HttpResponse:
    return redirect(reverse("access:break_glass") + here.suffix)


def _page(request: HttpRequest, here: Place, *, error: Refusal | None = None, at: str = "", status: int = 200) -> HttpResponse:
    actor = request.actor
    sees = any(rules.can(actor, each, here.id) for each in ("access.manage", "audit.view"))
    context = {
        "place": here,
        "lasting": actor.glass.get(here.id),
        "rights": [(each, words, rules.can(actor, each, here.id)) for each, words in RIGHTS.items()],
        "minutes": break_glass.MINUTES,
        "sees": sees,
        "past": told(break_glass.history(here.id)) if sees else [],
        **waiting(request, here.id, sees=sees),
        "error": error,
        "at": at,
        "typed": request.POST,
        "chosen": request.POST.getlist("right"),
        "room": "permissions",
    }
    return render(request, "access/break_glass.html", context, status=status)


def waiting(request: HttpRequest, workspace_id: UUID, *, sees: bool) -> dict[str, Any]:
    """What stands at the top of the access log: what lasts, and what waits for its review."""
    found = told(break_glass.unreviewed(workspace_id)) if sees else []
    return {"glasses": found, "may_review": rules.can(request.actor, "access.manage", workspace_id)}


def told(found: list[BreakGlass]) -> list[dict[str, Any]]:
    """Each with its words. One query for the reasons."""
    why = reasons.shown(pk for each in found for pk in (each.why, each.review))
    return [
        {
            "row": each,
            "lasts": break_glass.lasts(each),
            "over_at": break_glass.over_at(each),
            "why": why.get(each.why, ""),
            "review": why.get(each.review, "") if each.review else "",
            "rights": [CAPABILITIES[right] for right in each.taken if right in break_glass.TAKEABLE],
        }
        for each in found
    ]
