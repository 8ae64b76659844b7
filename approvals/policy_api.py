"""Policies and standing grants over HTTP, to be read. They are changed on their pages, where a try is shown first."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from access import rules
from access.errors import NotFound
from access.rules import Actor
from approvals import conditions, policy, standing_grants
from approvals.models import Policy, PolicySet, StandingGrant
from artifacts import vault
from artifacts.redaction import plain

router = Router(tags=["policies"])
LISTED = 100


@router.get("/policies", response=Any, summary="The rules in force, in their order")
def in_force(request: HttpRequest) -> dict[str, Any]:
    """The first rule that matches an action counts; what none matches is refused."""
    workspace_id = rules.require(request.actor, "approvals.view")
    found = _versions(request).filter(workspace_id=workspace_id).first()
    return _as_set(found) if found else {"version": 0, "rules": []}


@router.get("/policies/{version}", response=Any, summary="An earlier version of the rules")
def version(request: HttpRequest, version: int) -> dict[str, Any]:
    workspace_id = rules.require(request.actor, "approvals.view")
    found = _versions(request).filter(workspace_id=workspace_id, version=version).first() if 0 < version < 2**31 else None
    if found is None:
        raise NotFound
    return _as_set(found)


@router.get("/standing-grants", response=Any, summary="Standing grants, the newest first")
def standing(request: HttpRequest) -> dict[str, Any]:
    """The newest 100, those that are over as well; `open` says which can still cover something."""
    workspace_id = rules.require(request.actor, "approvals.view")
    found = list(rules.visible(request.actor, StandingGrant, "approvals.view").select_related("owner").order_by("-made_at")[:LISTED])
    still = set(standing_grants.standing(workspace_id).values_list("pk", flat=True))
    return {"items": [_as_grant(each, request.actor) | {"open": each.pk in still} for each in found]}


@router.get("/standing-grants/{grant_id}", response=Any, summary="A standing grant and what it covered")
def one(request: HttpRequest, grant_id: str) -> dict[str, Any]:
    found = rules.get(request.actor, StandingGrant, grant_id, "approvals.view", related=("owner",))
    uses = found.uses.order_by("number").values("number", "action", "digest", "seq", "used_at")
    still = standing_grants.standing(found.workspace_id).filter(pk=found.pk).exists()
    return _as_grant(found, request.actor) | {"open": still, "uses": list(uses)}


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
        "rules": [_as_rule(each) for each in found.rules.order_by("position")],
    }


def _as_rule(rule: Policy) -> dict[str, Any]:
    said = policy.content(rule)
    return {"id": rule.pk, "position": rule.position} | said | {"said": [conditions.said(each) for each in rule.conditions]}


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
