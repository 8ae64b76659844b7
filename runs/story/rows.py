"""What of a section a page draws: of a finished step of a long run one row, of many rows alike one gap with what they come to. Pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from runs.story import titles, work
from runs.story.deeds import AGENT_SAYS
from runs.story.shapes import Item, Section, Story

NEWEST = 200  # rows of a section that a page draws
ALIKE, FEW = 5, 4  # rows of a section that are alike, from which on so many of them in a row are one gap
AROUND, WIDER = 6, 14  # of one that is looked at, those before and after the place; where what is alike is a gap
MOST = 10**9  # things of one action; what says more counts something else
REDONE = ("tool", "state", "checkpoint", "model", "artifact", "milestone", "plan")  # of these the later ones take the place
ALIKE_KINDS = ("tool", "state", "checkpoint", "model", "effect")


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
    items: Sequence[Item | Gap]
    after: Gap | None
    here: int = 0  # the first event of the row that is looked at
    replaced: str = ""  # the words of the fold in which all of it stands, as it was done anew since
    agent_says: bool = False  # that its agent says of all that was done in it, which none of its rows tells then


@dataclass(frozen=True)
class News:
    """What is new to somebody: how many events, what they come to, and whether the first of them is drawn."""

    events: int
    told: str
    drawn: bool


def folds(section: Section, at: int) -> bool:
    """Whether a finished step of a long run is one row: not if the event that is looked at is in it."""
    return section.kind == "step" and section.ended is not None and bool(section.items) and not within(section, at)


def within(section: Section, at: int) -> bool:
    return bool(at and section.items) and section.items[0].first <= at <= section.items[-1].last


def stretched(section: Section, at: int, *, long: bool = False, new: int = 0, hits: Collection[int] = ()) -> Stretched:
    """The rows around the event that is looked at; without one the newest. In a long run many that are alike are one gap: up to where
    what is `new` begins, and without the `hits` that somebody looks for.
    """
    rows = _under_heading(section) if long else section.items
    agent_says = section.kind == "step" and sum(AGENT_SAYS in row.lines for row in rows) > 1
    if agent_says:
        rows = [replace(row, lines=tuple(line for line in row.lines if line != AGENT_SAYS)) for row in rows]
    if not within(section, at):
        drawn = tuple(_alike_as_one(rows, new, hits)) if long else rows
        begin = max(0, len(drawn) - NEWEST)
        before = [row for row in rows if row.first < drawn[begin].first] if begin else []
        left_out, replaced = _left_out(before, drawn[begin] if begin else None), "" if long else _replaced(section, new, hits)
        return Stretched(left_out, drawn[begin:], None, replaced=replaced, agent_says=agent_says)
    middle = max(number for number, row in enumerate(rows) if row.first <= at)
    here = rows[middle].first
    drawn = tuple(_alike_as_one(rows, new, (*hits, here))) if long else rows
    begin, end = _around(drawn, next(number for number, row in enumerate(drawn) if row.first == here), WIDER if long else AROUND)
    before = [row for row in rows if row.first < drawn[begin].first]
    after = [row for row in rows if row.first >= drawn[end].first] if end < len(drawn) else []
    return Stretched(_left_out(before, drawn[begin]), drawn[begin:end], _left_out(after), here, agent_says=agent_says)


def _replaced(section: Section, new: int, hits: Collection[int]) -> str:
    """What a step that went well and was done anew later had come to: “2 artifacts; done anew below”. Empty for one that stands in full:
    with what people or the outside must still find there, what is new to somebody, and what they look for.
    """
    quiet = section.anew and section.state == "done" and all(map(_is_redone, section.items))
    if not quiet or (new and section.last >= new) or any(section.opened <= hit <= section.last for hit in hits):
        return ""
    return "; ".join(filter(None, (came_to(section.items, of_step=True), "done anew below"))).capitalize()


def _is_redone(row: Item) -> bool:
    """Whether a later row takes its place. Of states only plain ones: others tell what went wrong or was undone, or who was waited for."""
    plain = row.kind != "state" or row.quiet or not (row.icon or row.state or row.minor)
    return row.kind in REDONE and row.state != "failed" and plain


def _under_heading(section: Section) -> Sequence[Item]:
    """Its rows, of which those that say no more than its heading, that it began and is done, are drawn under “Everything” only."""
    return [replace(row, quiet=True) if _says_heading(section, row) else row for row in section.items]


def _says_heading(section: Section, row: Item) -> bool:
    return section.kind == "step" and row.title[:1] in work.BEGUN_OR_DONE and not (row.state or row.tries)


def _around(drawn: Sequence[Item | Gap], middle: int, far: int) -> tuple[int, int]:
    """From where to where is drawn of these: so many before and after the middle that a story shows."""
    shown = [number for number, row in enumerate(drawn) if not row.quiet]
    before = [number for number in shown if number < middle][-far:]
    after = [number for number in shown if number > middle][:far]
    return (before[0] if len(before) == far else 0), (after[-1] + 1 if len(after) == far else len(drawn))


def _left_out(rows: Sequence[Item], behind: Item | Gap | None = None) -> Gap | None:
    if not rows:
        return None
    return _gap(rows, behind, ", ".join(each for each in (_same(rows), came_to(rows)) if each))


def _gap(rows: Sequence[Item], behind: Item | Gap | None, told: str) -> Gap:
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
    sought = sorted(hits)
    looks = [None if _holds(row, sought) else _look(row) for row in rows]
    usual = {look for look, times in Counter(looks).items() if look and times >= ALIKE}
    at = 0
    while at < len(rows):
        end = at
        while end < len(rows) and (looks[end] in usual or looks[end] == "") and (end == at or rows[end].first != new):
            end += 1
        shown = end  # what stands out follows, or nothing: then the last that a story shows stands there as itself
        if end == len(rows):
            shown = next((number for number in range(end - 1, at, -1) if not rows[number].quiet), at)
        named = Counter(looks[at:shown])
        named.pop("", None)
        if named.total() < FEW:
            end = max(end, at + 1)
            yield from rows[at:end]
        else:
            done = things(rows[at:shown])  # beside of how many things, how many rows are alike says nothing if they are of several kinds
            told = (*done, *([_names(named)] if len(named) == 1 or not done else []))
            yield _gap(rows[at:shown], rows[shown] if shown < len(rows) else None, ", ".join(told))
            yield from rows[shown:end]
        at = end


def _names(named: Counter[str]) -> str:
    """“9 alike: Move files”, of one kind; of several, “60 alike”: the gap is opened for their names."""
    return f"{named.total():,} alike{f': {next(iter(named))}' if len(named) == 1 else ''}"


def _holds(row: Item, sought: Sequence[int]) -> bool:
    """Whether one of these events, which are in order, is of this row."""
    at = bisect_left(sought, row.first)
    return at < len(sought) and sought[at] <= row.last


def _look(row: Item) -> str | None:
    """What a row says, if it may be one of many; empty for one that says little anyway; None for one that stands out."""
    if row.quiet:
        return ""
    done = row.kind == "effect" and row.state == "done" and row.tool
    if (row.state and not done) or row.tries or row.facts or row.said or row.kind not in ALIKE_KINDS:
        return None
    if row.minor:
        return ""
    if row.more:
        return None
    return titles.of_tool(row.tool) if done else titles.plain(row.title).rstrip(": ") or None


def first_new(story: Story, seen: int) -> int:
    """The first event of the first row after what somebody has seen; 0 if nothing is new."""
    return min((row.first for row in _new(story, seen)), default=0)


def _new(story: Story, seen: int) -> Iterator[Item]:
    return (row for section in story.sections for row in section.items if seen and row.first > seen)


def news(story: Story, seen: int, at: int = 0) -> News:
    """What is new after `seen`, on a page that is drawn around `at`."""
    first = first_new(story, seen)
    open_ = [stretched(section, at, long=True, new=first).items for section in story.sections if first and not folds(section, at)]
    drawn = any(row.first == first for items in open_ for row in items)
    return News(story.seq - seen if seen else 0, came_to(list(_new(story, seen))), drawn)


def came_to(items: Sequence[Item], *, of_step: bool = False) -> str:
    """What folded rows hold, counted: “412 files, 3 decisions, 2 failures”. That a step reached its milestone goes without saying."""
    there = [row for row in items if row.kind == "effect" and row.state == "done"]
    done = [row for row in there if not row.earlier]
    failed = [row for row in items if row.state == "failed" or not all(each.ok for each in row.tries)]
    failures = sum(sum(not each.ok for each in row.tries) or 1 for row in failed)
    fine = " retried and fine" if failed and not (of_step or any(row.state for row in failed)) else ""
    reached = sum(row.kind == "milestone" for row in items)
    counted = (
        (0 if things(done) else len(done), "done outside"),
        (len(there) - len(done), "there already"),
        (sum(row.kind == "effect" and row.state == "undone" for row in items), "undone"),
        (sum(row.kind == "decision" for row in items), "decision"),
        (sum(row.kind == "artifact" for row in items), "artifact"),
        (reached if reached > of_step else 0, "milestone"),
    )
    plural = ("decision", "artifact", "milestone")
    words = [f"{number:,} {word}{'s' if word in plural and number > 1 else ''}" for number, word in counted if number]
    return ", ".join([*things(done), *words, *([f"{failures:,} failure{'' if failures == 1 else 's'}{fine}"] if failures else [])])


def things(rows: Iterable[Item]) -> list[str]:
    """Of how many things what was done in these rows is, as its arguments say: “210 files”. No sum of what some of it does not tell."""
    told = [dict(row.amounts) for row in rows if row.kind == "effect" and row.state == "done" and not row.earlier]
    known = [name for name in (told[0] if told else {}) if all(0 <= each.get(name, -1) <= MOST for each in told)]
    sums = {name: sum(each[name] for each in told) for name in known}
    return [f"{number:,} {name[:-1] if number == 1 else name}" for name, number in sums.items() if number]
