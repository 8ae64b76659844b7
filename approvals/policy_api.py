"""Policies, groups and standing grants over HTTP, to be read. They are changed on their pages, where a try is shown first."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router

from access import places, rules
from access.errors import NotFound
from access.models import User
from access.rules import Actor
from approvals import conditions, groups, policy, standing_grants
from approvals.models import Policy, PolicySet, ReviewerGroup, StandingGrant
from artifacts import vault
from artifacts.redaction import plain

router = Router(tags=["policies"])
LISTED = 100


@router.get("/policies", response=Any, summary="The rules in force, in their order")
def in_force(request: HttpRequest) -> dict[str, Any]:
    """The first rule that matches an action counts; what none matches is refused."""
    workspace_id = places.place(request, "approvals.view").id
    found = _versions(request).filter(workspace_id=workspace_id).first()
    return _as_set(found) if found else {"version": 0, "rules": []}


@router.get("/policies/{version}", response=Any, summary="An earlier version of the rules")
def version(request: HttpRequest, version: int) -> dict[str, Any]:
    workspace_id = places.place(request, "approvals.view").id
    found = _versions(request).filter(workspace_id=workspace_id, version=version).first() if 0 < version < 2**31 else None
    if found is None:
        raise NotFound
    return _as_set(found)


@router.get("/groups", response=Any, summary="Reviewer groups")
def all_groups(request: HttpRequest) -> dict[str, Any]:
    """`decide`: who of each may decide now. Nobody decides for one that is closed."""
    workspace_id = places.place(request, "approvals.view").id
    return {"items": [_as_group(each, able) for each, able in groups.listed(workspace_id)]}


@router.get("/groups/{group_id}", response=Any, summary="A reviewer group and its history")
def one_group(request: HttpRequest, group_id: str) -> dict[str, Any]:
    found = rules.get(request.actor, ReviewerGroup, group_id, "approvals.view")
    versions = list(found.versions.select_related("saved_by").order_by("-version")[:LISTED])
    texts = vault.shown(each.why_id for each in versions if each.why_id)
    return _as_group(found, groups.people(found)) | {
        "rules": [{"position": each.position, "name": each.name, "needs": each.needs} for each in groups.rules_of(found)],
        "versions": [
            {
                "version": each.version,
                "name": each.name,
                "members": each.members,
                "closed": each.closed,
                "saved_at": each.saved_at,
                "saved_by": {"id": each.saved_by_id, "name": each.saved_by.name} if each.saved_by else None,
                "why": plain(texts[each.why_id].text) if each.why_id in texts else None,
            }
            for each in versions
        ],
    }


@router.get("/standing-grants", response=Any, summary="Standing grants, the newest first")
def standing(request: HttpRequest) -> dict[str, Any]:
    """The newest 100, those that are over as well; `open` says which can still cover something."""
    workspace_id = places.place(request, "approvals.view").id
    found = list(_grants(request, workspace_id).order_by("-made_at")[:LISTED])
    still = set(standing_grants.standing(workspace_id).values_list("pk", flat=True))
    return {"items": [_as_grant(each, request.actor) | {"open": each.pk in still} for each in found]}


@router.get("/standing-grants/{grant_id}", response=Any, summary="A standing grant and what it covered")
def one(request: HttpRequest, grant_id: str) -> dict[str, Any]:
    found = rules.get(request.actor, StandingGrant, grant_id, "approvals.view", related=("owner", "kept__key"))
    uses = found.uses.order_by("number").values("number", "action", "digest", "seq", "used_at")
    still = standing_grants.standing(found.workspace_id).filter(pk=found.pk).exists()
    return _as_grant(found, request.actor) | {"open": still, "uses": list(uses)}


def _grants(request: HttpRequest, workspace_id: UUID) -> Any:
    return (
        rules.visible(request.actor, StandingGrant, "approvals.view").filter(workspace_id=workspace_id).select_related("owner", "kept__key")
    )


def _versions(request: HttpRequest) -> Any:
    return rules.visible(request.actor, PolicySet, "approvals.view").select_related("saved_by").order_by("-version")


def _as_set(found: PolicySet) -> dict[str, Any]:
    why = vault.shown([found.why_id]) if found.why_id else {}
    return {
        "version": found.version,
        "saved_at": found.saved_at,
        "saved_by": {"id": found.saved_by_id, "name": found.saved_by.name} if found.saved_by else None,
        "why": plain(why[found.why_id].text) if found.why_id in why else None,
        "digest": found.digest,
        "rules": [_as_rule(each) for each in found.rules.select_related("group").order_by("position")],
    }


def _as_rule(rule: Policy) -> dict[str, Any]:
    said = policy.content(rule)
    more = {"said": [conditions.said(each) for each in rule.conditions], "group": group_as_json(rule.group)}
    return {"id": rule.pk, "position": rule.position} | said | more


def group_as_json(group: ReviewerGroup | None) -> dict[str, Any] | None:
    """Which group is asked; none where all who may decide are."""
    return {"id": group.pk, "name": group.name} if group else None


def _as_group(group: ReviewerGroup, able: Sequence[User]) -> dict[str, Any]:
    decide = [{"id": user.pk, "name": user.name} for user in able]
    return {"id": group.pk, "name": group.name, "version": group.version, "closed_at": group.closed_at, "decide": decide}


def _as_grant(found: StandingGrant, actor: Actor) -> dict[str, Any]:
    return {
        "id": found.pk,
        "owner": {"id": found.owner_id, "name": found.owner.name},
        "tool": found.tool,
        "conditions": standing_grants.asks(found, actor),
        "budget": found.budget,
        "used": found.used,
        "made_at": found.made_at,
        "made_from": found.made_from_id,
        "expires_at": found.expires_at,
        "revoked_at": found.revoked_at,
    }
