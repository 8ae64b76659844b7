"""The page on which somebody forks a run, and the fork's making."""

from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import orjson
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from access import rules
from access.errors import BadInput, Refusal
from artifacts.rendition import plain
from runs import forms, places, presenting, signals, steering
from runs.engine import forking
from runs.lifecycle import ended
from runs.models import Run

RELATED = (*presenting.RELATED, "input__key")


@require_http_methods(["GET", "HEAD", "POST"])
def forks(request: HttpRequest, run_id: UUID) -> HttpResponse:
    run = rules.get(request.actor, Run, run_id, "runs.start", related=RELATED)
    if request.method != "POST":
        at = forms.number(request.GET.get("at", ""))
        return _page(request, run, chosen=request.GET.get("step", "") or (f"@{at}" if 0 < at <= run.seq else ""))
    form = forms.ForkForm(request.POST)
    try:
        if not form.is_valid():
            raise BadInput("Choose where it begins.")
        made = _made(request, run, form.cleaned_data)
    except Refusal as refusal:
        return _page(request, run, chosen=form.data.get("place", "").replace(forms.START, ""), typed=request.POST.dict(), refusal=refusal)
    told = f"This is the fork. {run.ref} {'is paused.' if form.cleaned_data['pause'] and _pause(request, run, made) else _goes_on(run)}"
    messages.success(request, told)
    return redirect("runs:run", made.pk)


def _made(request: HttpRequest, run: Run, asked: dict[str, Any]) -> Run:
    """The fork that a form asks for: the same form sent twice makes one, and with something else in it another."""
    place = asked["place"]
    edits: dict[str, Any] = {}
    if not place.startswith("@") and (known := next((each for each in places.places(run, also=place) if each.step == place), None)):
        edits = known.with_typed(request.POST.dict()).edits()
    content = sha256(orjson.dumps([place, edits, asked["note"]], option=orjson.OPT_SORT_KEYS)).hexdigest()[:24]
    where = {"at": int(place[1:])} if place.startswith("@") else {"step": place} if place or edits else {"at": 1}
    return forking.fork(run, by=request.actor, key=f"{asked['key']}-{content}", edits=edits, note=asked["note"], **where)


def _pause(request: HttpRequest, run: Run, made: Run) -> bool:
    """Whether the parent is paused: the right to steer it is another than that to fork it."""
    if not rules.can(request.actor, "runs.steer", run.workspace_id, run.team_id) or run.state not in steering.READING:
        return False
    return signals.send(run, kind="pause", key=f"fork-{made.pk}", by=request.actor).status == "applied"


def _goes_on(run: Run) -> str:
    return "stays as it ended." if ended(run.state) else "stays stuck." if run.state == "parked" else "goes on as it is."


def _page(
    request: HttpRequest, run: Run, *, chosen: str, typed: dict[str, str] | None = None, refusal: Refusal | None = None
) -> HttpResponse:
    why = forking.why_not(run)
    asked, nowhere = chosen, ""
    if chosen and not chosen.startswith("@"):
        begins = forking.begins_with(forking.entries_of(run), chosen)
        chosen, nowhere = (begins.step, "") if begins else ("-", asked)  # none is chosen, rather than the start
    offered = [] if why else places.places(run, also=chosen)
    context = {
        "run": run,
        "names": {},
        "places": [place.with_typed(typed or {}) for place in offered],
        "after": forms.number(chosen[1:]) if chosen.startswith("@") else 0,
        "chosen": chosen,
        "nowhere": nowhere,
        "why_not": why,
        "kin": places.kin(run, request.actor),
        "typed": typed or {},
        "refusal": refusal,
        "key": (typed or {}).get("key") or uuid4().hex,
        "may_pause": run.state in steering.READING
        and run.state != "paused"
        and rules.can(request.actor, "runs.steer", run.workspace_id, run.team_id),
        "ended": ended(run.state),
        "room": "runs",
        "page_title": plain(presenting.title_of(run)),
    }
    dialog = request.headers.get("HX-Target") == "fork-f"
    template = "runs/_fork_form.html" if dialog else "runs/forks.html"
    return render(request, template, context | {"dialog": dialog}, status=refusal.status if refusal else 200)
