"""A team on pages: who is in it, whose agents work for it, and what was changed. Every change needs a reason, and counts at once."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from access import permissions, places, reasons, roles, rules, step_up, teams
from access.errors import Refusal
from access.ids import as_uuid
from access.models import Team
from access.permissions import READ
from access.places import Place


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    here = places.place(request, "access.manage")
    error = None
    if request.method == "POST":
        step_up.require(request)
        try:
            made = teams.make(here.id, request.POST.get("name", ""), by=request.actor, why=request.POST.get("why", ""))
            messages.info(request, f"{made.name} is there, with nobody in it yet.")
            return redirect("access:team", made.pk)
        except Refusal as refusal:
            error = refusal
    context = {"place": here, "error": error, "typed": _typed(request), "room": "permissions"}
    return render(request, "access/team_new.html", context, status=error.status if error else 200)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def team(request: HttpRequest, team_id: UUID) -> HttpResponse:
    """A team. Posted: what `do` says of its name, its people or its agents."""
    found = permissions.found(request.actor, Team, team_id, "access.manage" if request.method == "POST" else None)
    here = places.place(request, *READ, within=found.workspace_id)
    if request.method != "POST":
        return _drawn(request, here, found)
    step_up.require(request)
    try:
        done = _done(request, found)
    except Refusal as error:
        return _drawn(request, here, found, error=error)
    messages.info(request, done)
    return redirect(reverse("access:permissions") + here.suffix + "#teams" if request.POST.get("do") == "delete" else request.path)


def _done(request: HttpRequest, found: Team) -> str:
    """What became of it, in words."""
    sent, given = request.POST, {"by": request.actor, "why": request.POST.get("why", "")}
    who, runs = as_uuid(sent.get("who", "")), bool(sent.get("runs"))
    match sent.get("do"):
        case "rename":
            return f"It is called {teams.rename(found, sent.get('name', ''), **given).name} from now on."
        case "delete":
            teams.disband(found, **given)
            return f"{found.name} is deleted. Its runs are seen by who sees everything."
        case "add":
            teams.add(found, who, **given)
            return "They are in it. They see its runs at once, as far as their role lets them."
        case "remove":
            teams.remove(found, who, **given)
            return "They are not in it any more. What they had open of its runs is closed."
        case "add_agent":
            return _went("It works for this team from now on.", teams.add_agent(found, who, runs=runs, **given))
        case "remove_agent":
            return _went("It works for no team from now on.", teams.remove_agent(found, who, runs=runs, **given))
    raise teams.TeamRefused("This form asks for nothing that can be done. Open the team again.")


def _went(said: str, runs: int) -> str:
    return f"{said} {runs} {'run' if runs == 1 else 'runs'} went along." if runs else said


def _drawn(request: HttpRequest, here: Place, found: Team, *, error: Refusal | None = None) -> HttpResponse:
    may = rules.can(request.actor, "access.manage", here.id) and found.deleted_at is None
    changes = teams.history(found)
    words = reasons.shown(each.why for each in changes)
    there = roles.listed(here.id)
    context: dict[str, Any] = {
        "place": here,
        "team": found,
        "may": may,
        "members": teams.members(found),
        "agents": teams.agents(found),
        "candidates": list(teams.candidates(found)) if may else [],
        "others": teams.other_agents(found) if may else [],
        "narrowed": [each for each in there if any(permissions.level(right, rules.held_by(each)) == 1 for right in rules.SCOPED)],
        "changes": [(each, words.get(each.why, "")) for each in changes],
        "error": error,
        "did": request.POST.get("do", ""),
        "typed": _typed(request),
        "room": "permissions",
    }
    return render(request, "access/team.html", context, status=error.status if error else 200)


def _typed(request: HttpRequest) -> dict[str, str]:
    return {name: request.POST.get(name, "")[: 2 * reasons.MAX_REASON] for name in ("name", "who", "why", "runs")}
