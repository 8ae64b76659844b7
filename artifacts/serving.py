"""A payload's bytes as a download: never held in memory whole, in ranges if asked for, and so that no browser runs any of it."""

import re
from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header

from access import problems
from access.errors import BadInput
from artifacts import vault
from artifacts.models import Payload


class NoSuchRange(BadInput):
    """There is nothing in this range."""

    status = 416


_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


def download(request: HttpRequest, payload: Payload, name: str) -> HttpResponseBase:
    """200 with all of it, 206 with the range that was asked for, 416 if there is no such; Erased before anything is sent."""
    asked = _asked(request, payload)
    if asked is None:
        problem = problems.as_json(NoSuchRange(size=payload.size))
        answer: HttpResponseBase = HttpResponse(problem, content_type=problems.MEDIA_TYPE, status=416)
        answer.headers["Content-Range"] = f"bytes */{payload.size}"
    else:
        start, end = asked
        pieces = iter(()) if request.method == "HEAD" else vault.stream(payload, start, end)
        flow = _flow(pieces) if isinstance(request, ASGIRequest) else pieces
        answer = StreamingHttpResponse(flow, content_type="application/octet-stream")
        answer.headers["Content-Length"] = str(end - start)
        if "Range" in request.headers and (start, end) != (0, payload.size):
            answer.status_code = 206
            answer.headers["Content-Range"] = f"bytes {start}-{end - 1}/{payload.size}"
    answer.headers["Accept-Ranges"] = "bytes"
    answer.headers["ETag"] = _etag(payload)
    answer.headers["Cache-Control"] = "private, no-store"
    answer.headers["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Content-Security-Policy"] = "sandbox; default-src 'none'; frame-ancestors 'none'"
    return answer


def _asked(request: HttpRequest, payload: Payload) -> tuple[int, int] | None:
    """From where up to where; None if there is nothing there. Several ranges, or what is no range, means all of it (RFC 9110)."""
    found = _RANGE.fullmatch(request.headers.get("Range", "").replace(" ", ""))
    if found is None or found[0] == "bytes=-" or request.headers.get("If-Range", _etag(payload)) != _etag(payload):
        return 0, payload.size
    first, last = found.groups()
    if not first:  # the last so many
        return (max(0, payload.size - int(last)), payload.size) if int(last) and payload.size else None
    start, end = int(first), min(int(last) + 1 if last else payload.size, payload.size)
    if last and int(last) < int(first):
        return 0, payload.size
    return (start, end) if start < payload.size else None


def _etag(payload: Payload) -> str:
    return f'"{payload.commitment}"'


async def _flow(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The same, for a server that waits for nobody: reading is done beside its loop."""
    following = sync_to_async(next, thread_sensitive=False)
    while piece := await following(pieces, b""):
        yield piece
