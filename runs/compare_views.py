"""Two runs beside each other, and what a replay of one came to."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from access import rules
from access.errors import BadInput
from access.ids import as_uuid
from artifacts.rendition import plain
from runs import comparing, forms, places, presenting
from runs.engine import replaying, workflow
from runs.models import Run

RELATED = (*presenting.RELATED, "input__key")
OTHERS = 20


@require_safe
def compare(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """With another run of the same workflow; without one, the choice of it."""
    run = rules.get(request.actor, Run, run_id, "runs.view", related=RELATED)
    wanted = request.GET.get("with", "")
    if not wanted:
        return _choose(request, run)
    other = rules.get(request.actor, Run, as_uuid(wanted) or wanted, "runs.view", related=RELATED)
    if other.pk == run.pk:
        return redirect("runs:compare", run.pk)
    if _kind(other) != _kind(run):
        raise BadInput(f"{run.ref} and {other.ref} are runs of different workflows, so there is nothing to match them by.")
    found = comparing.compare(run, other, request.actor)
    context = {"found": found, "run": found.first.run, "other": found.second.run, "room": "runs", "names": found.names}
    return render(request, "runs/compare.html", context)


def _kind(run: Run) -> tuple[object, ...]:
    """What two runs must have in common: their workflow, or the agent outside that works on them."""
    return run.workspace_id, run.workflow, run.agent_id if not run.workflow else None


def _choose(request: HttpRequest, run: Run) -> HttpResponse:
    """Its parent and forks, and the latest others of the same workflow."""
    mine = rules.visible(request.actor, Run, "runs.view").filter(workspace_id=run.workspace_id, workflow=run.workflow)
    mine = mine if run.workflow else mine.filter(agent_id=run.agent_id)
    near = places.kin(run, request.actor)
    kin = [each for each in (near.parent, *near.forks) if each is not None]
    others = mine.exclude(pk__in=[run.pk, *(each.pk for each in kin)]).select_related("title", "owner").order_by("-created_at")[:OTHERS]
    context = {"run": run, "kin": kin, "others": others, "room": "runs", "page_title": plain(presenting.title_of(run))}
    return render(request, "runs/compare_with.html", context)


@require_safe
def replay(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Runs the workflow's code against the record: it changes nothing, here or outside."""
    run = rules.get(request.actor, Run, run_id, "runs.events", related=RELATED)
    version = forms.number(request.GET.get("version", ""))
    versions = sorted(known for name, known in workflow.VERSIONS if name == run.workflow)
    context = {"run": run, "versions": versions, "version": version or run.workflow_version, "room": "runs", "names": {}}
    context["back"] = reverse("runs:run", args=(run.pk,))
    context["page_title"] = plain(presenting.title_of(run))
    try:
        found = replaying.replay(run, version=version, most=replaying.LONGEST)
    except replaying.NotReplayable as refusal:
        return render(request, "runs/replay.html", context | {"refusal": refusal}, status=refusal.status)
    return render(request, "runs/replay.html", context | {"found": found})
