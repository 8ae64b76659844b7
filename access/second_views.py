"""The second step of signing in, passkeys at the door, and showing again in the middle of a session that it is you."""

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from access import demo, passwords, second_factors, sessions, step_up
from access.errors import NotSignedIn, Refusal
from access.lockout import WAIT
from access.models import User
from access.passwords import WrongPassword
from access.second_factors import WrongCode, WrongPasskey
from access.sessions import Refused

OURS = "hr_"  # fields of the page that asks, beside those that it keeps
KEPT_MOST = 200  # fields


@never_cache
@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
def second(request: HttpRequest) -> HttpResponse:
    """The password was right: a code, a recovery code or a passkey is wanted too."""
    user = sessions.half(request)
    if user is None:
        return redirect(f"{reverse('access:sign_in')}?{urlencode({'next': next_of(request)})}")
    if request.method != "POST":
        return _second(request, user)
    got = sessions.by_code(request, user, code=request.POST.get("code", ""))
    return _second(request, user, got) if isinstance(got, Refused) else redirect(next_of(request))


@require_POST
def passkey_options(request: HttpRequest) -> HttpResponse:
    """What a browser is to sign to get in."""
    return JsonResponse(second_factors.passkey_options())


def next_of(request: HttpRequest) -> str:
    """Where the person wanted to go, if it is here; else the front page."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    return wanted if is_here(request, wanted) and not wanted.startswith("/sign-") else settings.LOGIN_REDIRECT_URL


def is_here(request: HttpRequest, wanted: str) -> bool:
    """A path within Handrail. What is no path would lead to wherever it is asked from, or be taken for the name of a page."""
    hosts, secure = {request.get_host()}, request.is_secure()
    return wanted.startswith("/") and url_has_allowed_host_and_scheme(wanted, allowed_hosts=hosts, require_https=secure)


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest) -> HttpResponse:
    """Show again that it is you. What was being done is in the form, and goes on when it has worked."""
    if request.actor.kind != "human":
        raise NotSignedIn
    if request.method != "POST":
        return ask_again(request, target=next_of(request), method="get", status=200)
    target, method = request.POST.get(f"{OURS}to", ""), request.POST.get(f"{OURS}method", "get")
    target = target if is_here(request, target) else settings.LOGIN_REDIRECT_URL
    try:
        how = _shown(request)
    except Refusal as error:
        return ask_again(request, target=target, method=method, error=error)
    step_up.shown_again(request, how=how)
    if method != "post":
        return redirect(target)
    return render(request, "access/go_on.html", {"target": target, "kept": _kept(request)})


@require_POST
def confirm_options(request: HttpRequest) -> HttpResponse:
    if request.actor.kind != "human":
        raise NotSignedIn
    return JsonResponse(second_factors.passkey_options(request.user))


def ask_again(request: HttpRequest, *, target: str, method: str, error: Refusal | None = None, status: int = 403) -> HttpResponse:
    """The page that asks, with the fields of the form that led here kept in it."""
    has, click = second_factors.held(request.user), _by_click(request)
    context = {
        "target": target,
        "method": method,
        "kept": _kept(request) if request.method == "POST" else [],
        "files": bool(request.FILES) if request.method == "POST" else False,
        "error": error,
        "has": has,
        "has_password": request.user.has_usable_password() and not click,
        "passkeys": bool(has.passkeys) and second_factors.can_have_passkeys(request),
        "demo": click,
        "sso": settings.HANDRAIL_SSO["name"] if request.actor.signed_in == sessions.SSO and settings.HANDRAIL_SSO else "",
        "minutes": int(step_up.FRESH.total_seconds() // 60),
    }
    by_htmx = request.headers.get("HX-Request") == "true"
    response = render(request, "access/confirm.html", context, status=200 if by_htmx else error.status if error else status)
    if by_htmx:  # in place of the whole page: a part of it could not hold the form
        response.headers["HX-Retarget"], response.headers["HX-Reswap"] = "body", "innerHTML show:window:top"
    return response


def _second(request: HttpRequest, user: User, got: Refused | None = None) -> HttpResponse:
    has = second_factors.held(user)
    context: dict[str, Any] = {
        "next": next_of(request),
        "has": has,
        "passkeys": bool(has.passkeys) and second_factors.can_have_passkeys(request),
        "tries": got.tries if got else None,
        "minutes": int(WAIT.total_seconds() // 60),
    }
    status = 200 if got is None else 429 if got.tries.until else 422
    return render(request, "access/second.html", context, status=status)


def _shown(request: HttpRequest) -> str:
    """How it was shown. A Refusal says why it was not."""
    said = request.POST.get("credential", "")
    if said:
        if second_factors.by_passkey(said).pk != request.user.pk:
            raise WrongPasskey
        return sessions.PASSKEY
    match request.POST.get(f"{OURS}with"):
        case "code":
            return _by_code(request)
        case "password":
            passwords.check(request, request.user, request.POST.get(f"{OURS}password", ""))
            return sessions.PASSWORD
        case "demo" if _by_click(request):
            return sessions.DEMO
    raise WrongPassword


def _by_code(request: HttpRequest) -> str:
    passwords.check_not_locked(request, request.user)
    kind = second_factors.check_code(request.user, request.POST.get(f"{OURS}code", ""))
    if not kind:
        passwords.count_wrong(request, request.user)
        raise WrongCode
    return kind


def _by_click(request: HttpRequest) -> bool:
    return request.actor.signed_in == sessions.DEMO and demo.is_open(request)


def _kept(request: HttpRequest) -> list[tuple[str, str]]:
    """The fields of the form that led here, but none of ours."""
    fields = ((name, value) for name, values in request.POST.lists() for value in values)
    ours = ("csrfmiddlewaretoken", "credential")
    return [(name, value) for name, value in fields if not name.startswith(OURS) and name not in ours][:KEPT_MOST]
