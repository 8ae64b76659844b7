"""Agents and their keys over HTTP: for who manages access, and for provisioner keys, which see and manage what they made alone."""

from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import ConfigDict, Field, StringConstraints

from access import keys, places, rules, step_up
from access.errors import BadInput
from access.models import Agent, AgentKey, ProvisionerKey, User
from access.rules import Actor

router = Router(tags=["agents"])
Name = Annotated[str, StringConstraints(max_length=60)]
Words = Annotated[list[Annotated[str, StringConstraints(max_length=100)]], Field(max_length=50)]


class Strict(Schema):
    """A field that is misspelt would leave a key wider than it was meant to be."""

    model_config = ConfigDict(extra="forbid")


class AgentIn(Strict):
    """`owner`: the e-mail of the person of the workspace who answers for it; without it who asks, or whose provisioner key it is."""

    name: Name
    owner: Annotated[str, StringConstraints(max_length=254)] | None = None


class KeyIn(Strict):
    """`rights`: of those that agents have; without it all. `workflows`, `tools`: which alone it is for; empty means any."""

    name: Name
    days: Annotated[int, Field(ge=1, le=keys.MAX_DAYS)] = keys.DAYS
    rights: Annotated[list[Name], Field(max_length=50)] | None = None
    workflows: Words = []
    tools: Words = []


class RotationIn(Strict):
    """`overlap_minutes`: how long the old key stays valid."""

    overlap_minutes: Annotated[int, Field(ge=0, le=30 * 24 * 60)] = 0
    days: Annotated[int, Field(ge=1, le=keys.MAX_DAYS)] = keys.DAYS


@router.get("/agents", response=Any, summary="Agents and their keys")
def agents(request: HttpRequest) -> dict[str, Any]:
    """Never the keys themselves: their first characters, what they are for, until when, and when they were used."""
    rules.require(request.actor, "access.manage", "agents.keys", "agents.create")
    found = _visible(request.actor).select_related("owner").prefetch_related("keys").order_by("name")
    return {"agents": [_told(each, keys=[_key(key) for key in each.keys.all()]) for each in found]}


@router.post("/agents", response={201: Any}, summary="Make an agent")
def create(request: HttpRequest, body: AgentIn) -> Status:
    """It can do nothing until it has a key. A name that is taken is 422. `?workspace=` for people who are in several."""
    _check_fresh(request)
    workspace_id = places.place(request, "access.manage", "agents.create").id
    made = keys.create_agent(workspace_id, name=body.name, owner=_owner(request.actor, workspace_id, body.owner), by=request.actor)
    return Status(201, {"agent": _told(made, keys=[])})


@router.post("/agents/{agent_id}/keys", response={201: Any}, summary="Make a key for an agent")
def make(request: HttpRequest, agent_id: str, body: KeyIn) -> Status:
    """`token` is the key. It is in this answer alone."""
    _check_fresh(request)
    agent = rules.get(request.actor, Agent, agent_id, _right(request.actor))
    held = rules.AGENT_CAPABILITIES if body.rights is None else body.rights
    scope = {"capabilities": held, "workflows": body.workflows, "tools": body.tools}
    made, token = keys.make(agent, name=body.name, by=request.actor, days=body.days, **scope)
    return Status(201, {"key": _key(made), "token": token})


@router.post("/agents/{agent_id}/keys/{key_id}/rotations", response={201: Any}, summary="Put a new key in the place of one")
def rotate(request: HttpRequest, agent_id: str, key_id: str, body: RotationIn) -> Status:
    """The old key stays valid for the overlap. `token` is the new key; it is in this answer alone."""
    _check_fresh(request)
    old = _found(request.actor, agent_id, key_id)
    made, token = keys.rotate(old, by=request.actor, overlap=timedelta(minutes=body.overlap_minutes), days=body.days)
    return Status(201, {"key": _key(made), "token": token})


@router.api_operation(["DELETE"], "/agents/{agent_id}/keys/{key_id}", response=Any, summary="Revoke a key at once")
def revoke(request: HttpRequest, agent_id: str, key_id: str) -> dict[str, Any]:
    """What it has open is closed. Again gives the same."""
    found = _found(request.actor, agent_id, key_id)
    keys.revoke(found, by=request.actor)
    found.refresh_from_db()
    return {"key": _key(found)}


def _right(actor: Actor) -> str:
    return "agents.keys" if actor.kind == "provisioner" else "access.manage"


def _visible(actor: Actor) -> Any:
    held = "agents.keys" if actor.workspaces("agents.keys") else "agents.create"
    return rules.visible(actor, Agent, held if actor.kind == "provisioner" else "access.manage")


def _found(actor: Actor, agent_id: str, key_id: str) -> AgentKey:
    agent = rules.get(actor, Agent, agent_id, _right(actor))
    found = rules.get(actor, AgentKey, key_id, _right(actor), related=("agent",))
    if found.agent_id != agent.pk:
        raise BadInput("This key is of another agent.")
    return found


def _check_fresh(request: HttpRequest) -> None:
    """A person shows again who they are; a provisioner key is what it is."""
    if request.actor.kind == "human":
        step_up.require(request)


def _owner(actor: Actor, workspace_id: UUID, email: str | None) -> User:
    if email is not None:
        found = User.objects.by_email(email).filter(memberships__workspace=workspace_id).first()
        if found is None:
            raise keys.AgentRefused("Nobody of the workspace has this e-mail address.")
        return found
    if actor.kind == "provisioner":
        return ProvisionerKey.objects.select_related("owner").filter(pk=actor.key_id)[0].owner
    return User.objects.filter(pk=actor.user_id)[0]


def _told(agent: Agent, **more: Any) -> dict[str, Any]:
    return {"id": str(agent.pk), "name": agent.name, "owner": {"id": str(agent.owner_id), "name": agent.owner.name}, **more}


def _key(key: AgentKey) -> dict[str, Any]:
    return {
        "id": str(key.pk),
        "name": key.name,
        "prefix": key.prefix,
        "rights": list(rules.held_by_key(key)),
        "workflows": key.workflows,
        "tools": key.tools,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
        "successor": str(key.successor_id) if key.successor_id else None,
    }
