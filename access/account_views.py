"""A person's own account: where they are signed in, their password."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from access import audit, open_sessions, passwords, rules
from access.errors import NotSignedIn, Refusal


@never_cache
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    _themselves(request)
    return page(request)


@require_POST
def end_session(request: HttpRequest, session_id: UUID) -> HttpResponse:
    _themselves(request)
    if open_sessions.end(request.user, session_id):
        _written(request, "session_ended", ("session", session_id))
        messages.success(request, "That session has ended. Whatever it had open is closed.")
    else:
        messages.info(request, "That session had ended already.")
    return redirect("access:account")


@require_POST
def end_other_sessions(request: HttpRequest) -> HttpResponse:
    _themselves(request)
    ended = open_sessions.end_others(request.user, request)
    _written(request, "sessions_ended", ("user", request.user.pk), ended=ended)
    messages.success(request, f"{_counted(ended, 'other session')} ended. You are signed in here alone.")
    return redirect("access:account")


@sensitive_post_parameters("old", "new")
@require_POST
def change_password(request: HttpRequest) -> HttpResponse:
    _themselves(request)
    try:
        ended = passwords.change(request, old=request.POST.get("old", ""), new=request.POST.get("new", ""))
    except Refusal as error:
        return page(request, status=error.status, password_error=error)
    messages.success(request, f"Your password is changed. {_counted(ended, 'other session')} ended.")
    return redirect("access:account")


def page(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    context = {
        "person": request.user,
        "sessions": open_sessions.of(request.user, request),
        "has_password": request.user.has_usable_password(),
        **more,
    }
    return render(request, "access/account.html", context, status=status)


def _themselves(request: HttpRequest) -> None:
    """A person, by their session; an agent has no account page."""
    if request.actor.kind != "human":
        raise NotSignedIn


def _written(request: HttpRequest, verb: str, subject: tuple[str, object], **data: Any) -> None:
    actor = rules.person(request.actor.user_id)
    audit.record(actor, verb, workspace_id=next(iter(actor.grants), None), subject=subject, **data)


def _counted(number: int, what: str) -> str:
    return f"{number or 'No'} {what}{'' if number == 1 else 's'}"
