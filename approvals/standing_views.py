"""Standing grants on pages: made from a decided action or from the policy, after a back-test; read; revoked."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from access import places, rules
from access.errors import Refusal
from approvals import conditions, decisions, exact, policy_forms, standing_grants
from approvals.decisions import Yes
from approvals.models import ProposedAction, StandingGrant
from approvals.policy_words import choices, tool_name
from approvals.standing_grants import Wanted
from artifacts import vault
from artifacts.redaction import plain

SHOWN = 50


@never_cache
@require_safe
def grant(request: HttpRequest, grant_id: UUID) -> HttpResponse:
    """One standing grant, and what it covered."""
    found = rules.get(request.actor, StandingGrant, grant_id, "approvals.view", related=("owner", "revoked_by", "kept__key"))
    uses = list(found.uses.select_related("action__run").order_by("-number"))
    texts = vault.shown(use.action.subject_id for use in uses)
    context = {
        "found": found,
        "is_open": standing_grants.standing(found.workspace_id).filter(pk=found.pk).exists(),
        "tool": tool_name(found.tool),
        "asks": [conditions.said(each) for each in standing_grants.asks(found, request.actor)],
        "uses": [(use, plain(texts[use.action.subject_id].text)) for use in uses],
        "may": request.actor.user_id == found.owner_id or rules.can(request.actor, "policies.manage", found.workspace_id),
    }
    return render(request, "approvals/standing_grant.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """The form. Posted, it shows what it would have covered; posted with that, it stands."""
    action = _action(request)
    workspace_id = places.place(request, "approvals.decide", within=action.workspace_id if action else None).id
    if request.method != "POST":
        return _form(request, _empty(request, action), action)
    typed = policy_forms.typed(request.POST)
    fields = {name: request.POST.get(name, "")[:40] for name in ("budget", "minutes")}
    given: dict[str, Any] = {"tool": typed.fields["tool"], **fields, "conditions": _left(request, action, typed.conditions)}
    try:
        of = _wanted(workspace_id, given)
        if request.POST.get("do") == "make":
            made = standing_grants.make(of, by=request.actor, shown=request.POST.get("tried", ""), made_from=action)
            messages.info(request, "It stands from now.")
            return redirect("approvals:standing_grant", made.pk)
        return _form(request, given, action, of=of)
    except Refusal as error:
        return _form(request, given, action, error=error)


@never_cache
@require_POST
def revocation(request: HttpRequest, grant_id: UUID) -> HttpResponse:
    found = rules.get(request.actor, StandingGrant, grant_id, "approvals.view")
    standing_grants.revoke(found, by=request.actor)
    messages.info(request, "Revoked. It covers nothing more.")
    return redirect("approvals:standing_grant", found.pk)


def _action(request: HttpRequest) -> ProposedAction | None:
    """The decided action that it is made from, if one is named."""
    named = request.POST.get("action") or request.GET.get("action")
    return (
        rules.get(request.actor, ProposedAction, named, "approvals.decide", related=("policy__group", "run__agent", "superseded_by"))
        if named
        else None
    )


def _empty(request: HttpRequest, action: ProposedAction | None) -> dict[str, Any]:
    asks: list[dict[str, str]] = []
    # who sees its arguments in full may have them filled in
    if action is not None and isinstance(decisions.may_read(action, request.actor), Yes):
        asks = standing_grants.suggested(action, exact.whole(action).arguments)
    return {"tool": action.tool if action else request.GET.get("tool", "")[:60], "budget": "20", "minutes": "60", "conditions": asks}


def _left(request: HttpRequest, action: ProposedAction | None, rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The conditions without those that were filled in and ask about nothing any more: so they are taken out. Anything else that says
    something and not what it asks about stays, to be refused: without it the grant would cover more than somebody meant.
    """
    if all(each["what"] for each in rows):
        return list(rows)
    filled = {(conditions.short(each["path"]), each["value"]) for each in _empty(request, action)["conditions"]}
    return [each for each in rows if each["what"] or (conditions.short(each["path"].strip()), each["value"]) not in filled]


def _wanted(workspace_id: UUID, given: dict[str, Any]) -> Wanted:
    numbers = [int(each) if each.isascii() and each.isdigit() and len(each) < 9 else 0 for each in (given["budget"], given["minutes"])]
    lasts = timedelta(minutes=numbers[1])
    return standing_grants.wanted(workspace_id, tool=given["tool"], asks=given["conditions"], budget=numbers[0], lasts=lasts)


def _form(
    request: HttpRequest, given: dict[str, Any], action: ProposedAction | None, *, of: Wanted | None = None, error: Refusal | None = None
) -> HttpResponse:
    blank = min(policy_forms.BLANK, conditions.MAX_CONDITIONS - len(given["conditions"]))
    context: dict[str, Any] = {
        "place": places.place(request, "approvals.decide", within=action.workspace_id if action else None),
        "given": given,
        "action": action,
        "why_never": standing_grants.why_never(action) if action else "",
        "error": error,
        "rows": [*given["conditions"], *({} for _ in range(blank))],
        "tools": choices(given["tool"]),
        "whats": conditions.WHATS,
        "tests": conditions.TESTS,
        "values": conditions.VALUES,
    }
    if of is not None:
        tried = standing_grants.back_test(of, request.actor)
        context |= {"tried": tried, "shown": tried.covered[:SHOWN], "token": standing_grants.token(of, request.actor)}
    return render(request, "approvals/standing_new.html", context, status=error.status if error else 200)
