"""Erasing an artifact for good: a page that says what would go, what goes along and what is in its way, and the doing of it."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from access import rules, step_up
from access.errors import NotFound, Refusal
from artifacts.models import Artifact
from artifacts.rendition import plain
from runs import erasing, presenting
from runs.models import Run


@require_http_methods(["GET", "HEAD", "POST"])
def erasure(request: HttpRequest, run_id: UUID, artifact_id: UUID) -> HttpResponse:
    """`?what=all` is every version of it. Nothing goes without a reason, and only what the page showed."""
    artifact = rules.get(request.actor, Artifact, artifact_id, "payloads.erase", related=("payload",))
    run = rules.get(request.actor, Run, run_id, "payloads.erase", related=("title",))
    if artifact.run_id != run.pk:
        raise NotFound
    everything = (request.POST if request.method == "POST" else request.GET).get("what") == "all"
    if request.method != "POST":
        return _page(request, run, artifact, everything)
    step_up.require(request)
    try:
        if "sure" not in request.POST:
            raise erasing.NotSaidWhy("Say that you know it can’t be undone.")
        said = {"reason": request.POST.get("reason", ""), "words": request.POST.get("words", ""), "shown": request.POST.get("shown", "")}
        done = erasing.erase(run, _payloads(run, artifact, everything), by=request.actor, **said)
    except Refusal as refusal:
        return _page(request, run, artifact, everything, refusal=refusal)
    copies = f", and {len(done.copies)} more in which the same text stood" if done.copies else ""
    messages.success(request, f"Erased {len(done.chosen)} payload{'s' * (len(done.chosen) > 1)}{copies}.")
    return redirect("artifacts:artifact", artifact.pk)


def _payloads(run: Run, artifact: Artifact, everything: bool) -> list[UUID]:
    return erasing.of_artifact(run, artifact.name, None if everything else artifact.version)


def _page(request: HttpRequest, run: Run, artifact: Artifact, everything: bool, *, refusal: Refusal | None = None) -> HttpResponse:
    context: dict[str, Any] = {"run": run, "artifact": artifact, "everything": everything, "refusal": refusal, "room": "runs"}
    context |= {"reasons": erasing.REASONS.items(), "typed": request.POST, "titled": plain(presenting.title_of(run))}
    context["versions"] = Artifact.objects.filter(run_id=run.pk, name=artifact.name).count()
    try:
        context["plan"] = erasing.plan(run, _payloads(run, artifact, everything))
    except Refusal as why:
        context["why_not"] = why
    return render(request, "runs/erasure.html", context, status=refusal.status if refusal else 200)
