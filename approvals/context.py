"""What every page's top bar shows of this app."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from access.rules import Actor
from approvals import inbox, stops


def inbox_count(request: HttpRequest) -> dict[str, Any]:
    """`inbox_count`: how many actions wait for this person, counted only if the page draws it; `frozen_now`: what is frozen there."""
    actor = getattr(request, "actor", None)
    return {
        "inbox_count": SimpleLazyObject(lambda: _waiting(request)),
        "frozen_now": SimpleLazyObject(lambda: _frozen(actor)),
    }


def _frozen(actor: Actor | None) -> list[stops.Freezing]:
    return stops.now(actor) if actor is not None and actor.is_known else []


def _waiting(request: HttpRequest) -> int:
    actor = getattr(request, "actor", None)
    return inbox.waiting_count(actor) if actor is not None and actor.somewhere("approvals.view") else 0
