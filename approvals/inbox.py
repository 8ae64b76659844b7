"""The queue: what waits for a person, and what no longer does. It only reads, and only renditions: the vault stays shut."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, F, IntegerField, OuterRef, Q, QuerySet, Subquery, UUIDField
from django.db.models.functions import Coalesce

from access import rules
from access.rules import Actor
from approvals.models import Decision, ProposedAction
from config import clock

PAGE = 50
GONE = 8
GONE_FOR = timedelta(hours=24)
CHANGED_FOR = timedelta(minutes=30)
ERASED = "Erased"
RISKS: Mapping[int, str] = {1: "Low", 2: "Medium", 3: "High"}


@dataclass(frozen=True)
class Row:
    """One action in the queue. Texts are renditions; `gone` is the row's last word once it no longer waits."""

    id: UUID
    subject: str
    run_title: str
    risk: int
    since: datetime
    until: datetime
    approved: int
    needs: int
    claimed_by: str
    claimed_by_me: bool
    changed_at: datetime | None
    gone: "Gone | None" = None

    @property
    def risk_word(self) -> str:
        return RISKS.get(self.risk, "High")


@dataclass(frozen=True)
class Gone:
    """How an action stopped waiting. `state` colours it, `word` says it, `by` is empty where no person did it."""

    id: UUID
    subject: str
    state: str
    word: str
    by: str
    at: datetime


@dataclass(frozen=True)
class Unknown:
    """An action whose answer was lost, and of which this person may say what became."""

    id: UUID
    subject: str
    run_title: str
    since: datetime


@dataclass(frozen=True)
class Queue:
    """What a person sees in the left pane. `count` is all that wait for them; `more` is the cursor of the next page, or None."""

    rows: list[Row]
    gone: list[Gone]
    count: int
    more: UUID | None
    decides: bool
    decided_today: int = 0
    unknown: tuple[Unknown, ...] = ()

    def after(self, action_id: UUID) -> Row | None:
        """The row to go to from an action: the one below it, else the first."""
        waiting = [row for row in self.rows if row.gone is None or row.id == action_id]
        at = next((i for i, row in enumerate(waiting) if row.id == action_id), -1)
        rest = waiting[at + 1 :] + waiting[: max(at, 0)]
        return rest[0] if rest else None


def queue(actor: Actor, *, after: UUID | None = None, keep: UUID | None = None, limit: int = PAGE) -> Queue:
    """Highest risk first, then least time. Four queries at most, whatever there is.

    `after`: the last action of the page before. `keep`: an action that keeps its place though it no longer waits, because it is open.
    """
    limit = max(1, min(limit, PAGE))
    found = list(_columns(_page(actor, after, keep))[: limit + 1])
    rows = [_row(each, actor) for each in found[:limit]]
    more = rows[-1].id if len(found) > limit else None
    unknown = () if after else tuple(_unknown(actor))
    count = waiting_count(actor) if more or after else sum(row.gone is None for row in rows) + len(unknown)
    gone = [] if after else _gone(actor, keep={row.id for row in rows if row.gone})
    today = _decided_today(actor) if not rows and not after else 0
    return Queue(rows, gone, count, more, bool(actor.workspaces("approvals.decide")), today, unknown)


def waiting_count(actor: Actor) -> int:
    """How many actions wait for this person: for a decision, or for their word on what became of them."""
    return mine(actor).count() + (unknown_to(actor).count() if actor.workspaces("runs.recover") else 0)


def mine(actor: Actor) -> QuerySet[ProposedAction]:
    """What waits for a person: what they may decide; for those who may only look, all that waits in their workspaces."""
    return _reach(actor).filter(_open())


def unknown_to(actor: Actor) -> QuerySet[ProposedAction]:
    """Actions of which this person may say what became. For many rows what `execution.may_resolve` is for one."""
    owned = Q(run__owner=actor.user_id) | Q(run__agent__owner=actor.user_id)
    decided = Exists(Decision.objects.filter(action=OuterRef("pk"), reviewer=actor.user_id))
    return rules.visible(actor, ProposedAction, "runs.recover").filter(~owned, ~decided, grant__outcome="unknown")


def not_self(actor: Actor) -> Q:
    """Actions not started, owned or edited by this person. For many rows what `decisions.may_decide` is for one."""
    owned = Q(run__owner=actor.user_id) | Q(run__agent__owner=actor.user_id)
    edited = Q(editor__isnull=False, editor=actor.user_id, policy__editor_may_approve=False)
    return ~(owned | Q(run__starter_kind="human", run__starter_id=actor.id) | edited)


def _reach(actor: Actor) -> QuerySet[ProposedAction]:
    if not actor.workspaces("approvals.decide"):
        return rules.visible(actor, ProposedAction, "approvals.view").exclude(_automatic())
    decided = Decision.objects.filter(action=OuterRef("pk"), round=OuterRef("round"), reviewer=actor.user_id)
    deciding = rules.visible(actor, ProposedAction, "approvals.decide").exclude(_automatic())
    return deciding.filter(not_self(actor)).annotate(done=Exists(decided)).filter(Q(done=False) | ~Q(state="waiting"))


def _automatic() -> Q:
    # granted by a rule the moment it was proposed: it never waited for anybody
    return Q(state="approved", settled_seq=F("proposed_seq"))


def _open() -> Q:
    # what has run out is closed, also in the seconds before the expiry job says so
    return Q(state="waiting", expires_at__gt=clock.now())


def _page(actor: Actor, after: UUID | None, keep: UUID | None) -> QuerySet[ProposedAction]:
    kept = Q(pk=keep) if keep else Q(pk__in=[])
    rows = _reach(actor).filter(_open() | kept).order_by("-risk", "expires_at", "pk")
    if after is None:
        return rows
    mark = rules.visible(actor, ProposedAction, "approvals.view").filter(pk=after).values("risk", "expires_at").first()
    if mark is None:
        return rows.none()
    risk, until = mark["risk"], mark["expires_at"]
    return rows.filter(Q(risk__lt=risk) | Q(risk=risk, expires_at__gt=until) | Q(risk=risk, expires_at=until, pk__gt=after))


def _unknown(actor: Actor) -> Iterable[Unknown]:
    """The longest first. No query for who may not say anything."""
    if not actor.workspaces("runs.recover"):
        return
    rows = unknown_to(actor).order_by("grant__unknown_at")
    fields = ("id", "subject__rendition", "run__title__rendition", "grant__unknown_at")
    for pk, subject, title, since in rows.values_list(*fields)[:PAGE]:
        yield Unknown(pk, _text(subject), _text(title), since)


def _columns(rows: QuerySet[ProposedAction]) -> QuerySet[ProposedAction, dict[str, Any]]:
    approvals = Decision.objects.filter(action=OuterRef("pk"), round=OuterRef("round"), verdict="approved").order_by().values("action")
    return rows.annotate(
        approved=Coalesce(Subquery(approvals.annotate(n=Count("pk")).values("n"), output_field=IntegerField()), 0),
        replaces=Exists(ProposedAction.objects.filter(superseded_by=OuterRef("pk"))),
        **_last_word(),
    ).values(
        "id",
        "risk",
        "state",
        "proposed_at",
        "expires_at",
        "settled_at",
        "claimed_by",
        "claimed_until",
        "approved",
        "replaces",
        "last_by",
        "last_name",
        subject_text=F("subject__rendition"),
        run_text=F("run__title__rendition"),
        claimant=F("claimed_by__name"),
        needs=F("policy__quorum"),
    )


def _last_word() -> dict[str, Any]:
    last = Decision.objects.filter(action=OuterRef("pk")).order_by("-decided_at")
    return {
        "last_by": Subquery(last.values("reviewer")[:1], output_field=UUIDField()),
        "last_name": Subquery(last.values("reviewer__name")[:1]),
    }


def _row(found: dict[str, Any], actor: Actor) -> Row:
    now = clock.now()
    held = found["claimed_by"] is not None and found["claimed_until"] is not None and found["claimed_until"] > now
    fresh = found["replaces"] and found["proposed_at"] > now - CHANGED_FOR
    return Row(
        id=found["id"],
        subject=_text(found["subject_text"]),
        run_title=_text(found["run_text"]),
        risk=found["risk"],
        since=found["proposed_at"],
        until=found["expires_at"],
        approved=found["approved"],
        needs=found["needs"],
        claimed_by=found["claimant"] if held else "",
        claimed_by_me=held and str(found["claimed_by"]) == actor.id,
        changed_at=found["proposed_at"] if fresh else None,
        gone=None if _waits(found, now) else _ended(found, actor),
    )


def _waits(found: dict[str, Any], now: datetime) -> bool:
    return found["state"] == "waiting" and found["expires_at"] > now


def _gone(actor: Actor, keep: set[UUID]) -> list[Gone]:
    since = clock.now() - GONE_FOR
    rows = _reach(actor).filter(settled_at__gte=since).exclude(pk__in=keep).annotate(**_last_word()).order_by("-settled_at")
    fields = ("id", "state", "expires_at", "settled_at", "last_by", "last_name")
    return [_ended(found, actor) for found in rows.values(*fields, subject_text=F("subject__rendition"))[:GONE]]


def _ended(found: dict[str, Any], actor: Actor) -> Gone:
    state = "expired" if found["state"] == "waiting" else found["state"]
    mine = found["last_by"] is not None and str(found["last_by"]) == actor.id
    by = ("you" if mine else found["last_name"] or "") if state in ("approved", "rejected") else ""
    word = {"superseded": "Replaced", "waiting": "Expired"}.get(state, state.capitalize())
    at = found["expires_at"] if state == "expired" else found["settled_at"] or found["expires_at"]
    return Gone(found["id"], _text(found["subject_text"]), state, word, by, at)


def _decided_today(actor: Actor) -> int:
    midnight = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    return Decision.objects.filter(reviewer=actor.user_id, decided_at__gte=midnight).count() if actor.user_id else 0


def _text(rendition: str | None) -> str:
    return ERASED if rendition is None else rendition
