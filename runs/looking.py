"""Looking back in a run: as it stood at one of its events, and where in it something is said. Reading only."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from uuid import UUID

from access.rules import Actor
from access.templatetags.handrail import spell
from runs import meters, pushing, rawlog, timeline
from runs.models import Run
from runs.presenting import View
from runs.rawlog import Asked, Row
from runs.reading import Lines
from runs.story import overview, rows
from runs.story.overview import Mark, Overview
from runs.story.people import amount
from runs.story.shapes import Item, Made, Rich, Story
from runs.story.wire import read

NEAR = 5  # hits that are listed beside the run
CENT = 10_000  # millionths


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
    def news(self) -> rows.News:
        """What is new, with what it cost."""
        news = rows.news(self.story, self.seen, self.at)
        cost = sum(read(line).count("cost_micro") for line in self.lines if line["seq"] > self.seen)
        spent = [f"{amount('cost_micro', cost)} spent"] if cost >= CENT else []
        return replace(news, told=", ".join(filter(None, [news.told, *spent])))

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
        return Then(timeline.fold(self.lines, self.at), self.lines, self.at, steps_count=not self.run.workflow)


@dataclass(frozen=True)
class Then:
    """The run as it stood after one event: folded from its log up to there."""

    story: Story
    lines: Lines
    at: int
    steps_count: bool = False  # working time is that of its steps: an agent of its own tells what its tools took, and nobody measured it

    @property
    def time(self) -> datetime | None:
        return self.story.last_at

    @property
    def what(self) -> Rich:
        return self.story.now.what

    @property
    def step(self) -> str:
        """The title of the step that was open, for its state."""
        return overview.word_of(overview.open_step(self.story))

    @property
    def which(self) -> str:
        """step 5 of 8"""
        step, plan = overview.open_step(self.story), self.story.plan
        return f"step {step.number} of {len(plan.steps)}" if step and plan else ""

    @property
    def waited(self) -> Rich:
        """For whom it waited; how long it had waited for people before."""
        now = self.story.now
        before = self.story.usage.waiting_ms
        if now.waits_for:
            return now.what
        return (f"Nobody; {spell(before / 1000)} before that",) if before else ()

    @property
    def spent(self) -> str:
        """€1.92, 184 k tokens, 38 h"""
        used = self.story.usage
        worked = used.step_ms if self.steps_count else used.tool_ms + used.model_ms
        parts = [
            amount("cost_micro", used.cost_micro) if used.cost_micro else "",
            f"{meters.shown('tokens', used.tokens)} tokens" if used.tokens else "",
            spell(worked / 1000) if worked else "",
        ]
        return ", ".join(part for part in parts if part)

    @cached_property
    def _items(self) -> list[Item]:
        return [item for section in self.story.sections for item in section.items]

    @property
    def done(self) -> str:
        """What stood, and what was undone: “126 times, 2,069 files, 3 undone”. Of a fork apart what the run before it had done."""
        undone = sum(effect.state == "undone" for effect in self.story.effects)
        there = sum(effect.state == "done" and effect.earlier for effect in self.story.effects)
        stands = sum(effect.state in ("done", "failed") for effect in self.story.effects) - there  # failed: it could not be undone
        times = "Once" if stands == 1 else f"{stands:,} times" if stands else ""
        apart = [f"{number:,} {word}" for number, word in ((undone, "undone"), (there, "there already")) if number]
        return ", ".join(part for part in (times, *rows.things(self._items), *apart) if part)

    @property
    def decided(self) -> int:
        """Decisions of people."""
        return sum(item.kind == "decision" for item in self._items)

    @property
    def newest(self) -> Made | None:
        """The artifact that was the newest."""
        return self.story.artifacts[-1] if self.story.artifacts else None

    @property
    def failures(self) -> int:
        return sum(overview.failed(read(line)) for line in self.lines if line["seq"] <= self.at)

    @property
    def fine(self) -> bool:
        """Whether what failed was tried again, and went well."""
        return not any(item.state == "failed" for item in self._items)


def looking(run: Run, lines: Lines, story: Story, *, q: str = "", at: int = 0, seen: int = 0) -> Looking:
    """`at` beyond the log is now."""
    looks = Looking(run, lines, story, q, at if at <= story.seq else 0, seen=seen)
    return replace(looks, hits=found(run, q, lines)) if q else looks


def found(run: Run, q: str, lines: Lines) -> tuple[Row, ...]:
    """The events that hold it. What was done without a person, as it was proposed, is found once: where it was done."""
    hits = rawlog.found(run, Asked(q), lines)
    done = {row.line.word("action") for row in hits if row.line.type == "effect.done"}
    return tuple(
        row for row in hits if row.line.type != "action.proposed" or row.line.count("needs") or row.line.word("action") not in done
    )


def push(run_id: UUID | str, actor: Actor, after: int, *, q: str) -> tuple[str, int]:
    """`pushing.push` for a page on which somebody looks for `q`: it stays marked there."""

    def mark(seen: View, lines: Lines) -> None:
        if seen.sees_events:
            seen.q, seen.hits = q, tuple(row.line.seq for row in found(seen.run, q, lines))

    return pushing.push(run_id, actor, after, mark)
