"""Signing in and out, the theme."""

from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from access import demo, second_factors, sessions, sso
from access.errors import Refusal
from access.forms import SignIn
from access.lockout import WAIT, Tries
from access.models import Workspace
from access.second_views import next_of
from access.sessions import Half, Refused
from config import clock

YEAR = 60 * 60 * 24 * 365


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    if request.headers.get("HX-Request"):  # the session ended while a page was open: the whole page goes, not a part of it
        return HttpResponse(headers={"HX-Redirect": request.get_full_path()})
    if request.method != "POST":
        return redirect(next_of(request)) if request.actor.kind == "human" else _page(request, SignIn())
    if "password" not in settings.HANDRAIL_SIGN_IN:
        raise Http404
    form = SignIn(request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    got = sessions.by_password(request, **form.cleaned_data)
    if isinstance(got, Half):
        return redirect(f"{reverse('access:second')}?{urlencode({'next': next_of(request)})}")
    return _wrong(request, form, got) if isinstance(got, Refused) else redirect(next_of(request))


@require_POST
def sign_in_by_passkey(request: HttpRequest) -> HttpResponse:
    alone = "passkey" in settings.HANDRAIL_SIGN_IN
    half = None if alone else sessions.half(request)  # whose password was right: a passkey of theirs is the second step still
    if not alone and half is None:
        raise Http404
    got = sessions.by_passkey(request, said=request.POST.get("credential", ""), after=half)
    return _wrong(request, SignIn(), got, by="passkey") if isinstance(got, Refused) else redirect(next_of(request))


def _wrong(request: HttpRequest, form: SignIn, got: Refused, by: str = "password") -> HttpResponse:
    """What was typed as an e-mail stays; what is left to try is the same for an account that is not there."""
    until = got.tries.until
    response = _page(request, form, status=429 if until else 422, tries=got.tries, by=by)
    if until:
        response.headers["Retry-After"] = str(max(int((until - clock.now()).total_seconds()), 1))
    return response


@require_POST
def sign_in_as(request: HttpRequest) -> HttpResponse:
    user = demo.person(request.POST.get("as", "")) if demo.is_open(request) else None
    if user is None:
        raise Http404
    sessions.begin(request, user, how=sessions.DEMO)
    return redirect(next_of(request))


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    sessions.end(request)
    messages.info(request, "You are signed out.")
    return redirect("access:sign_in")


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """For those without script; with it, static/js/theme.js sets the same cookie."""
    response = HttpResponseRedirect(next_of(request))
    chosen = request.POST.get("theme", "")
    if chosen in ("light", "dark", "system"):
        response.set_cookie("theme", chosen, max_age=YEAR, samesite="Lax", secure=request.is_secure())
    return response


def sign_in_page(request: HttpRequest, *, status: int, sso_error: Refusal) -> HttpResponse:
    """The same page, which says what came of single sign-on."""
    return _page(request, SignIn(), status=status, sso_error=sso_error)


def _page(
    request: HttpRequest,
    form: SignIn,
    status: int = 200,
    tries: Tries | None = None,
    by: str = "",
    sso_error: Refusal | None = None,
) -> HttpResponse:
    context = {
        "form": form,
        "tries": tries,
        "wrong": by or ("password" if form.is_bound else ""),
        "sso_error": sso_error,
        "sso": sso.name() if sso.is_offered() else "",
        "passkeys": "passkey" in settings.HANDRAIL_SIGN_IN and second_factors.can_have_passkeys(request),
        "passkeys_at": _passkeys_at(request),
        "passwords": "password" in settings.HANDRAIL_SIGN_IN,
        "mail": settings.HANDRAIL_MAIL,
        "minutes": int(WAIT.total_seconds() // 60),
        "next": next_of(request),
        "workspace": _only_workspace(),
        "demo_people": demo.people() if demo.is_open(request) else [],
        "hours": settings.SESSION_COOKIE_AGE // 3600,
    }
    return render(request, "access/sign_in.html", context, status=status)


def _passkeys_at(request: HttpRequest) -> str:
    """Where a passkey of the demo can be used, if that is not here."""
    if "passkey" not in settings.HANDRAIL_SIGN_IN:
        return ""
    return second_factors.at_a_name(request, f"{reverse('access:sign_in')}?{urlencode({'next': next_of(request)})}")


def _only_workspace() -> Workspace | None:
    found = list(Workspace.objects.all()[:2])
    return found[0] if len(found) == 1 else None
