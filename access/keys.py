"""Agent keys: made once, shown once, kept as a hash."""

import hashlib
import secrets
from datetime import timedelta

from access import audit
from access.models import Agent, AgentKey
from access.rules import AGENT_CAPABILITIES, Actor
from config import clock


def make(agent: Agent, *, name: str, by: Actor, days: int = 90, capabilities: tuple[str, ...] = AGENT_CAPABILITIES) -> tuple[AgentKey, str]:
    """A new key for an agent and its plain text, which is nowhere kept."""
    token = f"hr_{secrets.token_urlsafe(32)}"
    key = AgentKey.objects.create(
        agent=agent,
        name=name,
        prefix=token[:9],
        digest=hashlib.sha256(token.encode()).hexdigest(),
        capabilities=list(capabilities),
        expires_at=clock.now() + timedelta(days=days),
    )
    audit.record(by, "key_created", workspace_id=agent.workspace_id, subject=("agent_key", key.pk))
    return key, token
