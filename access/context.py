"""What every page's top bar shows of this app."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from access import second_admin
from access.rules import NOBODY


def changes_count(request: HttpRequest) -> dict[str, Any]:
    """`changes_count`: how many changes wait for this person as second admin, counted only if the page draws it."""
    return {"changes_count": SimpleLazyObject(lambda: second_admin.waiting_for(getattr(request, "actor", NOBODY)))}
