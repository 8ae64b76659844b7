"""The shapes of a story. Frozen, and free of the database: names, links and hidden places are drawn when it is shown.

A sentence is a tuple of parts (`Rich`), so that a page can draw an event as a link, a person by the name they have now, and what
somebody wrote with its hidden places hidden.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

_DRAWN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Who:
    """Who did it: human, agent or system, by id. The name is looked up when it is shown."""

    kind: str
    id: str


@dataclass(frozen=True)
class Text:
    """What somebody wrote, as the vault shows it: a redacted rendition, or when and by whom it was erased."""

    text: str = ""
    label: str = ""
    media_type: str = "text/plain"
    size: int = 0
    hidden: Mapping[str, int] = field(default_factory=dict, hash=False)
    erased_at: str = ""
    erased_by: str = ""

    @property
    def erased(self) -> bool:
        return bool(self.erased_at)


@dataclass(frozen=True)
class At:
    """A link to an event: #15."""

    seq: int


@dataclass(frozen=True)
class Elsewhere:
    """A link to an event of another run: RN-7Q4K #15."""

    run: str
    ref: str
    seq: int = 0


@dataclass(frozen=True)
class Code:
    """A key, a name or an id of ours, in type."""

    text: str


@dataclass(frozen=True)
class File:
    """A link to an artifact."""

    id: str
    name: str


@dataclass(frozen=True)
class Moment:
    """A time of day."""

    at: datetime


@dataclass(frozen=True)
class Took:
    """How long something took, in milliseconds."""

    ms: int


@dataclass(frozen=True)
class Tool:
    """A tool, by the title it has now."""

    name: str


@dataclass(frozen=True)
class One:
    """What one action of a tool is: “one e-mail”, by the kind of thing that the tool does."""

    tool: str


@dataclass(frozen=True)
class Step:
    """A step of the engine, by the title of what it does. `tool`: what it uses, where its name does not say so."""

    name: str
    tool: str = ""


@dataclass(frozen=True)
class Quote:
    """The beginning of a longer text, on one line."""

    text: Text


@dataclass(frozen=True)
class Changed:
    """Before and after."""

    before: Text | None
    after: Text | None


@dataclass(frozen=True)
class Piece:
    """Words of a text beside another: the `same` in both, in the later or second alone (`ins`), in the earlier or first alone (`del`);
    `more`: words of ours, on what is left out.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Difference:
    """What of a text is not as it was in the version before. They are compared when it is drawn."""

    before: str
    after: str
    hides: bool = False  # whether both have hidden places: what stands in those is not compared


@dataclass(frozen=True)
class Label:
    """How sensitive something is."""

    name: str


@dataclass(frozen=True)
class Tag:
    """A small word in a box: “Outside text”."""

    text: str


Part = str | Who | Text | At | Elsewhere | Code | File | Moment | Took | Tool | One | Step | Quote | Changed | Difference | Label | Tag
Rich = tuple[Part, ...]


@dataclass(frozen=True)
class Try:
    """One attempt at something that was tried more than once."""

    number: int
    seq: int
    ok: bool
    told: Rich

    @property
    def word(self) -> str:
        return f"Attempt {self.number}"

    @property
    def link(self) -> Rich:
        return (At(self.seq),)


@dataclass(frozen=True)
class Item:
    """One row of the timeline. It stands for the events `first`…`last` and links to the first of them."""

    first: int
    last: int
    at: datetime
    kind: str  # what the rail draws: state plan tool model artifact milestone checkpoint proposal decision signal block effect report …
    title: Rich
    icon: str = ""
    lines: tuple[Rich, ...] = ()
    said: Text | None = None  # in somebody's own words
    tries: tuple[Try, ...] = ()
    more: str = ""  # the summary of `folded`
    folded: tuple[Rich, ...] = ()
    facts: tuple[tuple[str, Rich], ...] = ()  # a proposal: what it would do, name by name
    action: str = ""  # the exact action it is about
    digest: str = ""
    state: str = ""  # colours it, as a state word
    quiet: bool = False  # drawn under “Everything” only
    minor: bool = False
    changed: int = 0  # the last event that changed how it is drawn
    ends: int = 0  # the last event before the next row's first, of those that it stands for
    tool: str = ""  # whose use it tells of
    amounts: tuple[tuple[str, int], ...] = ()  # of how many things that was: (("files", 16),)
    earlier: bool = False  # an effect that the run before this fork had: here it was only found

    @property
    def is_over(self) -> bool:
        """Whether what it tells of has ended, and well at the first attempt."""
        return self.last > self.first and self.state == "" and not self.tries

    @property
    def runs_on(self) -> bool:
        """Whether its lines are sentences of one paragraph."""
        return self.kind in ("effect", "decision")

    @property
    def one_failure(self) -> bool:
        """Whether every attempt failed, and in the same words: then they are said once."""
        told = {
            tuple(part.text if isinstance(part, Text) else part for part in each.told if not isinstance(part, Took)) for each in self.tries
        }
        return len(self.tries) > 1 and len(told) == 1 and not any(each.ok for each in self.tries)

    @property
    def failures(self) -> int:
        return sum(not each.ok for each in self.tries)

    @property
    def recovered(self) -> int:
        """The attempt that went well after others had failed; 0 if none did."""
        return self.tries[-1].number if self.tries and self.tries[-1].ok and self.failures else 0

    @property
    def last_failure(self) -> Try | None:
        return next((each for each in reversed(self.tries) if not each.ok), None)


@dataclass(frozen=True)
class Section:
    """A stretch of the timeline: before the first step, one step of the plan, or after the last."""

    key: str  # stable within the run, and the id in the page: start, s2, s2-2, end
    kind: str  # start | step | end
    number: int = 0
    title: Text | None = None
    state: str = ""
    began: datetime | None = None
    ended: datetime | None = None
    items: tuple[Item, ...] = ()
    opened: int = 0  # the event that opened it
    changed: int = 0  # the last event that changed it
    anew: bool = False  # the same step of the plan was come back to later

    @property
    def word(self) -> str:
        """The word of its state where that says more than the state's own."""
        return "Failed, done anew below" if self.state == "failed" and self.anew else ""

    @property
    def instant(self) -> bool:
        """Whether it was over before anybody could count."""
        return self.began is not None and self.ended is not None and (self.ended - self.began).total_seconds() < 0.05

    @property
    def last(self) -> int:
        """The last event that it stands for."""
        return max((item.last for item in self.items), default=self.opened)

    @property
    def count(self) -> int:
        """How many events there are from its first to its last."""
        return self.last - self.opened + 1


@dataclass(frozen=True)
class PlanStep:
    number: int
    title: Text
    state: str  # planned running waiting paused done failed undone cancelled not_reached; "" where nobody told
    section: str  # the key of the section it links to, "" if there is none yet


@dataclass(frozen=True)
class Plan:
    version: int
    seq: int
    steps: tuple[PlanStep, ...]
    taken_over: frozenset[int] = frozenset()  # steps without a section of their own until they are done anew


@dataclass(frozen=True)
class Action:
    """An exact action, as far as the log tells."""

    id: str
    seq: int
    tool: str
    effect: str
    subject: Text | None
    digest: str
    # proposed approved granted delivered redeemed executed verified | rejected expired withdrawn superseded recalled unknown refused
    state: str
    needs: int
    until: datetime | None
    proposed_at: datetime
    decided_at: datetime | None = None
    decided_seq: int = 0
    deciders: tuple[str, ...] = ()  # ids of those who decided on it
    executor: str = ""  # handrail or agent

    @property
    def link(self) -> Rich:
        return (At(self.seq),)


@dataclass(frozen=True)
class Effect:
    """Something that was done outside, is waiting to be done, or was undone."""

    seq: int
    tool: str
    key: str
    subject: Text | None
    state: str  # done undone failed | not yet: waiting granted running unknown
    can_undo: bool
    undone_seq: int = 0
    action: str = ""
    effect: str = ""
    earlier: bool = False  # done by the run that this one was forked from, under its key; here it was only found

    @property
    def link(self) -> Rich:
        return (At(self.seq),)

    @property
    def spelled_key(self) -> str:
        """Its key where somebody spelled it; one that was drawn says nothing to a reader, and stands on the page of its event."""
        return "" if _DRAWN.fullmatch(self.key) else self.key

    @property
    def told(self) -> Rich:
        """Where it stands, and whether it can be taken back."""
        send = self.effect == "send"
        match self.state:
            case "done" if self.earlier:
                return ("The run that this one was forked from did it. It is there once.",)
            case "done":
                return ("Can be undone.",) if self.can_undo else ("Can’t be undone.",)
            case "undone":
                return ("Undone at ", At(self.undone_seq), ".")
            case "failed":
                return ("Could not be undone, ", At(self.undone_seq), ".")
            case "granted":
                return (f"Approved. Not {'sent' if send else 'done'} yet.",)
            case "running":
                return ("Under way.",)
            case "unknown":
                return ("Outcome unknown. It is not repeated before somebody knows.",)
        return ("Not sent yet. Can’t be undone once sent.",) if send else ("Not done yet.",)


@dataclass(frozen=True)
class Made:
    """A version of an artifact."""

    id: str
    name: str
    version: int
    label: str
    media_type: str
    size: int
    outside: bool
    seq: int

    @property
    def link(self) -> Rich:
        return (At(self.seq),)


@dataclass(frozen=True)
class Usage:
    """What the run took. Milliseconds; `waiting_ms` is time spent waiting for people; `unpriced`: calls of unknown cost."""

    tokens: int = 0
    cost_micro: int = 0
    unpriced: int = 0
    model_ms: int = 0
    tool_ms: int = 0
    step_ms: int = 0  # of the steps that an agent of its own told the end of
    waiting_ms: int = 0


@dataclass(frozen=True)
class Now:
    """What is going on, in one sentence and a few more."""

    state: str
    what: Rich
    lines: tuple[Rich, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    waits_for: str = ""  # decision answer budget timer webhook outcome retry
    action: str = ""
    refused: bool = False  # the last thing that the run asked for was rejected, or nobody decided in time


@dataclass(frozen=True)
class Told:
    """How the run began: who, what for, with which agent."""

    seq: int
    at: datetime
    by: Who
    owner: str
    agent: str
    agent_version: str
    ref: str
    title: Text | None


@dataclass(frozen=True)
class Story:
    """A run as its log tells it, up to and including event `seq`."""

    seq: int = 0
    state: str = "queued"
    since: datetime | None = None
    last_at: datetime | None = None
    ended_at: datetime | None = None
    began: Told | None = None
    plan: Plan | None = None
    sections: tuple[Section, ...] = ()
    now: Now = Now("queued", ("Nothing is recorded yet.",))
    actions: tuple[Action, ...] = ()
    effects: tuple[Effect, ...] = ()
    artifacts: tuple[Made, ...] = ()
    usage: Usage = Usage()
    head: str = ""  # hash of the last event
