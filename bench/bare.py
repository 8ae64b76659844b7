"""The peer that figures are measured beside: the same server and settings, and nothing done.

`POST /empty` is an empty django-ninja call behind all of the house's middleware. `/stream` and any socket are viewers: kept in a set,
and sent each line that `POST /tell` makes, as it comes; no log, no database, no rights. `POST /end` ends them.
"""

import asyncio
from datetime import UTC, datetime

from config.asgi import BodyLimit, Receive, Scope, Send, django_application  # first, for it sets up Django

from django.conf import settings  # isort: skip
from django.http import HttpRequest  # isort: skip
from django.urls import path  # isort: skip
from ninja import NinjaAPI  # isort: skip

PADDING = "-" * 300  # a line is then about as long as one of the house's

api = NinjaAPI(urls_namespace="bare", docs_url=None, openapi_url=None)
viewers: set["Viewer"] = set()
told = 0


@api.post("/empty")
def empty(request: HttpRequest) -> dict[str, bool]:
    return {"ok": True}


urlpatterns = [path("", api.urls)]
django = BodyLimit(django_application, settings.BODY_MAX)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    address = scope.get("path", "")
    if scope["type"] == "websocket" or address == "/stream":
        await Viewer(scope, send).stay(receive)
    elif address in ("/tell", "/end"):
        await tell(end=address == "/end")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"seq":%d}' % told})
    else:
        await django(scope, receive, send)


async def tell(*, end: bool) -> None:
    global told
    told += not end
    line = '{"end":true}' if end else a_line()
    for viewer in list(viewers):
        await viewer.give(line, end=end)


def a_line() -> str:
    return f'{{"seq":{told},"hash":"{PADDING}","body":{{"at":"{datetime.now(UTC).isoformat()}"}}}}'


class Viewer:
    """Somebody who watches, by a socket or an event stream."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.send, self.socket, self.over = send, scope["type"] == "websocket", asyncio.Event()

    async def stay(self, receive: Receive) -> None:
        await self.greet()
        viewers.add(self)
        while (await receive())["type"] not in ("websocket.disconnect", "http.disconnect"):
            pass
        viewers.discard(self)

    async def greet(self) -> None:
        if self.socket:
            await self.send({"type": "websocket.accept"})
        else:
            headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
            await self.send({"type": "http.response.start", "status": 200, "headers": headers})
        await self.give(a_line(), end=False)

    async def give(self, line: str, *, end: bool) -> None:
        if self.socket:
            await self.send({"type": "websocket.send", "text": line})
        else:
            await self.send({"type": "http.response.body", "body": f"data: {line}\n\n".encode(), "more_body": not end})
        if end and self.socket:
            await self.send({"type": "websocket.close", "code": 1000})
