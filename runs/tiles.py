"""The four figures on top of the list of runs."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any
from uuid import UUID

import orjson
from django.core.cache import cache
from django.db.models import QuerySet

from access import rules
from access.rules import Actor
from access.templatetags.handrail import spell
from config import clock
from runs import asked
from runs.lifecycle import State
from runs.listing import GROUPS, PEOPLE
from runs.models import Event, Run
from runs.story.wire import moment

DAYS = 7
LOOKED_AT = 300  # the newest runs in which decisions are timed
POINTS = 14  # of the line while it is too early for days
FEWEST = 5  # of a line: fewer show no course
KEPT = 30  # seconds that the timing is kept: it reads logs
WIDTH, HEIGHT, STEP = 120, 24, 17  # of the little charts


@dataclass(frozen=True)
class Bar:
    x: int
    y: float
    height: float
    today: bool  # today, and something failed


@dataclass(frozen=True)
class Tiles:
    waiting: int
    yours: int
    due: int
    blocked: int
    longest: timedelta | None
    longest_title: str | None
    blocked_group: str  # where the longest stands in the list
    failed: int
    failed_lately: int  # in seven days, today with them
    bars: tuple[Bar, ...]
    bars_told: str
    decide: str  # the median time to decide this week; "" without a decision
    decide_before: str
    line: str  # an SVG path; "" where there are too few points
    line_told: str


def tiles(actor: Actor) -> Tiles:
    """Counts over all runs the actor may see, and the median time to decide over the newest."""
    runs = rules.visible(actor, Run, "runs.view")
    waiting = list(runs.filter(state__in=asked.ASKING, waiting__on__in=PEOPLE).select_related("agent"))
    soon = clock.now() + timedelta(hours=1)
    due = sum(1 for run in waiting if (until := moment(run.waiting.get("until"))) and until <= soon)
    blocked, longest = _blocked(runs)
    others = asked.of_others(waiting, actor)
    days = _failures(runs)
    bars, told = _bars(days)
    now, before, points, each = _decisions(actor, runs)
    return Tiles(
        waiting=len(waiting),
        yours=sum(1 for run in waiting if run.pk not in others and _is_yours(run, actor)),
        due=due,
        blocked=blocked,
        longest=clock.now() - longest.state_since if longest else None,
        longest_title=longest.title.rendition if longest else None,
        blocked_group=next((key for key, _, states in GROUPS if longest and longest.state in states), "waiting"),
        failed=days[-1],
        failed_lately=sum(days),
        bars=bars,
        bars_told=told,
        decide=spell(now) if now is not None else "",
        decide_before=spell(before) if before is not None else "",
        line=_path(points),
        line_told=_line_told(points, each),
    )


def _is_yours(run: Run, actor: Actor) -> bool:
    on = run.waiting.get("on", "")
    needs = {"decision": "approvals.decide", "outcome": "" if run.waiting.get("until") else "runs.recover"}.get(on, "")
    own = {str(run.owner_id), str(run.agent.owner_id)} | ({run.starter_id} if on == "decision" else set())
    return bool(needs) and rules.can(actor, needs, run.workspace_id, run.team_id) and actor.id not in own


def _blocked(runs: QuerySet[Run]) -> tuple[int, Run | None]:
    """Runs that have stood still for over an hour, and the one that has for longest."""
    still = (State.WAITING.value, State.PAUSED.value, State.PARKED.value, State.STALLED.value)
    stuck = runs.filter(state__in=still, state_since__lt=clock.now() - timedelta(hours=1))
    return stuck.count(), stuck.select_related("title").order_by("state_since").first()


def _failures(runs: QuerySet[Run]) -> list[int]:
    """Failures a day, the last seven days, today last. Days are UTC's."""
    today = clock.now().date()
    ends = runs.filter(state=State.FAILED.value, ended_at__gte=clock.now() - timedelta(days=DAYS)).values_list("ended_at", flat=True)
    days = [0] * DAYS
    for ended in ends:
        ago = (today - ended.date()).days
        if 0 <= ago < DAYS:
            days[DAYS - 1 - ago] += 1
    return days


def _bars(days: list[int]) -> tuple[tuple[Bar, ...], str]:
    """A bar a day; a day on which nothing failed has the lowest."""
    most = max(*days, 1)
    bars = []
    for index, number in enumerate(days):
        height = max(round(HEIGHT * number / most, 1), 1.5)
        bars.append(Bar(STEP * index, round(HEIGHT - height, 1), height, today=index == DAYS - 1 and number > 0))
    return tuple(bars), f"Failures a day, last seven days: {', '.join(map(str, days))}"


Timing = tuple[float | None, float | None, list[float], str]


def _decisions(actor: Actor, runs: QuerySet[Run]) -> Timing:
    """Median seconds from proposal to decision: this week, the week before, and for each day that had one; in the first days of a
    workspace each decision stands for itself. Then what a point is."""
    teams = [team for place in actor.narrowed("runs.view") for team in actor.teams.get(place, ())]
    key = (
        "decide-3:"
        + ",".join(sorted(str(workspace) for workspace in actor.workspaces("runs.view")))
        + (f":{actor.id}" if actor.kind == "agent" else "")
        + (f":{hashlib.sha256(''.join(sorted(map(str, teams))).encode()).hexdigest()}" if teams else "")
    )
    return cache.get_or_set(key.replace(" ", ""), lambda: _timed(runs), KEPT)


def _timed(runs: QuerySet[Run]) -> Timing:
    now = clock.now()
    newest = runs.filter(created_at__gte=now - timedelta(days=2 * DAYS)).order_by("-created_at").values_list("pk", "month")[:LOOKED_AT]
    found = list(newest)
    rows = Event.objects.filter(
        run_month__in={month for _, month in found},
        run_id__in=[pk for pk, _ in found],
        type__in=("action.proposed", "action.decided"),
    ).values_list("run_id", "type", "body")
    took = list(_pairs(rows.order_by("run_id", "seq")))
    this = [seconds for at, seconds in took if at >= now - timedelta(days=DAYS)]
    last = [seconds for at, seconds in took if at < now - timedelta(days=DAYS)]
    by_day: dict[int, list[float]] = {}
    for at, seconds in took:
        by_day.setdefault((now - at).days, []).append(seconds)
    days = [median(by_day[ago]) for ago in sorted(by_day, reverse=True) if ago < DAYS]
    points, each = (days, "day") if len(days) > 1 else ([seconds for _, seconds in sorted(took)][-POINTS:], "decision")
    return (median(this) if this else None), (median(last) if last else None), points, each


def _pairs(rows: Iterable[tuple[UUID, str, str]]) -> Iterable[tuple[datetime, float]]:
    proposed: dict[str, datetime] = {}
    for _, kind, body in rows:
        event: Mapping[str, Any] = orjson.loads(body)
        at, action = moment(event["at"]), event["data"]["action"]
        if at is None:
            continue
        if kind == "action.proposed":
            proposed[action] = at
        elif action in proposed:
            yield at, max((at - proposed.pop(action)).total_seconds(), 0)


def _path(points: list[float]) -> str:
    """The points as a line, from left to right; none of fewer than FEWEST."""
    if len(points) < FEWEST:
        return ""
    low, high = min(points), max(points)
    return "M" + " ".join(f"{_x(index, len(points))} {_y(value, low, high)}" for index, value in enumerate(points))


def _x(index: int, count: int) -> int:
    return 1 + round((WIDTH - 2) * index / (count - 1))


def _y(value: float, low: float, high: float) -> float:
    return round(4 + (HEIGHT - 8) * (high - value) / (high - low), 1) if high > low else HEIGHT / 2


def _line_told(points: list[float], each: str) -> str:
    return f"Time to decide by {each}, from {spell(points[0])} to {spell(points[-1])}" if len(points) > 1 else ""
