"""Changing what a role may do. The only writer of roles and their versions.

A change names the version that it was made from, and gives a reason. Where the workspace asks for a second admin it waits for one: whoever
asked can't confirm it, and without an answer it lapses after a day. In force it is in one transaction with its version, its entry in the
audit trail and a new `access_version` of everybody who holds the role, so that what is open looks again at once. Undoing is a change too:
to what an older version was.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Count, Q, QuerySet
from django.dispatch import Signal as Notice

from access import audit, hiding, reasons, rules, standing
from access.change_models import AskedChange
from access.errors import BadInput, Forbidden, Refusal
from access.models import AuditEntry, Membership, Role, User, Workspace
from access.role_models import RoleChange, RoleVersion
from access.rules import TEAM, Actor
from config import clock

MANAGES = "access.manage"
LASTS = timedelta(hours=24)  # that a change waits for a second admin
asked = Notice()  # a `change` waits for a second admin; sent in the transaction. Other rooms tell people of it
MAX_ROLES, MAX_NAME = 30, 60
# nobody holds both: whoever writes the rules does not use them
APART = (("approvals.decide", "access.manage"), ("approvals.decide", "policies.manage"))


class RoleRefused(BadInput):
    """This role can't be kept so."""

    what_next = "Nothing was changed. Mend what is said here."


class KeptApart(RoleRefused):
    """Nobody may hold both of these."""


class LastAdmin(RoleRefused):
    """Nobody could manage people and roles any more."""

    what_next = "Nothing was changed. Let somebody else manage people and roles first."


class RoleChanged(Refusal):
    """The role was changed after it was drawn for you."""

    what_next = "Nothing was changed. What you chose is still here: look at it beside the version that is in force now."


class ChangeWaits(Refusal):
    """A change of this waits already."""

    what_next = "Nothing was changed. Have it confirmed, refused or withdrawn first."


class ChangeOver(Refusal):
    """This change does not wait any more."""

    what_next = "Nothing was changed. Look again at what is in force."


class NotTheSecond(Forbidden):
    """Whoever asked for a change can't confirm it."""

    what_next = "Nothing was changed. Another admin confirms or refuses it."


@dataclass(frozen=True)
class Wanted:
    """What a role should be. `restores`: the version that it is to be again."""

    name: str
    holds: frozenset[str]
    retired: bool = False
    restores: int | None = None


@dataclass(frozen=True)
class InForce:
    """The change was made at once."""

    role: Role


@dataclass(frozen=True)
class Waiting:
    """The change waits for a second admin."""

    change: RoleChange


def set_up(workspace: Workspace) -> dict[str, Role]:
    """The roles that every workspace begins with, by name. For the installation: what is there stays as it is."""
    return {
        name: Role.objects.get_or_create(workspace=workspace, name=name, defaults={"capabilities": list(held)})[0]
        for name, held in rules.ROLES.items()
    }


def ask(workspace_id: UUID, role: Role | None, wanted: Wanted, *, base: int, by: Actor, why: str) -> InForce | Waiting:
    """Change a role, or make one. Where a second admin is needed it waits for them, and nothing changes until then.

    `base`: the version that it was made from, 0 for a new one; RoleChanged if another is in force by now.
    """
    with transaction.atomic():
        hold(workspace_id)
        wanted = _checked(workspace_id, role, wanted)
        role = Role.objects.get(pk=role.pk) if role else None  # as it is now that nobody else changes it
        _check_base(role, base)
        _check_held(role, wanted)
        lapse(RoleChange.objects.filter(role=role, workspace_id=workspace_id))
        if role is not None and RoleChange.objects.filter(role=role, state="waiting").exists():
            raise ChangeWaits
        kept = reasons.keep(workspace_id, why)
        if needs_second(workspace_id):
            return Waiting(_wait(workspace_id, role, wanted, base, by, kept))
        made = _put_in_force(workspace_id, role, wanted, base=base, asked_by=by.user_id, confirmed_by=None, why=kept, actor=by)
    return InForce(made)


def confirm(change: RoleChange, *, by: Actor) -> Role:
    """Put a change in force that another admin asked for. ChangeOver if it can't be any more: it is overtaken then, for good."""
    check_second(change, by)
    made, lost = None, None
    with transaction.atomic():
        hold(change.workspace_id)
        settle(change, "confirmed", by=by)
        try:
            with transaction.atomic():
                made = _confirmed(change, by)
        except Refusal as error:  # something else came into force since it was asked for
            lost = error
            overtake(change)
            _record(by, "role_change_overtaken", change)
    if made is None:
        raise ChangeOver(f"Something else changed since it was asked for. {lost.more or lost.title if lost else ''}".rstrip())
    return made


def _confirmed(change: RoleChange, by: Actor) -> Role:
    role = Role.objects.get(pk=change.role_id) if change.role_id else None
    if not _manages(change.asked_by_id, change.workspace_id):
        raise ChangeOver("Whoever asked for it may not manage people and roles any more.")
    wanted = _checked(change.workspace_id, role, _wanted_by(change))
    _check_base(role, change.base)
    _check_held(role, wanted)
    given = {"asked_by": change.asked_by_id, "confirmed_by": by.user_id, "why": change.why}
    return _put_in_force(change.workspace_id, role, wanted, base=change.base, actor=by, change=change.pk, **given)


def refuse(change: RoleChange, *, by: Actor, why: str) -> None:
    """Say no, and why, to what another admin asked for. Nothing changes."""
    check_second(change, by)
    with transaction.atomic():
        kept = reasons.keep(change.workspace_id, why)
        settle(change, "refused", by=by, why=kept)
        _record(by, "role_change_refused", change, why=kept)


def withdraw(change: RoleChange, *, by: Actor) -> None:
    """Take back what one asked for. Nothing changes."""
    if by.user_id != change.asked_by_id:
        raise Forbidden("Whoever asked for a change withdraws it. You can refuse it.")
    with transaction.atomic():
        settle(change, "withdrawn", by=by)
        _record(by, "role_change_withdrawn", change)


# who ------------------------------------------------------------------------------------------------------------------------------


def needs_second(workspace_id: UUID, right: str = MANAGES) -> bool:
    """Whether a change under this right takes a second admin here: as the workspace says, else as soon as two people hold it."""
    said = Workspace.objects.values_list("second_admin", flat=True).get(pk=workspace_id)
    return len(rules.holders(workspace_id, right)) > 1 or lost_one(workspace_id, right) if said is None else said


def lost_one(workspace_id: UUID, right: str = MANAGES) -> bool:
    """Whether somebody lost this right within the last day: who sends the second admin away is not at once the only one."""
    lately = AuditEntry.objects.filter(workspace_id=workspace_id, at__gt=clock.now() - LASTS)
    told = lately.filter(verb__in=("person_deactivated", "role_given", "role_changed")).values_list("data", flat=True)
    return any(right in each.get("lost", ()) for each in told)


def say_second(workspace_id: UUID, wanted: bool | None, *, by: Actor) -> None:
    """Always, never, or (None) as soon as there are two. For the installation: an admin alone must not be able to say it."""
    with transaction.atomic():
        hold(workspace_id)
        Workspace.objects.filter(pk=workspace_id).update(second_admin=wanted)
        audit.record(by, "second_admin_set", workspace_id=workspace_id, when={None: "two", True: "always", False: "never"}[wanted])


def managers(workspace_id: UUID) -> list[User]:
    """Who may manage people and roles, by name."""
    return rules.holders(workspace_id, MANAGES)


def seconds(workspace_id: UUID, user_id: UUID | None, right: str = MANAGES) -> list[User]:
    """Who could confirm what this person asks for, by name."""
    return [user for user in rules.holders(workspace_id, right) if user.pk != user_id]


def check_second(change: RoleChange | AskedChange, by: Actor) -> None:
    """NotTheSecond if it is their own."""
    if by.user_id == change.asked_by_id:
        raise NotTheSecond(f"You asked for this at {change.asked_at:%H:%M} (UTC). You can withdraw it.")


def check_somebody_manages(workspace_id: UUID) -> None:
    """LastAdmin if nobody could manage people and roles any more. In the transaction of whatever took it from somebody, after `hold`."""
    if not managers(workspace_id):
        raise LastAdmin("The last person who may manage people and roles would lose that right.")


def hold(workspace_id: UUID) -> None:
    """Let nobody else change who may do what in a workspace until the transaction ends."""
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace_id)


def listed(workspace_id: UUID) -> list[Role]:
    """The roles that are not retired, those of the house first in their order, each with `people`: how many hold it. One query."""
    order = {name: place for place, name in enumerate(rules.ROLES)}
    rows = Role.objects.filter(workspace_id=workspace_id, retired_at=None).annotate(people=Count("memberships", filter=_ACTIVE))
    return sorted(rows, key=lambda role: (order.get(role.name, len(order)), role.name.lower()))


def people(role: Role) -> list[User]:
    """Who holds a role, by name."""
    members = Membership.objects.filter(role=role, deactivated_at=None, user__is_active=True).select_related("user")
    return sorted((member.user for member in members), key=lambda user: user.name)


_ACTIVE = Q(memberships__deactivated_at=None, memberships__user__is_active=True)

# versions -------------------------------------------------------------------------------------------------------------------------


def waiting(workspace_id: UUID) -> list[RoleChange]:
    """The changes that wait for a second admin, the oldest first."""
    rows = RoleChange.objects.filter(workspace_id=workspace_id, state="waiting", lapses_at__gt=clock.now())
    return list(rows.select_related("role", "asked_by").order_by("asked_at"))


def waits(role: Role) -> RoleChange | None:
    rows = RoleChange.objects.filter(role=role, state="waiting", lapses_at__gt=clock.now())
    return rows.select_related("asked_by").first()


def state(change: RoleChange | AskedChange) -> str:
    """What became of a change. One that nobody answered in time has lapsed, also before that is written down."""
    return "lapsed" if change.state == "waiting" and change.lapses_at <= clock.now() else change.state


def history(role: Role) -> list[RoleVersion]:
    """Its versions, the newest first; of a role that was never changed the one that it is."""
    found = list(RoleVersion.objects.filter(role=role).select_related("asked_by", "confirmed_by").order_by("-version"))
    return found or [_first(role)]


def version(role: Role, number: int) -> RoleVersion | None:
    return next((each for each in history(role) if each.version == number), None)


def changes(before: Iterable[str], after: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What comes to it and what is taken from it, in the order of CAPABILITIES; a right for the own teams and everywhere are two things."""
    was, will = set(before), set(after)
    return tuple(_ordered(will - was)), tuple(_ordered(was - will))


# how ------------------------------------------------------------------------------------------------------------------------------


def _checked(workspace_id: UUID, role: Role | None, wanted: Wanted) -> Wanted:
    """The same, each part fit to be kept; RoleRefused says what is not."""
    name = " ".join(wanted.name.split())
    if trouble := hiding.unfit(name, MAX_NAME, whose="Its", another="role"):
        raise RoleRefused(trouble)
    others = Role.objects.filter(workspace_id=workspace_id).exclude(pk=role.pk if role else None)
    if others.filter(name__iexact=name).exists():
        raise RoleRefused(f"There is a role “{name}” already, or was. A retired one can be restored.")
    if role is None and others.count() >= MAX_ROLES:
        raise RoleRefused(f"There are {MAX_ROLES} roles already, retired ones among them.")
    if odd := sorted(wanted.holds - set(rules.GRANTABLE)):
        only = "only agents can have" if odd[0] in rules.AGENTS_ALONE else "nobody knows"
        raise RoleRefused(f"“{odd[0][:60]}” is a right that {only}.")
    # who holds something everywhere holds it in their own teams
    holds = frozenset() if wanted.retired else wanted.holds - {each + TEAM for each in wanted.holds}
    for one, other in APART:
        if {one, other} <= {each.removesuffix(TEAM) for each in holds}:
            raise KeptApart(f"“{rules.CAPABILITIES[one]}” and “{rules.CAPABILITIES[other]}”: who writes the rules does not use them.")
    return Wanted(name, holds, wanted.retired, wanted.restores)


def _check_base(role: Role | None, base: int) -> None:
    now = role.version if role else 0
    if now != base:
        raise RoleChanged(f"Version {now} is in force by now; yours was made from version {base}.", version=now)


def _check_held(role: Role | None, wanted: Wanted) -> None:
    if wanted.retired and role is not None and (there := len(people(role))):
        raise RoleRefused(f"{there} {'person holds' if there == 1 else 'people hold'} it. Give them another role first.")
    if role is not None and not _differs(role, wanted):
        raise RoleRefused("Nothing would change.")


def _differs(role: Role, wanted: Wanted) -> bool:
    return (wanted.name, wanted.holds, wanted.retired) != (role.name, frozenset(rules.held_by(role)), role.retired_at is not None)


def _wait(workspace_id: UUID, role: Role | None, wanted: Wanted, base: int, by: Actor, why: UUID) -> RoleChange:
    if not seconds(workspace_id, by.user_id):
        since = " Whoever else could lost that right within the last day; after a day you may alone." if lost_one(workspace_id) else ""
        raise RoleRefused(f"This workspace asks for a second admin, and there is nobody else who may manage people and roles.{since}")
    now = clock.now()
    try:
        with transaction.atomic():
            made = RoleChange.objects.create(
                workspace_id=workspace_id,
                role=role,
                base=base,
                name=wanted.name,
                holds=_ordered(wanted.holds),
                retired=wanted.retired,
                restores=wanted.restores,
                why=why,
                asked_by_id=by.user_id,
                asked_at=now,
                signed_in=by.signed_in,
                lapses_at=now + LASTS,
            )
    except IntegrityError as error:
        raise ChangeWaits from error
    _record(by, "role_change_asked", made)
    asked.send(RoleChange, change=made)
    return made


def _put_in_force(
    workspace_id: UUID,
    role: Role | None,
    wanted: Wanted,
    *,
    base: int,
    asked_by: UUID | None,
    confirmed_by: UUID | None,
    why: UUID | None,
    actor: Actor,
    change: UUID | None = None,
) -> Role:
    """The role as it is wanted, from now on, for everybody who holds it. The workspace is held."""
    before = rules.held_by(role) if role else ()
    now = clock.now()
    if role is None:
        role = Role.objects.create(workspace_id=workspace_id, name=wanted.name, capabilities=_ordered(wanted.holds))
    else:
        if not role.versions.exists():
            RoleVersion.objects.bulk_create([_first(role)])
        becomes = {"name": wanted.name, "capabilities": _ordered(wanted.holds), "retired_at": now if wanted.retired else None}
        if Role.objects.filter(pk=role.pk, version=base).update(version=base + 1, **becomes) != 1:
            raise RoleChanged
        role = Role.objects.get(pk=role.pk)
    by = {"asked_by_id": asked_by, "confirmed_by_id": confirmed_by, "why": why, "restores": wanted.restores}
    RoleVersion.objects.create(
        role=role, version=role.version, name=role.name, holds=_ordered(wanted.holds), retired=wanted.retired, at=now, **by
    )
    standing.raise_versions(User.objects.filter(memberships__role=role, memberships__deactivated_at=None))
    check_somebody_manages(workspace_id)
    more, less = changes(before, wanted.holds)
    verb = "role_made" if base == 0 else "role_retired" if wanted.retired else "role_changed"
    told = {"version": role.version, "added": list(more), "removed": list(less), "restores": wanted.restores}
    told |= {"why": str(why)} if why else {}
    told |= {"change": str(change), "asked_by": str(asked_by)} if change else {}
    # what one admin alone took from others; see `lost_one`
    told |= {"lost": list(less)} if less and confirmed_by is None and any(user.pk != asked_by for user in people(role)) else {}
    audit.record(actor, verb, workspace_id=workspace_id, subject=("role", role.pk), **told)
    return role


def settle(change: RoleChange | AskedChange, how: str, *, by: Actor, why: UUID | None = None) -> None:
    """What waits, and has not lapsed, is settled once. In the caller's transaction."""
    rows = type(change).objects
    open_one = rows.filter(pk=change.pk, state="waiting", lapses_at__gt=clock.now())
    if open_one.update(state=how, settled_by_id=by.user_id, settled_at=clock.now(), answer=why) != 1:
        now = rows.select_related("settled_by").get(pk=change.pk)
        said = {"confirmed": "confirmed it", "refused": "refused it", "withdrawn": "withdrew it"}.get(now.state)
        if now.state == "overtaken":
            raise ChangeOver("Something else changed since it was asked for.")
        raise ChangeOver(f"{now.settled_by.name} {said}." if said and now.settled_by else "It lapsed without an answer.")


def overtake(change: RoleChange | AskedChange) -> None:
    """What was just settled could not be done any more: something else came first."""
    type(change).objects.filter(pk=change.pk).update(state="overtaken")


def lapse(rows: QuerySet) -> None:
    """Write down that changes lapsed, before others of the same thing wait."""
    rows.filter(state="waiting", lapses_at__lte=clock.now()).update(state="lapsed", settled_at=clock.now())


def _manages(user_id: UUID, workspace_id: UUID) -> bool:
    return rules.can(rules.person(user_id), MANAGES, workspace_id)


def _wanted_by(change: RoleChange) -> Wanted:
    return Wanted(change.name, frozenset(change.holds), change.retired, change.restores)


def _first(role: Role) -> RoleVersion:
    """A role that was never changed here, as a version."""
    holds = list(rules.held_by(role))
    return RoleVersion(role=role, version=role.version, name=role.name, holds=holds, retired=role.retired_at is not None, at=None)


def _ordered(holds: Collection[str]) -> Sequence[str]:
    return [each for each in rules.GRANTABLE if each in holds]


def _record(by: Actor, verb: str, change: RoleChange, *, why: UUID | None = None) -> None:
    """`why`: the reason of who did this; else it is that of who asked for the change."""
    before = rules.held_by(change.role) if change.role else ()
    more, less = changes(before, change.holds)
    told = {"change": str(change.pk), "base": change.base, "added": list(more), "removed": list(less)}
    told |= {"why": str(why or change.why)} if why or change.why else {}
    audit.record(by, verb, workspace_id=change.workspace_id, subject=("role", change.role_id or ""), **told)
