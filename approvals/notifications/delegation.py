"""Who decides in whose stead. The delegate must be allowed to decide as themselves: a delegation gives no right that membership did not.

It follows that nobody decides on their own action through it, and that a delegate is one person where several are needed.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from access import audit, rules
from access.errors import BadInput, Forbidden, Refusal
from access.models import User
from access.rules import Actor
from approvals.notifications import outbox
from approvals.notifications.models import Delegation
from config import clock


class DelegationRefused(BadInput):
    """This can't be delegated so."""

    what_next: ClassVar[str] = "Nothing was changed. Choose another person, or other days."


class AlreadyAway(Refusal):
    """Somebody decides for you then already."""

    what_next: ClassVar[str] = "Nothing was changed. Take back the one that stands, or choose other days."


def delegate(workspace_id: UUID, *, by: Actor, to: UUID | None, starts_at: datetime, ends_at: datetime) -> Delegation:
    """`to` decides in the stead of `by` from one time to the other. The same again gives the first."""
    if by.kind != "human" or not rules.can_some(by, "approvals.decide", workspace_id):
        raise Forbidden("Only who decides can name somebody to decide for them.")
    _check(workspace_id, by, to, starts_at, ends_at)
    with transaction.atomic(durable=True):
        User.objects.select_for_update(no_key=True).get(pk=by.user_id)  # one at a time of each person
        mine = Delegation.objects.filter(workspace_id=workspace_id, giver_id=by.user_id, ended_at=None)
        other = mine.filter(starts_at__lt=ends_at, ends_at__gt=starts_at).first()
        if other is not None and (other.to_id, other.starts_at, other.ends_at) == (to, starts_at, ends_at):
            return other
        if other is not None:
            raise AlreadyAway
        made = Delegation.objects.create(workspace_id=workspace_id, giver_id=by.user_id, to_id=to, starts_at=starts_at, ends_at=ends_at)
        outbox.delegated(made)
        audit.record(by, "delegated", workspace_id=workspace_id, subject=("delegation", made.pk), to=str(to))
    return made


def end(delegation: Delegation, *, by: Actor) -> bool:
    """Take it back, at any time; only who gave it can. False if it had ended."""
    if delegation.giver_id != by.user_id:
        raise DelegationRefused("Only who is away can take it back.")
    with transaction.atomic(durable=True):
        now = clock.now()
        ended = Delegation.objects.filter(pk=delegation.pk, ended_at=None, ends_at__gt=now).update(ended_at=now) == 1
        if ended:
            audit.record(by, "delegation_ended", workspace_id=delegation.workspace_id, subject=("delegation", delegation.pk))
    return ended


def in_force(workspace_id: UUID) -> list[Delegation]:
    """Those that count now, with both people, as long as both may decide by themselves."""
    rows = list(_open(workspace_id).filter(starts_at__lte=clock.now()).select_related("giver", "to").order_by("starts_at"))
    if not rows:
        return []
    allowed = {user.pk for user in rules.some_holders(workspace_id, "approvals.decide")}
    return [each for each in rows if {each.giver_id, each.to_id} <= allowed]


def stand_ins(workspace_id: UUID, people: Iterable[User]) -> dict[UUID, Delegation]:
    """Who is away of these people, and who of them is there and decides in their stead. What is delegated can't be passed on."""
    here, rows = {user.pk for user in people}, in_force(workspace_id)
    away = {each.giver_id for each in rows}
    return {each.giver_id: each for each in rows if each.to_id in here - away}


def of(actor: Actor) -> list[Delegation]:
    """What this person has given that is not over, soonest first."""
    rows = rules.visible(actor, Delegation, "approvals.decide").filter(giver_id=actor.user_id, ended_at=None, ends_at__gt=clock.now())
    return list(rows.select_related("to").order_by("starts_at"))


def to(actor: Actor) -> list[Delegation]:
    """For whom this person decides, now or soon."""
    rows = rules.visible(actor, Delegation, "approvals.decide").filter(to_id=actor.user_id, ended_at=None, ends_at__gt=clock.now())
    return list(rows.select_related("giver").order_by("starts_at"))


def candidates(actor: Actor, workspace_id: UUID) -> list[User]:
    """Who may be named: everybody else who may decide."""
    return [user for user in rules.some_holders(workspace_id, "approvals.decide") if user.pk != actor.user_id]


def among(workspace_id: UUID, people: Iterable[User]) -> list[Delegation]:
    """Those in force where both are of these people: nobody stands in for who could not have decided."""
    ids = {user.pk for user in people}
    return [each for each in in_force(workspace_id) if {each.giver_id, each.to_id} <= ids]


def _open(workspace_id: UUID) -> QuerySet[Delegation]:
    return Delegation.objects.filter(Q(workspace_id=workspace_id), ended_at=None, ends_at__gt=clock.now())


def _check(workspace_id: UUID, by: Actor, to: UUID | None, starts_at: datetime, ends_at: datetime) -> None:
    if to not in {user.pk for user in candidates(by, workspace_id)}:
        raise DelegationRefused("Choose somebody else who may decide here.")
    if ends_at <= starts_at:
        raise DelegationRefused("It would end before it starts.")
    if ends_at <= clock.now():
        raise DelegationRefused("Those days are over.")
    if (ends_at - starts_at).days > 366:
        raise DelegationRefused("A year at most.")
