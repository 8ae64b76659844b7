"""A Refusal as an RFC 9457 problem: the one shape of every error that leaves by the API, a stream or a socket."""

from typing import Any

import orjson

from access.errors import Refusal

MEDIA_TYPE = "application/problem+json"
NAMESPACE = "urn:handrail:problem:"


def problem(refusal: Refusal) -> dict[str, Any]:
    """`type` (a URN that does not change), `title`, `status`, `detail`, `what_next` if there is a way on, and what the refusal adds."""
    told = {"type": NAMESPACE + refusal.kind, "title": refusal.title, "status": refusal.status, "detail": refusal.detail}
    next_step = {"what_next": refusal.what_next} if refusal.what_next else {}
    return told | next_step | {name: value for name, value in refusal.extra.items() if name not in told}


def as_json(refusal: Refusal) -> bytes:
    """The problem as a JSON body."""
    return orjson.dumps(problem(refusal), default=str)
