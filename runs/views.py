"""The pages of runs: the list, one run, its raw log, starting one. Each finds what the person may reach and calls one verb."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from access import rules
from access.errors import BadInput, NotFound, NotSignedIn
from access.ids import NotAReference, parse_reference
from access.rules import Actor
from artifacts.models import Artifact
from artifacts.rendition import plain
from runs import erasing, forms, glances, listing, looking, presenting, provenance, questions, rawlog, reading, signals, steering, updates
from runs.errors import RunEnded
from runs.lifecycle import State
from runs.models import Run
from runs.tiles import tiles

NOBODYS = UUID(int=0)  # a question that no run asks


@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    rules.require(request.actor, "runs.view")
    wanted = forms.wanted(request.GET)
    context = {"listing": listing.listing(request.actor, wanted), "tiles": tiles(request.actor), "search": wanted.q, "room": "runs"}
    context["may_start"] = bool(request.actor.workspaces("runs.start"))
    return render(request, "runs/list.html", context | _addresses(request))


@require_safe
def counts(request: HttpRequest) -> HttpResponse:
    """The figures on top of the list, fetched again every 30 s."""
    rules.require(request.actor, "runs.view")
    return render(request, "runs/_tiles.html", {"tiles": tiles(request.actor)})


@require_safe
def run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    found = _run(request, run_id, "runs.view")
    told, (q, at) = reading.told(found), forms.place(request.GET)
    q = q if request.actor.is_known and rules.can(request.actor, "runs.events", found.workspace_id, found.team_id) else ""
    seen = presenting.view(found, request.actor, told, at=at, q=q)
    looks = looking.looking(found, told.lines, told.story, q=q, at=seen.at, seen=seen.seen)
    seen.hits = tuple(row.line.seq for row in looks.hits)
    context = {"run": found, "view": seen, "story": seen.story, "fragments": presenting.drawn(seen), "room": "runs", "looks": looks}
    return render(request, "runs/run.html", context | {"page_title": _title(found)})


@require_safe
def by_ref(request: HttpRequest, ref: str) -> HttpResponse:
    """The short address of a run, as people read it out."""
    if not request.actor.is_known:
        raise NotSignedIn
    try:
        found = rules.visible(request.actor, Run, "runs.view").filter(ref=parse_reference(ref)).first()
    except NotAReference:
        found = None
    if found is None:
        raise NotFound
    return redirect("runs:run", found.pk)


@require_POST
def glance(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Said by the page as it is left: how far the log was drawn."""
    glances.record(_run(request, run_id, "runs.view"), by=request.actor, seq=forms.number(request.POST.get("seq", "")))
    return HttpResponse(status=204)


@require_POST
def send_signal(request: HttpRequest, run_id: UUID) -> HttpResponse:
    found = _run(request, run_id, "runs.steer")
    form = forms.SignalForm(request.POST)
    if not form.is_valid():
        raise BadInput("This is not a signal that the page sends. Nothing was changed.")
    asked = form.cleaned_data
    key = steering.key(asked["key"], asked["kind"], asked["note"])
    sent = signals.send(found, kind=asked["kind"], key=key, by=request.actor, note=asked["note"])
    taken, words = steering.told(sent)
    messages.add_message(request, messages.SUCCESS if taken else messages.ERROR, words)
    return _said(found)


@require_POST
def answer(request: HttpRequest, run_id: UUID) -> HttpResponse:
    found = _run(request, run_id, "runs.steer")
    form = forms.AnswerForm(request.POST)
    form.is_valid()  # what is wrong with it is empty, and refused as such
    question, text = form.cleaned_data.get("question") or NOBODYS, form.cleaned_data.get("text", "")
    try:
        questions.answer(found, question, text, by=request.actor)
    except (BadInput, RunEnded, questions.NotAsked) as refusal:
        messages.error(request, str(refusal.detail or refusal.title))
    else:
        messages.success(request, "Answered. The run goes on with it.")
    return _said(found)


@require_POST
def set_limits(request: HttpRequest, run_id: UUID) -> HttpResponse:
    found = _run(request, run_id, "runs.steer")
    form = forms.LimitsForm(request.POST)
    try:
        if not form.is_valid():
            wrong = "; ".join(f"{name}: {' '.join(errors)}" for name, errors in form.errors.items())
            raise BadInput(f"These are no limits that a run can have. Nothing was changed. {wrong}")
        waits = found.state == State.WAITING and found.waiting.get("on") == "budget"
        now = updates.set_budgets(
            found, form.changed(found.budgets), by=request.actor, note=form.cleaned_data["note"], before=found.budgets
        )
    except (BadInput, RunEnded, updates.Changed) as refusal:
        messages.error(request, str(refusal.detail or refusal.title))
    else:
        goes_on = "It still waits: one of them is used up." if now.state == State.WAITING else "The run goes on."
        messages.success(request, f"The limits are set. {goes_on if waits else ''}".strip())
    return _said(found)


def _said(found: Run) -> HttpResponse:
    """Back to the run, at what is said about the form that was sent: beside it, so that nothing on the page moves."""
    return redirect(f"{reverse('runs:run', args=(found.pk,))}#said")


@require_safe
def around(request: HttpRequest, run_id: UUID, artifact_id: UUID) -> HttpResponse:
    """What the log tells around an artifact: which event made it, out of what, and where it went. A part of the artifact's page."""
    found = _run(request, run_id, "runs.view")
    told = provenance.around(found, artifact_id)
    rows = Artifact.objects.filter(pk=artifact_id, run_id=found.pk).values_list("payload__erased_at", "payload__erased_why")
    kept = rows.first() or (None, "")
    context = {"run": found, "told": told, "names": told.names, "erased": kept[0], "gone": erasing.REASONS.get(kept[1], "")}
    return render(request, "runs/_around.html", context)


# The raw log --------------------------------------------------------------------------------------------------------------------------


@require_safe
def events(request: HttpRequest, run_id: UUID) -> HttpResponse:
    found = _run(request, run_id, "runs.events")
    asked = forms.asked(request.GET)
    if request.GET.get("part") == "rows":
        context = {"run": found, "window": rawlog.window(found, asked)}
        return render(request, "runs/_event_rows.html", context | {"names": context["window"].names})
    return _log(request, found, asked)


@require_safe
def event(request: HttpRequest, run_id: UUID, seq: int) -> HttpResponse:
    """One event in full: as the panel beside the log, or as the whole page with the log around it."""
    found = _run(request, run_id, "runs.events")
    shown = rawlog.detail(found, seq)
    if request.headers.get("HX-Target") == "event-detail":
        return render(
            request, "runs/_event_detail.html", {"run": found, "detail": shown, "names": shown.names, "may_fork": _may_fork(request, found)}
        )
    return _log(request, found, forms.asked(request.GET), shown)


def _log(request: HttpRequest, found: Run, asked: rawlog.Asked, shown: rawlog.Detail | None = None) -> HttpResponse:
    if shown is not None:
        asked = rawlog.Asked(asked.q, asked.groups, at=shown.line.seq)
    window = rawlog.window(found, asked)
    if shown is None and window.rows:
        shown = rawlog.detail(found, window.rows[-1].line.seq)
    context: dict[str, Any] = {
        "run": found,
        "window": window,
        "detail": shown,
        "names": window.names | (shown.names if shown else {}),
        "chain": rawlog.chain(found),
        "stream_url": request.build_absolute_uri(f"/api/v1/runs/{found.pk}/stream"),
        "page_title": _title(found),
        "room": "runs",
        "live": found.ended_at is None,
        "may_fork": _may_fork(request, found),
        "revealed": rawlog.revealed(found) if rules.can(request.actor, "audit.view", found.workspace_id) else [],
    }
    return render(request, "runs/events.html", context | _addresses(request))


def _may_fork(request: HttpRequest, found: Run) -> bool:
    return bool(found.workflow) and rules.can(request.actor, "runs.start", found.workspace_id)


def _addresses(request: HttpRequest) -> dict[str, str]:
    """This page's address without its place in the list, for links that keep the filters."""
    query = request.GET.copy()
    for name in ("older", "newer", "n", "after", "before", "at", "part"):
        query.pop(name, None)
    kept = query.urlencode()
    return {"kept": kept, "kept_and": f"{kept}&" if kept else ""}


def _run(request: HttpRequest, run_id: UUID, capability: str) -> Run:
    actor: Actor = request.actor
    return rules.get(actor, Run, run_id, capability, related=presenting.RELATED)


def _title(found: Run) -> str:
    return plain(presenting.title_of(found))
