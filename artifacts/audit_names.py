"""What the access log calls artifacts, and the words of why something was revealed."""

from collections.abc import Collection

from django.urls import reverse

from access import naming, telling
from access.naming import Named
from artifacts.models import Artifact, Reason


def register() -> None:
    naming.register("artifact", _artifacts)
    telling.register_reasons({value: str(label) for value, label in Reason.choices})


def _artifacts(ids: Collection[str]) -> dict[str, Named]:
    rows = Artifact.objects.filter(pk__in=naming.uuids(ids)).values_list("pk", "name", "version")
    return {str(pk): Named(f"{name}, v{version}", name, reverse("artifacts:artifact", args=[pk])) for pk, name, version in rows}
