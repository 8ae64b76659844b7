"""Undoing one thing that a run did outside: a page that says what would be undone and how, and the asking for it."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from access import rules
from access.errors import Refusal
from artifacts import vault
from artifacts.rendition import plain
from runs import forms, presenting
from runs.engine import undoing
from runs.models import Run


@require_http_methods(["GET", "HEAD", "POST"])
def undo(request: HttpRequest, run_id: UUID, seq: int) -> HttpResponse:
    """Asking leads to the run that undoes it, where people see it wait, be allowed and be done."""
    run = rules.get(request.actor, Run, run_id, "runs.recover", related=("title", "owner", "agent"))
    if request.method != "POST":
        return _page(request, run, seq)
    form = forms.UndoForm(request.POST)
    form.is_valid()  # what is wrong with it is refused as such
    reason = form.cleaned_data.get("reason", "")
    try:
        started = undoing.undo(run, seq, by=request.actor, reason=reason)
    except Refusal as refusal:
        return _page(request, run, seq, refusal=refusal, typed=request.POST.get("reason", ""))
    messages.success(request, "Asked for. This run undoes it, as the policy of its tool allows.")
    return redirect("runs:run", started.pk)


def _page(request: HttpRequest, run: Run, seq: int, *, refusal: Refusal | None = None, typed: str = "") -> HttpResponse:
    context: dict[str, Any] = {"run": run, "seq": seq, "refusal": refusal, "typed": typed, "room": "runs"}
    context["page_title"] = plain(presenting.title_of(run))
    before = undoing.of(run).get(seq)
    if before is not None and before.open:
        context["open"] = before.run
    try:
        effect, tool = undoing.look(run, seq)
    except Refusal as why:
        return render(request, "runs/undo.html", context | {"why_not": why}, status=why.status if refusal is None else refusal.status)
    shown = vault.shown([effect.subject]) if effect.subject else {}
    said = next(iter(shown.values()), None)
    subject = said.text if said and not said.erased_at else ""
    told = {"effect": effect, "subject": subject, "undoes": tool.title}
    return render(request, "runs/undo.html", context | told, status=refusal.status if refusal else 200)
