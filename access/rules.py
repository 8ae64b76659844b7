"""Who may do what. The only reader of roles.

`authenticate(scope)` makes an `Actor` out of a request or socket; `visible`, `get` and `can` answer for it.
Unknown means no: a model without `workspace_path`, a capability nobody lists, a key that has expired. A capability is held everywhere in a
workspace, or for one's own teams alone; then it reaches what a model's `team_path` says is of those teams, and nothing that says nothing.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Count, F, FilteredRelation, Model, Q, QuerySet

from access.errors import Forbidden, NotFound, NotSignedIn
from access.models import AgentKey, Membership, ProvisionerKey, Role, TeamMember, User
from access.rows import only
from config import clock

CAPABILITIES: Mapping[str, str] = {
    "runs.view": "See runs and evidence",
    "runs.events": "See raw events",
    "runs.start": "Start runs",
    "runs.steer": "Steer, cancel and undo",
    "runs.recover": "Say what happened",
    "runs.write": "Write events of own runs (agents)",
    "approvals.view": "See proposed actions",
    "approvals.decide": "Approve, edit, reject, ask",
    "policies.manage": "Change approval policies",
    "approvals.freeze": "Freeze and unfreeze",
    "actions.propose": "Propose and withdraw actions (agents)",
    "actions.redeem": "Redeem a grant and report its outcome (agents)",
    "artifacts.view": "See artifacts",
    "reveal.internal": "Reveal internal values",
    "reveal.personal": "Reveal personal data, with a reason",
    "payloads.erase": "Erase payloads for good",
    "agents.create": "Make agents (provisioner keys)",
    "agents.keys": "Make, rotate and revoke keys of the agents it made (provisioner keys)",
    "redaction.manage": "Change what is hidden",
    "access.manage": "Change people and roles",
    "audit.view": "See the access log",
}

ROLES: Mapping[str, tuple[str, ...]] = {
    "reviewer": ("runs.view", "runs.events", "approvals.view", "approvals.decide", "artifacts.view"),
    "manager": ("runs.view", "runs.events", "approvals.view", "artifacts.view", "reveal.internal", "audit.view"),
    "operator": (
        "runs.view",
        "runs.events",
        "runs.start",
        "runs.steer",
        "runs.recover",
        "approvals.view",
        "approvals.freeze",
        "artifacts.view",
        "reveal.internal",
    ),
    "admin": (
        "runs.view",
        "runs.events",
        "approvals.view",
        "approvals.freeze",
        "artifacts.view",
        "access.manage",
        "payloads.erase",
        "redaction.manage",
        "policies.manage",
        "audit.view",
    ),
}
AGENT_CAPABILITIES = (
    "runs.view",
    "runs.events",
    "runs.start",
    "runs.write",
    "runs.steer",
    "actions.propose",
    "actions.redeem",
    "artifacts.view",
)
PROVISIONER_CAPABILITIES = ("agents.create", "agents.keys")
# nobody's role gives these, whatever it lists
AGENTS_ALONE = frozenset({"runs.write", "actions.propose", "actions.redeem", *PROVISIONER_CAPABILITIES})
PEOPLES = frozenset(CAPABILITIES) - AGENTS_ALONE
# those that a role can give for the runs of the person's own teams alone: with TEAM behind them
SCOPED = frozenset({"runs.view", "runs.events", "runs.steer", "runs.recover", "approvals.view", "approvals.decide", "artifacts.view"})
SCOPED |= {"reveal.internal", "reveal.personal"}
TEAM = ":team"
GRANTABLE = tuple(each for name in CAPABILITIES if name in PEOPLES for each in ((name, name + TEAM) if name in SCOPED else (name,)))

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Actor:
    """Somebody who asks for something. `grants` maps a workspace's id to the capabilities held everywhere there.

    `own`: those that are held for the runs of `teams` alone, also by workspace.
    """

    kind: str  # human | agent | provisioner | system | nobody
    id: str = ""
    name: str = ""
    grants: Mapping[UUID, frozenset[str]] = field(default_factory=dict)
    access_version: int = 0
    signed_in: str = ""  # password | password+totp | password+recovery | password+passkey | passkey | sso | demo | key
    key_id: str = ""  # programs: the key that was used
    key_seen: datetime | None = None  # programs: when it was used before, to the minute
    workflows: frozenset[str] = frozenset()  # agents: of which alone they may start runs; empty: of any
    tools: frozenset[str] = frozenset()  # agents: with which alone they may act; empty: with any
    role: str = ""  # people: what the role is called, for the eye only; rights are in `grants`
    glass: Mapping[UUID, "Glass"] = field(default_factory=dict)  # people: what they took by break-glass, by workspace
    own: Mapping[UUID, frozenset[str]] = field(default_factory=dict)  # people
    teams: Mapping[UUID, Mapping[UUID, str]] = field(default_factory=dict)  # people: those that they are in, with their names
    session: str = ""  # people: a digest of the session they came by; what is revealed is shown in it alone

    @property
    def is_known(self) -> bool:
        return self.kind != "nobody"

    @property
    def user_id(self) -> UUID | None:
        return UUID(self.id) if self.kind == "human" else None

    @property
    def home(self) -> UUID | None:
        """Their first workspace, in whose audit trail it stands what they do about themselves."""
        return next(iter(self.grants), None)

    @property
    def standing(self) -> "Standing":
        """What its rights were read from: kind, id of the person or key, version. `changed` compares it with what is so now."""
        return (self.kind, self.key_id or self.id, _version(self.access_version, len(self.glass)))

    def workspaces(self, capability: str) -> list[UUID]:
        """Where it is held everywhere. Not for who holds it for their own teams alone."""
        return [workspace for workspace, held in self.grants.items() if capability in held]

    def narrowed(self, capability: str) -> list[UUID]:
        """Where it is held for their own teams alone."""
        return [workspace for workspace, held in self.own.items() if capability in held]

    def somewhere(self, capability: str) -> list[UUID]:
        """Where it is held at all, if only for some runs. For whether there is anything to look for, and where; never for which rows."""
        return [*self.workspaces(capability), *self.narrowed(capability)]


@dataclass(frozen=True)
class Glass:
    """Rights that a person took by break-glass in one workspace, and until when. See access/break_glass.py."""

    id: UUID
    until: datetime


Standing = tuple[str, str, int]
NOBODY = Actor("nobody")
SYSTEM = Actor("system", "handrail", "Handrail")


def authenticate(scope: Mapping[str, Any]) -> Actor:
    """The one way in: a signed-in person (scope["user"], from the session middleware), else an agent key in the headers, else nobody.

    An `Authorization` header always wins, so that a browser's cookie never lends its rights to a request that names a key.
    """
    header = next((value for name, value in scope.get("headers", ()) if name.lower() == b"authorization"), None)
    if header is not None:
        return _program(header)
    user = scope.get("user")
    if user is None or not user.is_authenticated:
        return NOBODY
    session = scope.get("session", {})
    return person(user.pk, signed_in=session.get("signed_in", "password"), session=_mark_of(session))


def _mark_of(session: Any) -> str:
    """Tells sessions apart without being of any use to whoever reads it."""
    key = getattr(session, "session_key", None)
    return hashlib.sha256(f"session:{key}".encode()).hexdigest()[:32] if key else ""


def person(user_id: UUID, *, signed_in: str = "password", session: str = "") -> Actor:
    """The actor of a user, read afresh; nobody if the account is deactivated. One query."""
    members = Membership.objects.filter(user_id=user_id, user__is_active=True, deactivated_at=None).annotate(now=_lasting())
    rows = list(
        members.order_by("pk").values_list(
            *("workspace_id", "role__capabilities", "user__name", "user__access_version", "role__name"),
            *("now__taken", "now__id", "now__until", "in_teams__team_id", "in_teams__team__name"),
        )
    )
    if not rows:
        user = only(User.objects.filter(pk=user_id, is_active=True))
        return Actor("human", str(user.pk), user.name, {}, user.access_version, signed_in, session=session) if user else NOBODY
    grants = {workspace: frozenset([*capabilities, *(now[0] or ())]) & PEOPLES for workspace, capabilities, _, _, _, *now in rows}
    own = {row[0]: _narrow(row[1]) - grants[row[0]] for row in rows}
    teams = {workspace: {row[8]: row[9] for row in rows if row[0] == workspace and row[8]} for workspace in grants}
    role = ", ".join(sorted({row[4] for row in rows}))
    glass = {row[0]: Glass(row[6], row[7]) for row in rows if row[6]}
    more = {"role": role, "session": session, "glass": glass, "own": own, "teams": teams}
    return Actor("human", str(user_id), rows[0][2], grants, rows[0][3], signed_in, **more)


def home_of(user_id: UUID | None) -> UUID | None:
    """As `Actor.home`, of a person who is not signed in; of those who are in none any more, the first that they were in."""
    members = Membership.objects.filter(user_id=user_id).order_by(F("deactivated_at").asc(nulls_first=True), "pk")
    return members.values_list("workspace_id", flat=True).first()


def _narrow(held: Iterable[str]) -> frozenset[str]:
    return frozenset(each.removesuffix(TEAM) for each in held if each.endswith(TEAM)) & SCOPED


def _lasting() -> FilteredRelation:
    """What was taken by break-glass and is not over, of each membership; there is one at most."""
    return FilteredRelation("glasses", condition=Q(glasses__ended_at=None, glasses__until__gt=clock.now()))


def _version(access_version: int, glasses: int) -> int:
    """Another number as soon as what was taken by break-glass is over, though nobody changed anything: it ends by the clock."""
    return access_version * 100 + glasses


def _program(header: bytes) -> Actor:
    scheme, _, token = header.partition(b" ")
    if scheme.lower() != b"bearer":
        return NOBODY
    token = token.strip()
    digest = hashlib.sha256(token).hexdigest()
    if token.startswith(b"hrp_"):
        maker = only(_valid_provisioners().filter(digest=digest))
        return _provisioner(maker) if maker else NOBODY
    key = only(_valid_keys().select_related("agent").filter(digest=digest))
    return _agent(key) if key else NOBODY


def _agent(key: AgentKey) -> Actor:
    held = frozenset(key.capabilities) & frozenset(AGENT_CAPABILITIES)
    scope = {"workflows": frozenset(key.workflows), "tools": frozenset(key.tools), "key_seen": key.last_used_at}
    return Actor("agent", str(key.agent_id), key.agent.name, {key.agent.workspace_id: held}, 0, "key", str(key.pk), **scope)


def _provisioner(key: ProvisionerKey) -> Actor:
    """Known by its line, so that it is the same one after it was rotated."""
    held = frozenset(key.capabilities) & frozenset(PROVISIONER_CAPABILITIES)
    return Actor("provisioner", str(key.line), key.name, {key.workspace_id: held}, 0, "key", str(key.pk), key_seen=key.last_used_at)


def _valid_keys() -> QuerySet[AgentKey]:
    """Keys that let in. Their agent's owner answers for it, so it must be a member of the workspace still."""
    keys = AgentKey.objects.filter(revoked_at=None, expires_at__gt=clock.now(), agent__owner__is_active=True)
    return keys.filter(agent__owner__memberships__workspace=F("agent__workspace"), agent__owner__memberships__deactivated_at=None)


def _valid_provisioners() -> QuerySet[ProvisionerKey]:
    keys = ProvisionerKey.objects.filter(revoked_at=None, expires_at__gt=clock.now(), owner__is_active=True)
    return keys.filter(owner__memberships__workspace=F("workspace"), owner__memberships__deactivated_at=None)


def refresh(actor: Actor) -> Actor:
    """The same actor with the rights it has now; used by open sockets. Nobody if it has none left."""
    if actor.kind == "human":
        return person(UUID(actor.id), signed_in=actor.signed_in, session=actor.session)
    if actor.kind == "agent":
        return actor if _valid_keys().filter(pk=actor.key_id).exists() else NOBODY
    if actor.kind == "provisioner":
        return actor if _valid_provisioners().filter(pk=actor.key_id).exists() else NOBODY
    return NOBODY


def changed(standings: Iterable[Standing]) -> set[Standing]:
    """Those whose rights may be others by now, for a hub that asks at each wake. Two queries at most, however many there are."""
    asked = set(standings)
    people, keys = [pk for kind, pk, _ in asked if kind == "human"], [pk for kind, pk, _ in asked if kind == "agent"]
    over = Q(memberships__deactivated_at=None, memberships__glasses__ended_at=None, memberships__glasses__until__gt=clock.now())
    active = User.objects.filter(pk__in=people, is_active=True).annotate(glasses=Count("memberships__glasses", filter=over))
    versions = active.values_list("pk", "access_version", "glasses") if people else ()
    valid = _valid_keys().filter(pk__in=keys).values_list("pk", flat=True) if keys else ()
    return asked - {("human", str(pk), _version(*version)) for pk, *version in versions} - {("agent", str(pk), 0) for pk in valid}


def visible(actor: Actor, model: type[M], capability: str) -> QuerySet[M]:
    """The rows that the actor may reach with this capability. An agent reaches only what belongs to it (`agent_path`)."""
    rows = model._default_manager.filter(within(actor, model, capability))
    if actor.kind == "agent":
        path = getattr(model, "agent_path", None)
        rows = rows.filter(**{path: actor.id}) if path else rows.none()
    if actor.kind == "provisioner":
        path = getattr(model, "provisioner_path", None)
        rows = rows.filter(**{path: actor.id}) if path else rows.none()
    return rows


def within(actor: Actor, model: type[Model], capability: str, *, at: str = "") -> Q:
    """The condition that rows of a model are within a person's reach; `at`: the path to them, with its “__”, where others are asked for.

    What a model's `team_path` leads to is a team; "": it belongs to no run, and is seen by who holds the capability for any of them;
    `run_path` leads to the id of a run that the model's room does not know. Without either it is reached from everywhere alone.
    """
    found = Q(**{f"{at}{model.workspace_path}__in": actor.workspaces(capability)})
    narrow = actor.narrowed(capability)
    if not narrow:
        return found
    here, teams = Q(**{f"{at}{model.workspace_path}__in": narrow}), [team for each in narrow for team in actor.teams.get(each, ())]
    path, run = getattr(model, "team_path", None), getattr(model, "run_path", None)
    if path == "":
        return found | here
    if path:
        return found | here & Q(**{f"{at}{path}__in": teams})
    if run and _runs_of:
        return found | here & Q(**{f"{at}{run}__in": _runs_of[0](teams)})
    return found


RunsOf = Callable[[Collection[UUID]], QuerySet[Any]]
_runs_of: list[RunsOf] = []


def register_runs(of: RunsOf) -> None:
    """Which runs are of these teams: their ids, as a query. By the room that has them, at start-up; until then none are."""
    _runs_of[:] = [of]


def get(actor: Actor, model: type[M], pk: object, capability: str, *, related: tuple[str, ...] = ()) -> M:
    """The thing, or NotFound; Forbidden if the actor may see it but lacks the capability."""
    if not actor.is_known:
        raise NotSignedIn
    able, shown = visible(actor, model, capability), visible(actor, model, getattr(model, "view_capability", capability))
    try:
        # without names, select_related would follow every foreign key there is
        found = only((able.select_related(*related) if related else able).filter(pk=pk))
        seen = found or only(shown.filter(pk=pk).values_list(model.workspace_path))
    except (ValidationError, TypeError, ValueError, OverflowError):  # not an id at all
        raise NotFound from None
    if found is None:
        refusal = _lacks(capability) if seen else NotFound()
        refusal.subject, refusal.needed = (model._meta.model_name or "", str(pk)), capability
        refusal.workspace = seen[0] if seen else None
        raise refusal
    return found


def can(actor: Actor, capability: str, workspace_id: UUID, team: UUID | None = None) -> bool:
    """Whether the actor may do this to what belongs to a team; None: to what belongs to none, or to the workspace."""
    if capability in actor.grants.get(workspace_id, frozenset()):
        return True
    return team is not None and team in actor.teams.get(workspace_id, ()) and capability in actor.own.get(workspace_id, ())


def can_of_run(actor: Actor, capability: str, workspace_id: UUID, run_id: UUID) -> bool:
    """The same as `can`, of what belongs to a run that is known by its id alone. A query only for who may for their own teams alone."""
    if can(actor, capability, workspace_id) or workspace_id not in actor.narrowed(capability):
        return can(actor, capability, workspace_id)
    return bool(_runs_of) and _runs_of[0](actor.teams.get(workspace_id, ())).filter(pk=run_id).exists()


def can_some(actor: Actor, capability: str, workspace_id: UUID) -> bool:
    """Whether there may be something that the actor may do this to. For pages and lists; each thing on them is asked for by itself."""
    return can(actor, capability, workspace_id) or capability in actor.own.get(workspace_id, ())


def require(actor: Actor, *capabilities: str) -> UUID:
    """The workspace in which the actor may do this, or one of these; the first one if there are several. For lists and new things."""
    if not actor.is_known:
        raise NotSignedIn
    held = [workspace for workspace in actor.grants if any(can_some(actor, each, workspace) for each in capabilities)]
    if not held:
        raise _lacks(capabilities[0])
    return held[0]


def _lacks(capability: str) -> Forbidden:
    return Forbidden(f"This needs the right “{CAPABILITIES.get(capability, capability)}”.", capability=capability)


class OutOfScope(Forbidden):
    """This key is not for that."""


def check_scope(actor: Actor, *, workflow: str | None = None, tool: str = "") -> None:
    """OutOfScope if an agent's key is for other workflows, or for other tools. `workflow` "": a run that the agent works on itself."""
    if workflow is not None and actor.workflows and workflow not in actor.workflows:
        raise OutOfScope(f"It starts runs of {', '.join(sorted(actor.workflows))} alone.", workflows=sorted(actor.workflows))
    if tool and actor.tools and tool not in actor.tools:
        raise OutOfScope(f"It acts with {', '.join(sorted(actor.tools))} alone.", tools=sorted(actor.tools))


def held_by_key(key: AgentKey | ProvisionerKey) -> tuple[str, ...]:
    """What a key is good for, in the order of CAPABILITIES. For pages and for access/keys.py."""
    return tuple(each for each in CAPABILITIES if each in key.capabilities)


def held_by(role: Role) -> tuple[str, ...]:
    """What a role lets people do, in the order of CAPABILITIES. For pages and for access/roles.py, which alone changes it."""
    return tuple(each for each in GRANTABLE if each in role.capabilities)


def others_with(actor: Actor, capability: str) -> list[str]:
    """The names of the other people of the actor's workspace who hold a capability; of nobody if there is not one workspace alone."""
    return others_with_each(actor, capability)[0]


def others_with_each(actor: Actor, *capabilities: str) -> list[list[str]]:
    """The same of several capabilities, in their order. One query."""
    workspaces = list(actor.grants) if actor.kind == "human" else []
    members = [each for each in _members(*workspaces) if each.user_id != actor.user_id] if len(workspaces) == 1 else []
    return [[each.user.name for each in members if capability in each.role.capabilities] for capability in capabilities]


def holders(workspace_id: UUID, capability: str, team: UUID | None = None) -> list[User]:
    """The active people of a workspace who hold a capability for what belongs to a team, by name; None: for what belongs to none.

    One query; one more where somebody holds it for their own teams alone.
    """
    members = _members(workspace_id)
    narrow = [each.pk for each in members if capability in _narrow(each.role.capabilities)] if team else []
    inside = set(TeamMember.objects.filter(team=team, membership__in=narrow).values_list("membership_id", flat=True)) if narrow else ()
    return [each.user for each in members if capability in each.role.capabilities or each.pk in inside]


def some_holders(workspace_id: UUID, capability: str) -> list[User]:
    """The active people of a workspace who hold a capability at all, if only for some runs, by name. For lists to choose from."""
    return [m.user for m in _members(workspace_id) if capability in m.role.capabilities or capability in _narrow(m.role.capabilities)]


def _members(workspace_id: UUID) -> list[Membership]:
    members = Membership.objects.filter(workspace_id=workspace_id, deactivated_at=None, user__is_active=True).select_related("user", "role")
    return sorted(members, key=lambda member: member.user.name)
