"""The raw log as a table: windows of it, filtered by type and by what it says, one event in full, and whether the chain holds."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from django.core.cache import cache
from django.db.models import Count
from django.urls import NoReverseMatch, reverse

from access.errors import NotFound
from artifacts import reveal
from artifacts.models import Reveal
from artifacts.rendition import plain
from config import clock
from runs import evidence, reading, stream
from runs.evidence import Answer
from runs.models import Event, Run
from runs.presenting import name_of, names_in
from runs.story import overview, raw, titles
from runs.story.shapes import Part, Rich, Text
from runs.story.wire import Line, read, spoken
from runs.verification import Broken, Whole, verify
from runs.vocabulary import TYPES

WINDOW = 200
REVEALED = 50  # reveals of a run that are listed
CHECKABLE = 20_000  # events; a longer chain is checked by `manage.py verify`, not by a page
CHECK_KEPT = 60  # seconds
EVIDENCE_UPTO = 2_000  # events up to which an event's page answers the questions again
# the text that says most about an event, by role
TELLING = ("title", "subject", "note", "question", "answer", "reason", "detail", "body")
AMBER = ("run.waiting", "action.proposed", "block.raised", "action.unknown", "budget.warned", "run.paused")
GREEN = ("effect.done", "action.executed", "run.succeeded", "action.verified")
PURPLE = ("effect.undone", "run.compensating", "run.cancelling")


@dataclass(frozen=True)
class Asked:
    """What the reader wants to see of the log."""

    q: str = ""
    groups: tuple[str, ...] = ()
    at: int = 0  # open this event, in the window around it
    after: int = 0
    before: int = 0


@dataclass(frozen=True)
class Row:
    """One event in the table."""

    line: Line
    who: str
    summary: Rich
    shade: str

    @property
    def brief(self) -> Rich:
        """The summary, and of a note and of what was done its words alone."""
        words = self.line.type in ("note.posted", "effect.done") and self.summary[2:]
        return words or self.summary

    @property
    def payload(self) -> Text | None:
        return next(iter(self.line.texts.values()), None)

    @property
    def role(self) -> str:
        return next(iter(self.line.texts), "")

    @property
    def texts_told(self) -> str:
        """What kind of text it has, and how many besides."""
        more = len(self.line.texts) - 1
        return spoken(self.role) + (f" and {more} more" if more > 0 else "")

    @property
    def time(self) -> str:
        return f"{self.line.at:%H:%M:%S}.{self.line.at.microsecond // 1000:03d}"


@dataclass(frozen=True)
class Group:
    """All types that begin with the same word."""

    key: str
    count: int
    chosen: bool


@dataclass(frozen=True)
class Window:
    """Some rows of the log in a row, and what lies before and after them."""

    rows: list[Row]
    names: Mapping[str, str]
    groups: list[Group]
    total: int  # events that match the filters
    head: int
    asked: Asked
    older: int = 0  # show what is before this event; 0 if there is nothing
    newer: int = 0

    @property
    def first(self) -> int:
        return self.rows[0].line.seq if self.rows else 0

    @property
    def last(self) -> int:
        return self.rows[-1].line.seq if self.rows else 0


def window(run: Run, asked: Asked) -> Window:
    """At most WINDOW events: around `at`, after or before one, or the newest."""
    counts = dict(Event.objects.filter(run_month=run.month, run_id=run.pk).values_list("type").annotate(Count("seq")))
    types = [kind for kind in TYPES if kind.partition(".")[0] in asked.groups]
    if asked.q:
        found, total = _searched(run, asked, types)
    else:
        found = _lines(run, asked, types)
        total = sum(number for kind, number in counts.items() if not types or kind in types)
    names = names_in(found, run)
    first, last = (found[0]["seq"], found[-1]["seq"]) if found else (0, 0)
    lines = [read(each) for each in found]
    tools = _tools(lines)
    return Window(
        rows=[_row(line, names, run, tools) for line in lines],
        names=names,
        groups=_groups(counts, asked.groups),
        total=total,
        head=run.seq,
        asked=asked,
        older=first if len(found) < total and first > 1 and not _is_first(run, first, types, asked) else 0,
        newer=last if len(found) < total and last < run.seq else 0,
    )


def _is_first(run: Run, first: int, types: list[str], asked: Asked) -> bool:
    if asked.q or not types:
        return False
    return not Event.objects.filter(run_month=run.month, run_id=run.pk, seq__lt=first, type__in=types).exists()


def _lines(run: Run, asked: Asked, types: list[str]) -> reading.Lines:
    """Lines of one window, read from a cursor that is found first."""
    return [orjson.loads(line) for line in stream.read(run.pk, after=_start(run, asked, types), limit=WINDOW, types=types).lines]


def _start(run: Run, asked: Asked, types: list[str]) -> int:
    if asked.after:
        return min(asked.after, run.seq)
    before = asked.before or (asked.at + WINDOW // 2 if asked.at else run.seq + 1)
    earlier = Event.objects.filter(run_month=run.month, run_id=run.pk, seq__lt=before)
    seqs = (earlier.filter(type__in=types) if types else earlier).order_by("-seq").values_list("seq", flat=True)[:WINDOW]
    return min(seqs, default=1) - 1


def _searched(run: Run, asked: Asked, types: list[str]) -> tuple[reading.Lines, int]:
    """Of the whole log, the lines of one window that hold every word, and how many there are in all."""
    lines = [line for line in reading.lines(run) if not types or line["body"]["type"] in types]
    found, _, _ = _holding(run, asked, lines)
    if asked.after:
        return [line for line in found if line["seq"] > asked.after][:WINDOW], len(found)
    before = asked.before or (asked.at + WINDOW // 2 if asked.at else run.seq + 1)
    return [line for line in found if line["seq"] < before][-WINDOW:], len(found)


def found(run: Run, asked: Asked, lines: reading.Lines) -> list[Row]:
    """Of these lines, as rows of the log, those that hold every word that is asked for."""
    holding, names, tools = _holding(run, asked, lines)
    return [_row(read(line), names, run, tools) for line in holding]


def _holding(run: Run, asked: Asked, lines: reading.Lines) -> tuple[reading.Lines, Mapping[str, str], Mapping[str, str]]:
    """Those that hold every word in type, actor, data or any rendition; and the names and tools in all of them."""
    words = asked.q.casefold().split()
    names, tools = names_in(lines, run), _tools(map(read, lines))
    return [line for line in lines if all(word in _words(read(line), names, run, tools) for word in words)], names, tools


def _words(line: Line, names: Mapping[str, str], run: Run, tools: Mapping[str, str]) -> str:
    texts = " ".join(plain(text.text) for text in line.texts.values())
    said = titles.plain(raw.told(line, tools))
    return f"{line.type} {name_of(line.who, names, run)} {said} {orjson.dumps(line.data).decode()} {texts}".casefold()


def _tools(lines: Iterable[Line]) -> dict[str, str]:
    """Which tool each step uses, as far as these lines tell."""
    return {step: tool for line in lines for step, tool in raw.tools_of(line).items()}


def _groups(counts: Mapping[str, int], chosen: tuple[str, ...]) -> list[Group]:
    groups: Counter[str] = Counter()
    for kind, number in counts.items():
        groups[kind.partition(".")[0]] += number
    order = list(dict.fromkeys(kind.partition(".")[0] for kind in TYPES))
    return [Group(key, groups[key], key in chosen) for key in order if groups[key] or key in chosen]


def _row(line: Line, names: Mapping[str, str], run: Run, tools: Mapping[str, str]) -> Row:
    return Row(line, name_of(line.who, names, run), tuple(_summary(line, tools)), shade_of(line))


def _summary(line: Line, tools: Mapping[str, str]) -> Iterator[Part]:
    """What the event says, and the text that says most."""
    said = next((line.texts[role] for role in TELLING if role in line.texts), None)
    yield from raw.told(line, tools)
    if said is not None:
        yield from (". " if any(isinstance(part, str) and ":" in part for part in raw.told(line, tools)) else ": ", said)


def shade_of(line: Line) -> str:
    """The state that an event's type is coloured by."""
    if line.type in overview.FAILED or line.type == "tool.ended" and line.word("outcome") == "error":
        return "failed"
    if line.type == "action.executed" and not line.flag("ok", True):
        return "failed"
    groups = ((AMBER, "waiting"), (GREEN, "done"), (PURPLE, "undone"))
    return next((shade for types, shade in groups if line.type in types), "")


# One event ----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Detail:
    """One event in full. `data` is JSON over several lines; `step` its place in the plan."""

    row: Row
    names: Mapping[str, str]
    data: tuple[tuple[str, Part], ...]
    before: str
    hash: str
    caused_by: int
    sender: str
    step: int
    step_title: Text | None  # as the plan called it then
    doubts: tuple[Answer, ...]
    head: int
    revealed: Sequence[Reveal] = ()  # to whom its texts were shown

    @property
    def line(self) -> Line:
        return self.row.line

    @property
    def payloads(self) -> list[tuple[str, Text]]:
        return list(self.line.texts.items())

    @property
    def previous(self) -> int:
        return self.line.seq - 1

    @property
    def next(self) -> int:
        return self.line.seq + 1 if self.line.seq < self.head else 0


def detail(run: Run, seq: int) -> Detail:
    """Event `seq` of a run. NotFound if there is none."""
    page = stream.read(run.pk, after=seq - 1, limit=1) if 0 < seq <= run.seq else None
    if page is None or page.seqs != [seq]:
        raise NotFound
    found = orjson.loads(page.lines[0])
    line, body = read(found), found["body"]
    mine = Event.objects.filter(run_month=run.month, run_id=run.pk)
    before = mine.filter(seq=seq).values_list("prev_hash", flat=True).get()
    names = names_in([found], run)
    return Detail(
        row=_row(line, names, run, {}),
        names=names,
        data=tuple((name, _value(value)) for name, value in sorted(line.data.items()) if name != "plan_step"),
        before=bytes(before).hex(),
        hash=line.hash,
        caused_by=int(body.get("caused_by") or 0),
        sender=str((body.get("sender") or {}).get("id") or ""),
        step=line.count("plan_step"),
        step_title=_step_title(run, seq, line.count("plan_step")),
        doubts=_doubts(run, seq),
        head=run.seq,
        revealed=reveal.of_event(run.pk, seq) if line.texts else (),
    )


@dataclass(frozen=True)
class Shown:
    """Somebody was shown what is hidden: `what` it was, in words, and the page that it stands on."""

    row: Reveal
    what: str
    url: str


def revealed(run: Run) -> list[Shown]:
    """Who saw what of a run, the newest first."""
    return [Shown(row, *_where(run, row.place)) for row in reveal.of_run(run.pk)[:REVEALED]]


def _where(run: Run, place: str) -> tuple[str, str]:
    kind, *ids = place.split(":")
    if kind == "event":
        return f"#{int(ids[1]):,} {ids[2]}", reverse("runs:event", args=[run.pk, int(ids[1])])
    if kind == "artifact":
        return "an artifact", reverse("artifacts:artifact", args=[ids[0]])
    try:
        return ("a file of an action" if kind == "action" else "evidence of an action"), reverse("approvals:action", args=[ids[0]])
    except NoReverseMatch:  # the rooms to the left may not be there
        return "an action", ""


def _step_title(run: Run, seq: int, step: int) -> Text | None:
    """What the plan of that time calls a step."""
    if not step:
        return None
    plans = Event.objects.filter(run_month=run.month, run_id=run.pk, seq__lt=seq, type="plan.set").order_by("-seq")
    at = plans.values_list("seq", flat=True).first()
    if at is None:
        return None
    (found,) = stream.read(run.pk, after=at - 1, limit=1).lines
    return read(orjson.loads(found)).text(f"step_{step}")


def _value(value: Any) -> Part:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _doubts(run: Run, seq: int) -> tuple[Answer, ...]:
    """The questions that fail because of this event."""
    if run.seq > EVIDENCE_UPTO:
        return ()
    return tuple(each for each in reading.answers(run) if each.state == evidence.FAIL and seq in each.seqs)


# The chain ----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    """What a check of the chain found, and when; None if the log is too long for a page."""

    found: Whole | Broken | None
    at: datetime | None
    head: int

    @property
    def whole(self) -> bool:
        return isinstance(self.found, Whole)

    @property
    def broken(self) -> bool:
        return isinstance(self.found, Broken)


def chain(run: Run) -> Chain:
    """Walk the chain's hashes, without opening the vault; the result stands for a minute, or until the log grows."""
    if run.seq > CHECKABLE:
        return Chain(None, None, run.seq)
    key = f"chain:{run.pk}:{run.seq}:{bytes(run.head_hash).hex()[:16]}"
    return cache.get_or_set(key, lambda: Chain(verify(run, payloads=False), clock.now(), run.seq), CHECK_KEPT)
