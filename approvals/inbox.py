"""The queue: what waits for a person, and what no longer does. It only reads, and only renditions: the vault stays shut."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import BooleanField, Count, Exists, ExpressionWrapper, F, IntegerField, OuterRef, Q, QuerySet, Subquery, UUIDField
from django.db.models.functions import Coalesce

from access import rules
from access.rules import Actor
from approvals import groups
from approvals.models import LEGS, Decision, GroupMember, ProposedAction
from approvals.wanted import EVERYTHING, VIEWS, Wanted
from config import clock
from runs.engine.tools import TOOLS

PAGE = 50
MOST = 500  # rows that are drawn at once, for who asked for more and more
COUNTED = 500  # beyond this many only “500+” is known: what a reader can do about them is the same, and counting takes time
GONE = 8
ALIKE = 3  # lines that say what may be decided together
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
    kind: tuple[Any, ...] = ()  # equal for actions that may be alike; empty for one that is decided alone
    tool: str = ""
    group: str = ""  # who alone is asked; empty if all who may decide are

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
class Chip:
    """One of the views of the inbox, and how many wait there of what was searched for."""

    key: str
    word: str
    count: int
    chosen: bool
    suffix: str


@dataclass(frozen=True)
class Alike:
    """Several actions of a page that may be decided together. `first` leads to them."""

    first: UUID
    count: int
    tool: str

    @property
    def title(self) -> str:
        tool = TOOLS.get(self.tool)
        return tool.title if tool else self.tool


@dataclass(frozen=True)
class Queue:
    """What a person sees in the left pane. `count` is all that wait there; `more` is the cursor of the next page, or None.

    `waiting` is what the top bar says, whatever the filter. A count beyond COUNTED is not exact.
    """

    rows: list[Row]
    gone: list[Gone]
    count: int
    more: UUID | None
    decides: bool
    decided_today: int = 0
    unknown: tuple[Unknown, ...] = ()
    wanted: Wanted = EVERYTHING
    waiting: int = 0
    chips: tuple[Chip, ...] = ()
    teams: tuple[tuple[str, str, bool], ...] = ()  # name, end of the address, chosen; empty where there is nothing to choose

    def after(self, action: ProposedAction) -> Row | None:
        """The row to go to from an action: the one below where it is or was, else the first."""
        place = (-action.risk, action.expires_at, action.pk)
        others = [row for row in self.rows if row.gone is None and row.id != action.pk]
        return next((row for row in others if (-row.risk, row.until, row.id) > place), others[0] if others else None)

    @property
    def suffix(self) -> str:
        return self.wanted.suffix

    @property
    def asks(self) -> bool:
        """Whether what this person is asked is not to decide, but to say what became of something: then no action opens by itself."""
        return bool(self.unknown) and not self.decides

    @property
    def title(self) -> str:
        if self.wanted.view == "others":
            return "Waiting on others"
        return "Waiting for you" if self.is_own else "Waiting"

    @property
    def is_own(self) -> bool:
        """Whether all that waits in it waits for this person."""
        return self.decides and self.wanted.view not in ("others", "all")

    @property
    def hidden(self) -> int:
        """How many the filter hides of what waits for this person."""
        return max(self.waiting - self.count, 0) if not self.wanted.is_everything else 0

    @property
    def alike(self) -> list[Alike]:
        """What may be decided together, of these rows; which of them really are alike, `bulk` says."""
        kinds: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.rows if self.decides and self.wanted.view in ("", "mine") else ():
            if row.kind and row.gone is None:
                kinds.setdefault(row.kind, []).append(row)
        found = [Alike(rows[0].id, len(rows), rows[0].tool) for rows in kinds.values() if len(rows) > 1]
        return sorted(found, key=lambda alike: -alike.count)[:ALIKE]


def queue(
    actor: Actor, wanted: Wanted = EVERYTHING, *, after: UUID | None = None, keep: UUID | None = None, shown: int = PAGE, limit: int = PAGE
) -> Queue:
    """Highest risk first, then least time. Five queries for a page of what waits, however many wait.

    `after`: the last action of the page before. `keep`: an action that keeps its place though it no longer waits, because it is open.
    `shown`: how many rows the reader has before them, who asked for more.
    """
    limit = min(max(1, min(limit, PAGE)) * max(1, -(-min(shown, MOST) // PAGE)), MOST)
    found = list(_columns(_page(actor, wanted, after))[: limit + 1])
    more = len(found) > limit
    found = _with_kept(found, actor, wanted, None if after else keep)[:limit]
    rows = [_row(each, actor) for each in found]
    unknown = () if after else tuple(_unknown(actor)) if wanted.is_everything else ()
    counts = _counts(actor, wanted)
    decides = bool(actor.somewhere("approvals.decide"))
    here = max(counts[wanted.view if decides else "all"], sum(row.gone is None for row in rows))
    return Queue(
        rows=rows,
        gone=[] if after else _gone(actor, wanted, keep={row.id for row in rows if row.gone}),
        count=here + len(unknown),
        more=rows[-1].id if more else None,
        decides=decides,
        decided_today=_decided_today(actor) if not rows and not after else 0,
        unknown=unknown,
        wanted=wanted,
        waiting=(here if decides else 0) + len(unknown) if wanted.is_everything else waiting_count(actor),
        chips=tuple(_chips(wanted, counts)) if decides else (),
        teams=tuple(_teams(actor, wanted)),
    )


def waiting_count(actor: Actor) -> int:
    """How many actions wait for this person: for a decision, or for their word on what became of them. More than COUNTED are not told."""
    asks = unknown_to(actor)[: COUNTED + 1].count() if actor.somewhere("runs.recover") else 0
    return (mine(actor)[: COUNTED + 1].count() if actor.somewhere("approvals.decide") else 0) + asks


def mine(actor: Actor) -> QuerySet[ProposedAction]:
    """What waits for a person: what they may decide; for those who may only look, all that waits in their workspaces."""
    return _reach(actor).filter(_open())


def unknown_to(actor: Actor) -> QuerySet[ProposedAction]:
    """Actions of which this person may say what became. For many rows what `execution.may_resolve` is for one."""
    owned = Q(run__owner=actor.user_id) | Q(run__agent__owner=actor.user_id)
    decided = Exists(Decision.objects.filter(action=OuterRef("pk"), reviewer=actor.user_id))
    return rules.visible(actor, ProposedAction, "runs.recover").filter(~owned, ~decided, grant__outcome="unknown")


def asked_of(actor: Actor) -> Q:
    """Actions about which this person is asked: not started, owned or edited by them, and of no group that they are not in.

    For many rows what `decisions.may_decide` is for one, the right to decide apart.
    """
    owned = Q(run__owner=actor.user_id) | Q(run__agent__owner=actor.user_id)
    another = Q(policy__editor_may_approve=False) | Q(judged_on={}) | Q(judged_on__legs=list(LEGS))
    edited = Q(editor__isnull=False, editor=actor.user_id) & another
    return ~(owned | Q(run__starter_kind="human", run__starter_id=actor.id) | edited) & groups.asks(actor.user_id)


def _reach(actor: Actor) -> QuerySet[ProposedAction]:
    if not actor.somewhere("approvals.decide"):
        return rules.visible(actor, ProposedAction, "approvals.view").exclude(_automatic())
    decided = Decision.objects.filter(action=OuterRef("pk"), round=OuterRef("round"), reviewer=actor.user_id)
    deciding = rules.visible(actor, ProposedAction, "approvals.decide").exclude(_automatic())
    return deciding.filter(asked_of(actor)).annotate(done=Exists(decided)).filter(Q(done=False) | ~Q(state="waiting"))


def _automatic() -> Q:
    # granted by a rule the moment it was proposed: it never waited for anybody
    return Q(state="approved", settled_seq=F("proposed_seq"))


def _open() -> Q:
    # what has run out is closed, also in the seconds before the expiry job says so
    return Q(state="waiting", expires_at__gt=clock.now())


def _page(actor: Actor, wanted: Wanted, after: UUID | None) -> QuerySet[ProposedAction]:
    """What waits and is wanted, from the top or below an action: a place that does not move, whatever comes or goes above it."""
    rows = _scope(actor, wanted).filter(_open(), wanted.filter(), _held_by_nobody_else(actor) if wanted.view == "mine" else Q())
    rows = rows.order_by("-risk", "expires_at", "pk")
    if after is None:
        return rows
    mark = rules.visible(actor, ProposedAction, "approvals.view").filter(pk=after).values("risk", "expires_at").first()
    if mark is None:
        return rows.none()
    risk, until = mark["risk"], mark["expires_at"]
    return rows.filter(Q(risk__lt=risk) | Q(risk=risk, expires_at__gt=until) | Q(risk=risk, expires_at=until, pk__gt=after))


def _with_kept(found: list[dict[str, Any]], actor: Actor, wanted: Wanted, keep: UUID | None) -> list[dict[str, Any]]:
    """The rows with the one that keeps its place, also if it no longer waits or is no longer wanted. A query only if it is not there."""
    if keep is None or any(row["id"] == keep for row in found):
        return found
    kept = list(_columns(_scope(actor, wanted).filter(pk=keep)))
    return sorted([*found, *kept], key=lambda row: (-row["risk"], row["expires_at"], row["id"]))


def _scope(actor: Actor, wanted: Wanted) -> QuerySet[ProposedAction]:
    """Whatever was proposed of what a view is about."""
    if wanted.view not in ("others", "all") or not actor.somewhere("approvals.decide"):
        return _reach(actor)
    rows = rules.visible(actor, ProposedAction, "approvals.view").exclude(_automatic())
    return rows.annotate(yours=_yours(actor)).filter(yours=False) if wanted.view == "others" else rows


def _yours(actor: Actor) -> ExpressionWrapper:
    """Whether this person may decide on an action, and has not."""
    decided = Decision.objects.filter(action=OuterRef("pk"), round=OuterRef("round"), reviewer=actor.user_id)
    within = rules.within(actor, ProposedAction, "approvals.decide")
    return ExpressionWrapper(within & asked_of(actor) & ~Exists(decided), output_field=BooleanField())


def _held_by_nobody_else(actor: Actor) -> Q:
    return Q(claimed_by=None) | Q(claimed_until=None) | Q(claimed_until__lte=clock.now()) | Q(claimed_by=actor.user_id)


def _counts(actor: Actor, wanted: Wanted) -> dict[str, int]:
    """How many wait in each view, of what is searched for. One query, of COUNTED rows at most: beyond, it is at least so many."""
    waiting = rules.visible(actor, ProposedAction, "approvals.view").filter(_open(), wanted.filter())
    if not actor.somewhere("approvals.decide"):
        return {"all": waiting[: COUNTED + 1].count()}
    free = ExpressionWrapper(_held_by_nobody_else(actor), output_field=BooleanField())
    looked_at = waiting.annotate(yours=_yours(actor), free=free).order_by("-risk", "expires_at").values("pk", "yours", "free")
    said = looked_at[: COUNTED + 1].aggregate(
        total=Count("pk"), groups=Count("pk", filter=Q(yours=True)), mine=Count("pk", filter=Q(yours=True, free=True))
    )
    return {"mine": said["mine"], "": said["groups"], "others": said["total"] - said["groups"], "all": said["total"]}


def _chips(wanted: Wanted, counts: Mapping[str, int]) -> Iterable[Chip]:
    for key, (word, _) in VIEWS.items():
        yield Chip(key, word, counts[key], key == wanted.view, replace(wanted, view=key).suffix)


def _teams(actor: Actor, wanted: Wanted) -> Iterable[tuple[str, str, bool]]:
    """All teams, and each that this person is in: where they see more than those of one. No query."""
    names = sorted({name for inside in actor.teams.values() for name in inside.values()}, key=str.lower)
    if names and (len(names) > 1 or actor.workspaces("approvals.view") or wanted.team):
        for name in ("", *names):
            yield name or "All teams", replace(wanted, team=name).suffix, name.lower() == wanted.team.lower()


def _unknown(actor: Actor) -> Iterable[Unknown]:
    """The longest first. No query for who may not say anything."""
    if not actor.somewhere("runs.recover"):
        return
    rows = unknown_to(actor).order_by("grant__unknown_at")
    fields = ("id", "subject__rendition", "run__title__rendition", "grant__unknown_at")
    for pk, subject, title, since in rows.values_list(*fields)[:PAGE]:
        yield Unknown(pk, _text(subject), _text(title), since)


def _columns(rows: QuerySet[ProposedAction]) -> QuerySet[ProposedAction, dict[str, Any]]:
    approvals = Decision.objects.filter(_still(), action=OuterRef("pk"), round=OuterRef("round"), verdict="approved")
    approvals = approvals.order_by().values("action")
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
        "tool",
        "tool_schema",
        "policy",
        "warnings",
        "locked",
        "last_by",
        "last_name",
        subject_text=F("subject__rendition"),
        run_text=F("run__title__rendition"),
        claimant=F("claimed_by__name"),
        needs=F("policy__quorum"),
        group=F("policy__group__name"),
    )


def _still() -> Q:
    """Approvals by whom the group still has that they were given for. Who lost the right to decide is seen on the card."""
    still = GroupMember.objects.filter(
        group=OuterRef("action__policy__group"), user=OuterRef("reviewer"), since__lte=OuterRef("group_version")
    )
    return Q(group_version=None) | Exists(still)


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
        kind=() if held and str(found["claimed_by"]) != actor.id else _kind(found),
        tool=found["tool"],
        group=found["group"] or "",
    )


def _kind(found: dict[str, Any]) -> tuple[Any, ...]:
    """What actions must have in common to be decided together; empty where one must be decided alone whatever the others are."""
    if found["needs"] > 1 or found["locked"] or found["warnings"]:
        return ()
    return found["tool"], found["tool_schema"], found["policy"], found["risk"]


def _waits(found: dict[str, Any], now: datetime) -> bool:
    return found["state"] == "waiting" and found["expires_at"] > now


def _gone(actor: Actor, wanted: Wanted, keep: set[UUID]) -> list[Gone]:
    since = clock.now() - GONE_FOR
    rows = _scope(actor, wanted).filter(wanted.filter(), settled_at__gte=since).exclude(pk__in=keep).order_by("-settled_at")
    rows = rows.annotate(**_last_word())
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
