"""The pages of reviewer groups: all of them, a new one, and one with its people and its history."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from access import paging, places, rules
from access.errors import Refusal
from access.ids import as_uuid
from access.models import User
from approvals import groups
from approvals.models import GroupVersion, ProposedAction, ReviewerGroup
from artifacts import vault
from artifacts.redaction import plain

VERSIONS = 30  # that the history shows


@dataclass(frozen=True)
class Typed:
    """A group as its form has it, fit or not."""

    name: str
    members: frozenset[UUID]
    closed: bool = False
    why: str = ""


@never_cache
@require_safe
def groups_page(request: HttpRequest) -> HttpResponse:
    """The groups of the workspace, with who of each may decide and what asks it."""
    here = places.place(request, "approvals.view")
    workspace_id, asked = here.id, groups.asked_by(here.id)
    paged = paging.of_list(groups.listed(workspace_id), request.GET.get("page", ""))
    context = {
        "place": here,
        "groups": [(each, able, asked.get(each.pk, [])) for each, able in paged.rows],
        "paged": paged,
        "kept": paging.kept(here.suffix),
        "may": rules.can(request.actor, "policies.manage", workspace_id),
        "mine": groups.of(request.actor.user_id),
        "room": "permissions",
    }
    return render(request, "approvals/groups.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """The form of a group that there is not yet. Posted, it is made."""
    workspace_id = places.place(request, "policies.manage").id
    if request.method != "POST":
        return _form(request, workspace_id, None, Typed("", frozenset()))
    typed = _typed(request)
    try:
        made = groups.make(workspace_id, name=typed.name, members=typed.members, by=request.actor, why=typed.why)
    except Refusal as error:
        return _form(request, workspace_id, None, typed, error=error)
    messages.info(request, f"{made.name} is there. A rule of the policy can ask it from now.")
    return redirect("approvals:group", made.pk)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def group(request: HttpRequest, group_id: UUID) -> HttpResponse:
    """One group. Who may change policies has its form; posted, it is its next version."""
    needed = "policies.manage" if request.method == "POST" else "approvals.view"
    found = rules.get(request.actor, ReviewerGroup, group_id, needed)
    if request.method != "POST":
        return _form(request, found.workspace_id, found, Typed(found.name, frozenset(groups.since(found.pk)), found.closed_at is not None))
    typed = _typed(request)
    try:
        given = {"name": typed.name, "members": typed.members, "closed": typed.closed, "why": typed.why}
        saved, lost = groups.change(found, by=request.actor, base=_number(request.POST.get("base", "")), **given)
    except Refusal as error:
        return _form(request, found.workspace_id, rules.get(request.actor, ReviewerGroup, group_id, needed), typed, error=error)
    gone = f" {lost} approval{'s' if lost > 1 else ''} of what waits count{'' if lost > 1 else 's'} no more." if lost else ""
    messages.info(request, f"Version {saved.version} of {saved.name} counts from now.{gone}")
    return redirect("approvals:group", saved.pk)


def _form(
    request: HttpRequest, workspace_id: UUID, found: ReviewerGroup | None, typed: Typed, *, error: Refusal | None = None
) -> HttpResponse:
    able = rules.some_holders(workspace_id, groups.HERE)
    inside = frozenset(groups.since(found.pk)) if found else frozenset()
    history = _history(request, found) if found else []
    waiting = rules.visible(request.actor, ProposedAction, "approvals.view").filter(state="waiting", policy__group=found)
    context: dict[str, Any] = {
        "found": found,
        "place": places.place(request, "approvals.view", within=workspace_id),
        "typed": typed,
        "error": error,
        "people": [(user, user.pk in typed.members) for user in able],
        "lost": _lost(inside, able),
        "kept": typed.members,
        "rules": groups.rules_of(found) if found else [],
        "waiting": waiting.count() if found else 0,
        "history": history,
        "room": "permissions",
        "may": rules.can(request.actor, "policies.manage", workspace_id),
    }
    return render(request, "approvals/group.html", context, status=error.status if error else 200)


def _lost(inside: Collection[UUID], able: Collection[User]) -> list[User]:
    """Who is in the group and may decide no more: they do not count."""
    return list(User.objects.filter(pk__in=set(inside) - {user.pk for user in able}).order_by("name"))


def _history(request: HttpRequest, found: ReviewerGroup) -> list[dict[str, Any]]:
    """The newest first; of each who came and who went against the one before, by name."""
    rows = rules.visible(request.actor, GroupVersion, "approvals.view").filter(group=found).select_related("saved_by")
    versions = list(rows.order_by("-version")[: VERSIONS + 1])
    texts = vault.shown(each.why_id for each in versions if each.why_id)
    named = User.objects.filter(pk__in={pk for each in versions for pk in each.members}).values_list("pk", "name")
    names = {str(pk): name for pk, name in named}
    before: list[GroupVersion | None] = [*versions[1:], None]
    return [
        {"of": each, "changes": _changes(each, last, names), "why": plain(texts[each.why_id].text) if each.why_id in texts else ""}
        for each, last in list(zip(versions, before, strict=True))[:VERSIONS]
    ]


def _changes(each: GroupVersion, last: GroupVersion | None, names: dict[str, str]) -> str:
    here, there = set(each.members), set(last.members) if last else set()
    said = [
        *(f"{names.get(pk, 'somebody')} in" for pk in each.members if pk not in there),
        *(f"{names.get(pk, 'somebody')} out" for pk in (last.members if last else ()) if pk not in here),
        *([f"was {last.name}"] if last and last.name != each.name else []),
        *(["closed"] if each.closed and not (last and last.closed) else []),
        *(["opened again"] if last and last.closed and not each.closed else []),
    ]
    return ", ".join(said)


def _typed(request: HttpRequest) -> Typed:
    chosen = (as_uuid(text) for text in request.POST.getlist("member")[: groups.MAX_MEMBERS + 1])
    members = frozenset(pk for pk in chosen if pk is not None)
    return Typed(request.POST.get("name", "")[:400], members, bool(request.POST.get("closed")), request.POST.get("why", "")[:2000])


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
