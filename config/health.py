"""For load balancers and people on call. They say words, not details: anybody may ask."""

from collections.abc import Callable

import redis
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from access import append_only, sealing
from access.errors import DatabaseTrouble


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """200 while this process serves requests at all."""
    return HttpResponse("alive\n", content_type="text/plain")


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 if it can do its work, else 503 and which part is not ready."""
    parts = {name: _word(check) for name, check in CHECKS.items()}
    ready = all(word == "ok" for word in parts.values())
    told = {name: _word(check) for name, check in TOLD.items()}
    return JsonResponse({"ready": ready, **parts, **told}, status=200 if ready else 503)


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return "ok"


def _valkey() -> str:
    with redis.Redis.from_url(settings.VALKEY_URL, socket_timeout=1, socket_connect_timeout=1) as client:
        client.ping()
    return "ok"


def _append_only() -> str:
    return "triggers missing: run manage.py migrate" if append_only.missing() else "ok"


def _sealer() -> str:
    return "lags: is a worker with its beat running?" if sealing.lags() else "ok"


def _word(check: Callable[[], str]) -> str:
    try:
        return check()
    except (DatabaseTrouble, redis.RedisError):
        return "unreachable"


CHECKS: dict[str, Callable[[], str]] = {"database": _database, "valkey": _valkey, "append_only": _append_only}
# said and no reason to take this process out of service: another one is to blame
TOLD: dict[str, Callable[[], str]] = {"audit_sealer": _sealer}
