"""A story in the making. Each event changes the draft; a snapshot of it is the story up to there."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from runs import vocabulary
from runs.story.shapes import Action, Effect, Item, Made, Rich, Text, Told, Took, Tool, Usage, Who
from runs.story.wire import EPOCH, Line

Tell = Callable[["Draft", Line], None]
TELLERS: dict[str, Tell] = {}
NOT_ALLOWED = ("rejected", "expired", "withdrawn", "recalled")  # a step that ends with this is not in the green of something done
PEOPLE = ("decision", "answer", "budget", "outcome", "signal")  # what a run waits for that only a person can give
WAITS = {
    "decision": "a decision",
    "answer": "an answer",
    "budget": "a bigger budget",
    "timer": "a set time",
    "webhook": "a webhook",
    "outcome": "a person to say what happened",
    "retry": "the next try",
    "unfreezing": "the end of a freeze",
    "signal": "somebody to add context",
}


def tells(*types: str) -> Callable[[Tell], Tell]:
    """Decorator: this function tells these event types."""

    def register(function: Tell) -> Tell:
        TELLERS.update(dict.fromkeys(types, function))
        return function

    return register


@dataclass
class Stretch:
    """A section that is still being written. `rows` are the first seqs of its items."""

    key: str
    kind: str
    number: int = 0
    began: datetime | None = None
    ended: datetime | None = None
    state: str = "running"
    opened: int = 0
    changed: int = 0
    rows: list[int] = field(default_factory=list)
    under_way: dict[Tool, set[int]] = field(default_factory=dict)  # the rows that tell of nothing but a tool, and not of its end
    asked: str = ""  # the action that was proposed last in it
    failed: bool = False  # a step failed in it, or the run got stuck, and no step was completed since


def _only_tool(title: Rich) -> Tool | None:
    return title[0] if len(title) == 1 and isinstance(title[0], Tool) else None


@dataclass
class Waiting:
    """What the run waits for since when; `row` is the item that says so."""

    on: str
    since: datetime
    row: int
    action: str = ""
    until: datetime | None = None
    needs: int = 0
    source: str = ""  # of a webhook: whose

    @property
    def on_people(self) -> bool:
        """Whether only a person can give it. An outcome with a time is looked up again by itself."""
        return self.on in PEOPLE and not (self.on == "outcome" and self.until)


class Draft:
    def __init__(self) -> None:
        self.seq = 0
        self.head = ""
        self.state = "queued"
        self.since: datetime | None = None
        self.last_at: datetime | None = None
        self.ended_at: datetime | None = None
        self.why: Rich = ()  # why it is in this state, in a few words
        self.why_text: Text | None = None
        self.began: Told | None = None
        self.report: Text | None = None  # its title
        self.plan_version = 0
        self.plan_seq = 0
        self.plan: list[Text] = []
        self.taken_over: frozenset[int] = frozenset()  # steps of the plan that the run it was forked from had completed
        self.rows: dict[int, Item] = {}
        self.home: dict[int, Stretch] = {}
        self.stretches: list[Stretch] = [Stretch("start", "start", state="")]
        self.tools: dict[str, int] = {}  # step or call → the row that tells it
        self.attempts: dict[str, tuple[int, int]] = {}  # step → the attempt that goes on, and the event by which it began
        self.step_tools: dict[str, str] = {}  # of a step that does what was approved: the tool
        self.redeemed = ""  # the tool of the action that was redeemed last
        self.doing: Rich = ()
        self.looked: tuple[int, str, int] = (0, "", 0)  # the row of the last look-up, what it found, and how often in a row
        self.spent: Rich = ()  # how much of the limit that was used up last
        self.signals: dict[str, int] = {}
        self.blocks: dict[str, int] = {}
        self.proposals: dict[str, int] = {}
        self.actions: dict[str, Action] = {}
        self.amounts: dict[str, tuple[tuple[str, int], ...]] = {}  # action → of how many things it is
        self.automatic: set[str] = set()
        self.silent_grant = 0  # the row of the last grant, if no person gave it
        self.deciders: dict[str, Rich] = {}
        self.decisions: dict[str, int] = {}  # action → the row of the last decision on it
        self.rejections: dict[str, tuple[Who, Text | None]] = {}  # action → who rejected it, and why
        self.verified: dict[str, Rich] = {}
        self.is_fork = False
        self.undoing = False  # what it did outside is being undone, or was at its end
        self.grants: set[str] = set()
        self.effects: dict[str, Effect] = {}
        self.effect_rows: dict[str, int] = {}
        self.artifacts: list[Made] = []
        self.contents: dict[str, Text] = {}  # name of an artifact → what its newest version says
        self.compared: deque[tuple[int, Rich]] = deque()  # rows that tell what a version changed, and what they say where none is told
        self.usage = Usage()
        self.waiting: Waiting | None = None
        self.silent: tuple[int, datetime] = (0, EPOCH)  # the row that says that its agent went silent, and since when it was
        self.milestone: tuple[int, Text | None] = (0, None)  # the row of the last one, and what it said

    # rows --------------------------------------------------------------------------------------------------------------------------

    def add(self, line: Line, kind: str, title: Rich, **more: Any) -> Item:
        """A new item at the end of the open section."""
        item = Item(line.seq, line.seq, line.at, kind, title, changed=line.seq, **more)
        here = self.stretches[-1]
        self.rows[item.first], self.home[item.first] = item, here
        here.rows.append(item.first)
        here.changed = line.seq
        self._note(None, item)
        return item

    def change(self, row: int | None, **fields: Any) -> None:
        """Draw an item differently from now on. Nothing happens if there is no such item."""
        if row in self.rows:
            was = self.rows[row]
            self.rows[row] = replace(was, changed=self.seq, **fields)
            self.home[row].changed = self.seq
            self._note(was, self.rows[row])

    def _note(self, was: Item | None, now: Item) -> None:
        """Keep which calls of a tool go on, so that nobody looks through all rows of a section for one."""
        under_way = self.home[now.first].under_way
        for item, is_open in ((was, False), (now, not now.is_over)):
            if item is not None and (tool := _only_tool(item.title)):
                rows = under_way.setdefault(tool, set())
                (rows.add if is_open else rows.discard)(now.first)

    def also(self, row: int | None, *line: Any) -> None:
        """One more line of text under an item."""
        if row in self.rows:
            self.change(row, lines=(*self.rows[row].lines, line))

    def plain(self, line: Line) -> Item:
        """An event told by its closed template, under “Everything”."""
        return self.add(line, "state", sentence(line), quiet=True)

    @property
    def came_to_nothing(self) -> bool:
        """Whether what it asked for last was not allowed, and it did nothing outside."""
        last = next(reversed(self.actions.values()), None)
        done = any(effect.state == "done" and not effect.earlier for effect in self.effects.values())
        return last is not None and last.state in ("rejected", "expired") and not done

    # sections ----------------------------------------------------------------------------------------------------------------------

    @property
    def here(self) -> Stretch:
        return self.stretches[-1]

    def open_step(self, number: int, line: Line) -> None:
        """Go on in the section of a step of the plan; a step that is come back to gets a section of its own."""
        if self.here.kind == "step" and self.here.number == number:
            self.here.ended, self.here.state, self.here.changed = None, "running", line.seq
            return
        self.leave(line)
        visits = 1 + sum(1 for each in self.stretches if each.number == number)
        key = f"s{number}" if visits == 1 else f"s{number}-{visits}"
        self.stretches.append(Stretch(key, "step", number, line.at, opened=line.seq, changed=line.seq))

    def open_end(self, line: Line) -> None:
        """Leave the steps: what follows is the report and the ending."""
        if self.here.kind == "end":
            return
        self.leave(line)
        ends = 1 + sum(1 for each in self.stretches if each.kind == "end")
        key = "end" if ends == 1 else f"end-{ends}"
        self.stretches.append(Stretch(key, "end", began=line.at, state="", opened=line.seq, changed=line.seq))

    def trouble(self, step: str = "") -> None:
        """What is open failed, as things stand. `step`: what failed for good; where others beside it were completed, it is open again."""
        if step and not self.undoing and self.home.get(self.tools.get(step, 0)) is self.here:
            self.here.ended, self.here.changed = None, self.seq
        if self.here.kind == "step" and self.here.ended is None:
            self.here.failed = True

    def leave(self, line: Line) -> None:
        """Something else begins: what was open is over, as it stands."""
        self.close(line.at, line.seq, "failed" if self.here.failed else "done")

    def close(self, at: datetime, seq: int, state: str = "done") -> None:
        if self.here.kind == "step" and self.here.ended is None:
            if self.silent_grant in self.here.rows and all(self.rows[row].quiet for row in self.here.rows):
                self.change(self.silent_grant, quiet=False)  # else it would be a section without a line
            asked = self.actions.get(self.here.asked)
            came_to = asked.state if asked and asked.state in NOT_ALLOWED else state
            self.here.ended, self.here.state, self.here.changed = at, came_to if state == "done" else state, seq
            self.here.failed = False

    # the run -----------------------------------------------------------------------------------------------------------------------

    def move(self, state: str, line: Line, why: Rich = (), text: Text | None = None) -> None:
        """The run is in this state from now on."""
        if not (state == "paused" and self.waiting and self.waiting.on == "decision"):  # people can decide still; its deadline goes on
            self.stop_waiting(line)
        self.state, self.since, self.why, self.why_text = state, line.at, why, text
        if self.here.kind == "step" and self.here.ended is None:
            self.here.changed = line.seq

    def stop_waiting(self, line: Line) -> None:
        if self.waiting is None:
            return
        was, self.waiting = self.waiting, None
        decided = self.rows.get(self.decisions.get(was.action, 0)) if self.state == "paused" else None
        took = milliseconds(was.since, decided.at if decided else line.at)
        if was.on_people:
            self.usage = replace(self.usage, waiting_ms=self.usage.waiting_ms + took)
        _settle_waiting(self, was, took)


def sentence(line: Line) -> Rich:
    """The closed template of an event, with the actor as a part of its own."""
    if line.type not in vocabulary.TYPES:
        return (f"An event of type {line.type or 'unknown'}",)
    words = vocabulary.sentence(line.type, line.data, "\0")
    before, mark, after = words.partition("\0")
    return tuple(part for part in (before, line.who if mark else "", after) if part)


def milliseconds(start: datetime, end: datetime) -> int:
    return max(0, round((end - start).total_seconds() * 1000))


def _settle_waiting(draft: Draft, was: Waiting, took: int) -> None:
    """The row that said “waiting” now says how long it was; where a decision ended it, the decision says so."""
    row = draft.rows.get(was.row)
    if row is None or row.kind != "block":
        return
    people, decided = was.on_people, draft.decisions.get(was.action) if was.on == "decision" else None
    draft.also(decided, "Waited for ", Took(took), ".")
    quiet = row.quiet or not people or decided is not None
    title = ("Waited ", Took(took), f" for {awaited(was.on, was.until)}")
    draft.change(was.row, kind="state", icon="", state="", title=title, lines=(), minor=people, quiet=quiet)


def awaited(on: str, until: datetime | None) -> str:
    """What a run waits for, as the end of “Waiting for …”."""
    return "the next look at what became of it" if on == "outcome" and until else WAITS.get(on, on)
