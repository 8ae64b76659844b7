"""Looking back in a run: as it stood at one of its events, and where in it something is said. Reading only."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from uuid import UUID

from access.rules import Actor
from access.templatetags.handrail import spell
from runs import pushing, rawlog, timeline
from runs.models import Run
from runs.presenting import View
from runs.rawlog import Asked, Row
from runs.reading import Lines
from runs.story import overview
from runs.story.overview import Mark, Overview
from runs.story.people import amount
from runs.story.shapes import Rich, Story
from runs.story.wire import read

NEAR = 5  # hits that are listed beside the run


@dataclass(frozen=True)
class Looking:
    """What somebody looks for in a run, and where they are. `at` is 0 for now; `hits` are events, in order; `seen`: after it all is new."""

    run: Run
    lines: Lines
    story: Story
    q: str = ""
    at: int = 0
    hits: tuple[Row, ...] = ()
    seen: int = 0

    @property
    def long(self) -> bool:
        """Whether the run is too long to be drawn whole, or somebody looks for something in it."""
        return overview.is_long(self.story) or bool(self.at or self.q)

    @cached_property
    def map(self) -> Overview:
        return overview.overview(self.story, self.lines)

    @property
    def here(self) -> str:
        """Where the frame around the place that is looked at begins on the map."""
        return f"{min(max(float(overview.place(self.at, self.story.seq)) - 6, 0), overview.WIDE - 12):.1f}"

    @property
    def since(self) -> str:
        """Where on the map begins what is new."""
        return overview.place(self.seen + 1, self.story.seq) if self.seen else ""

    @property
    def since_wide(self) -> str:
        return f"{overview.WIDE - float(self.since):.1f}"

    @cached_property
    def news(self) -> overview.News:
        return overview.news(self.story, self.seen)

    @property
    def found(self) -> Mark:
        return overview.marks((row.line.seq for row in self.hits), self.story.seq)

    @property
    def nth(self) -> int:
        """Which of the hits is looked at; 0 if it is none of them."""
        return next((number for number, row in enumerate(self.hits, 1) if row.line.seq == self.at), 0)

    @property
    def before(self) -> int:
        return next((row.line.seq for row in reversed(self.hits) if row.line.seq < (self.at or self.story.seq + 1)), 0)

    @property
    def after(self) -> int:
        return next((row.line.seq for row in self.hits if row.line.seq > self.at), 0) if self.at else 0

    @property
    def near(self) -> tuple[Row, ...]:
        """The hits around the one that is looked at; else the newest."""
        middle = (
            next((number for number, row in enumerate(self.hits) if row.line.seq >= self.at), len(self.hits)) if self.at else len(self.hits)
        )
        begin = max(0, min(middle - NEAR // 2, len(self.hits) - NEAR))
        return self.hits[begin : begin + NEAR]

    @cached_property
    def then(self) -> "Then":
        return Then(timeline.fold(self.lines, self.at), self.lines, self.at)


@dataclass(frozen=True)
class Then:
    """The run as it stood after one event: folded from its log up to there."""

    story: Story
    lines: Lines
    at: int

    @property
    def time(self) -> datetime | None:
        return self.story.last_at

    @property
    def what(self) -> Rich:
        return self.story.now.what

    @property
    def spent(self) -> str:
        """€1.92, 184,000 tokens, 38 h in models and tools"""
        used = self.story.usage
        worked = used.tool_ms + used.model_ms
        parts = [
            amount("cost_micro", used.cost_micro) if used.cost_micro else "",
            f"{used.tokens:,} tokens" if used.tokens else "",
            f"{spell(worked / 1000)} in models and tools" if worked else "",
        ]
        return ", ".join(part for part in parts if part) or "Nothing"

    @property
    def done(self) -> int:
        return sum(effect.state in ("done", "undone", "failed") for effect in self.story.effects)

    @property
    def undone(self) -> int:
        return sum(effect.state == "undone" for effect in self.story.effects)

    @property
    def failures(self) -> int:
        return sum(overview.failed(read(line)) for line in self.lines if line["seq"] <= self.at)


def looking(run: Run, lines: Lines, story: Story, *, q: str = "", at: int = 0, seen: int = 0) -> Looking:
    """`at` beyond the log is now."""
    looks = Looking(run, lines, story, q, at if at <= story.seq else 0, seen=seen)
    return replace(looks, hits=tuple(rawlog.found(run, Asked(q), lines))) if q else looks


def push(run_id: UUID | str, actor: Actor, after: int, *, q: str) -> tuple[str, int]:
    """`pushing.push` for a page on which somebody looks for `q`: it stays marked there."""

    def mark(seen: View, lines: Lines) -> None:
        if seen.sees_events:
            seen.q, seen.hits = q, tuple(row.line.seq for row in rawlog.found(seen.run, Asked(q), lines))

    return pushing.push(run_id, actor, after, mark)
