"""The people of a workspace: who they are, their role, and letting them go. Each change has a reason and takes effect at once."""

from uuid import UUID

from allauth.mfa.models import Authenticator
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse

from access import audit, break_glass, open_sessions, paging, permissions, reasons, roles, rules, second_admin, standing
from access.change_models import AskedChange
from access.errors import NotFound, Refusal
from access.models import Agent, Membership, Role, User
from access.paging import Paged
from access.people_models import Invitation
from access.rules import Actor
from access.second_admin import Kind, Part
from config import clock

PAGE = 50
MANAGE = "access.manage"


class Yourself(Refusal):
    """You can’t do that to yourself."""

    what_next = "Nothing was changed. Another admin can."


class AlsoElsewhere(Refusal):
    """They are of another workspace too."""

    what_next = "Nothing was changed. They change it themselves, or somebody who manages people in each of their workspaces does."


class TakesTwo(Refusal):
    """One admin alone makes no link that opens this account."""

    what_next = "Nothing was made. Whoever runs Handrail can give them a new password: manage.py changepassword, with their e-mail."


class NoChange(Refusal):
    """Nothing to change."""

    what_next = "Somebody else was faster, or it was so already. Look again."


def listed(workspace_id: UUID, *, search: str = "", role: str = "", gone: bool = False, page: str = "") -> Paged[Membership]:
    """By name. `gone`: those who are deactivated instead of those who are not. Three queries, however many there are."""
    rows = _told(Membership.objects.filter(workspace_id=workspace_id, deactivated_at__isnull=not gone))
    for word in search.split()[:5]:
        rows = rows.filter(Q(user__name__icontains=word) | Q(user__email__icontains=word))
    rows = rows.filter(role__name=role) if role else rows
    return paging.of_query(rows.order_by("user__name", "pk"), page, size=PAGE)


def one(actor: Actor, workspace_id: UUID, user_id: UUID) -> Membership:
    """Somebody's place in this workspace. NotFound if they have none, or the actor manages nobody there."""
    found = _told(rules.visible(actor, Membership, MANAGE).filter(workspace_id=workspace_id, user_id=user_id)).first()
    if found is None:
        raise NotFound
    return found


def invited(workspace_id: UUID) -> list[Invitation]:
    """Those that may still be accepted, or have run out without anybody saying so."""
    rows = Invitation.objects.filter(workspace_id=workspace_id, used_at=None, withdrawn_at=None)
    return list(rows.select_related("role", "invited_by").order_by("-created_at")[:100])


def ask_role(member: Membership, role: Role, *, by: Actor, why: str) -> AskedChange | None:
    """Another role. One with more rights waits for a second admin where the workspace asks for one; else it counts at once: None."""
    if not any(now < then for _, now, then in _levels(member.role, role)) or not second_admin.is_needed(member.workspace_id, GIVEN):
        return give_role(member, role, by=by, why=why)
    _check(member, by, keeps=MANAGE in rules.held_by(role))
    return _ask(GIVEN, member, role, by, why)


def give_role(member: Membership, role: Role, *, by: Actor, why: str | UUID) -> None:
    """Another role, at once: whatever is open looks again."""
    _check(member, by, keeps=MANAGE in rules.held_by(role))
    with transaction.atomic():
        _check_role(member.workspace_id, role, member.role)
        kept = reasons.keep(member.workspace_id, why)
        if Membership.objects.filter(pk=member.pk, role=member.role_id).exclude(role=role).update(role=role) != 1:
            raise NoChange
        standing.raise_versions(User.objects.filter(pk=member.user_id))
        roles.check_somebody_manages(member.workspace_id)
        _written(member, by, "role_given", why=str(kept), role=role.name, was=member.role.name, **_lost(member, role))


def deactivate(member: Membership, *, by: Actor, why: str) -> bool:
    """They can do nothing here from now on: what is open closes, the keys of the agents they own let nobody in.

    Whether their account is closed, and their sessions have ended; False: they are of another workspace too.
    """
    _check(member, by, keeps=False)
    with transaction.atomic():
        roles.hold(member.workspace_id)
        member.role = Role.objects.get(memberships=member.pk)
        kept = reasons.keep(member.workspace_id, why)
        if Membership.objects.filter(pk=member.pk, deactivated_at=None).update(deactivated_at=clock.now()) != 1:
            raise NoChange
        # this holds the person's row, so that two workspaces that let them go at once don't each see the other
        standing.raise_versions(User.objects.filter(pk=member.user_id))
        anywhere = Membership.objects.filter(user=OuterRef("pk"), deactivated_at=None)
        closed = User.objects.filter(~Exists(anywhere), pk=member.user_id).update(is_active=False) == 1
        ended = open_sessions.end_all(member.user) if closed else 0
        roles.check_somebody_manages(member.workspace_id)
        for glass in break_glass.lasting().filter(membership=member):  # else it were there again with whoever is let in again
            break_glass.end(glass, by=by)
        _written(member, by, "person_deactivated", why=str(kept), ended=ended, **_lost(member, None))
    return closed


def ask_back(member: Membership, *, by: Actor, why: str) -> AskedChange | None:
    """Let somebody in again; with a right that is grave it waits for a second admin, as a role does."""
    if not second_admin.GRAVE & set(rules.held_by(member.role)) or not second_admin.is_needed(member.workspace_id, BACK):
        return reactivate(member, by=by, why=why)
    if member.deactivated_at is None:
        raise NoChange
    return _ask(BACK, member, member.role, by, why)


def reactivate(member: Membership, *, by: Actor, why: str | UUID) -> None:
    """Let somebody in again with the role that they had. NoChange if they are in, or their role is another by now."""
    with transaction.atomic():
        _check_role(member.workspace_id, member.role)
        kept = reasons.keep(member.workspace_id, why)
        if Membership.objects.filter(pk=member.pk, role=member.role_id).exclude(deactivated_at=None).update(deactivated_at=None) != 1:
            raise NoChange
        User.objects.filter(pk=member.user_id).update(is_active=True)
        standing.raise_versions(User.objects.filter(pk=member.user_id))
        _written(member, by, "person_reactivated", why=str(kept))


def ask_factors(member: Membership, *, by: Actor, why: str) -> AskedChange | None:
    """Remove somebody's passkeys and codes; of who holds a right that is grave it waits for a second admin."""
    check_wholly_ours(member, by)
    if not takes_two(member, by):
        remove_factors(member, by=by, why=why)
        return None
    return _ask(FACTORS, member, member.role, by, why)


def takes_two(member: Membership, by: Actor) -> bool:
    """Whether what lets an admin come in as this person takes a second one: else they were the second one of their own changes."""
    grave = second_admin.GRAVE & set(rules.held_by(member.role))
    return bool(grave) and member.user_id != by.user_id and second_admin.is_needed(member.workspace_id, FACTORS)


def remove_factors(member: Membership, *, by: Actor, why: str | UUID) -> int:
    """For somebody whose telephone is gone: passkeys, codes and recovery codes open nothing from now on. How many there were."""
    check_wholly_ours(member, by)
    with transaction.atomic():
        kept = reasons.keep(member.workspace_id, why)
        removed, _ = Authenticator.objects.filter(user_id=member.user_id).delete()
        open_sessions.end_all(member.user)
        _written(member, by, "second_factors_removed", why=str(kept), count=removed)
    return removed


def check_wholly_ours(member: Membership, by: Actor) -> None:
    """AlsoElsewhere if the account opens a workspace, too, in which who asks manages nobody: there they would come in as this person."""
    if not is_wholly_ours(member.user_id, by):
        raise AlsoElsewhere


def is_wholly_ours(user_id: UUID, by: Actor) -> bool:
    """Whether who asks manages people in every workspace that an account opens."""
    places = Membership.objects.filter(user_id=user_id, deactivated_at=None).values_list("workspace_id", flat=True)
    return all(rules.can(by, MANAGE, each) for each in places)


def agents_of(member: Membership) -> list[Agent]:
    """Those they own here, whose keys stop with them."""
    return list(Agent.objects.filter(workspace_id=member.workspace_id, owner_id=member.user_id).order_by("name"))


def roles_of(workspace_id: UUID) -> list[Role]:
    return list(Role.objects.filter(workspace_id=workspace_id, retired_at=None).order_by("name"))


def _told(rows: QuerySet[Membership]) -> QuerySet[Membership]:
    """With what the list says of each: `has_factor`. When they signed in last stands with the person."""
    factors = Authenticator.objects.filter(user=OuterRef("user"), type__in=("totp", "webauthn"))
    return rows.select_related("user", "role", "workspace").annotate(has_factor=Exists(factors))


def _check(member: Membership, by: Actor, *, keeps: bool) -> None:
    if member.user_id == by.user_id and not keeps:
        raise Yourself


def _check_role(workspace_id: UUID, becomes: Role, was: Role | None = None) -> None:
    """NoChange if the role that somebody is to have was retired, or either was changed since it was read. In a transaction."""
    roles.hold(workspace_id)
    now = Role.objects.in_bulk([each.pk for each in (becomes, was) if each])
    if now[becomes.pk].retired_at is not None:
        raise NoChange("That role was retired. Restore it first, or choose another.")
    if any(now[each.pk].version != each.version for each in (becomes, was) if each):
        raise NoChange("What the role may do is another by now.")


def _lost(member: Membership, becomes: Role | None) -> dict[str, list[str]]:
    """`lost`: the rights that they held until now, if any: see `roles.lost_one`."""
    _, less = roles.changes(rules.held_by(member.role), rules.held_by(becomes) if becomes else ())
    return {"lost": list(less)} if less else {}


# with a second admin ---------------------------------------------------------------------------------------------------------------


def _ask(kind: str, member: Membership, role: Role, by: Actor, why: str) -> AskedChange:
    """`role`: that they would have, as it is now; see `_member`."""
    wanted = {"role": role.pk, "version": role.version, "was": member.role_id}
    return second_admin.ask(member.workspace_id, kind, subject=member.user_id, wanted=wanted, by=by, why=why)


def _member(change: AskedChange) -> tuple[Membership, Role]:
    """Whom it is about and the role they would have, if both are still as they were when it was asked for; else NoChange."""
    member = _told(Membership.objects.filter(workspace_id=change.workspace_id, user_id=change.subject)).first()
    role = Role.objects.filter(pk=change.wanted["role"], version=change.wanted["version"], retired_at=None).first()
    if member is None or role is None or member.role_id != change.wanted["was"]:
        raise NoChange("Their role, or what it may do, is another by now.")
    return member, role


def _given(change: AskedChange, by: Actor) -> str:
    member, role = _member(change)
    if member.deactivated_at is not None:
        raise NoChange("They were deactivated meanwhile.")
    give_role(member, role, by=rules.person(change.asked_by_id), why=change.why)
    return f"{member.user.name} is {role.name} from now on, in whatever they have open too."


def _back(change: AskedChange, by: Actor) -> str:
    member, _ = _member(change)
    reactivate(member, by=rules.person(change.asked_by_id), why=change.why)
    return f"{member.user.name} may come in again."


def _without_factors(change: AskedChange, by: Actor) -> str:
    member, _ = _member(change)
    remove_factors(member, by=rules.person(change.asked_by_id), why=change.why)
    return f"The passkeys and codes of {member.user.name} open nothing any more, and their sessions have ended."


def _parts(change: AskedChange) -> list[Part]:
    """Whose role it is, and each right that they would have more."""
    name = User.objects.values_list("name", flat=True).filter(pk=change.subject).first() or "Somebody"
    held = {role.pk: role for role in Role.objects.filter(pk__in=[change.wanted["role"], change.wanted["was"]])}
    role, was = held.get(change.wanted["role"]), held.get(change.wanted["was"])
    if change.kind == FACTORS:
        return [Part(name, "Passkeys and codes", "None of them")]
    if change.kind == BACK:
        return [Part(name, "Deactivated", f"{role.name.capitalize()} again" if role else "")]
    rights = [
        Part(permissions.right(each).title, *(permissions.LEVELS[at] for at in (now, then))) for each, now, then in _levels(was, role)
    ]
    return [Part(f"Role of {name}", was.name.capitalize() if was else "", role.name.capitalize() if role else ""), *rights]


def _levels(was: Role | None, becomes: Role | None) -> list[tuple[str, int, int]]:
    """The rights of which one role has more or less than another: how far each reaches in the one and in the other."""
    now, then = (rules.held_by(each) if each else () for each in (was, becomes))
    reach = [(each, permissions.level(each, now), permissions.level(each, then)) for each in rules.CAPABILITIES if each in rules.PEOPLES]
    return [each for each in reach if each[1] != each[2]]


def _page(change: AskedChange) -> str:
    return reverse("access:person", args=[change.subject])


GIVEN, BACK, FACTORS = "role_given", "reactivated", "factors_removed"
second_admin.register(GIVEN, Kind(MANAGE, "who holds a role", _parts, _given, _page))
second_admin.register(BACK, Kind(MANAGE, "who may come in", _parts, _back, _page))
second_admin.register(FACTORS, Kind(MANAGE, "how somebody comes in", _parts, _without_factors, _page))


def _written(member: Membership, by: Actor, verb: str, **data: object) -> None:
    audit.record(by, verb, workspace_id=member.workspace_id, subject=("user", member.user_id), **data)
