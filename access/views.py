"""Signing in and out, the theme."""

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from access import demo, sessions
from access.forms import SignIn
from access.lockout import WAIT, Tries
from access.models import Workspace
from access.sessions import Refused, SignedIn
from config import clock

YEAR = 60 * 60 * 24 * 365


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    if request.headers.get("HX-Request"):  # the session ended while a page was open: the whole page goes, not a part of it
        return HttpResponse(headers={"HX-Redirect": request.get_full_path()})
    if request.method != "POST":
        return redirect(_next(request)) if request.actor.kind == "human" else _page(request, SignIn())
    form = SignIn(request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    got = sessions.by_password(request, **form.cleaned_data)
    return redirect(_next(request)) if isinstance(got, SignedIn) else _wrong(request, form, got)


def _wrong(request: HttpRequest, form: SignIn, got: Refused) -> HttpResponse:
    """What was typed as an e-mail stays; what is left to try is the same for an account that is not there."""
    until = got.tries.until
    response = _page(request, form, status=429 if until else 422, tries=got.tries)
    if until:
        response.headers["Retry-After"] = str(max(int((until - clock.now()).total_seconds()), 1))
    return response


@require_POST
def sign_in_as(request: HttpRequest) -> HttpResponse:
    user = demo.person(request.POST.get("as", "")) if demo.is_open(request) else None
    if user is None:
        raise Http404
    sessions.begin(request, user, how=sessions.DEMO)
    return redirect(_next(request))


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    sessions.end(request)
    messages.info(request, "You are signed out.")
    return redirect("access:sign_in")


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """For those without script; with it, static/js/theme.js sets the same cookie."""
    response = HttpResponseRedirect(_next(request))
    chosen = request.POST.get("theme", "")
    if chosen in ("light", "dark", "system"):
        response.set_cookie("theme", chosen, max_age=YEAR, samesite="Lax", secure=request.is_secure())
    return response


def _page(request: HttpRequest, form: SignIn, status: int = 200, tries: Tries | None = None) -> HttpResponse:
    context = {
        "form": form,
        "tries": tries,
        "minutes": int(WAIT.total_seconds() // 60),
        "next": _next(request),
        "workspace": _only_workspace(),
        "demo_people": demo.people() if demo.is_open(request) else [],
        "hours": settings.SESSION_COOKIE_AGE // 3600,
    }
    return render(request, "access/sign_in.html", context, status=status)


def _only_workspace() -> Workspace | None:
    found = list(Workspace.objects.all()[:2])
    return found[0] if len(found) == 1 else None


def _next(request: HttpRequest) -> str:
    """Where the person wanted to go, if it is here; else the front page."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    here = url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure())
    return wanted if here and not wanted.startswith("/sign-") else settings.LOGIN_REDIRECT_URL
