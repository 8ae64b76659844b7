"""Two runs beside each other: what is one and the same in both, where they part, and what each of them did after that.

Rows are matched by what they are about: a step by its name, an artifact by its name, what people said by its order. What is compared is
what was recorded, byte for byte; what is shown are renditions.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

from access import wording
from access.rules import Actor
from artifacts import gist
from runs import presenting, reading
from runs.beside.figures import Figure, figures
from runs.beside.legs import Leg, Side, legs, part_at
from runs.beside.words import word_by_word
from runs.models import Run
from runs.story.course import changed_input
from runs.story.shapes import Rich, Text
from runs.story.wire import object_of, spoken

FOLDED = 2  # rows in a row that are the same are folded, from so many on
TITLES = ("title", "subject")  # what stands in the row as its title
LEFT_WHOLE = ("reason", "note", "body", "detail")  # two that share few words are two sentences, and not one that was changed
CHANGED = 0.4  # how much of both must be the same then
ALIGNED = 120  # words of a text whose order counts for that; of a longer one it is enough which words it has, and how often
SENTENCE = 40  # characters of a difference that is not shown a second time
SAID = {"input": "what it was asked", "output": "what it answered", "result": "what it gave", "content": "the content", "html": "the HTML"}


@dataclass(frozen=True)
class Pair:
    """What stands beside each other; one side may have nothing."""

    first: Leg | None
    second: Leg | None
    same: bool
    part: str = ""


@dataclass(frozen=True)
class Stretch:
    """Rows under one heading of the plan; of those that are the same in a row, all but the first are folded."""

    title: str
    groups: tuple["Group", ...]


@dataclass(frozen=True)
class Group:
    """Rows that are drawn as they are, or folded because they are the same in both."""

    pairs: tuple[Pair, ...]
    folded: bool


@dataclass
class Comparison:
    """Both runs. `first` is the parent if one was forked from the other."""

    first: Side
    second: Side
    forked: bool  # the second from the first
    pairs: tuple[Pair, ...] = ()
    figures: tuple[Figure, ...] = ()
    trunk: int = 0  # rows at the beginning that are the same in both, of runs that are not related

    @property
    def at(self) -> int:
        return self.first.after

    @property
    def names(self) -> dict[str, str]:
        """What the people of both are called."""
        return {**self.first.view.names, **self.second.view.names}

    @property
    def first_word(self) -> str:
        return "Parent" if self.forked else self.first.run.ref

    @property
    def second_word(self) -> str:
        return "Fork" if self.forked else self.second.run.ref

    @property
    def changed(self) -> tuple[Rich, ...]:
        """What the fork was given that its parent was not, name by name."""
        return _changes(self.second) if self.forked else ()

    @property
    def told(self) -> Text | None:
        """What the fork was told that its parent was not, if it is one thing."""
        words = [part for change in self.changed for part in change if isinstance(part, Text)]
        return words[-1] if len(self.changed) == 1 and words else None

    @property
    def after_trunk(self) -> int:
        return self.at + 1

    @property
    def goes_on(self) -> str:
        """Said of two that both go on: nobody else keeps one of them from doing what the other does."""
        open_ = [side.run.ref for side in (self.first, self.second) if side.view.live]
        return f"{' and '.join(open_)} {'both go' if len(open_) == 2 else 'goes'} on." if open_ and self.forked else ""

    @property
    def folded(self) -> tuple[Pair, ...]:
        return self.pairs[: self.trunk]

    @property
    def alike(self) -> bool:
        return all(pair.same for pair in self.pairs)

    @property
    def stretches(self) -> list[Stretch]:
        """The rows after the trunk, by the steps of the plan."""
        found: list[tuple[str, list[Pair]]] = []
        for pair in self.pairs[self.trunk :]:
            if not found or found[-1][0] != pair.part:
                found.append((pair.part, []))
            found[-1][1].append(pair)
        return [Stretch(title, tuple(_groups(pairs))) for title, pairs in found]

    @property
    def differing(self) -> int:
        return sum(not pair.same for pair in self.pairs)


def compare(one: Run, other: Run, actor: Actor) -> Comparison:
    """Both with all that they told, read once each. The parent comes first."""
    if one.forked_from_id == other.pk:
        one, other = other, one
    forked = other.forked_from_id == one.pk
    first, second = _side(one, actor), _side(other, actor)
    if forked:
        first.after, second.after = other.forked_seq, 1
        second.told_again = _told_again(second.lines)
    found = _pairs(legs(first), legs(second, part_at(first) if forked else ""), asked=not (forked and _changes(second)))
    pairs = tuple(pair for pair in _once(list(found)) if not _ended_alike(pair))
    trunk = 0 if forked else next((at for at, pair in enumerate(pairs) if not pair.same), len(pairs))
    return Comparison(first, second, forked, pairs, tuple(figures(first, second)), trunk)


def _side(run: Run, actor: Actor) -> Side:
    told = reading.told(run)
    return Side(presenting.view(run, actor, told), told.lines)


def _changes(fork: Side) -> tuple[Rich, ...]:
    line = next((line for line in fork.own if line.type == "run.forked"), None)
    return tuple(changed_input(line.text("input"))) if line else ()


def _ended_alike(pair: Pair) -> bool:
    """Whether it says no more than that both ended, which stands at the top of both."""
    leg = pair.first
    return bool(leg and pair.same and leg.about[0] == "ending" and not leg.text and not leg.more)


def _told_again(lines: reading.Lines) -> frozenset[int]:
    forked = next((line["seq"] for line in lines if line["body"]["type"] == "run.forked"), 0)
    return frozenset(line["seq"] for line in lines if forked and line["body"].get("caused_by") == forked)


def _pairs(first: list[Leg], second: list[Leg], *, asked: bool) -> Iterator[Pair]:
    """`asked`: whether it is worth saying that a model was asked something else, beside an answer that differs."""
    one, other = [leg.about for leg in first], [leg.about for leg in second]
    for kind, start, end, at, upto in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind == "equal":
            for left, right in zip(first[start:end], second[at:upto], strict=True):
                yield _pair(left, right, asked=asked)
            continue
        yield from _unlike(first[start:end], second[at:upto])


def _unlike(first: Sequence[Leg], second: Sequence[Leg]) -> Iterator[Pair]:
    """What only one of both did, under the same step beside each other in the order of each: a row has two things, and one number each."""
    for part in dict.fromkeys(leg.part for leg in (*first, *second)):
        beside = zip_longest(*([leg for leg in legs_ if leg.part == part] for legs_ in (first, second)))
        yield from (Pair(left, right, False, part) for left, right in beside)


@dataclass(frozen=True)
class Read:
    """Two texts that are worth reading beside each other: under which name, and both."""

    name: str
    before: Text
    after: Text


def _pair(left: Leg, right: Leg, *, asked: bool) -> Pair:
    if left.key and left.key == right.key:
        right = replace(right, more="Happened only once: outside it was recognised as the same.")
    names = [name for name in {**left.marks, **right.marks} if left.marks.get(name) != right.marks.get(name)]
    if not names:
        return Pair(left, right, left.told == right.told, left.part or right.part)
    found = filter(None, (_words_of(name, left, right) for name in names if name not in TITLES))
    read, before, after = next(((each, *pieces) for each in found if any(pieces := word_by_word(each.before, each.after))), (None, (), ()))
    if read and (read.name not in LEFT_WHOLE or _alike(read)):
        left, right = replace(left, pieces=before), replace(right, pieces=after)
    shown = {*TITLES}
    if read:
        shown |= {read.name, *(("html",) if read.name == "body" else ()), *(() if asked else ("input",))}  # the HTML is the same letter
    more = _differ([SAID.get(name) or f"the {name.replace('_', ' ')}" for name in names if name not in shown], too=read is not None)
    left = left if read else replace(left, more=" ".join(filter(None, [left.more, more])))
    return Pair(left, replace(right, more=" ".join(filter(None, [right.more, more]))), False, left.part or right.part)


def _alike(read: Read) -> bool:
    """Whether one of both texts is the other, changed."""
    old, new = read.before.text.split(), read.after.text.split()
    if max(len(old), len(new)) <= ALIGNED:
        return SequenceMatcher(None, old, new, autojunk=False).ratio() >= CHANGED
    return 2 * (Counter(old) & Counter(new)).total() >= CHANGED * (len(old) + len(new))


def _differ(names: Sequence[str], *, too: bool) -> str:
    """The HTML and the reason differ. Empty for nothing."""
    several = bool(names[1:]) or any(gist.is_plural(name) for name in names)
    told = f"{wording.listed(names)} differ{'' if several else 's'}{', too' if too else ''}." if names else ""
    return f"{told[:1].upper()}{told[1:]}"


def _words_of(name: str, left: Leg, right: Leg) -> Read | None:
    """What differs under this name as words; of two JSON objects the first field that does. None if there are no words to show."""
    before, after = left.shown.get(name), right.shown.get(name)
    if before is None or after is None or before.erased or after.erased:  # of what is erased nobody knows what was another in it
        return None
    if _readable(before) and _readable(after):
        return Read(name, before, after) if before.text != after.text else None
    old, new = _fields(before), _fields(after)
    field = next((each for each in {**old, **new} if old.get(each) != new.get(each)), None)
    if field is None:
        return None
    one, other = (Text(f"{spoken(field)}: {each.get(field) or 'none'}", text.label) for each, text in ((old, before), (new, after)))
    return Read(name, one, other)


def _fields(text: Text | None) -> dict[str, str]:
    """The fields of a JSON object that hold words."""
    if text is None or text.media_type != "application/json" or text.label == "secret":
        return {}
    listed = {name: each if isinstance(each, list) else [each] for name, each in object_of(text).items()}
    return {name: ", ".join(each) for name, each in listed.items() if all(isinstance(one, str) for one in each)}


def _once(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Each difference once, where it is first shown word for word. That row names the others, which say what else is different in them;
    those in which nothing else is are left out."""
    seen: dict[tuple[tuple[str, str], ...], int] = {}
    again: dict[int, list[Pair]] = defaultdict(list)
    kept: list[Pair] = []
    for pair in pairs:
        pieces = [piece for leg in (pair.first, pair.second) if leg for piece in leg.pieces]
        marked = tuple((piece.kind, piece.text) for piece in pieces if piece.kind in ("ins", "del"))
        at = seen.setdefault(marked, len(kept)) if sum(len(text) for _, text in marked) >= SENTENCE else len(kept)
        first, second = pair.first, pair.second
        if at == len(kept) or not (first and second):
            kept.append(pair)
            continue
        again[at].append(pair)
        if first.more or second.more:
            kept.append(replace(pair, first=replace(first, pieces=(), text=None), second=replace(second, pieces=(), text=None)))
    for at, pair in enumerate(kept):
        yield (
            replace(pair, first=_also(pair.first, again[at], "first"), second=_also(pair.second, again[at], "second"))
            if again[at]
            else pair
        )


def _also(leg: Leg | None, again: Sequence[Pair], side: Literal["first", "second"]) -> Leg | None:
    """With the numbers of the rows in which the same difference is."""
    if leg is None:
        return None
    numbers = [f"#{other.seq:,}" for pair in again if (other := pair.first if side == "first" else pair.second)]
    return replace(leg, more=f"{leg.more} The same in {wording.listed(numbers)}.".strip())


def _readable(text: Text | None) -> bool:
    """Whether what differs is worth reading word by word: not JSON, and not what is hidden as a whole."""
    return text is not None and not text.erased and text.media_type != "application/json" and text.label != "secret"


def _groups(pairs: Sequence[Pair]) -> Iterator[Group]:
    run: list[Pair] = []
    for pair in [*pairs, None]:
        if pair is not None and (not run or run[-1].same == pair.same):
            run.append(pair)
            continue
        if run:
            yield Group(tuple(run), run[-1].same and len(run) >= FOLDED)
        run = [pair] if pair is not None else []
