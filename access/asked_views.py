"""The page of a change that waits for a second admin, or of what became of it. Those of roles have a page of their own."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from access import places, reasons, roles, rules, second_admin, step_up
from access.change_models import AskedChange
from access.errors import Refusal
from access.places import Place

READ = "audit.view"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def asked(request: HttpRequest, asked_id: UUID) -> HttpResponse:
    """What one admin asked for. Posted: confirmed, refused with a reason, or withdrawn."""
    found = _found(request, asked_id, to_settle=request.method == "POST")
    right = second_admin.KINDS[found.kind].right
    here = places.place(request, right, READ, within=found.workspace_id)
    if request.method != "POST":
        return _drawn(request, here, found)
    step_up.require(request)
    try:
        return _settled(request, found)
    except Refusal as error:
        return _drawn(request, here, _found(request, asked_id, to_settle=False), error=error)


def _settled(request: HttpRequest, found: AskedChange) -> HttpResponse:
    match request.POST.get("do"):
        case "confirm":
            messages.info(request, second_admin.confirm(found, by=request.actor))
        case "refuse":
            second_admin.refuse(found, by=request.actor, why=request.POST.get("why", ""))
            messages.info(request, "You refused it. Nothing was changed.")
        case "withdraw":
            second_admin.withdraw(found, by=request.actor)
            messages.info(request, "You withdrew it. Nothing was changed.")
        case _:
            raise roles.ChangeOver("This form asks for nothing that can be done. Open the change again.")
    return redirect(reverse("access:asked", args=[found.pk]))


def _found(request: HttpRequest, asked_id: UUID, *, to_settle: bool) -> AskedChange:
    """For who holds the right that it is under; to read it, also for who reads the audit trail."""
    actor, given = request.actor, {"related": ("asked_by", "settled_by")}
    for name, kind in second_admin.KINDS.items() if actor.is_known else ():
        if rules.visible(actor, AskedChange, kind.right).filter(pk=asked_id, kind=name).exists():
            return rules.get(actor, AskedChange, asked_id, kind.right, **given)
    found = rules.get(actor, AskedChange, asked_id, READ, **given)
    return rules.get(actor, AskedChange, asked_id, second_admin.KINDS[found.kind].right, **given) if to_settle else found


def _drawn(request: HttpRequest, here: Place, change: AskedChange, error: Refusal | None = None) -> HttpResponse:
    kind = second_admin.KINDS[change.kind]
    others = second_admin.seconds(change.workspace_id, change.kind, change.asked_by_id)
    said = reasons.shown([change.why, change.answer])
    may = rules.can(request.actor, kind.right, change.workspace_id)
    context: dict[str, Any] = {
        "place": here,
        "change": change,
        "change_state": roles.state(change),
        "change_url": reverse("access:asked", args=[change.pk]),
        "title": kind.title,
        "parts": kind.told(change) if may else (),  # who reads the audit trail alone sees that it was asked for, and why
        "page": kind.page(change) + here.suffix if may else "",
        "change_why": said.get(change.why, ""),
        "change_answer": said.get(change.answer, ""),
        "mine": change.asked_by_id == request.actor.user_id,
        "may": may,
        "seconds": others,
        "error": error,
        "typed": request.POST.get("why", "")[: 2 * reasons.MAX_REASON],
        "room": "permissions",
    }
    return render(request, "access/asked.html", context, status=error.status if error else 200)
