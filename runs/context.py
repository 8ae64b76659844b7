"""What every page's top bar shows of this app."""

from typing import Any

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.functional import SimpleLazyObject

from access.rules import Actor
from runs import cases, pushing


def recovery_count(request: HttpRequest) -> dict[str, Any]:
    """`recovery_count`: how many runs wait in Recovery for somebody to choose, counted only if the page draws it."""
    actor = getattr(request, "actor", None)
    return {"recovery_count": SimpleLazyObject(lambda: cases.waiting_count(actor) if actor is not None else 0)}


def drawn_count(actor: Actor) -> str:
    """The same, to replace what the top bar says."""
    html = render_to_string("_recovery_count.html", {"recovery_count": cases.waiting_count(actor)})
    return pushing.out_of_band("recovery-count", html)
