"""The pages of a policy: its rules and its history, one rule as a form, an older version. Only a save changes anything, after a try."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from access import audit, paging, places, rules, second_admin, step_up
from access.change_models import AskedChange
from access.errors import NotFound, Refusal
from access.rules import Actor
from approvals import conditions, groups, policy, policy_changes, policy_forms, standing_grants, trying
from approvals.errors import TryFirst
from approvals.models import AskedFor, Policy, PolicySet, ProposedAction, StandingGrant
from approvals.notifications.pages import zones
from approvals.policy_forms import Typed
from approvals.policy_words import Line, choices, lines, tool_name
from artifacts import vault
from artifacts.redaction import plain
from config import clock
from runs.engine.tools import TOOLS

VERSIONS = 30  # that the history shows
COUNTED = 7  # days in which it is counted what a rule matched
SHOWN = 50  # differing actions that are listed


@never_cache
@require_safe
def policies(request: HttpRequest) -> HttpResponse:
    """The rules in force, their history, and what agents asked for that no rule covers."""
    found = lines_of(request)
    workspace_id = found["place"].id
    context = found | {
        "history": _history(request.actor, workspace_id),
        "waits": second_admin.waits(workspace_id, policy_changes.KIND),
        "asked": _asked(request.actor, workspace_id),
        "known_tools": set(TOOLS),
        "standing": _standing(request.actor, workspace_id),
        "decides": rules.can_some(request.actor, "approvals.decide", workspace_id),
    }
    return render(request, "approvals/policies.html", context)


def lines_of(request: HttpRequest) -> dict[str, Any]:
    """The rules in force as lines, with how often each matched: what the page of policies begins with, and that of permissions has."""
    here = places.place(request, "approvals.view")
    current = _versions(request.actor).filter(workspace_id=here.id).first()
    may = rules.can(request.actor, "policies.manage", here.id)
    found = list(current.rules.select_related("group").order_by("position")) if current else []
    paged = paging.of_list(found, request.GET.get("page", ""))
    shown = {"lines": lines(paged.rows, _matched(request.actor, here.id)), "paged": paged, "kept": paging.kept(here.suffix)}
    return shown | {"counted": True, "current": current, "place": here, "may": may}


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def rule(request: HttpRequest) -> HttpResponse:
    """One rule as a form. Posted, it is tried; posted with the try that was shown, and a reason, it is saved."""
    workspace_id = places.place(request, "policies.manage").id
    current = policy.rules(workspace_id)
    if request.method != "POST":
        wanted = next((each for each in current if str(each.key) == request.GET.get("key")), None)
        typed = policy_forms.of(wanted, len(current))
        if wanted is None and request.GET.get("tool") in TOOLS:
            typed = Typed({**typed.fields, "tool": request.GET["tool"], "name": TOOLS[request.GET["tool"]].title}, ())
        return _form(request, workspace_id, current, typed)
    typed = policy_forms.typed(request.POST)
    try:
        draft = policy_forms.draft(typed, current, workspace_id)
        if request.POST.get("do") == "save":
            return _save(request, workspace_id, draft)
        policy.check_groups(workspace_id, draft, hold=False)
        return _form(request, workspace_id, current, typed, draft=draft)
    except step_up.StepUpNeeded:
        raise
    except Refusal as error:
        return _form(request, workspace_id, current, typed, error=error)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def version(request: HttpRequest, version: int) -> HttpResponse:
    """A version as it was. An admin may try it, and save it again as the newest."""
    here = places.place(request, "policies.manage" if request.method == "POST" else "approvals.view")
    workspace_id = here.id
    found = _versions(request.actor).filter(workspace_id=workspace_id, version=version).first()
    if found is None:
        raise NotFound
    draft = list(found.rules.select_related("group").order_by("position"))
    context: dict[str, Any] = {
        "found": found,
        "place": here,
        "lines": _lines(found),
        "current": policy.newest(workspace_id),
        "may": rules.can(request.actor, "policies.manage", workspace_id),
        "why": request.POST.get("why", ""),
        "seconds": _seconds(request.actor, workspace_id),
    }
    status = 200
    if request.method == "POST":
        try:
            if request.POST.get("do") == "save":
                return _save(request, workspace_id, draft)
            policy.check_groups(workspace_id, draft, hold=False)
            context |= _tried(request.actor, workspace_id, draft)
        except step_up.StepUpNeeded:
            raise
        except Refusal as error:
            context["error"], status = error, error.status
    return render(request, "approvals/policy_version.html", context, status=status)


def _save(request: HttpRequest, workspace_id: UUID, draft: Sequence[Policy]) -> HttpResponse:
    step_up.require(request)
    sent = request.POST.get("base", "")
    base = int(sent) if sent.isascii() and sent.isdigit() and len(sent) < 10 else 0
    now = policy.newest(workspace_id)
    if now is not None and _is_saved(now, draft, base, request.actor):  # a second click
        return _in_force(request, now)
    if now is not None and now.version != base:
        raise policy.PolicyChanged(f"Version {now.version} is in force by now; yours was made from version {base}.")
    if not trying.was_shown(request.POST.get("tried", ""), workspace_id, draft, base=base, by=request.actor):
        raise TryFirst
    made = policy_changes.ask(workspace_id, draft, by=request.actor, why=request.POST.get("why", ""), base=base)
    if isinstance(made, AskedChange):
        messages.info(request, "Asked. Nothing changes until another admin confirms it.")
        return redirect("access:asked", made.pk)
    return _in_force(request, made)


def _is_saved(now: PolicySet, draft: Sequence[Policy], base: int, by: Actor) -> bool:
    """Whether the newest version is what this person makes of the one before it."""
    return (
        now.version == base + 1 and now.saved_by_id == by.user_id and policy.digest(policy.rules(now.workspace_id)) == policy.digest(draft)
    )


def _in_force(request: HttpRequest, made: PolicySet) -> HttpResponse:
    messages.info(request, f"Version {made.version} is in force.")
    return redirect(reverse("approvals:policies") + places.place(request, "policies.manage", within=made.workspace_id).suffix)


def _form(
    request: HttpRequest,
    workspace_id: UUID,
    current: Sequence[Policy],
    typed: Typed,
    *,
    draft: Sequence[Policy] | None = None,
    error: Refusal | None = None,
) -> HttpResponse:
    now = policy.newest(workspace_id)
    old = any(str(each.key) == typed.fields["key"] for each in current)
    context: dict[str, Any] = {
        "typed": typed,
        "place": places.place(request, "policies.manage", within=workspace_id),
        "error": error,
        "is_new": not old,
        "is_draft": request.method == "POST",
        "current": now,
        "places": range(1, len(current) + (1 if old else 2)),
        "tools": choices(typed.fields.get("tool", "")),
        "whats": conditions.WHATS,
        "tests": conditions.TESTS,
        "values": conditions.VALUES,
        "expires": policy_forms.times(policy_forms.EXPIRES, typed.fields["expires"]),
        "lasts": policy_forms.times(policy_forms.LASTS, typed.fields["lasts"]),
        "recalls": policy_forms.times(policy_forms.RECALL, typed.fields.get("recall", "")),
        "zones": zones(),
        "froms": _froms(workspace_id, typed.fields.get("from", "")),
        "everybody": len(rules.some_holders(workspace_id, "approvals.decide")),
        "history": _history(request.actor, workspace_id),
        "waits": second_admin.waits(workspace_id, policy_changes.KIND),
        "seconds": _seconds(request.actor, workspace_id),
    }
    if draft is not None:
        context |= _tried(request.actor, workspace_id, draft)
    return render(request, "approvals/policy.html", context, status=error.status if error else 200)


def _froms(workspace_id: UUID, chosen: str) -> list[tuple[str, str]]:
    """The groups that may be asked, with how many of each may decide; and the one that is asked now, though it be closed."""
    found = [
        (str(each.pk), each, len(able)) for each, able in groups.listed(workspace_id) if each.closed_at is None or str(each.pk) == chosen
    ]
    return [(pk, f"{each.name}, closed" if each.closed_at else f"{each.name} ({count})") for pk, each, count in found]


def _tried(actor: Actor, workspace_id: UUID, draft: Sequence[Policy]) -> Mapping[str, Any]:
    """What a try gave, and the word that says that it was shown. Who tries is in the audit trail: a try tells about arguments."""
    found, now = trying.tried(workspace_id, draft), policy.newest(workspace_id)
    listed = trying.shown_to(actor, found.differs)
    base = now.version if now else 0
    audit.record(actor, "policy_tried", workspace_id=workspace_id, digest=policy.digest(draft), of=found.of, differ=len(found.differs))
    token = trying.token(workspace_id, draft, base=base, by=actor)
    return {"tried": found, "shown": listed[:SHOWN], "token": token, "base": base}


def _seconds(actor: Actor, workspace_id: UUID) -> list[str]:
    """Who could confirm what this person saves, where that takes two."""
    needed = second_admin.is_needed(workspace_id, policy_changes.KIND)
    return second_admin.seconds(workspace_id, policy_changes.KIND, actor.user_id) if needed else []


def _versions(actor: Actor) -> Any:
    return rules.visible(actor, PolicySet, "approvals.view").select_related("saved_by").order_by("-version")


def _standing(actor: Actor, workspace_id: UUID) -> list[tuple[StandingGrant, str, list[str]]]:
    found = rules.visible(actor, StandingGrant, "approvals.view").filter(pk__in=standing_grants.standing(workspace_id).values("pk"))
    return [
        (each, tool_name(each.tool), [conditions.said(one) for one in standing_grants.asks(each, actor)])
        for each in found.select_related("owner", "kept__key").order_by("expires_at")
    ]


def _asked(actor: Actor, workspace_id: UUID) -> list[AskedFor]:
    found = rules.visible(actor, AskedFor, "approvals.view").filter(workspace_id=workspace_id)
    return list(found.select_related("agent", "last_run").order_by("-last_at")[:50])


def _lines(of: PolicySet) -> list[Line]:
    return lines(list(of.rules.select_related("group").order_by("position")))


def _matched(actor: Actor, workspace_id: UUID) -> dict[UUID, int]:
    """How many actions of the last seven days each rule was the first to match, whatever version it stood in."""
    found = rules.visible(actor, ProposedAction, "approvals.view").filter(
        run__workspace_id=workspace_id, proposed_at__gte=clock.now() - timedelta(days=COUNTED)
    )
    return dict(found.order_by().values_list("policy__key").annotate(times=Count("pk")))


def _history(actor: Actor, workspace_id: UUID) -> list[dict[str, Any]]:
    found = list(_versions(actor).filter(workspace_id=workspace_id)[:VERSIONS])
    texts = vault.shown(each.why_id for each in found if each.why_id)
    second = policy_changes.confirmed(workspace_id)
    return [
        {"of": each, "second": second.get(each.version, ""), "why": plain(texts[each.why_id].text) if each.why_id in texts else ""}
        for each in found
    ]
