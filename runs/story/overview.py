"""All of a long run at a glance: how its events lie, what failed in it, where it waited for people, and what of it was folded. Pure.

The map is one drawing, `WIDE` units across, of which each path is drawn by its `d`; nothing of it needs a style of its own.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from runs.story.draft import PEOPLE
from runs.story.shapes import Section, Story, Text
from runs.story.wire import Line, read

LONG = 400  # events from which a page shows all of the run at a glance, and of finished steps one row
WIDE, HIGH, FOOT = 1000, 46, 34  # the drawing, and where its bars stand
BARS = 200  # at most
LEAST, MOST = 5.0, 23.0  # how high a bar is where events came slowest and fastest
SHORT = 32  # characters of a step's title that may stand for the state
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


def open_step(story: Story) -> Section | None:
    """The step of the plan that a run is working at."""
    opened = [section for section in story.sections if section.kind == "step" and section.opened and section.ended is None]
    return opened[-1] if opened and story.state == "running" else None


def word_of(step: Section | None) -> str:
    """The title of a step where it stands for the state of the run; empty where it is too long for that, or not all of it may be shown."""
    title = step.title if step else None
    fits = title is not None and not title.erased and not title.hidden and len(title.text) <= SHORT
    return title.text if title and fits else ""


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
    paces = _evened([math.log1p(len(piece) / max((piece[-1].at - piece[0].at).total_seconds(), 0.001)) for piece in pieces])
    low, high = min(paces, default=0), max(paces, default=0)
    width = WIDE * each / max(total, 1)
    strokes = []
    for number, pace in enumerate(paces):
        height = LEAST + (MOST - LEAST) * ((pace - low) / (high - low) if high > low else 0.5)
        strokes.append(f"M{width * (number + 0.5):.1f} {FOOT - height:.1f}V{FOOT}")
    return "".join(strokes)


def _evened(paces: Sequence[float]) -> Sequence[float]:
    """One pause or one rush would make all else look alike: each is drawn with its neighbours, and the tenth part at each end as what
    comes next to it.
    """
    near = [paces[max(0, number - 1) : number + 2] for number in range(len(paces))]
    evened = [sum(each) / len(each) for each in near]
    ordered = sorted(evened)
    cut = len(ordered) // 10
    low, high = (ordered[cut], ordered[-1 - cut]) if ordered else (0, 0)
    return [min(max(pace, low), high) for pace in evened]


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
