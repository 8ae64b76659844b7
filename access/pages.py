"""What people see instead of a page: refused, not found, broken. It says what did not happen and what to do next."""

import sys
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseServerError
from django.shortcuts import redirect, render
from django.template import loader
from django.urls import reverse

from access import second_views
from access.errors import AWAY, RETRY_AFTER, DatabaseAway, NotFound, NotSignedIn, Refusal
from access.step_up import StepUpNeeded


class RefusalPages:
    """Middleware: a Refusal that a page's view did not answer itself becomes a page with its status; the API answers its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, NotSignedIn):
            return to_sign_in(request)
        if isinstance(error, StepUpNeeded):
            method = "get" if request.method in ("GET", "HEAD") else "post"
            return second_views.ask_again(request, target=request.get_full_path(), method=method)
        return refused(request, error) if isinstance(error, Refusal) else None


def to_sign_in(request: HttpRequest) -> HttpResponse:
    """To the sign-in page, and afterwards back to the page that the person was on."""
    back = request.get_full_path() if request.method == "GET" and not _by_htmx(request) else _referer(request)
    target = f"{reverse('access:sign_in')}?{urlencode({'next': back})}"
    if request.method != "GET":
        messages.warning(request, "You were no longer signed in, so nothing was recorded. Sign in and do it again.")
    return HttpResponse(status=401, headers={"HX-Redirect": target}) if _by_htmx(request) else redirect(target)


def refused(request: HttpRequest, error: Refusal) -> HttpResponse:
    """The whole page of a refusal. static/js/swaps.js shows its words beside the form when htmx asked."""
    if isinstance(error, NotFound):
        return render(request, "404.html", {"refusal": error}, status=404)
    return render(request, "refused.html", {"refusal": error, "changed": request.method != "GET"}, status=error.status)


def broken(request: HttpRequest) -> HttpResponse:
    """500, or 503 while the database is away. Reads nothing that may be broken too: no person, no database."""
    told = {"request_id": getattr(request, "id", ""), "refusal": DatabaseAway()}
    if isinstance(sys.exception(), AWAY):
        return HttpResponse(loader.get_template("503.html").render(told), status=503, headers={"Retry-After": RETRY_AFTER})
    return HttpResponseServerError(loader.get_template("500.html").render(told))


def _by_htmx(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true"


def _referer(request: HttpRequest) -> str:
    """The path of the page a request came from; sign_in checks again that it is ours."""
    try:
        page = urlsplit(request.headers.get("HX-Current-URL") or request.headers.get("Referer") or "/")
    except ValueError:  # no address at all
        return "/"
    return page.path + (f"?{page.query}" if page.query else "")
