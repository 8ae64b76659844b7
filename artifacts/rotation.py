"""The job after a rotation: data keys of older payloads are wrapped under the newest version, then the old one is retired and destroyed.

It keeps no state: what is left to do is what still refers to an old version. So it can end anywhere and begin again, twice at once too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count

from access.rules import SYSTEM, Actor
from artifacts import keys, vault
from artifacts.models import Payload, WorkspaceKey

BATCH = 200  # payloads in one transaction


@dataclass(frozen=True)
class Batch:
    """What one transaction did. `closed`: payloads that did not open under the key they name; they stay where they are."""

    moved: int
    closed: int


@dataclass(frozen=True)
class Version:
    """One version of a workspace's key, and how many payloads it wraps."""

    workspace: str
    version: int
    payloads: int
    newest: bool
    retired: bool


def versions(workspace_id: UUID | None = None) -> list[Version]:
    """All that there are, for the eye."""
    rows = WorkspaceKey.objects.filter(workspace_id=workspace_id) if workspace_id else WorkspaceKey.objects.all()
    counted = dict(Payload.objects.filter(erased_at=None, key__in=rows).values_list("key").annotate(n=Count("pk")).order_by())
    newest = {key.workspace_id: key.pk for key in rows.order_by("version")}
    return [
        Version(key.workspace.slug, key.version, counted.get(key.pk, 0), newest[key.workspace_id] == key.pk, key.retired_at is not None)
        for key in rows.select_related("workspace").order_by("workspace__slug", "version")
    ]


def left(workspace_id: UUID | None = None) -> int:
    """How many payloads are wrapped under a version that has a newer one."""
    return Payload.objects.filter(key__in=keys.outdated(workspace_id)).count()


def rewrap(workspace_id: UUID | None = None, *, by: Actor = SYSTEM) -> Iterator[Batch]:
    """Wrap all that is left under the newest version, a transaction at a time; then retire and destroy what nothing needs any more."""
    for workspace in sorted({key.workspace_id for key in keys.outdated(workspace_id)}):
        after: UUID | None = None
        while rows := _next(workspace, after):
            yield _batch(workspace, rows)
            after = rows[-1].pk
    keys.retire(workspace_id, by=by)
    keys.destroy(workspace_id, by=by)


def _next(workspace_id: UUID, after: UUID | None) -> list[Payload]:
    rows = Payload.objects.filter(key__in=keys.outdated(workspace_id)).select_related("key").order_by("pk")
    return list((rows.filter(pk__gt=after) if after else rows).only("pk", "wrapped", "key")[:BATCH])


def _batch(workspace_id: UUID, rows: list[Payload]) -> Batch:
    newest = WorkspaceKey.objects.filter(workspace_id=workspace_id).latest("version")
    moved, closed = vault.rewrapped(rows, newest)
    return Batch(moved, closed)
