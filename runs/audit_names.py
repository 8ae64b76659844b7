"""What the access log calls runs and what belongs to them."""

from collections.abc import Collection
from uuid import UUID

from django.urls import reverse

from access import naming
from access.ids import NotAReference, as_uuid, parse_reference
from access.naming import Named
from runs.models import Run
from runs.webhook_models import WebhookSource


def register() -> None:
    naming.register("run", _runs)
    naming.register("webhook_source", _sources)
    naming.register_runs(_find)


def of_runs(rows: Collection[tuple[str, UUID, str]]) -> dict[str, Named]:
    """(id, run, its reference) → where it is found."""
    return {pk: Named(ref, ref, reverse("runs:run", args=[run])) for pk, run, ref in rows}


def _runs(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    return of_runs(
        [(str(pk), pk, ref) for pk, ref in Run.objects.filter(workspace_id=workspace_id, pk__in=naming.uuids(ids)).values_list("pk", "ref")]
    )


def _sources(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    rows = WebhookSource.objects.filter(workspace_id=workspace_id, pk__in=naming.uuids(ids)).values_list("pk", "name")
    return {str(pk): Named(name, "Webhooks", reverse("runs:sources")) for pk, name in rows}


def _find(workspace_id: UUID, typed: str) -> UUID | None:
    runs = Run.objects.filter(workspace_id=workspace_id)
    if (exact := as_uuid(typed)) is not None:
        return runs.filter(pk=exact).values_list("pk", flat=True).first()
    try:
        return runs.filter(ref=parse_reference(typed)).values_list("pk", flat=True).first()
    except NotAReference:
        return None
