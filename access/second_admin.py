"""What takes a second admin beside roles: policies, what is hidden, who holds which role. The only writer of such changes.

Each kind of change says who may ask for it and confirm it, what it is in words, and how it is done. The rest is the same for all, and as
for roles (access/roles.py): the workspace says whether a second admin is needed, whoever asked can't confirm it, without an answer it
lapses after a day, and a confirmation is held to what is so when it comes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from access import audit, reasons, roles, rules
from access.change_models import AskedChange
from access.errors import BadInput, Refusal
from access.models import RoleChange
from access.rules import Actor
from config import clock

# who holds one of these could let others in, decide, or see and undo what others keep: coming in with it takes a second admin
GRAVE = frozenset({"access.manage", "policies.manage", "redaction.manage", "payloads.erase"})
GRAVE |= {each + reach for each in ("approvals.decide", "reveal.personal") for reach in ("", rules.TEAM)}


class NobodySecond(BadInput):
    """There is nobody who could confirm it."""

    what_next = "Nothing was changed. This workspace asks for a second admin: let somebody else have the right first."


@dataclass(frozen=True)
class Part:
    """One thing that would be another: its name, and what it is now and then, each in words; empty: it is not there."""

    what: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Kind:
    """`done`: puts the change in force, in the caller's transaction, and says so; it raises the Refusal that keeps it from being done."""

    right: str  # who may ask for it, confirm and refuse it
    title: str  # “the approval policies”, as in “asked for a change of …”
    told: Callable[[AskedChange], Sequence[Part]]
    done: Callable[[AskedChange, Actor], str]
    page: Callable[[AskedChange], str]  # where what is in force stands


KINDS: dict[str, Kind] = {}


def register(name: str, kind: Kind) -> None:
    """At start-up, by the room that the kind is of."""
    KINDS[name] = kind


def is_needed(workspace_id: UUID, kind: str) -> bool:
    return roles.needs_second(workspace_id, KINDS[kind].right)


def seconds(workspace_id: UUID, kind: str, user_id: UUID | None) -> list[str]:
    """The names of those who could confirm what this person asks for."""
    return [user.name for user in roles.seconds(workspace_id, user_id, KINDS[kind].right)]


def ask(
    workspace_id: UUID, kind: str, *, wanted: Mapping[str, Any], by: Actor, why: str, subject: object = "", base: int = 0
) -> AskedChange:
    """Ask for a change. Who calls it has seen that it could be made now. WhyNeeded, NobodySecond, ChangeWaits."""
    if not seconds(workspace_id, kind, by.user_id):
        raise NobodySecond
    now = clock.now()
    about = {"workspace_id": workspace_id, "kind": kind, "subject": str(subject)}
    with transaction.atomic():
        roles.hold(workspace_id)
        roles.lapse(AskedChange.objects.filter(**about))
        kept = reasons.keep(workspace_id, why)
        by_whom = {"asked_by_id": by.user_id, "signed_in": by.signed_in, "asked_at": now, "lapses_at": now + roles.LASTS}
        try:
            with transaction.atomic():
                made = AskedChange.objects.create(**about, base=base, wanted=dict(wanted), why=kept, **by_whom)
        except IntegrityError:
            raise roles.ChangeWaits from None
        _record(by, "change_asked", made)
        roles.asked.send(AskedChange, change=made)
    return made


def confirm(change: AskedChange, *, by: Actor) -> str:
    """Do what another admin asked for; gives what is so now, in words. ChangeOver if it can't be any more: it is overtaken then."""
    roles.check_second(change, by)
    said, lost = "", None
    with transaction.atomic():
        roles.hold(change.workspace_id)
        roles.settle(change, "confirmed", by=by)
        try:
            with transaction.atomic():
                said = _done(change, by)
                _record(by, "change_confirmed", change, asked_by=str(change.asked_by_id))
        except Refusal as error:
            lost = error
            roles.overtake(change)
            _record(by, "change_overtaken", change)
    if lost is not None:
        raise roles.ChangeOver(f"Something else changed since it was asked for. {lost.more or lost.title}")
    return said


def _done(change: AskedChange, by: Actor) -> str:
    kind = KINDS[change.kind]
    if not rules.can(rules.person(change.asked_by_id), kind.right, change.workspace_id):
        raise roles.ChangeOver("Whoever asked for it may not do it any more.")
    return kind.done(change, by)


def refuse(change: AskedChange, *, by: Actor, why: str) -> None:
    """Say no, and why. Nothing changes."""
    roles.check_second(change, by)
    with transaction.atomic():
        kept = reasons.keep(change.workspace_id, why)
        roles.settle(change, "refused", by=by, why=kept)
        _record(by, "change_refused", change, why=str(kept))


def withdraw(change: AskedChange, *, by: Actor) -> None:
    """Take back what one asked for. Nothing changes."""
    if by.user_id != change.asked_by_id:
        raise roles.ChangeOver("Whoever asked for a change withdraws it. You can refuse it.")
    with transaction.atomic():
        roles.settle(change, "withdrawn", by=by)
        _record(by, "change_withdrawn", change)


# what waits -----------------------------------------------------------------------------------------------------------------------


def waits(workspace_id: UUID, kind: str, subject: object = "") -> AskedChange | None:
    """What waits about this, if anything does."""
    return _open(AskedChange.objects.filter(workspace_id=workspace_id, kind=kind, subject=str(subject))).select_related("asked_by").first()


def waiting(workspace_id: UUID) -> list[AskedChange]:
    """All that wait in a workspace, the oldest first."""
    return list(_open(AskedChange.objects.filter(workspace_id=workspace_id)).select_related("asked_by").order_by("asked_at"))


def waiting_for(actor: Actor) -> int:
    """How many changes this person could confirm, those of roles among them. One query, and none for who may not."""
    if actor.kind != "human":
        return 0
    theirs = [Q(kind=kind, workspace_id__in=held) for kind, of in KINDS.items() if (held := actor.workspaces(of.right))]
    if not theirs:
        return 0
    found = [AskedChange.objects.filter(reduce(or_, theirs)), RoleChange.objects.filter(workspace_id__in=actor.workspaces(roles.MANAGES))]
    one, other = (_open(rows).exclude(asked_by=actor.user_id).order_by().values("pk") for rows in found)
    return one.union(other, all=True).count()


def find(change_id: UUID) -> RoleChange | AskedChange | None:
    """Either kind of change, whatever became of it."""
    return AskedChange.objects.filter(pk=change_id).first() or RoleChange.objects.filter(pk=change_id).first()


def right_of(change: RoleChange | AskedChange) -> str:
    """What one must hold to confirm it."""
    return KINDS[change.kind].right if isinstance(change, AskedChange) else roles.MANAGES


def confirmed(workspace_id: UUID, kind: str) -> dict[int, str]:
    """Who confirmed the versions of something that is kept in versions: number → name. One query."""
    rows = AskedChange.objects.filter(workspace_id=workspace_id, kind=kind, state="confirmed")
    return {base + 1: name for base, name in rows.values_list("base", "settled_by__name")}


def _open(rows: QuerySet) -> QuerySet:
    return rows.filter(state="waiting", lapses_at__gt=clock.now())


def _record(by: Actor, verb: str, change: AskedChange, **data: Any) -> None:
    told = {"change": str(change.pk), "kind": change.kind, "what": KINDS[change.kind].title, "base": change.base}
    told["why"] = str(change.why) if change.why else ""
    audit.record(by, verb, workspace_id=change.workspace_id, subject=("change", change.pk), **{**told, **data})
