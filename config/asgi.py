"""The door for HTTP and WebSockets; any ASGI server can serve `application`.

Long-lived streams (`runs.routing`) go to Channels consumers, all else over HTTP to Django.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("DATABASE_POOL", "20")  # a web process has many short-lived threads; workers and commands have one connection each

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402  these need the apps to be ready
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import WebsocketDenier  # noqa: E402
from django.conf import settings  # noqa: E402
from django.http.request import validate_host  # noqa: E402
from django.urls import URLPattern, re_path  # noqa: E402

from approvals import routing as approvals_routing  # noqa: E402
from config.middleware import SAFE_HEADERS  # noqa: E402
from runs.routing import http_urlpatterns, websocket_urlpatterns  # noqa: E402

Scope, Message = dict[str, Any], dict[str, Any]
Receive, Send = Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

TOO_LARGE = b'{"type":"about:blank","title":"The request is too large.","status":413,"detail":"Send at most %d bytes in one request."}'


class BodyLimit:
    """Refuses a request whose body is over `limit` bytes, announced or not, before anything reads it.

    For any server that hands a body on as it comes. Daphne does not; `config.web` holds it to the same while it gathers.
    """

    def __init__(self, inner: Application, limit: int) -> None:
        self.inner, self.limit = inner, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        announced = header(scope, b"content-length")
        if announced.isdigit() and int(announced) > self.limit:
            return await self._refuse(send)
        seen, answered = 0, False

        async def counted() -> Message:
            nonlocal seen
            message = await receive() if seen <= self.limit else {}
            seen += len(message.get("body", b""))
            # to whoever reads, a body that is too long ends as if the caller had gone
            return message if seen <= self.limit else {"type": "http.disconnect"}

        async def answer(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        await self.inner(scope, counted, answer)
        if seen > self.limit and not answered:
            await self._refuse(send)
        return None

    async def _refuse(self, send: Send) -> None:
        headers, body = too_large(self.limit)
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def too_large(limit: int = settings.BODY_MAX) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Headers and body of the answer to a request whose body is over the limit."""
    return [(b"content-type", b"application/problem+json"), (b"connection", b"close"), *safe_headers()], TOO_LARGE % limit


class SameOrigin:
    """Lets a WebSocket in from our own pages only.

    Browsers send cookies along with a socket that any page opens, but always name that page in `Origin`. A program names none; it is
    let in only if it brings a key of its own, so that a cookie never speaks for it.
    """

    def __init__(self, inner: Application) -> None:
        self.inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        welcome = is_same_origin(header(scope, b"origin"), header(scope, b"host"), bool(header(scope, b"authorization")))
        return await (self.inner if welcome else WebsocketDenier.as_asgi())(scope, receive, send)


def is_same_origin(origin: str, host: str, has_key: bool) -> bool:
    """Pure. `host` is what the browser asked for, with its port."""
    if not origin:
        return has_key
    try:
        asked, page = urlsplit(f"//{host}"), urlsplit(origin)
        ours = page.netloc.lower() == host.lower() and page.scheme in ("http", "https")
        return (ours and validate_host(asked.hostname or "", settings.ALLOWED_HOSTS)) or origin.lower() == settings.HANDRAIL_URL.lower()
    except ValueError:
        return False


def header(scope: Scope, name: bytes) -> str:
    """The value of a header, or an empty text."""
    return next((value.decode("latin-1") for key, value in scope.get("headers", ()) if key.lower() == name), "")


def safe_headers() -> list[tuple[bytes, bytes]]:
    """The headers that Django's middleware puts on its responses, for those that never pass through it."""
    directives = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]
    policy = "; ".join(f"{name} {' '.join(sources)}" for name, sources in directives.items())
    fixed = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": settings.SECURE_REFERRER_POLICY}
    return [(name.lower().encode(), value.encode()) for name, value in (fixed | SAFE_HEADERS).items()]


def with_session(route: URLPattern) -> URLPattern:
    """A stream's route, whose consumer finds the session and its user in the scope."""
    return URLPattern(route.pattern, with_safe_headers(AuthMiddlewareStack(route.callback)), route.default_args, route.name)


def with_safe_headers(inner: Application) -> Application:
    """Puts the safe headers on a stream, except those that it sets itself."""
    safe = safe_headers()

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                named = {name.lower() for name, _ in own}
                message = message | {"headers": own + [each for each in safe if each[0] not in named]}
            await send(message)

        await inner(scope, receive, send_safely)

    return application


http = URLRouter([*map(with_session, http_urlpatterns), re_path(r"", django_application)])
sockets = [*websocket_urlpatterns, *approvals_routing.websocket_urlpatterns, re_path(r"", WebsocketDenier.as_asgi())]
websocket = AuthMiddlewareStack(URLRouter(sockets))
application = ProtocolTypeRouter({"http": BodyLimit(http, settings.BODY_MAX), "websocket": SameOrigin(websocket)})
