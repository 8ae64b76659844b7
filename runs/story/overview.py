"""All of a long run at a glance: how its events lie, what failed in it, where it waited for people, and what of it was folded. Pure.

The map is one drawing, `WIDE` units across, of which each path is drawn by its `d`; nothing of it needs a style of its own.
"""

import math
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from runs.story import titles
from runs.story.draft import PEOPLE
from runs.story.shapes import Item, Section, Story, Text
from runs.story.wire import Line, read

LONG = 400  # events from which a page shows all of the run at a glance, and of finished steps one row
WIDE, HIGH, FOOT = 1000, 46, 34  # the drawing, and where its bars stand
BARS = 200  # at most
LEAST, MOST = 5.0, 23.0  # how high a bar is where events came slowest and fastest
NEWEST = 200  # rows of a section that a page draws
ALIKE = 5  # rows that are alike from which on they are one gap
AROUND = 6  # of one that is looked at, those before and after the place
FAILED = ("step.failed", "run.failed", "run.parked", "run.stalled", "deadletter.entered", "effect.undo_failed", "budget.exceeded")


@dataclass(frozen=True)
class Mark:
    """Events of one kind: how many, and the strokes that show where."""

    count: int
    path: str


@dataclass(frozen=True)
class Stop:
    """A step of the plan under the map: how much of the width it has, in percent."""

    share: int
    title: Text | None
    number: int


@dataclass(frozen=True)
class Overview:
    total: int
    each: int  # events that one bar stands for
    bars: str
    edges: str
    failures: Mark
    waits: Mark
    stops: tuple[Stop, ...]


class Gap(NamedTuple):
    """Rows that are not drawn: their first and last event, how many they are, and what they come to in words."""

    first: int
    last: int
    rows: int
    told: str
    quiet: bool = False  # all of them are drawn under “Everything” only

    @property
    def events(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True)
class Stretched:
    """The rows of a section that a page draws, with a gap in the place of many that are alike, and what lies before and after them."""

    before: Gap | None
    items: tuple[Item | Gap, ...]
    after: Gap | None
    here: int = 0  # the first event of the row that is looked at


@dataclass(frozen=True)
class News:
    """What is new to somebody: how many events, what they come to, and whether the first of them is drawn."""

    events: int
    told: str
    drawn: bool


def is_long(story: Story) -> bool:
    """Whether it is too long to be drawn whole: of finished steps there is one row."""
    return story.seq >= LONG


def overview(story: Story, lines: Sequence[Mapping[str, Any]]) -> Overview:
    """The map of a run of which these are all the lines."""
    told = [read(line) for line in lines]
    return Overview(
        total=story.seq,
        each=_each(story.seq),
        bars=_bars(told, story.seq),
        edges=_strokes((section.opened for section in story.sections if section.kind == "step" and section.opened > 1), story.seq, 0, HIGH),
        failures=marks((line.seq for line in told if failed(line)), story.seq, 37, HIGH),
        waits=marks((line.seq for line in told if _waits(line)), story.seq, 37, HIGH),
        stops=tuple(_stops(story)),
    )


def marks(seqs: Iterable[int], total: int, top: int = 0, foot: int = 6) -> Mark:
    found = list(seqs)
    return Mark(len(found), _strokes(found, total, top, foot))


def place(seq: int, total: int) -> str:
    """Where an event lies across the drawing."""
    return f"{WIDE * max(seq - 0.5, 0) / max(total, 1):.1f}"


def failed(line: Line) -> bool:
    """Whether an event tells that something failed."""
    ended = line.type == "tool.ended" and line.word("outcome") == "error" and not line.word("step")
    return line.type in FAILED or ended or (line.type == "action.executed" and not line.flag("ok", True))


def _waits(line: Line) -> bool:
    return line.type == "run.waiting" and line.word("on") in PEOPLE and not (line.word("on") == "outcome" and line.word("until"))


def _each(total: int) -> int:
    return max(1, math.ceil(total / BARS))


def _bars(told: Sequence[Line], total: int) -> str:
    """A bar for so many events each, the higher the faster they came."""
    each = _each(total)
    pieces = [told[at : at + each + 1] for at in range(0, len(told), each)]
    paces = [math.log1p(len(piece) / max((piece[-1].at - piece[0].at).total_seconds(), 0.001)) for piece in pieces]
    low, high = min(paces, default=0), max(paces, default=0)
    width = WIDE * each / max(total, 1)
    strokes = []
    for number, pace in enumerate(paces):
        height = LEAST + (MOST - LEAST) * ((pace - low) / (high - low) if high > low else 0.5)
        strokes.append(f"M{width * (number + 0.5):.1f} {FOOT - height:.1f}V{FOOT}")
    return "".join(strokes)


def _strokes(seqs: Iterable[int], total: int, top: int, foot: int) -> str:
    return "".join(f"M{place(seq, total)} {top}V{foot}" for seq in seqs)


def _stops(story: Story) -> Iterable[Stop]:
    """What stands under the map: the steps as they were opened, and before the first of them nothing. Together the whole width."""
    opened = [section for section in story.sections if section.kind == "step" and section.opened]
    begins = [round(100 * (section.opened - 1) / story.seq) for section in opened] + [100]
    if opened and begins[0]:
        yield Stop(begins[0], None, 0)
    named = apart([section.title for section in opened])
    for section, title, begin, end in zip(opened, named, begins, begins[1:], strict=False):
        yield Stop(end - begin, title, section.number)


def apart(given: Sequence[Text | None]) -> Sequence[Text | None]:
    """Titles without the words that all of them begin with: there is little room. A mark of something hidden is not cut."""
    words = [title.text.split(" ") for title in given if title and "⟦" not in title.text]
    same = len(os.path.commonprefix(words)) if len(words) == len(given) > 1 else 0
    if not same or any(len(each) == same for each in words):
        return given
    return [replace(title, text=" ".join(title.text.split(" ")[same:])) for title in given if title]


# What of a section is drawn -----------------------------------------------------------------------------------------------------------


def folds(section: Section, at: int) -> bool:
    """Whether a finished step of a long run is one row: not if the event that is looked at is in it."""
    return section.kind == "step" and section.ended is not None and bool(section.items) and not within(section, at)


def within(section: Section, at: int) -> bool:
    return bool(at and section.items) and section.items[0].first <= at <= section.items[-1].last


def stretched(section: Section, at: int, *, long: bool = False, new: int = 0, hits: Collection[int] = ()) -> Stretched:
    """The rows around the event that is looked at; without one the newest. In a long run many that are alike are one gap: up to where
    what is `new` begins, and without the `hits` that somebody looks for.
    """
    rows = section.items
    if not within(section, at):
        begin = max(0, len(rows) - NEWEST)
        drawn = rows[begin:]
        return Stretched(
            _left_out(rows[:begin], drawn[0] if drawn else None), tuple(_alike_as_one(drawn, new, hits)) if long else drawn, None
        )
    middle = max(number for number, row in enumerate(rows) if row.first <= at)
    begin, end = max(0, middle - AROUND), middle + AROUND + 1
    return Stretched(_left_out(rows[:begin], rows[begin]), rows[begin:end], _left_out(rows[end:]), rows[middle].first)


def _left_out(rows: Sequence[Item], behind: Item | None = None) -> Gap | None:
    if not rows:
        return None
    return _gap(rows, behind, ", ".join(each for each in (_same(rows), came_to(rows)) if each))


def _gap(rows: Sequence[Item], behind: Item | None, told: str) -> Gap:
    """These rows as a gap. A row may go on after others began: the gap ends where what is drawn `behind` it begins."""
    last = max(row.last for row in rows)
    return Gap(rows[0].first, min(last, behind.first - 1) if behind else last, len(rows), told, all(row.quiet for row in rows))


def _same(rows: Sequence[Item]) -> str:
    """“110 alike: Move files”, if most of them are."""
    counted = Counter(titles.plain(row.title) for row in rows)
    title, count = counted.most_common(1)[0]
    return f"{count:,} alike: {title.rstrip(': ')}" if title and count > 1 and count * 2 >= len(rows) else ""


def _alike_as_one(rows: Sequence[Item], new: int, hits: Collection[int]) -> Iterator[Item | Gap]:
    """The rows, with one gap in the place of many in a row that come again and again, as batches do. The last of them that a
    story shows is drawn, and what follows it.
    """
    looks = [_look(row, hits) for row in rows]
    usual = {look for look, times in Counter(looks).items() if look and times >= ALIKE}
    at = 0
    while at < len(rows):
        end = at
        while end < len(rows) and (looks[end] in usual or looks[end] == "") and (end == at or rows[end].first != new):
            end += 1
        shown = next((number for number in range(end - 1, at, -1) if not rows[number].quiet), at)  # the first may stand out by itself
        named = Counter(looks[at:shown])
        named.pop("", None)
        if named.total() < ALIKE:
            end = max(end, at + 1)
            yield from rows[at:end]
        else:
            yield _gap(rows[at:shown], rows[shown], f"{named.total():,} alike: {', '.join(named)}")
            yield from rows[shown:end]
        at = end


def _look(row: Item, hits: Collection[int]) -> str | None:
    """What a row says, if it may be one of many; empty for one that says little anyway; None for one that stands out."""
    if row.state or row.tries or row.facts or row.said or row.more or row.kind not in ("tool", "state", "checkpoint", "model"):
        return None
    if any(row.first <= hit <= row.last for hit in hits):
        return None
    return "" if row.quiet or row.minor else titles.plain(row.title).rstrip(": ") or None


def first_new(story: Story, seen: int) -> int:
    """The first event of the first row after what somebody has seen; 0 if nothing is new."""
    return min((row.first for row in _new(story, seen)), default=0)


def _new(story: Story, seen: int) -> Iterator[Item]:
    return (row for section in story.sections for row in section.items if seen and row.first > seen)


def news(story: Story, seen: int) -> News:
    first = first_new(story, seen)
    open_ = [section.items[-NEWEST:] for section in story.sections if not folds(section, 0)]
    drawn = any(row.first == first for items in open_ for row in items)
    return News(story.seq - seen if seen else 0, came_to(list(_new(story, seen))), drawn)


def came_to(items: Sequence[Item]) -> str:
    """What folded rows hold, counted: “12 done outside, 3 decided, 2 failures”."""
    done = sum(row.kind == "effect" and row.state == "done" for row in items)
    undone = sum(row.kind == "effect" and row.state == "undone" for row in items)
    decided = sum(row.kind == "decision" for row in items)
    failures = sum(sum(not each.ok for each in row.tries) or row.state == "failed" for row in items)
    files = sum(row.kind == "artifact" for row in items)
    reached = sum(row.kind == "milestone" for row in items)
    counted = (
        (done, "done outside"),
        (undone, "undone"),
        (decided, "decided"),
        (files, "file" if files == 1 else "files"),
        (reached, "milestone" if reached == 1 else "milestones"),
        (failures, "failure" if failures == 1 else "failures"),
    )
    return ", ".join(f"{number:,} {word}" for number, word in counted if number)
