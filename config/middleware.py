"""What every response carries, and the line in the log for each request."""

import logging
import secrets
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

logger = logging.getLogger("handrail.request")
Handler = Callable[[HttpRequest], HttpResponse]


class RequestLog:
    """One line a request: method, path, status, milliseconds, id. Never the query, a header or the body."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        request.id = secrets.token_hex(8)
        response = self.get_response(request)
        response.headers["X-Request-Id"] = request.id
        if not request.path.startswith(("/static/", "/healthz", "/readyz")) or response.status_code >= 500:
            told = {"status": response.status_code, "ms": round((time.perf_counter() - started) * 1000, 1), "request": request.id}
            logger.log(_level(response), "%s %s", request.method, request.path, extra=told)
        return response


class SafeHeaders:
    """The headers that Django and django-csp have no setting for. A view may set its own Cache-Control."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        for name, value in SAFE_HEADERS.items():
            response.headers.setdefault(name, value)
        return response


SAFE_HEADERS = {
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=(), display-capture=(), browsing-topics=()",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",  # pages show what only this reader may see; no cache, and no back button after signing out, keeps them
}


def _level(response: HttpResponse) -> int:
    return logging.ERROR if response.status_code >= 500 else logging.INFO
