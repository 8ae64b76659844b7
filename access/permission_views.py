"""The page of permissions, and of one role: what it may do, its versions, and its changes, which another admin may have to confirm."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from access import paging, permissions, places, reasons, role_history, roles, rules, second_admin, step_up, teams
from access.errors import NotFound, Refusal
from access.models import Role
from access.permissions import READ, Cell, Group, Right
from access.places import Place
from access.role_models import RoleChange, RoleVersion
from access.roles import Wanted

HELD_BY = 12  # people that are named


@never_cache
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    here = places.place(request, *READ)
    found = roles.listed(here.id)
    second = roles.needs_second(here.id)
    there = paging.of_list(teams.listed(here.id), request.GET.get("teams", ""))
    context = {
        "place": here,
        "roles": found,
        "groups": _matrix(found, second=second),
        "seldom": permissions.SELDOM,
        "labels": permissions.reveals(found),
        "teams": there,
        "named": teams.named(there.rows) if there.rows else [],
        "kept": paging.kept(here.suffix),
        "last": role_history.last(here.id),
        "waiting": roles.waiting(here.id),
        "asked": [(each, second_admin.KINDS[each.kind].title) for each in second_admin.waiting(here.id)],
        "may": _may(request, here.id),
        "sees_policies": rules.can_some(request.actor, "approvals.view", here.id),
        "may_try": rules.can(request.actor, "policies.manage", here.id),
        "sees_log": rules.can(request.actor, "audit.view", here.id),
    }
    return render(request, "access/permissions.html", context)


@never_cache
@require_safe
def history(request: HttpRequest) -> HttpResponse:
    """The changes of all roles of a workspace, and what was asked for."""
    here = places.place(request, *READ)
    context = {"place": here, "entries": role_history.entries(here.id)}
    return render(request, "access/permissions_history.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    here = places.place(request, "access.manage")
    return _asked(request, here, None) if request.method == "POST" else _drawn(request, here, None)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def role(request: HttpRequest, role_id: int) -> HttpResponse:
    """A role as it is in force, or as a draft. Only what is asked for with a reason changes anything, and that may wait."""
    found = _role(request, role_id, "access.manage" if request.method == "POST" else None)
    here = places.place(request, *READ, within=found.workspace_id)
    return _asked(request, here, found) if request.method == "POST" else _drawn(request, here, found)


@never_cache
@require_safe
def version(request: HttpRequest, role_id: int, version: int) -> HttpResponse:
    """A role as it was, beside what it is now."""
    found = _role(request, role_id, None)
    here = places.place(request, *READ, within=found.workspace_id)
    then = roles.version(found, version)
    if then is None:
        raise NotFound
    before = roles.version(found, version - 1)
    context = {
        "place": here,
        "role": found,
        "then": then,
        "groups": [(group.name, [(each, *_reach(each, then)) for each in group.rights]) for group in permissions.groups()],
        "since": _compared(before.holds, then.holds) if before else None,
        "until": _compared(then.holds, rules.held_by(found)),
        "why": reasons.shown([then.why]).get(then.why, "") if then.why else "",
        "may": _may(request, here.id),
    }
    return render(request, "access/role_version.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, change_id: UUID) -> HttpResponse:
    """A change that waits for a second admin, or what became of it. Posted: confirmed, refused or withdrawn."""
    found = _change(request, change_id, "access.manage" if request.method == "POST" else None)
    here = places.place(request, *READ, within=found.workspace_id)
    if request.method != "POST":
        return _drawn(request, here, found.role, change=found)
    if request.POST.get("do") == "confirm":
        step_up.require(request)
    try:
        return _settled(request, here, found)
    except Refusal as error:
        return _drawn(request, here, found.role, change=_change(request, change_id, None), error=error)


def _settled(request: HttpRequest, here: Place, found: RoleChange) -> HttpResponse:
    match request.POST.get("do"):
        case "confirm":
            made = roles.confirm(found, by=request.actor)
            messages.info(request, f"Version {made.version} of {made.name} is in force.")
            return redirect(reverse("access:role", args=[made.pk]))
        case "refuse":
            roles.refuse(found, by=request.actor, why=request.POST.get("why", ""))
            messages.info(request, "You refused the change. Nothing was changed.")
        case "withdraw":
            roles.withdraw(found, by=request.actor)
            messages.info(request, "You withdrew the change. Nothing was changed.")
        case _:
            raise roles.ChangeOver("This form asks for nothing that can be done. Open the change again.")
    return redirect(reverse("access:role", args=[found.role_id]) if found.role_id else reverse("access:permissions") + here.suffix)


def _asked(request: HttpRequest, here: Place, found: Role | None) -> HttpResponse:
    """What was chosen, drawn with what it would mean; or asked for."""
    typed = _typed(request, found)
    if request.POST.get("do") != "ask":
        return _drawn(request, here, found, typed=typed)
    step_up.require(request)
    sent = request.POST.get("base", "")
    base = int(sent) if sent.isascii() and sent.isdigit() and len(sent) < 10 else 0
    try:
        made = roles.ask(here.id, found, typed, base=base, by=request.actor, why=request.POST.get("why", ""))
    except Refusal as error:
        return _drawn(request, here, found, typed=typed, error=error)
    if isinstance(made, roles.Waiting):
        messages.info(request, "Asked. Nothing changes until another admin confirms it.")
        return redirect(reverse("access:change", args=[made.change.pk]))
    messages.info(request, f"Version {made.role.version} of {made.role.name} is in force.")
    return redirect(reverse("access:role", args=[made.role.pk]))


def _drawn(
    request: HttpRequest,
    here: Place,
    found: Role | None,
    *,
    typed: Wanted | None = None,
    change: RoleChange | None = None,
    error: Refusal | None = None,
) -> HttpResponse:
    change = change or (roles.waits(found) if found else None)
    now = frozenset(rules.held_by(found)) if found else frozenset()
    wanted = typed or _of(change) or _restored(request, found) or Wanted(found.name if found else "", now, _is_retired(found))
    holders = roles.people(found) if found else []
    there = teams.listed(here.id)
    in_teams = teams.of_people(here.id, [user.pk for user in holders[:HELD_BY]]) if there else {}
    base = change.base if change else found.version if found else 0
    groups, moved = permissions.groups(), []
    if change is not None and found and roles.state(change) == "waiting":  # what is asked for is read first
        groups, moved = [], permissions.moved(now, wanted.holds)
    context: dict[str, Any] = {
        "place": here,
        "role": found,
        "typed": wanted,
        "base": base,
        "groups": groups,
        "moved": moved,
        "stays": permissions.stays(now, moved) if moved else [],
        "now": now,
        "labels": permissions.labels(wanted.holds),
        "holders": [(user, in_teams.get(user.pk, ())) for user in holders[:HELD_BY]],
        "narrows": bool(there) or any(each.endswith(rules.TEAM) for each in (*now, *wanted.holds)),
        "others": len(holders) - HELD_BY,
        "count": len(holders),
        "error": error,
        "why": request.POST.get("why", "")[: 2 * reasons.MAX_REASON],
        "may": _may(request, here.id),
        "versions": _versions(found) if found else [],
        # what is retired is brought back as an older version, and not piece by piece
        "open": _may(request, here.id) and change is None and (not _is_retired(found) or not wanted.retired),
    }
    over = change is not None and roles.state(change) != "waiting"
    context |= _difference(here.id, wanted, found, len(holders), over=over)
    context |= _second(request, here.id, change)
    return render(request, "access/role.html", context, status=error.status if error else 200)


def _difference(workspace_id: UUID, wanted: Wanted, found: Role | None, people: int, *, over: bool) -> Mapping[str, Any]:
    """What would change, in words. Of a change that is over: nothing would, by it."""
    more, less = roles.changes(rules.held_by(found) if found else (), () if wanted.retired else wanted.holds)
    named = bool(found) and " ".join(wanted.name.split()) != found.name
    retires = wanted.retired and not _is_retired(found)
    effects = permissions.effects(workspace_id, people, more, less)
    differs = not over and (len(effects) + named + retires or (found is None and bool(wanted.name)))
    return {"effects": effects, "named": named, "retires": retires, "differs": differs, "width": permissions.width(more, less)}


def _second(request: HttpRequest, workspace_id: UUID, change: RoleChange | None) -> Mapping[str, Any]:
    """Whether a second admin is needed, who that could be, and what became of a change that waits."""
    asked_by = change.asked_by_id if change else request.actor.user_id
    others = [user.name for user in roles.seconds(workspace_id, asked_by)]
    said = reasons.shown([change.why, change.answer]) if change else {}
    return {
        "change": change,
        "change_state": roles.state(change) if change else "",
        "change_url": reverse("access:change", args=[change.pk]) if change else "",
        "change_why": said.get(change.why, "") if change else "",
        "change_answer": said.get(change.answer, "") if change else "",
        "refusal": request.POST.get("why", "")[: 2 * reasons.MAX_REASON] if change else "",
        "mine": change is not None and change.asked_by_id == request.actor.user_id,
        "needs_second": roles.needs_second(workspace_id),
        "seconds": others,
    }


def _typed(request: HttpRequest, found: Role | None) -> Wanted:
    """The form as it was sent: each right that is not said to be held is not."""
    sent = {each: request.POST.get(f"may.{each}") for each in rules.CAPABILITIES}
    holds = frozenset(each for each, said in sent.items() if said == "everywhere")
    holds |= {each + rules.TEAM for each in rules.SCOPED if sent[each] == "own"}
    restores = request.POST.get("restores", "")
    number = int(restores) if restores.isascii() and restores.isdigit() and len(restores) < 10 else None
    if number is not None and (found is None or (then := roles.version(found, number)) is None or frozenset(then.holds) != holds):
        number = None  # something else was chosen since
    name = request.POST.get("name", "")[: 4 * roles.MAX_NAME]
    return Wanted(name, holds, bool(request.POST.get("retired")) and not request.POST.get("keep"), number)


def _of(change: RoleChange | None) -> Wanted | None:
    return Wanted(change.name, frozenset(change.holds), change.retired, change.restores) if change else None


def _restored(request: HttpRequest, found: Role | None) -> Wanted | None:
    """The draft that is an older version again."""
    number = request.GET.get("restore", "")
    then = roles.version(found, int(number)) if found and number.isascii() and number.isdigit() and len(number) < 10 else None
    return Wanted(then.name, frozenset(then.holds), then.retired, then.version) if then else None


def _is_retired(found: Role | None) -> bool:
    return found is not None and found.retired_at is not None


def _versions(found: Role) -> list[dict[str, Any]]:
    all_of: list[RoleVersion] = roles.history(found)
    words = reasons.shown(each.why for each in all_of)
    return [{"of": each, "why": words.get(each.why, "")} for each in all_of]


def _matrix(found: list[Role], *, second: bool) -> list[Group[tuple[Right, list[Cell]]]]:
    held = [rules.held_by(each) for each in found]

    def row(right: Right) -> tuple[Right, list[Cell]]:
        return right, [permissions.cell(right.capability, holds, second=second) for holds in held]

    return [Group(of.name, [row(each) for each in of.rights], of.never) for of in permissions.groups()]


def _reach(of: Right, then: RoleVersion) -> tuple[int, str]:
    """How far a right reached in a version of a role, and in words."""
    reaches = permissions.level(of.capability, then.holds)
    return reaches, permissions.LEVELS[reaches]


def _compared(before: Any, after: Any) -> dict[str, list[tuple[str, str, str]]]:
    more, less = roles.changes(before, after)
    levels = permissions.LEVELS
    return {"moves": [(each.title, levels[was], levels[will]) for each, was, will in permissions.moves(more, less)]}


def _may(request: HttpRequest, workspace_id: UUID) -> bool:
    return rules.can(request.actor, "access.manage", workspace_id)


def _role(request: HttpRequest, role_id: int, capability: str | None) -> Role:
    return permissions.found(request.actor, Role, role_id, capability)


def _change(request: HttpRequest, change_id: UUID, capability: str | None) -> RoleChange:
    return permissions.found(request.actor, RoleChange, change_id, capability, related=("role", "asked_by", "settled_by"))
