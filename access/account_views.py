"""A person's own account: where they are signed in, their password, their second factors."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from access import open_sessions, passwords, second_factors, step_up
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
        messages.success(request, "That session has ended. Whatever it had open is closed.")
    else:
        messages.info(request, "That session had ended already.")
    return redirect("access:account")


@require_POST
def end_other_sessions(request: HttpRequest) -> HttpResponse:
    _themselves(request)
    ended = open_sessions.end_other_ones(request.user, request)
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


@never_cache
@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
def codes(request: HttpRequest) -> HttpResponse:
    """Setting up an app that shows codes; a right code of it turns it on."""
    _themselves(request)
    step_up.require(request)
    setup, error = second_factors.setup(request, request.user), None
    if request.method == "POST":
        try:
            return _recovery(request, second_factors.take_codes(request, request.user, request.POST.get("code", "")))
        except Refusal as refusal:
            error = refusal
    return render(request, "access/codes.html", {"setup": setup, "error": error}, status=error.status if error else 200)


@never_cache
@require_POST
def recovery_codes(request: HttpRequest) -> HttpResponse:
    """New ones, in place of those there are."""
    _themselves(request)
    step_up.require(request)
    if not second_factors.held(request.user).any:
        return redirect("access:account")
    return _recovery(request, second_factors.renew_recovery(request.user))


@require_POST
def passkey_options(request: HttpRequest) -> HttpResponse:
    _themselves(request)
    step_up.require(request)
    return JsonResponse(second_factors.new_passkey_options(request.user))


@require_POST
def passkeys(request: HttpRequest) -> HttpResponse:
    """One more, which the browser has just made."""
    _themselves(request)
    step_up.require(request)
    try:
        second_factors.take_passkey(request.user, request.POST.get("name", ""), request.POST.get("credential", ""))
    except Refusal as error:
        return page(request, status=error.status, passkey_error=error)
    alone = "passkey" in settings.HANDRAIL_SIGN_IN
    use = "You can sign in with it alone." if alone else "It is asked for after your password."
    messages.success(request, f"Your passkey is kept. {use}")
    return redirect("access:account")


@require_POST
def remove_factor(request: HttpRequest, factor_id: int) -> HttpResponse:
    _themselves(request)
    step_up.require(request)
    if second_factors.remove(request.user, factor_id):
        messages.success(request, "It is removed, and opens nothing any more.")
    else:
        messages.info(request, "It was removed already.")
    return redirect("access:account")


def _recovery(request: HttpRequest, fresh: list[str]) -> HttpResponse:
    return render(request, "access/recovery_codes.html", {"fresh": fresh})


def page(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    context = {
        "person": request.user,
        "sessions": open_sessions.of(request.user, request),
        "has_password": request.user.has_usable_password(),
        "has": second_factors.held(request.user),
        "passkeys": second_factors.can_have_passkeys(request),
        "passkeys_at": second_factors.at_a_name(request, f"{reverse('access:account')}#factors"),
        **more,
    }
    return render(request, "access/account.html", context, status=status)


def _themselves(request: HttpRequest) -> None:
    """A person, by their session; an agent has no account page."""
    if request.actor.kind != "human":
        raise NotSignedIn


def _counted(number: int, what: str) -> str:
    return f"{number or 'No'} {what}{'' if number == 1 else 's'}"
