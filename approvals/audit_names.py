"""What the access log calls actions, policies, groups, freezes and standing grants, and the reasons kept with them."""

from collections.abc import Collection, Iterable
from uuid import UUID

from django.urls import reverse

from access import naming
from access.naming import Named, uuids
from approvals.models import Freeze, PolicySet, ProposedAction, ReviewerGroup, StandingGrant
from artifacts.redaction import plain
from runs.engine.tools import TOOLS


def register() -> None:
    naming.register("action", _actions)
    naming.register("policy", _policies)
    naming.register("group", _groups)
    naming.register("freeze", _freezes)
    naming.register("standing_grant", _standing)
    naming.register_within(_of_run)


def _actions(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    rows = ProposedAction.objects.filter(workspace_id=workspace_id, pk__in=uuids(ids)).values_list("pk", "tool", "run__ref")
    return {str(pk): Named(_title(tool), ref, reverse("approvals:action", args=[pk])) for pk, tool, ref in rows}


def _title(tool: str) -> str:
    """As the pages call it; a tool that is no longer there has its name only."""
    return TOOLS[tool].title if tool in TOOLS else tool


def _policies(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    rows = PolicySet.objects.filter(workspace_id=workspace_id, pk__in=uuids(ids)).select_related("why")
    return {str(row.pk): Named(f"version {row.version}", "Policies", reverse("approvals:policies"), _said(row.why)) for row in rows}


def _groups(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    rows = ReviewerGroup.objects.filter(workspace_id=workspace_id, pk__in=uuids(ids)).values_list("pk", "name")
    return {str(pk): Named(name, "Groups", reverse("approvals:group", args=[pk])) for pk, name in rows}


def _freezes(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    rows = Freeze.objects.filter(workspace_id=workspace_id, pk__in=uuids(ids)).select_related("reason")
    return {str(row.pk): Named("freeze", "Freezes", reverse("approvals:freezes"), _said(row.reason)) for row in rows}


def _standing(workspace_id: UUID, ids: Collection[str]) -> dict[str, Named]:
    found = StandingGrant.objects.filter(workspace_id=workspace_id, pk__in=uuids(ids)).values_list("pk", flat=True)
    return {str(pk): Named("a standing approval", "Standing approval", reverse("approvals:standing_grant", args=[pk])) for pk in found}


def _said(payload: object) -> str:
    return plain(getattr(payload, "rendition", "") or "")


def _of_run(run_id: UUID) -> Iterable[str]:
    return [str(pk) for pk in ProposedAction.objects.filter(run_id=run_id).values_list("pk", flat=True)[:5000]]
