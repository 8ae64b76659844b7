"""Break-glass: a person takes a right that they lack, for at most an hour, when there is nobody to ask.

It needs a reason, and that they show again who they are. Everybody who manages access or reads the audit trail is told at once, each page
says so while it lasts, and each entry of the audit trail that is made under it is marked. Afterwards another admin reviews it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import ClassVar
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.dispatch import Signal as Notice

from access import audit, reasons, rules, standing, wording
from access.errors import BadInput, Forbidden, NotFound, NotSignedIn, Refusal
from access.glass_models import BreakGlass
from access.models import Membership, User
from access.rules import Actor
from config import clock

TAKEABLE = ("runs.recover", "runs.steer", "approvals.freeze", "artifacts.view", "audit.view", "reveal.personal")
# what one has to see to do it; it comes along
SEEING = {
    "runs.recover": ("runs.view", "runs.events"),
    "runs.steer": ("runs.view",),
    "approvals.freeze": ("approvals.view",),
    "artifacts.view": ("runs.view",),
    "reveal.personal": ("runs.view", "artifacts.view"),
}
MINUTES = (15, 30, 60)
taken = Notice()  # somebody took rights: `glass`; sent in the transaction. Other rooms tell people of it


class GlassRefused(BadInput):
    """These rights can’t be taken."""

    what_next: ClassVar[str] = "Nothing was taken. Choose again."


class GlassOpen(Refusal):
    """You have taken rights already, and they last still."""

    what_next: ClassVar[str] = "Nothing was changed. End it first, or wait until it is over."


class GlassUnreviewed(Refusal):
    """Nobody has reviewed yet what you did the last time."""

    what_next: ClassVar[str] = "Nothing was taken. Ask an admin to review it; you can take rights again then."


class GlassLasts(Refusal):
    """It lasts still."""

    what_next: ClassVar[str] = "Nothing was written down. Review it once it is over; you can end it now."


class ReviewedBefore(Refusal):
    """It was reviewed already."""


def take(workspace_id: UUID, capabilities: Iterable[str], *, by: Actor, reason: str, minutes: int = 30) -> BreakGlass:
    """Take these rights in a workspace that one is a member of. GlassRefused, WhyNeeded, GlassOpen and GlassUnreviewed
    say what is wrong."""
    wanted = [each for each in TAKEABLE if each in set(capabilities)]
    if odd := sorted(set(capabilities) - set(TAKEABLE)):
        raise GlassRefused(f"“{rules.CAPABILITIES.get(odd[0], odd[0][:60])}” is never taken.")
    if minutes not in MINUTES:
        raise GlassRefused(f"It lasts {wording.listed([str(each) for each in MINUTES], 'or')} minutes.")
    with transaction.atomic():
        # one after the other for each person, so that there is one at a time
        user = User.objects.select_for_update(no_key=True).filter(pk=by.user_id, is_active=True).first()
        member = Membership.objects.filter(user=user, workspace_id=workspace_id, deactivated_at=None).first() if user else None
        if user is None or member is None:
            raise Forbidden("Only a person of the workspace takes rights in it.")
        if lasting().filter(user=user, workspace_id=workspace_id).exists():
            raise GlassOpen
        _check_reviewed(user, workspace_id)
        wanted = [each for each in wanted if not rules.can(by, each, workspace_id)]
        if not wanted:
            raise GlassRefused("You hold these rights already; there is nothing to take.")
        seeing = {seen for each in wanted for seen in SEEING.get(each, ())}
        held = sorted({*wanted, *(each for each in seeing if not rules.can(by, each, workspace_id))})
        now = clock.now()
        until = now + timedelta(minutes=minutes)
        kept = reasons.keep(workspace_id, reason)
        of = {"workspace_id": workspace_id, "membership": member, "user": user, "signed_in": by.signed_in}
        glass = BreakGlass.objects.create(taken=held, why=kept, since=now, until=until, **of)
        audit.record(
            by, "glass_broken", workspace_id=workspace_id, subject=("glass", glass.pk), why=str(kept), rights=wanted, minutes=minutes
        )
        standing.raise_versions(User.objects.filter(pk=user.pk))
        taken.send(BreakGlass, glass=glass)
    return glass


def _check_reviewed(user: User, workspace_id: UUID) -> None:
    """One after the other, each looked at by somebody else. Where nobody else could, nothing is waited for."""
    before = BreakGlass.objects.filter(user=user, workspace_id=workspace_id, reviewed_at=None).order_by("since").first()
    if before is not None and any(each.pk != user.pk for each in rules.some_holders(workspace_id, "access.manage")):
        when = f"{before.since.day} {before.since:%b %Y}, {before.since:%H:%M} UTC"
        raise GlassUnreviewed(f"What you took on {when} was not reviewed yet: another admin of the workspace does that first.")


def end(glass: BreakGlass, *, by: Actor) -> None:
    """End it before its time. Who took it may, and who manages access; again changes nothing."""
    if by.user_id != glass.user_id and not rules.can(by, "access.manage", glass.workspace_id):
        raise Forbidden("Who took it ends it, or who manages access.", capability="access.manage")
    with transaction.atomic():
        if lasting().filter(pk=glass.pk).update(ended_at=clock.now(), ended_by=by.user_id) == 1:
            audit.record(by, "glass_ended", workspace_id=glass.workspace_id, subject=("glass", glass.pk))
            standing.raise_versions(User.objects.filter(pk=glass.user_id))


def review(glass: BreakGlass, *, by: Actor, note: str) -> None:
    """Another admin looked at what was done under it. GlassLasts while it lasts, ReviewedBefore if somebody was faster."""
    if not rules.can(by, "access.manage", glass.workspace_id):
        raise Forbidden("This needs the right to manage access.", capability="access.manage")
    if by.user_id == glass.user_id:
        raise Forbidden("Another admin reviews what you took.")
    with transaction.atomic():
        found = BreakGlass.objects.select_for_update(of=("self",)).get(pk=glass.pk)
        if lasts(found):
            raise GlassLasts
        if found.reviewed_at is not None:
            raise ReviewedBefore
        kept = reasons.keep(glass.workspace_id, note)
        BreakGlass.objects.filter(pk=glass.pk).update(reviewed_at=clock.now(), reviewed_by=by.user_id, review=kept)
        audit.record(by, "glass_reviewed", workspace_id=glass.workspace_id, subject=("glass", glass.pk), why=str(kept))


def lasting() -> QuerySet[BreakGlass]:
    return BreakGlass.objects.filter(ended_at=None, until__gt=clock.now())


def lasts(glass: BreakGlass) -> bool:
    return glass.ended_at is None and glass.until > clock.now()


def over_at(glass: BreakGlass) -> datetime:
    return glass.ended_at or glass.until


def unreviewed(workspace_id: UUID) -> list[BreakGlass]:
    """Those that last and those that nobody has reviewed, the oldest first. One query."""
    rows = BreakGlass.objects.filter(workspace_id=workspace_id, reviewed_at=None).select_related("user").order_by("since")
    return list(rows[:50])


def history(workspace_id: UUID) -> list[BreakGlass]:
    rows = BreakGlass.objects.filter(Q(reviewed_at__isnull=False), workspace_id=workspace_id)
    return list(rows.select_related("user", "reviewed_by", "ended_by").order_by("-since")[:50])


def find(actor: Actor, pk: UUID) -> BreakGlass:
    """One's own, or one of a workspace where one manages access or reads the audit trail; else NotFound."""
    if not actor.is_known:
        raise NotSignedIn
    reached = [rules.within(actor, BreakGlass, each) for each in ("access.manage", "audit.view")]
    mine = Q(user=actor.user_id, workspace__in=list(actor.grants))
    found = BreakGlass.objects.filter(mine | reached[0] | reached[1], pk=pk).select_related("user").first()
    if found is None:
        raise NotFound
    return found
