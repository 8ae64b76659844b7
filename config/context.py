"""What every page may say of this installation."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from access import demo


def installation(request: HttpRequest) -> dict[str, Any]:
    """`demo`: whether the demo's own pages are there for whoever asks."""
    return {"demo": SimpleLazyObject(lambda: demo.is_open(request))}
