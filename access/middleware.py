"""`request.actor`: who asks, for every page and every API call."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject

from access import keys, open_sessions
from access.rules import Actor, authenticate


class ActorMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.actor = SimpleLazyObject(lambda: actor_of(request))
        response = self.get_response(request)
        open_sessions.used(request)
        if "Authorization" in request.headers:
            keys.used(request.actor)  # after the answer: in no transaction of what the key was used for
        return response


def actor_of(request: HttpRequest) -> Actor:
    return authenticate(scope_of(request))


def scope_of(request: HttpRequest) -> dict[str, Any]:
    """A request as the scope that `authenticate` reads."""
    header = request.headers.get("Authorization")
    headers = [(b"authorization", header.encode("latin-1", "replace"))] if header is not None else []
    return {"headers": headers, "user": request.user, "session": request.session}
