"""The pages on which several actions that are alike are decided together. Plain pages and forms: what they show is what the server holds.

GET and HEAD decide nothing and record nothing. That an action was opened is posted, with what only its drawing carries.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from access.errors import Refusal
from access.ids import as_uuid
from approvals import bulk, gravity, looks, presenting, reasons
from approvals.bulk import Batch, Item
from approvals.course import tool_title
from approvals.figures import number
from approvals.forms import BatchForm
from approvals.models import ProposedAction

MOST_OUT = 60


@never_cache
@require_safe
def together(request: HttpRequest, action_id: UUID) -> HttpResponse:
    """What is like this action, one of it open. `do=approve` and `do=reject` draw the second step; they decide nothing."""
    like = presenting.find(request.actor, action_id, "approvals.decide")
    return _page(request, like, do=request.GET.get("do", ""))


@never_cache
@require_POST
def look(request: HttpRequest, action_id: UUID) -> HttpResponse:
    """Record that what was drawn was looked at, and go on to the next that was not."""
    like = presenting.find(request.actor, action_id, "approvals.decide")
    try:
        seen, digest = looks.named(request.POST.get("look", ""), request.actor)
        looks.record(presenting.find(request.actor, seen, "approvals.decide"), by=request.actor, digest=digest)
    except Refusal as refusal:
        return _page(request, like, refusal=refusal)
    found = bulk.batch(like, request.actor, _out(request))
    after = _next_not_opened(found.items, seen)
    return HttpResponseRedirect(_address(like, after.action.pk if after else seen, _out(request)), status=303)


@never_cache
@require_POST
def decision(request: HttpRequest, action_id: UUID) -> HttpResponse:
    """One decision for each, and what became of each. Sent twice it is the same."""
    like = presenting.find(request.actor, action_id, "approvals.decide")
    form = BatchForm(request.POST)
    if not form.is_valid():
        return _page(request, like, error="That form was not complete. Nothing was decided.")
    verdict, reason = form.cleaned_data["verdict"], form.cleaned_data["reason"]
    if verdict == "rejected" and reasons.trouble(reason):
        return _page(request, like, do="reject", error="Write at least one sentence. Each of the agents reads it.", reason=reason)
    gravity.check_all(request, list(form.digests)[: bulk.MOST], verdict)
    try:
        results = bulk.decide(like, reviewer=request.actor, verdict=verdict, digests=form.digests, reason=reason)
    except Refusal as refusal:
        return _page(request, like, refusal=refusal, reason=reason)
    done = [result for result in results if result.decision is not None]
    context = {"like": like, "results": results, "done": done, "left": len(results) - len(done), "verdict": verdict, "reason": reason}
    context |= {"head": f"{number(len(done)) if done else 'None'} {verdict}", "tool_title": tool_title(like), "room": "inbox"}
    return render(request, "approvals/alike_done.html", context)


# answers ------------------------------------------------------------------------------------------------------------------------------


def _page(
    request: HttpRequest, like: ProposedAction, *, do: str = "", refusal: Refusal | None = None, error: str = "", reason: str = ""
) -> HttpResponse:
    out = _out(request)
    found = bulk.batch(like, request.actor, out)
    item = _open(request, found)
    at = found.items.index(item) if item else 0
    before = found.items[at - 1] if at else None
    after = (_next_not_opened(found.items, item.action.pk) or (found.items[at + 1 :] + (None,))[0]) if item else None
    ready = bool(found.items) and not found.missing
    context: dict[str, Any] = {
        "batch": found,
        "like": like,
        "item": item,
        "place": at + 1,
        "panel": presenting.panel(presenting.find(request.actor, item.action.pk), request.actor) if item else None,
        "look": looks.token(item.action, request.actor) if item else "",
        "before": _address(like, before.action.pk, out) if before else "",
        "after": _address(like, after.action.pk, out) if after else "",
        "without": _address(like, None, [*out, item.action.pk]) if item else "",
        "here": _address(like, item.action.pk if item else None, out),
        "out": out,
        "mode": do if do in ("approve", "reject") and ready else "rest",
        "ready": ready,
        "head": _head(found),
        "tool_title": tool_title(like),
        "refusal": refusal,
        "error": error,
        "reason": reason,
        "room": "inbox",
    }
    status = refusal.status if refusal else 422 if error else 200
    return render(request, "approvals/alike.html", context, status=status)


def _head(found: Batch) -> str:
    """“Nine updates of one field each”; of what has no such word, what all are called if that leaves no hole."""
    many = len(found.items)
    if many < 2:
        return f"{'One' if many else 'None'} left of those alike"
    before, after = found.common
    return f"{number(many)} {found.several or 'alike'}" + (f": {before}" if before and not after and not found.several else "")


def _open(request: HttpRequest, found: Batch) -> Item | None:
    """The one that was asked for, else the first that was not opened, else the first."""
    wanted = request.GET.get("item", "")
    asked = next((item for item in found.items if str(item.action.pk) == wanted), None)
    return asked or next((item for item in found.items if not item.opened), None) or next(iter(found.items), None)


def _next_not_opened(items: Sequence[Item], after: UUID) -> Item | None:
    """The next below that was not opened, else the first above."""
    at = next((i for i, item in enumerate(items) if item.action.pk == after), -1)
    return next((item for item in (*items[at + 1 :], *items[: max(at, 0)]) if not item.opened), None)


def _address(like: ProposedAction, item: UUID | None, out: Sequence[UUID]) -> str:
    query = urlencode([*([("item", item)] if item else []), *(("out", pk) for pk in out)])
    return reverse("approvals:alike", args=(like.pk,)) + (f"?{query}" if query else "")


def _out(request: HttpRequest) -> list[UUID]:
    """What was taken out by hand."""
    sent = request.POST if request.method == "POST" else request.GET
    return list(dict.fromkeys(pk for text in sent.getlist("out")[:MOST_OUT] if (pk := as_uuid(text))))
