"""The access log: who did, changed, revealed and was refused what."""

from typing import Any
from urllib.parse import urlencode

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from access import exporting, glass_views, places, telling, trail
from access.audit import GROUPS
from access.errors import Refusal
from access.models import AuditEntry
from access.places import Place
from access.trail import COUNTED, BadFilter, Wanted
from config import clock

RECENT, LOOKED_AT = 5, 50  # rows on the page of permissions, and among how many they are sought
COMINGS = ("signed_in", "signed_out", "confirmed_again")
LABELS = {"public": "Public", "internal": "Internal", "personal": "Personal data", "secret": "Secret"}


@never_cache
@require_safe
def log(request: HttpRequest) -> HttpResponse:
    """The log, narrowed by the query; `part=recent` is what the page of permissions shows of it."""
    here = places.place(request, "audit.view")
    if request.GET.get("part") == "recent":
        entries = trail.page(here.id, Wanted(), size=LOOKED_AT).entries
        apart = [entry for entry in entries if entry.verb not in COMINGS]  # who came and went is told by the log itself
        rows = telling.told(_first(apart or entries))
        return render(request, "access/_log_recent.html", {"rows": rows, "place": here, "count": _counted(here)})
    try:
        asked = trail.wanted(request.GET)
        page = trail.page(here.id, asked, before=request.GET.get("before", ""))
    except BadFilter as error:
        return render(request, "access/log.html", _context(here, Wanted(), typed=request.GET, error=error), status=error.status)
    glasses = glass_views.waiting(request, here.id, sees=True)
    more = glasses | {"rows": telling.told(page.entries), "older": page.older, "count": _counted(here, asked)}
    return render(request, "access/log.html", _context(here, asked, typed=asked.as_dict(), before=request.GET.get("before", "")) | more)


@require_POST
def export(request: HttpRequest) -> HttpResponse:
    """The log as a file. It is written down before the first byte leaves."""
    here = places.place(request, "audit.view")
    form = request.POST.get("form", "")
    if form not in exporting.FORMATS:
        raise BadFilter("Choose CSV or JSON Lines.")
    asked = trail.wanted(request.POST)
    exporting.begin(here.id, asked, form=form, by=request.actor)
    pieces = exporting.pieces(here.id, asked, form=form)
    content = exporting.streamed(pieces) if isinstance(request, ASGIRequest) else pieces
    response = StreamingHttpResponse(content, content_type=exporting.FORMATS[form])
    response.headers["Content-Disposition"] = f'attachment; filename="access-log-{clock.now():%Y-%m-%d}.{form}"'
    response.headers["Cache-Control"] = "no-store"
    return response


def _first(entries: list[AuditEntry]) -> list[AuditEntry]:
    """What people and agents did goes before what Handrail did by itself, as it lets an action run; the newest stands on top."""
    ranked = sorted(entries, key=lambda entry: entry.actor_kind == "system")
    return sorted(ranked[:RECENT], key=entries.index)


def _context(here: Place, asked: Wanted, *, typed: Any, error: Refusal | None = None, before: str = "") -> dict[str, Any]:
    kept = asked.as_dict() | ({"workspace": here.slug} if here.all else {})
    return {
        "place": here,
        "asked": asked,
        "typed": typed,
        "error": error,
        "rows": [],
        "groups": GROUPS.items(),
        "labels": LABELS.items(),
        "actors": trail.actors(here.id),
        "query": urlencode(kept),
        "kept": asked.as_dict().items(),
        "before": before,
        "room": "permissions",
    }


def _counted(here: Place, asked: Wanted | None = None) -> str:
    count = trail.count(here.id, asked)
    return f"{COUNTED:,}+ entries" if count > COUNTED else "1 entry" if count == 1 else f"{count:,} entries"
