"""Redaction policies over HTTP: what is in force and was, a new one, and taking one back. For people alone."""

from typing import Annotated, Any, Literal

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from ninja import Router, Status
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from access import places, reasons, rules, step_up
from access.change_models import AskedChange
from artifacts import json_paths, redaction_changes, redaction_policies
from artifacts.models import RedactionPolicy

router = Router(tags=["redaction"])
Glob = Annotated[str, StringConstraints(max_length=60)]
Why = Annotated[str, StringConstraints(max_length=reasons.MAX_REASON)]
Version = Annotated[int, Field(ge=0, le=2**31 - 1, description="the version of the policies that this was made from")]


class RedactionPolicyIn(BaseModel):
    """`hide` is what it is hidden as; null: it is shown, though an earlier policy hides it."""

    model_config = ConfigDict(extra="forbid")

    path: Annotated[str, StringConstraints(max_length=json_paths.MAX_PATH)]
    hide: Literal["secret", "prompt", "card", "iban", "path", "email", "phone"] | None = "secret"
    event: Glob = "*"
    tool: Glob = "*"
    why: Why
    version: Version


class WithdrawalIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    why: Why
    version: Version


@router.get("/redaction-policies", response=Any, summary="What is hidden beside what detectors find")
def policies(request: HttpRequest) -> dict[str, Any]:
    where = places.place(request, "redaction.manage", "audit.view")
    rows = list(RedactionPolicy.objects.filter(workspace_id=where.id).order_by("number"))
    said = reasons.shown(row.why for row in rows)
    return {"version": redaction_policies.version(where.id), "policies": [_as_json(row, said.get(row.why, "")) for row in rows]}


@router.post("/redaction-policies", response={201: Any, 202: Any}, summary="Hide what a path names")
def make(request: HttpRequest, body: RedactionPolicyIn) -> Status:
    """In force from now on, and what was kept before is rendered anew. 202: it waits for a second admin, and nothing has changed yet."""
    where = places.place(request, "redaction.manage")
    step_up.require(request)
    more = {"event": body.event, "tool": body.tool, "path": body.path, "kind": body.hide or ""}
    made = redaction_changes.make(where.id, by=request.actor, why=body.why, base=body.version, **more)
    if isinstance(made, AskedChange):
        return Status(202, _waits(made))
    return Status(201, {"version": made.number, "policy": _as_json(made, "")})


@router.post("/redaction-policies/{policy_id}/withdrawal", response={200: Any, 202: Any}, summary="Withdraw a redaction policy")
def withdraw(request: HttpRequest, policy_id: str, body: WithdrawalIn) -> Status:
    """What it hid so far stays hidden. 202: it waits for a second admin."""
    row = rules.get(request.actor, RedactionPolicy, policy_id, "redaction.manage")
    step_up.require(request)
    waits = redaction_changes.withdraw(row, by=request.actor, why=body.why, base=body.version)
    return Status(202, _waits(waits)) if waits else Status(200, {"version": redaction_policies.version(row.workspace_id)})


def _waits(change: AskedChange) -> dict[str, Any]:
    """Another admin confirms it on its page."""
    page = f"{settings.HANDRAIL_URL}{reverse('access:asked', args=[change.pk])}"
    return {"waiting": {"change": change.pk, "until": change.lapses_at, "page": page}}


def _as_json(row: RedactionPolicy, why: str) -> dict[str, Any]:
    told = {"id": row.pk, "number": row.number, "path": row.path, "hide": row.kind or None, "event": row.event, "tool": row.tool}
    return told | {"why": why, "made_at": row.made_at, "withdrawn_at": row.withdrawn_at}
