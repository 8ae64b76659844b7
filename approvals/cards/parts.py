"""What a card is made of. Plain values: a template draws them, and a test counts them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from approvals.both_parts import Difference
from approvals.canonical import ABSENT
from approvals.wordwise import Part
from runs.engine.tools import Limit, Looked

MOST_ROWS = 48  # lines of a letter that its frame makes room for; a longer one scrolls in it
Piece = tuple[str, str]  # how it is drawn (a keyword, a comment, a number of a line, or plain), and the text


@dataclass(frozen=True)
class Warn:
    """One thing that eyes miss. `at` points into the action; `severity` is note, warn or lock; `ack` is the sentence to tick, if any."""

    code: str
    severity: str
    at: str
    strong: str
    text: str = ""
    tag: str = ""
    ack: str = ""
    odd_at: int = -1  # of a host's name that passes for another: where it first differs

    @property
    def state(self) -> str:
        return "failed" if self.severity == "lock" or self.ack else "waiting" if self.severity == "warn" else ""


@dataclass(frozen=True)
class Address:
    """One address as it is written, and what is told of it: that it is `outside`; `sent`, how many went there before, None for nothing."""

    text: str
    path: str
    outside: bool
    sent: int | None = None
    warns: tuple[Warn, ...] = ()

    @property
    def odd_at(self) -> int:
        """Where in the text the character stands by which its host's name passes for another's; -1 where that is not known."""
        place = next((warn.odd_at for warn in self.warns if warn.odd_at >= 0), -1)
        at = self.text.rfind("@") + 1 + place
        return at if place >= 0 and "@" in self.text and at < len(self.text) else -1

    @property
    def history(self) -> str:
        if self.sent is None:
            return ""
        return {0: "First time written to", 1: "Written to once", 2: "Written to twice"}.get(self.sent, f"Written to {self.sent} times")


@dataclass(frozen=True)
class Field:
    """One argument. `shape`: text, long, number, flag, empty, list, json, addresses or nobody; `name` is as the tool's schema has it."""

    path: str
    title: str
    name: str
    value: Any
    shape: str
    addresses: tuple[Address, ...] = ()
    warns: tuple[Warn, ...] = ()
    known: bool = True
    mono: bool = False
    bold: bool = False
    covers: tuple[str, ...] = ()
    typed: str = ""  # of a value that no schema names: what it is, “text”
    was: tuple[Part, ...] = ()  # what an earlier action had here, where it is compared with one
    told: str = ""  # what was looked up about it, as “00932” says little by itself: not signed

    @property
    def says_its_name(self) -> bool:
        """Whether its title is its name, but for the first letter."""
        return self.title.lower() == self.name.lower() != ""


@dataclass(frozen=True)
class Line:
    """How and by whom it is run: signed with the rest, so shown with the rest."""

    path: str
    title: str
    value: str
    covers: tuple[str, ...] = ()
    is_secret: bool = False  # the value is the name of a secret, which nobody sees
    shape: ClassVar[str] = ""


@dataclass(frozen=True)
class Attached:
    """An attachment as a card shows it. `preview` is its beginning as rows or text, if it can be shown at all."""

    index: int
    path: str
    name: str
    media_type: str
    size: int
    commitment: str
    label: str = ""
    preview: "Preview | None" = None
    warns: tuple[Warn, ...] = ()


@dataclass(frozen=True)
class Preview:
    """The beginning of a file: a table for CSV, else text. `more` says what is not on it; `withheld` says why there is nothing.

    `kind` is what the file is by its content, in words, and `sha256` that of its bytes: only for who may see these. `exact`: it is drawn
    from the bytes, in which nothing is hidden; else it is a rendition. `right`: of each column, whether it is one of numbers.
    """

    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    text: str = ""
    more: str = ""
    withheld: str = ""
    kind: str = ""
    sha256: str = ""
    exact: bool = False
    right: tuple[bool, ...] = ()

    @property
    def table(self) -> list[list[tuple[str, bool, str]]]:
        """Its head, then its rows: each cell with whether its column is one of numbers, which end at the same edge, and its head."""
        return [
            [(cell, self.right[at : at + 1] == (True,), "".join(self.head[at : at + 1])) for at, cell in enumerate(row)]
            for row in (self.head, *self.rows)
        ]


@dataclass(frozen=True)
class Html:
    """The HTML part of a letter. `value` is its source, which is what is signed; it is drawn in a frame from an address of its own.

    What was read in it stands beside: text that nobody sees (why, text), comments, links (shown, to), and what only one part says.
    """

    path: str
    title: str
    name: str
    value: str
    unseen: tuple[tuple[str, str], ...] = ()
    comments: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    unlike: Difference = Difference()
    rows: int = 0  # how many lines it takes where it is drawn, an even number, more rather than fewer
    warns: tuple[Warn, ...] = ()

    @property
    def is_long(self) -> bool:
        return self.rows >= MOST_ROWS


@dataclass(frozen=True)
class Row:
    """One field of a record, before and after. `value` is what is signed of it: (before, after), ABSENT where one has nothing."""

    path: str
    title: str
    name: str
    value: tuple[Any, Any]
    before: tuple[Part, ...]
    after: tuple[Part, ...]
    changed: bool
    warns: tuple[Warn, ...] = ()
    covers: tuple[str, ...] = ()
    was: tuple[Part, ...] = ()  # what an earlier action had after, where it is compared with one


@dataclass(frozen=True)
class Share:
    """A piece of the bar of all that was paid: `before`, `left` or `this`, from where and how wide, in thousandths."""

    kind: str
    at: int
    wide: int


@dataclass(frozen=True)
class Amount:
    """The sum of money that an action moves. `text` is drawn large: `value` grouped, with its sign, where it can be read for certain."""

    path: str
    name: str
    value: Any
    text: str
    title: str = "Amount"
    share: tuple[Share, ...] = ()
    said: str = ""  # the same in words
    warns: tuple[Warn, ...] = ()


@dataclass(frozen=True)
class Code:
    """A text that a machine reads, line by line. `lines` joined give `value` exactly; without lines, it is drawn as JSON."""

    path: str
    title: str
    name: str
    value: Any
    lines: tuple[tuple[Piece, ...], ...] = ()
    numbered: bool = False
    warns: tuple[Warn, ...] = ()
    covers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """The method and address of a request, the address in pieces that joined give it exactly; the host is the piece that stands out."""

    path: str
    title: str
    name: str
    value: Any
    method: str
    pieces: tuple[Piece, ...]
    warns: tuple[Warn, ...] = ()
    covers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Paid:
    """An earlier payment of the same kind to the same account, executed here. `at` is when, `ref` the run's reference."""

    at: datetime
    text: str
    run_id: UUID
    ref: str


@dataclass(frozen=True)
class Card:
    """An action as a document. `kind` names the template; `count`, `shown` and `folded` are the sum that the seal states."""

    kind: str
    icon: str
    heading: str
    tool: str
    fields: tuple[Field, ...]
    letter: Field | None
    files: tuple[Attached, ...]
    folded: tuple[Field | Line, ...]
    lines: tuple[Line, ...]
    raw: Any
    unit: str  # what one of it is called: “e-mail”, “call”
    verb: str  # what approving does: “send”, “run”
    facts: str  # “2 recipients, 2 attachments”
    warns: tuple[Warn, ...] = ()
    aside: str = ""  # beside the heading: under which condition it runs
    said: tuple[Field, ...] = ()  # the arguments that the heading and what is beside it say, where no field does
    rows: tuple[Row, ...] = ()
    amount: Amount | None = None
    place: Place | None = None
    code: Code | None = None
    options: tuple[Field, ...] = ()  # what stands below the code
    looked: Looked | None = None  # what Handrail found out: not signed, and so not counted
    known: tuple[tuple[str, str], ...] = ()  # what it is known by here: title and words, beside what was looked up
    stays: tuple[tuple[str, Any], ...] = ()  # of the record that was looked up: what this does not touch
    earlier: tuple[Paid, ...] = ()
    times: int = 0  # how many earlier ones there are; not all of them are listed
    names: str = ""  # the title of what was looked up and stands in the heading
    html: Html | None = None  # beside the letter

    @property
    def parts(self) -> "list[Field | Line | Attached | Row | Amount | Code | Place | Html]":
        """All that is signed, as it is drawn."""
        single = [part for part in (self.amount, self.place, self.letter, self.html, self.code) if part is not None]
        return [*self.rows, *self.said, *self.fields, *single, *self.options, *self.files, *self.lines, *self.folded]

    @property
    def shown_count(self) -> int:
        return len(self.parts) - self.folded_count

    @property
    def folded_count(self) -> int:
        return len(self.folded) + (self.html is not None)  # of HTML the source is what is signed

    @property
    def count(self) -> int:
        return self.shown_count + self.folded_count

    @property
    def lines_below(self) -> bool:
        """Whether the code comes first, and everything else below it."""
        return self.code is not None and not self.fields

    @property
    def looked_at(self) -> datetime | None:
        return datetime.fromisoformat(self.looked.at) if self.looked and self.looked.at else None

    @property
    def files_size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def folded_names(self) -> str:
        return ", ".join(part.title or part.name for part in self.folded)

    @property
    def found_first(self) -> bool:
        """Whether what was found out stands above what is signed: what a dry run of a text for a machine says is read before the text."""
        return self.code is not None and self.place is None

    @property
    def found_in_fold(self) -> bool:
        """Whether what was looked up is the fields that stay, and no more: then when that was stands with them."""
        told = self.found or self.earlier or (self.looked and self.looked.trouble)
        return bool(self.stays) and not told and all(row.value[0] is not ABSENT for row in self.rows)

    @property
    def letter_warns(self) -> tuple[Warn, ...]:
        return self.letter.warns if self.letter else ()

    @property
    def found(self) -> tuple[tuple[str, str], ...]:
        """Everything found out, title by title; not again what the heading says, or what stands beside an argument."""
        facts = self.looked.facts.items() if self.looked else ()
        said = {self.names, *(field.title for field in self.fields if field.told)} - {""}
        return (*(fact for fact in facts if fact[0] not in said), *self.known)


@dataclass(frozen=True)
class Setting:
    """What a card must be told, since it looks nothing up: the tool as it is registered, who is inside, what was found.

    `properties` is the tool's JSON schema by argument; None if the tool is not registered here. `sent` maps an address in lower case
    to how often it was written to. `earlier` are payments to the same account, the newest first, of
    `times` in all, and `today` is what the tool moved on the day that the action was proposed, before it.
    """

    title: str
    effect: str
    kind: str
    properties: Mapping[str, Mapping[str, Any]] | None = None
    inside: Sequence[str] = ()
    sent: Mapping[str, int] = field(default_factory=dict)
    warns: Sequence[Warn] = ()
    files: Mapping[int, tuple[str, Preview | None]] = field(default_factory=dict)  # index → label, preview
    masked: bool = False  # the action is a redacted rendition
    looked: Looked | None = None
    limit: Limit | None = None
    dialect: str = ""
    earlier: Sequence[Paid] = ()
    times: int = 0
    today: str = ""
