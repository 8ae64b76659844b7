"""To the provider of single sign-on, and back."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from access import sso, views
from access.errors import NotSignedIn
from access.second_views import ask_again, next_of
from access.sso import SsoRefused


@never_cache
@require_safe
def begin(request: HttpRequest) -> HttpResponse:
    """A link, not a form: a form of ours may send nobody elsewhere. It changes nothing but this browser's own session."""
    what = "confirm" if request.GET.get("for") == "confirm" else "sign_in"
    if not sso.is_offered():
        raise Http404
    if what == "confirm" and request.actor.kind != "human":
        raise NotSignedIn
    try:
        return sso.begin(request, what=what, target=next_of(request))
    except SsoRefused as error:
        return _told(request, error)


@never_cache
@require_safe
def callback(request: HttpRequest) -> HttpResponse:
    if not sso.is_offered():
        raise Http404
    try:
        return redirect(sso.finish(request))
    except SsoRefused as error:
        return _told(request, error)


def _told(request: HttpRequest, error: SsoRefused) -> HttpResponse:
    if request.actor.kind == "human":
        return ask_again(request, target="/", method="get", error=error)
    return views.sign_in_page(request, status=error.status, sso_error=error)
