"""Revealing, for people: the question why, the reveal, what it shows, and its end. Each answers htmx with the part, a browser with a page.

Nothing that they answer is kept anywhere: it is drawn for this person and this session, each time anew.
"""

from typing import Any
from uuid import UUID, uuid4

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import content_disposition_header
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from access.errors import Forbidden, NotFound, Refusal
from access.ids import as_uuid
from access.rules import Actor
from artifacts import preview, reveal, revealing, serving
from artifacts.models import Reason
from artifacts.rendition import plain
from artifacts.reveal import RevealOver
from artifacts.revealing import May, Place
from artifacts.showing import box
from artifacts.vault import Erased

SANDBOXED = {"Content-Security-Policy": "sandbox; default-src 'none'", "X-Content-Type-Options": "nosniff"}
MAX_PAGE = 10_000


@never_cache
@vary_on_headers("HX-Request")
@require_safe
def ask(request: HttpRequest) -> HttpResponse:
    """Why, and what it means to reveal what stands at `place`. For htmx a dialog."""
    return _asked(request, revealing.place(request.actor, request.GET.get("place", "")))


@never_cache
@require_POST
def reveals(request: HttpRequest) -> HttpResponse:
    """Reveal, on record. For htmx what is shown, in place of the part that it was asked for from; else its page."""
    at = revealing.place(request.actor, request.POST.get("place", ""))
    typed = {name: request.POST.get(name, "") for name in ("reason", "details", "token")}
    try:
        row = reveal.make(request.actor, at, **typed | {"token": as_uuid(typed["token"]) or uuid4()})
    except Refusal as refusal:
        return _asked(request, at, refusal, typed)
    if not _by_htmx(request):
        return redirect("artifacts:reveal", row.pk)
    at = reveal.showing(request.actor, row)
    response = render(request, "artifacts/_reveal.html", {"box": box(request.actor, at, row), "moved": True, "swapped": True})
    return _headed(response, {"HX-Retarget": f"#{at.dom}", "HX-Reswap": "outerHTML", "HX-Trigger": "revealed"})


@never_cache
@vary_on_headers("HX-Request")
@require_safe
def shown(request: HttpRequest, reveal_id: UUID) -> HttpResponse:
    """What a reveal shows, while it lasts. When it is over: what stands there then, hidden again."""
    row = reveal.find(request.actor, reveal_id)
    try:
        at, over = reveal.showing(request.actor, row), None
    except (RevealOver, Erased) as refusal:
        at, over = revealing.place(request.actor, row.place), refusal
    drawn = box(request.actor, at, None if over else row)
    swapped = _by_htmx(request)
    template = "artifacts/_reveal.html" if swapped else "artifacts/revealed.html"
    context = {"box": drawn, "over": over, "swapped": swapped, "room": "runs"}
    return render(request, template, context, status=over.status if over else 200)


@never_cache
@require_safe
def picture(request: HttpRequest, reveal_id: UUID, page: int) -> HttpResponse:
    """A page of what is revealed, as the PNG that was drawn of it; `?part=inked`: the part that has anything on it."""
    at = reveal.showing(request.actor, reveal.find(request.actor, reveal_id))
    drawn = reveal.picture(at, page, inked=request.GET.get("part") == "inked") if 1 <= page <= MAX_PAGE else None
    if not isinstance(drawn, preview.Picture):
        raise NotFound
    return HttpResponse(drawn.png, content_type="image/png", headers=SANDBOXED)


@never_cache
@require_safe
def look(request: HttpRequest, reveal_id: UUID) -> HttpResponse:
    """A page of what is revealed, with its size and how many there are; or why it can’t be drawn. For htmx the part, else a page."""
    row = reveal.find(request.actor, reveal_id)
    at = reveal.showing(request.actor, row)
    asked = request.GET.get("page", "1")
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 6 else 0
    drawn = reveal.picture(at, number) if number else preview.NotDrawn("no_page", "It has no such page.")
    found = isinstance(drawn, preview.Picture)
    context: dict[str, Any] = {"row": row, "at": at, "drawn": drawn if found else None, "why": "" if found else drawn.why, "room": "runs"}
    return render(request, "artifacts/_drawn.html" if _by_htmx(request) else "artifacts/drawn.html", context)


@never_cache
@require_safe
def content(request: HttpRequest, reveal_id: UUID) -> HttpResponseBase:
    """The file, for who decides on sending it: its bytes if nothing in them must stay hidden, else what is shown of them, as text."""
    row = reveal.find(request.actor, reveal_id)
    at = reveal.showing(request.actor, row)
    may = revealing.may(request.actor, at)
    if not (isinstance(may, May) and may.action):
        raise Forbidden("Only who decides on an open action takes the file itself.")
    if reveal.take(request.actor, row, at):
        return serving.download(request, at.payload, at.name)
    named = content_disposition_header(True, f"{at.name.rsplit('.', 1)[0]}-revealed.txt") or "attachment"
    text = plain(reveal.read(at).text)
    return HttpResponse(text, content_type="text/plain; charset=utf-8", headers=SANDBOXED | {"Content-Disposition": named})


@never_cache
@require_POST
def ending(request: HttpRequest, reveal_id: UUID) -> HttpResponse:
    """Hide it now."""
    row = reveal.find(request.actor, reveal_id)
    reveal.end(request.actor, row)
    at = revealing.place(request.actor, row.place)
    if not _by_htmx(request):
        return redirect(at.back)
    return render(request, "artifacts/_reveal.html", {"box": box(request.actor, at), "moved": True, "swapped": True})


def _asked(request: HttpRequest, at: Place, refusal: Refusal | None = None, typed: dict[str, str] | None = None) -> HttpResponse:
    context: dict[str, Any] = {
        "box": box(request.actor, at),
        "reasons": _reasons(request.actor, at),
        "typed": {"reason": "", "details": "", "token": str(uuid4())} | (typed or {}),
        "refusal": refusal,
        "wrong": refusal.extra.get("at", "") if refusal else "",
        "room": "runs",
    }
    status = refusal.status if refusal else 200
    if not _by_htmx(request):
        return render(request, "artifacts/reveal.html", context, status=status)
    return render(request, f"artifacts/{'_reveal_form' if refusal else '_reveal_dialog'}.html", context, status=status)


def _reasons(actor: Actor, at: Place) -> list[tuple[str, str]]:
    """What can be chosen: “needed to decide” is for who has something to decide."""
    may = revealing.may(actor, at)
    decides = isinstance(may, May) and may.action is not None
    return [(value, words) for value, words in Reason.choices if decides or value != Reason.DECIDE]


def _headed(response: HttpResponse, headers: dict[str, str]) -> HttpResponse:
    for name, value in headers.items():
        response.headers[name] = value
    return response


def _by_htmx(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true"
