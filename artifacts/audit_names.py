"""What the access log calls artifacts, and the words of why something was revealed."""

from collections.abc import Collection
from uuid import UUID

from django.urls import reverse

from access import naming, telling
from access.naming import Named
from artifacts.models import Artifact, Reason, RedactionPolicy


def register() -> None:
    naming.register("artifact", _artifacts)
    naming.register("redaction_policy", _policies)
    telling.register_reasons({value: str(label) for value, label in Reason.choices})


def _artifacts(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    rows = Artifact.objects.filter(workspace_id=workspace_id, pk__in=naming.uuids(ids)).values_list("pk", "name", "version")
    return {str(pk): Named(f"{name}, v{version}", name, reverse("artifacts:artifact", args=[pk])) for pk, name, version in rows}


def _policies(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    rows = RedactionPolicy.objects.filter(workspace_id=workspace_id, pk__in=naming.uuids(ids)).values_list("pk", "number")
    return {str(pk): Named(f"version {number}", "Redaction policies", reverse("artifacts:redaction")) for pk, number in rows}
