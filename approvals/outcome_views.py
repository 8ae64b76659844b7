"""The page of an unknown outcome: what was tried and what the look-ups gave, and the form in which a person says what happened.

A GET changes nothing. Each refusal is shown in place, with what was typed.
"""

from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from django.views.decorators.vary import vary_on_headers

from access.errors import Refusal
from approvals import execution, presenting, unknown
from approvals.errors import NoteNeeded, ReferenceNeeded
from approvals.forms import OutcomeForm
from approvals.models import ProposedAction
from approvals.unknown import Typed, Unknown
from artifacts.rendition import plain

NEEDED = {NoteNeeded: "note", ReferenceNeeded: "reference"}


@never_cache
@vary_on_headers("HX-Request")
@require_http_methods(["GET", "HEAD", "POST"])
def outcome(request: HttpRequest, action_id: UUID) -> HttpResponse:
    """An action whose answer was lost. One whose outcome was never unknown has a page of its own."""
    action = presenting.find(request.actor, action_id)
    if request.method == "POST":
        return _say(request, action)
    known = unknown.read(action, request.actor)
    if known.since is None:
        return HttpResponseRedirect(reverse("approvals:action", args=(action.pk,)))
    return _page(request, known)


def _say(request: HttpRequest, action: ProposedAction) -> HttpResponse:
    """Record what a person says, once; or say why not."""
    form = OutcomeForm(request.POST)
    typed = Typed(*(request.POST.get(name, "") for name in ("outcome", "note", "reference")))
    if not form.is_valid():
        return _refused(request, action, Typed(typed.outcome, typed.note, typed.reference, _wrong(form), next(iter(form.errors))), 422)
    try:
        execution.resolve(action, by=request.actor, **form.cleaned_data)
    except tuple(NEEDED) as error:
        return _refused(request, action, Typed(typed.outcome, typed.note, typed.reference, error.detail, NEEDED[type(error)]), error.status)
    except Refusal as error:
        return _refused(request, action, Typed(typed.outcome, typed.note, typed.reference, refusal=error), error.status, error)
    if request.headers.get("HX-Request") != "true":
        return HttpResponseRedirect(reverse("approvals:outcome", args=(action.pk,)), status=303)
    return _page(request, unknown.read(presenting.find(request.actor, action.pk), request.actor), focus="note")


def _wrong(form: OutcomeForm) -> str:
    too_long = [name for name in ("note", "reference") if name in form.errors]
    return f"The {too_long[0]} is too long." if too_long else "Choose what happened."


def _refused(request: HttpRequest, action: ProposedAction, typed: Typed, status: int, error: Refusal | None = None) -> HttpResponse:
    known = unknown.read(presenting.find(request.actor, action.pk), request.actor, typed=typed)
    if error is not None and known.since is None:
        raise error  # there is no page to show it on
    return _page(request, known, focus="refused" if error else "error", status=status)


def _page(request: HttpRequest, known: Unknown, *, focus: str = "", status: int = 200) -> HttpResponse:
    """The whole page; for htmx its two columns."""
    room = "recovery" if known.may else "inbox"
    context = {"known": known, "action": known.action, "focus": focus, "room": room, "title": plain(known.subject)}
    part = request.headers.get("HX-Request") == "true" and request.method == "POST"
    if part:
        return render(request, "approvals/_unknown_reply.html", context | {"count": presenting.count(request.actor)}, status=status)
    return render(request, "approvals/unknown.html", context, status=status)
