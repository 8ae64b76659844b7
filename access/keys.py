"""Keys of agents and provisioners: made once, shown once, kept as a hash. They end by the clock, by hand, or when they were rotated."""

import hashlib
import logging
import re
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Case, F, Q, QuerySet, Value, When, Window
from django.db.models.functions import RowNumber

from access import audit, characters, hiding, rules, standing
from access.errors import BadInput, DatabaseTrouble, Refusal
from access.models import Agent, AgentKey, ProvisionerKey, User
from access.rules import AGENT_CAPABILITIES, PROVISIONER_CAPABILITIES, Actor
from config import clock

MAX_DAYS, DAYS = 730, 90
MAX_OVERLAP = timedelta(days=30)  # in which a key that was rotated may be valid still
SEEN = timedelta(minutes=1)  # how exact the last use is
WORDS = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,99}")
K = TypeVar("K", AgentKey, ProvisionerKey)

logger = logging.getLogger(__name__)


class KeyRefused(BadInput):
    """No key like that can be made."""

    what_next: ClassVar[str] = "No key was made. Change what is wrong and send it again."


class KeyOver(Refusal):
    """This key is over."""

    what_next: ClassVar[str] = "Nothing was changed. Make a new key for the agent."


class KeyShown(Refusal):
    """This key was made already, and is not shown again."""

    what_next: ClassVar[str] = "No second key was made. If you lost it, revoke it and make another one."


class AgentRefused(BadInput):
    """No agent like that can be made."""

    what_next: ClassVar[str] = "No agent was made. Change what is wrong and send it again."


def make(
    agent: Agent,
    *,
    name: str,
    by: Actor,
    days: int = DAYS,
    capabilities: Collection[str] = AGENT_CAPABILITIES,
    workflows: Collection[str] = (),
    tools: Collection[str] = (),
    asked: UUID | None = None,
) -> tuple[AgentKey, str]:
    """A new key for an agent and its plain text, which is nowhere kept. `workflows`, `tools`: which alone it is for; empty means any.

    KeyRefused says what is wrong. `asked` names the form: KeyShown if it made its key already.
    """
    scope = {"workflows": _words(workflows, "workflow"), "tools": _words(tools, "tool")}
    held = _held(capabilities, AGENT_CAPABILITIES)
    told = {"agent": str(agent.pk), "days": days, "rights": len(held), "narrowed": bool(scope["workflows"] or scope["tools"])}
    with transaction.atomic():
        made, token = _written(AgentKey, "hr", name=name, days=days, held=held, asked=asked, agent=agent, **scope)
        audit.record(by, "key_created", workspace_id=agent.workspace_id, subject=("agent_key", made.pk), **told)
    return made, token


def make_provisioner(
    workspace_id: UUID,
    *,
    name: str,
    owner: User,
    by: Actor,
    days: int = DAYS,
    capabilities: Collection[str] = PROVISIONER_CAPABILITIES,
    asked: UUID | None = None,
    line: UUID | None = None,
) -> tuple[ProvisionerKey, str]:
    """A new key that makes agents, and its plain text. `owner` answers for the agents. `line`: of the key that it replaces."""
    held = _held(capabilities, PROVISIONER_CAPABILITIES)
    of: dict[str, Any] = {"workspace_id": workspace_id, "owner": owner} | ({"line": line} if line else {})
    told = {"days": days, "rights": len(held)}
    with transaction.atomic():
        made, token = _written(ProvisionerKey, "hrp", name=name, days=days, held=held, asked=asked, **of)
        audit.record(by, "provisioner_created", workspace_id=workspace_id, subject=("provisioner_key", made.pk), **told)
    return made, token


def rotate(key: K, *, by: Actor, overlap: timedelta = timedelta(), days: int = DAYS, asked: UUID | None = None) -> tuple[K, str]:
    """A new key in the place of this one, which stays valid for `overlap` more, so that whoever uses it has the time to change over."""
    if not timedelta() <= overlap <= MAX_OVERLAP:
        raise KeyRefused(f"The old key stays valid for 0 to {MAX_OVERLAP.days} days.")
    with transaction.atomic():
        _check_form(type(key), asked)
        old = type(key).objects.select_for_update(of=("self",)).get(pk=key.pk)
        _check_on(old)
        common: dict[str, Any] = {"name": old.name, "by": by, "days": days, "asked": asked, "capabilities": rules.held_by_key(old)}
        if isinstance(old, AgentKey):
            made, token = make(old.agent, workflows=old.workflows, tools=old.tools, **common)
        else:
            made, token = make_provisioner(old.workspace_id, owner=old.owner, line=old.line, **common)
        until = min(old.expires_at, clock.now() + overlap)
        type(key).objects.filter(pk=old.pk).update(successor=made, expires_at=until)
        told = {"minutes": int(overlap.total_seconds() // 60), "successor": str(made.pk)}
        verb = "key_rotated" if isinstance(old, AgentKey) else "provisioner_rotated"
        audit.record(by, verb, workspace_id=workspace_of(old), subject=_subject(old), **told)
        standing.raise_versions(User.objects.none())  # with no overlap its streams end at once
    return made, token


def revoke(key: AgentKey | ProvisionerKey, *, by: Actor) -> None:
    """End a key now. What it has open is closed at once; again changes nothing."""
    with transaction.atomic():
        if type(key).objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=clock.now()) == 1:
            verb = "key_revoked" if isinstance(key, AgentKey) else "provisioner_revoked"
            audit.record(by, verb, workspace_id=workspace_of(key), subject=_subject(key))
            standing.raise_versions(User.objects.none())


def create_agent(workspace_id: UUID, *, name: str, owner: User, by: Actor) -> Agent:
    """A new agent. Its owner answers for it, and so never decides on what it proposes. AgentRefused says what is wrong."""
    if not re.fullmatch(r"[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?", name):
        raise AgentRefused("An agent’s name has 1 to 60 small letters, digits and hyphens, as support-triage.")
    if not owner.is_active or not owner.memberships.filter(workspace_id=workspace_id, deactivated_at=None).exists():
        raise AgentRefused("The owner of an agent is an active person of the workspace.")
    line = UUID(by.id) if by.kind == "provisioner" else None
    try:
        with transaction.atomic():
            made = Agent.objects.create(workspace_id=workspace_id, name=name, owner=owner, provisioner=line)
            audit.record(by, "agent_created", workspace_id=workspace_id, subject=("agent", made.pk), owner=str(owner.pk))
    except IntegrityError:
        raise AgentRefused(f"There is an agent called {name} already.") from None
    return made


def used(actor: Actor) -> None:
    """Note that a key was used, at most once a minute, and in no transaction of what it was used for. Nothing depends on it."""
    if actor.kind not in ("agent", "provisioner") or not actor.key_id:
        return
    now = clock.now()
    if actor.key_seen is not None and actor.key_seen > now - SEEN:
        return
    model = AgentKey if actor.kind == "agent" else ProvisionerKey
    try:
        rows = model.objects.filter(Q(last_used_at=None) | Q(last_used_at__lte=now - SEEN), pk=actor.key_id)
        rows.update(last_used_at=now)
    except DatabaseTrouble:
        logger.warning("the last use of a key could not be noted")


def in_order(found: QuerySet[K]) -> QuerySet[K]:
    """Those that are on first, then the newest."""
    return found.annotate(is_over=_over(clock.now())).order_by("is_over", "-created_at", "pk")


def first_of(agents: Collection[Agent], *, most: int) -> dict[UUID, list[AgentKey]]:
    """The first keys of each of these agents, in order. One query, however many keys they have."""
    place = Window(RowNumber(), partition_by=F("agent_id"), order_by=[_over(clock.now()), F("created_at").desc(), F("pk").asc()])
    found: dict[UUID, list[AgentKey]] = {each.pk: [] for each in agents}
    for key in AgentKey.objects.filter(agent__in=agents).annotate(place=place).filter(place__lte=most).order_by("place"):
        found[key.agent_id].append(key)
    return found


def _over(now: datetime) -> Case:
    return Case(When(revoked_at=None, expires_at__gt=now, then=Value(0)), default=Value(1))


def is_on(key: AgentKey | ProvisionerKey) -> bool:
    return key.revoked_at is None and key.expires_at > clock.now()


def _check_on(key: AgentKey | ProvisionerKey) -> None:
    if key.revoked_at is not None:
        raise KeyOver("It was revoked.")
    if key.expires_at <= clock.now():
        raise KeyOver("It has expired.")
    if key.successor_id is not None:
        raise KeyOver("It was rotated before; rotate the new one.")


def _check_form(model: type[AgentKey] | type[ProvisionerKey], asked: UUID | None) -> None:
    if asked is not None and model.objects.filter(asked=asked).exists():
        raise KeyShown


def _written(model: type[Any], prefix: str, *, name: str, days: int, held: list[str], asked: UUID | None, **of: Any) -> tuple[Any, str]:
    name = name.strip()
    if not 1 <= characters.seen_length(name) <= len(name) <= 60 or characters.has_hidden(name):
        raise KeyRefused("Its name has 1 to 60 characters that can be seen.")
    if held_in := hiding.detectors.holds(name):
        raise KeyRefused(f"Its name holds what looks like {held_in}, and everybody sees it.")
    if not 1 <= days <= MAX_DAYS:
        raise KeyRefused(f"A key is good for 1 to {MAX_DAYS} days.")
    _check_form(model, asked)
    token = f"{prefix}_{secrets.token_urlsafe(32)}"
    kept = {"prefix": token[: len(prefix) + 7], "digest": hashlib.sha256(token.encode()).hexdigest(), "capabilities": held}
    try:
        with transaction.atomic():
            return model.objects.create(name=name, expires_at=clock.now() + timedelta(days=days), asked=asked, **kept, **of), token
    except IntegrityError as error:
        if asked is None:
            raise
        raise KeyShown from error  # the same form at the same moment


def _held(wanted: Collection[str], most: tuple[str, ...]) -> list[str]:
    if odd := sorted(set(wanted) - set(most)):
        raise KeyRefused(f"“{odd[0][:60]}” is no right that such a key can have.", known=list(most))
    if not wanted:
        raise KeyRefused("Choose at least one right.", known=list(most))
    return [each for each in most if each in wanted]


def _words(given: Collection[str], what: str) -> list[str]:
    words = list(dict.fromkeys(each.strip() for each in given if each.strip()))
    if len(words) > 50 or any(not WORDS.fullmatch(word) for word in words):
        raise KeyRefused(f"A {what} is named by letters, digits, _, -, . and :, and there are 50 at most.")
    return words


def workspace_of(key: AgentKey | ProvisionerKey) -> UUID:
    return key.agent.workspace_id if isinstance(key, AgentKey) else key.workspace_id


def _subject(key: AgentKey | ProvisionerKey) -> tuple[str, UUID]:
    return ("agent_key" if isinstance(key, AgentKey) else "provisioner_key", key.pk)
