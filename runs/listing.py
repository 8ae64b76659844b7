"""The list of runs: filters, counts, pages by a key set, and what each row says. A fixed number of queries, whatever the page shows."""

import base64
import binascii
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import and_, or_
from urllib.parse import urlencode
from uuid import UUID

import orjson
from django.db.models import BigIntegerField, Case, Count, Exists, IntegerField, OuterRef, Q, QuerySet, TextField, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce
from django.db.models.lookups import LessThanOrEqual

from access import rules
from access.ids import NotAReference, parse_reference
from access.models import Agent, Membership, User
from access.rules import Actor
from config import clock
from runs import asked, awaited, folding, log
from runs.asked import Asked
from runs.awaited import PEOPLE
from runs.engine import budget
from runs.heard import Heard, heard_of
from runs.lifecycle import UNDOING, State
from runs.models import Run
from runs.story.wire import moment

PAGE = 25
MARKS = 8  # effects that a row draws; more are counted
TERMS = 6
MOST_NAMED = 50  # people of one name whose runs are looked for

# key, word, the states it stands for; the first four are always offered
GROUPS: tuple[tuple[str, str, tuple[State, ...]], ...] = (
    ("waiting", "Waiting", (State.WAITING,)),
    ("running", "Running", (State.QUEUED, State.RUNNING)),
    ("failed", "Failed", (State.FAILED,)),
    ("done", "Done", (State.SUCCEEDED,)),
    ("paused", "Paused", (State.PAUSED,)),
    ("stuck", "Stuck", (State.PARKED, State.STALLED)),
    ("undoing", "Undoing", UNDOING),
    ("cancelled", "Cancelled", (State.CANCELLED,)),
)
ALWAYS = 4
SHADES = {"stuck": "parked", "undoing": "compensating"}
VIEWS = {
    "": "All runs",
    "people": "Waiting on people",
    "others": "Waiting on other things",
    "soon": "Due within the hour",
    "week": "Started this week",
    "mine": "Owned by you",
    "budget": "Over half the budget",
}


@dataclass(frozen=True)
class Wanted:
    """What the reader asked to see."""

    q: str = ""
    group: str = ""
    agents: tuple[str, ...] = ()
    view: str = ""
    team: str = ""
    older: str = ""
    newer: str = ""
    start: int = 1  # the place of the first row, for the words beneath the table


@dataclass(frozen=True)
class Facet:
    key: str
    word: str
    count: int
    chosen: bool
    shade: str = ""


@dataclass(frozen=True)
class Row:
    """One run in the list."""

    run: Run
    waits_for: str
    marks: tuple[str, ...]
    more_marks: int
    marks_told: str
    percent: int | None
    until: datetime | None = None
    strong: bool = False
    why: str = ""  # it is stuck: in a few words
    nothing: bool = False  # it ended, and was not allowed what it asked for
    step: str = ""  # where in its plan it is at work
    asks: str = ""  # what it asks for, where others of the page have its title

    @property
    def state_key(self) -> str:
        """What the state is coloured by, as on the run's own page."""
        return "rejected" if self.nothing else self.run.state

    @property
    def state_word(self) -> str:
        """The word of the state where it is not the state's own."""
        return "Nothing done" if self.nothing else ""

    @property
    def on_people(self) -> bool:
        """Whether people are asked to decide on something."""
        return asked.decision(self.run)

    @property
    def age(self) -> timedelta:
        return clock.now() - self.run.created_at

    @property
    def stands(self) -> timedelta:
        """How long it has been in its state."""
        return clock.now() - self.run.state_since

    @property
    def dim(self) -> bool:
        return self.run.state not in (State.WAITING.value, State.PARKED.value, State.STALLED.value)


@dataclass(frozen=True)
class Listing:
    rows: list[Row]
    total: int
    anywhere: int  # how many match without the state filter
    groups: list[Facet]
    agents: list[Facet]
    teams: list[Facet]
    views: list[Facet]
    wanted: Wanted
    older: str = ""
    newer: str = ""

    @property
    def end(self) -> int:
        return self.wanted.start + len(self.rows) - 1

    @property
    def older_start(self) -> int:
        return self.end + 1

    @property
    def newer_start(self) -> int:
        return max(self.wanted.start - PAGE, 1)

    @property
    def word(self) -> str:
        """The state that was filtered for, before the noun: “failed ”."""
        return next((f"{word.lower()} " for key, word, _ in GROUPS if key == self.wanted.group), "")

    @property
    def everywhere(self) -> int:
        """How many there are whatever is filtered for: the figures on top and the views count all of them."""
        return next(view.count for view in self.views if not view.key)

    @property
    def spent(self) -> bool:
        """Whether any of these runs has used a part of its budget that can be told."""
        return any(row.percent for row in self.rows)

    @property
    def all_states(self) -> str:
        """The address's query without its state."""
        named = {"q": self.wanted.q, "view": self.wanted.view, "team": self.wanted.team}
        kept = [*named.items(), *(("agent", name) for name in self.wanted.agents)]
        return urlencode([(name, value) for name, value in kept if value])


def listing(actor: Actor, wanted: Wanted) -> Listing:
    """One page of the runs that the actor may see, and the counts of every filter."""
    mine = rules.visible(actor, Run, "runs.view")
    scoped = _in_view(_found(mine, wanted.q, actor), wanted.view, actor)
    of_team = scoped.filter(team__name__iexact=wanted.team) if wanted.team else scoped
    of_agents = of_team.filter(agent__name__in=wanted.agents) if wanted.agents else of_team
    agents, teams = _facets(scoped, actor, wanted)
    counts = dict(of_agents.order_by().values_list("state").annotate(Count("pk")))
    rows, older, newer = _page(of_agents, wanted)
    total = sum(number for state, number in counts.items() if state in _states(wanted.group))
    return Listing(
        rows=_rows(rows, actor),
        total=total,
        anywhere=sum(counts.values()),
        groups=_groups(counts, wanted.group),
        agents=agents,
        teams=teams,
        views=_views(mine, actor, wanted.view),
        wanted=wanted,
        older=older,
        newer=newer,
    )


# Filters ------------------------------------------------------------------------------------------------------------------------------


def _states(group: str) -> tuple[str, ...]:
    known = {key: states for key, _, states in GROUPS}
    return tuple(state.value for state in known.get(group, tuple(State)))


def _found(runs: QuerySet[Run], q: str, actor: Actor) -> QuerySet[Run]:
    """Runs whose reference, title (as anybody sees it), owner, starter or agent holds every word, whatever its accents."""
    terms = q.split()[:TERMS]
    if not terms:
        return runs
    return runs.filter(reduce(and_, (_holds(term, actor) for term in terms)) | Q(ref=_reference(q)))


def _holds(term: str, actor: Actor) -> Q:
    alike = folding.pattern(term)
    here = Exists(Membership.objects.filter(user=OuterRef("pk"), workspace__in=actor.somewhere("runs.view")))
    named = User.objects.filter(here, name__regex=alike).order_by("name", "pk")
    starters = [str(pk) for pk in named.values_list("pk", flat=True)[:MOST_NAMED]]
    by_name = Q(owner__name__regex=alike) | Q(agent__name__regex=alike) | Q(starter_kind="human", starter_id__in=starters)
    return Q(title__rendition__regex=alike) | Q(ref__icontains=term) | by_name


def _reference(q: str) -> str:
    try:
        return parse_reference(q)
    except NotAReference:
        return ""


def _in_view(runs: QuerySet[Run], view: str, actor: Actor) -> QuerySet[Run]:
    return runs.filter(_condition(view, actor)) if view in VIEWS and view else runs


def _condition(view: str, actor: Actor) -> Q:
    match view:
        case "people":
            return Q(state__in=asked.ASKING, waiting__on__in=PEOPLE)
        case "others":  # with those who wait on people all that the state counts
            return Q(state=State.WAITING.value) & ~Q(waiting__on__in=PEOPLE)
        case "soon":
            soon = Value(log.stamp(clock.now() + timedelta(hours=1)))
            return _condition("people", actor) & Q(LessThanOrEqual(KeyTextTransform("until", "waiting"), soon))
        case "week":
            return Q(created_at__gte=clock.now() - timedelta(days=7))
        case "mine":
            return Q(owner_id=actor.user_id)
        case "budget":
            return reduce(or_, (_over_half(name) for name in budget.NAMES))
    return Q()


def _over_half(name: str) -> Q:
    limit = Cast(KeyTextTransform(name, "budgets"), BigIntegerField())
    return Q(**{f"budgets__{name}__gt": 0, f"{name}__gte": limit / 2})


def _groups(counts: Mapping[str, int], chosen: str) -> list[Facet]:
    facets = [
        Facet(key, word, sum(counts.get(state.value, 0) for state in states), key == chosen, SHADES.get(key, key))
        for key, word, states in GROUPS
    ]
    everything = Facet("", "All", sum(counts.values()), not chosen)
    return [everything, *(facet for index, facet in enumerate(facets) if index < ALWAYS or facet.count or facet.chosen)]


def _facets(runs: QuerySet[Run], actor: Actor, wanted: Wanted) -> tuple[list[Facet], list[Facet]]:
    """Agents, and teams where there are runs of more than one, or of one and of none: “All teams” comes first. Two queries."""
    counts: dict[str, int] = defaultdict(int)
    of_teams: dict[str | None, int] = defaultdict(int)
    for agent, team, count in runs.order_by().values_list("agent__name", "team__name").annotate(Count("pk")):
        of_teams[team] += count
        if not wanted.team or (team or "").lower() == wanted.team.lower():
            counts[agent] += count
    names = rules.visible(actor, Agent, "runs.view").order_by("name").values_list("name", flat=True).distinct()[:50]
    agents = [Facet(name, name, counts[name], name in wanted.agents) for name in names if name in counts or name in wanted.agents]
    named = sorted((name for name in of_teams if name), key=str.lower)
    if not named or (len(of_teams) < 2 and not wanted.team):
        return agents, []
    teams = [Facet(name, name, of_teams[name], name.lower() == wanted.team.lower()) for name in named]
    return agents, [Facet("", "All teams", sum(of_teams.values()), not wanted.team), *teams]


def _views(runs: QuerySet[Run], actor: Actor, chosen: str) -> list[Facet]:
    counted = {key or "all": Count("pk", filter=_condition(key, actor)) if key else Count("pk") for key in VIEWS}
    counts = runs.order_by().aggregate(**counted)
    facets = [Facet(key, word, counts[key or "all"], key == chosen) for key, word in VIEWS.items()]
    return [facet for facet in facets if facet.count or facet.chosen or not facet.key]  # one with nothing in it is no view of anything


# Pages --------------------------------------------------------------------------------------------------------------------------------


def _page(runs: QuerySet[Run], wanted: Wanted) -> tuple[list[Run], str, str]:
    """What is stuck first; then what waits, by its deadline; what runs; what ended, the newest first. With cursors to older and newer."""
    placed = runs.filter(state__in=_states(wanted.group)).annotate(rank=RANK, due=DUE).select_related("agent", "owner", "title")
    back = _place(wanted.newer)
    if back is not None:
        found = list(placed.filter(_before(back)).order_by("-rank", "-due", "created_at", "pk")[: PAGE + 1])
        page, more = found[:PAGE][::-1], len(found) > PAGE
        return page, _cursor(page[-1]) if page else "", _cursor(page[0]) if more else ""
    on = _place(wanted.older)
    rows = placed.filter(_after(on)) if on else placed
    found = list(rows.order_by("rank", "due", "-created_at", "-pk")[: PAGE + 1])
    page, more = found[:PAGE], len(found) > PAGE
    return page, _cursor(page[-1]) if more else "", _cursor(page[0]) if page and on else ""


RANK = Case(
    When(state__in=[State.PARKED.value, State.STALLED.value], then=Value(0)),
    When(state__in=asked.ASKING, waiting__on__in=PEOPLE, then=Value(1)),
    When(ended_at__isnull=False, then=Value(3)),
    default=Value(2),
    output_field=IntegerField(),
)
DUE = Case(
    When(
        state__in=asked.ASKING,
        waiting__on__in=PEOPLE,
        then=Coalesce(KeyTextTransform("until", "waiting"), Value("9"), output_field=TextField()),
    ),
    default=Value(""),
    output_field=TextField(),
)
Place = tuple[int, str, datetime, UUID]


def _after(place: Place) -> Q:
    rank, due, created, pk = place
    tail = Q(created_at__lt=created) | Q(created_at=created, pk__lt=pk)
    return Q(rank__gt=rank) | Q(rank=rank) & (Q(due__gt=due) | Q(due=due) & tail)


def _before(place: Place) -> Q:
    rank, due, created, pk = place
    tail = Q(created_at__gt=created) | Q(created_at=created, pk__gt=pk)
    return Q(rank__lt=rank) | Q(rank=rank) & (Q(due__lt=due) | Q(due=due) & tail)


def _cursor(run: Run) -> str:
    place = [run.rank, run.due, run.created_at.isoformat(), str(run.pk)]  # type: ignore[attr-defined]  annotated
    return base64.urlsafe_b64encode(orjson.dumps(place)).decode().rstrip("=")


def _place(cursor: str) -> Place | None:
    """A cursor read back; None if it is none of ours."""
    try:
        rank, due, created, pk = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        at = moment(created)
        return (int(rank), str(due), at.astimezone(UTC), UUID(pk)) if at else None
    except (ValueError, OverflowError, TypeError, AttributeError, binascii.Error):
        return None


# Rows ---------------------------------------------------------------------------------------------------------------------------------


def _rows(runs: list[Run], actor: Actor) -> list[Row]:
    heard = heard_of(runs)
    people = asked.people([run for run in runs if asked.decision(run)])
    rows = [_row(run, heard[run.pk], people, actor) for run in runs]
    titles = Counter(row.run.title.rendition for row in rows if row.on_people)
    return [replace(row, asks=heard[row.run.pk].asked) if titles[row.run.title.rendition] > 1 and row.on_people else row for row in rows]


def _row(run: Run, heard: Heard, people: Mapping[UUID, Asked], actor: Actor) -> Row:
    waiting = int(run.state in asked.ASKING and run.waiting.get("on") in ("decision", "outcome"))
    stays = max(heard.done - heard.undone, 0)
    marks = ("done",) * stays + ("undone",) * heard.undone + ("waiting",) * waiting
    told = f"{stays} done, {heard.undone} undone, {waiting} waiting"
    on_people = run.state in asked.ASKING and run.waiting.get("on") != "webhook"  # what is sent from outside has its own time
    until = moment(run.waiting.get("until")) if on_people else None
    words, strong = awaited.told(run, heard, people.get(run.pk), actor)
    why = heard.why if State(run.state) in (State.PARKED, State.STALLED) else ""
    working = run.state in (State.QUEUED.value, State.RUNNING.value) and heard.step_title
    step = f"step {heard.step} of {heard.steps}" if working else ""
    nothing = awaited.came_to_nothing(run, heard)
    return Row(run, words, marks[-MARKS:], max(len(marks) - MARKS, 0), told, percent_of(run), until, strong, why, nothing, step)


def percent_of(run: Run) -> int | None:
    """How much of its tightest budget is used; None without a budget."""
    used = budget.used(run)
    shares = [100 * used[name] / limit for name in used if (limit := run.budgets.get(name))]
    return min(100, round(max(shares))) if shares else None
