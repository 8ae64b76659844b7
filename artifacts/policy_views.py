"""Redaction policies: what is in force and was, a new one that is tried on a sample before it is kept, and taking one back."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from access import paging, places, reasons, rules, second_admin, step_up
from access.change_models import AskedChange
from access.errors import Refusal
from access.ids import as_number
from access.places import Place
from artifacts import redaction_changes, redaction_policies
from artifacts.detectors import KINDS
from artifacts.models import Label, RedactionPolicy
from artifacts.redaction_policies import About
from artifacts.rendition import WORDS

MANAGE, READ = "redaction.manage", ("redaction.manage", "audit.view")
MAX_SAMPLE = 64 * 1024
SAMPLE = '{\n  "customer": {"name": "Marta Oyelaran", "plan": "pro"},\n  "notes": ["Asked for a call."]\n}'
FIELDS = ("event", "tool", "path", "kind", "why", "sample", "label", "of_event", "of_tool")


@never_cache
@require_safe
def policies(request: HttpRequest) -> HttpResponse:
    return _list(request, places.place(request, *READ))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """A form; sent, it shows what the policy would do to a sample, and keeps it only if that is asked for."""
    where = places.place(request, MANAGE)
    typed = {name: (request.POST if request.method == "POST" else {}).get(name, "")[: MAX_SAMPLE + 1] for name in FIELDS}
    context: dict[str, Any] = {"typed": typed, "base": redaction_policies.version(where.id)}
    if request.method != "POST":
        return _form(request, where, context | {"typed": typed | {"kind": "secret", "sample": SAMPLE, "label": "internal"}})
    save = request.POST.get("do") == "save"
    if save:
        step_up.require(request)
    try:
        fields = redaction_policies.checked(typed["event"], typed["tool"], typed["path"], typed["kind"])
        if save:
            made = redaction_changes.make(where.id, by=request.actor, why=typed["why"], base=_base(request), **fields)
            if isinstance(made, AskedChange):
                return _waits(request, made)
            return redirect(reverse("artifacts:redaction") + where.suffix)
        draft = RedactionPolicy(**fields)
        context["before"], context["after"] = redaction_policies.tried(
            where.id,
            typed["sample"][:MAX_SAMPLE],
            label=typed["label"] if typed["label"] in Label.values else "internal",
            of=About(typed["of_event"].strip() or "tool.ended", typed["of_tool"].strip()),
            draft=draft,
        )
    except Refusal as refusal:
        return _form(request, where, context | {"error": refusal}, status=refusal.status)
    return _form(request, where, context)


@never_cache
@require_POST
def withdrawal(request: HttpRequest, policy_id: UUID) -> HttpResponse:
    row = rules.get(request.actor, RedactionPolicy, policy_id, MANAGE)
    where = places.place(request, MANAGE, within=row.workspace_id)
    step_up.require(request)
    try:
        waits = redaction_changes.withdraw(row, by=request.actor, why=request.POST.get("why", ""), base=_base(request))
    except Refusal as refusal:
        return _list(request, where, error=refusal, at=row.pk, why=request.POST.get("why", "")[: 2 * reasons.MAX_REASON])
    return _waits(request, waits) if waits else redirect(reverse("artifacts:redaction") + where.suffix)


def _waits(request: HttpRequest, change: AskedChange) -> HttpResponse:
    messages.info(request, "Asked. Nothing changes until another admin confirms it.")
    return redirect("access:asked", change.pk)


def _base(request: HttpRequest) -> int:
    number = as_number(request.POST.get("base", ""))
    return -1 if number is None else number


def _list(request: HttpRequest, where: Place, *, error: Refusal | None = None, at: UUID | None = None, why: str = "") -> HttpResponse:
    rows = list(RedactionPolicy.objects.filter(workspace_id=where.id).select_related("made_by", "withdrawn_by").order_by("number"))
    said = reasons.shown(each for row in rows for each in (row.why, row.withdrawn_why))
    told = [(row, WORDS.get(row.kind, ""), said.get(row.why, ""), said.get(row.withdrawn_why, "")) for row in rows]
    context = {
        "place": where,
        "in_force": [each for each in told if each[0].withdrawn_at is None],
        "past": paging.of_list([each for each in reversed(told) if each[0].withdrawn_at], request.GET.get("page", "")),
        "kept": paging.kept(where.suffix),
        "version": redaction_policies.version(where.id),
        "may": rules.can(request.actor, MANAGE, where.id),
        "waits": second_admin.waits(where.id, redaction_changes.MADE),
        "error": error,
        "at": at,
        "typed": why,
        "room": "permissions",
    }
    return render(request, "artifacts/policies.html", context, status=error.status if error else 200)


def _form(request: HttpRequest, where: Place, context: dict[str, Any], status: int = 200) -> HttpResponse:
    needed = second_admin.is_needed(where.id, redaction_changes.MADE)
    context["seconds"] = second_admin.seconds(where.id, redaction_changes.MADE, request.actor.user_id) if needed else []
    kinds = [(kind, WORDS[kind]) for kind in KINDS]
    context |= {"place": where, "kinds": kinds, "labels": Label.choices, "room": "permissions"}
    return render(request, "artifacts/policy.html", context, status=status)
