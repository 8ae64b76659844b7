"""What a reviewer puts their name to, laid out for its kind. Pure: an action in, a card out; no query, no clock, no HTML.

A card never chooses what to leave out. It takes the arguments it knows how to draw, and `_rest` draws whatever it did not take;
`covered` and `pointers` let a test hold every card to that.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import parseaddr
from typing import Any, ClassVar

from approvals.canonical import Attachment, CanonicalAction, pointer

# names under which tools carry the parts of a message
FROM = ("from", "from_", "from_address", "sender")
TO, CC, BCC = ("to", "recipients"), ("cc",), ("bcc",)
REPLY_TO = ("reply_to",)
SUBJECT, BODY = ("subject",), ("body", "text")
LONG = 160


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

    @property
    def state(self) -> str:
        return "failed" if self.severity == "lock" or self.ack else "waiting" if self.severity == "warn" else ""


@dataclass(frozen=True)
class Address:
    """One address as it is written, and what is known of it. `sent` is how many messages went there before; None is not known."""

    text: str
    path: str
    outside: bool
    sent: int | None = None
    warns: tuple[Warn, ...] = ()

    @property
    def history(self) -> str:
        if self.sent is None:
            return ""
        return "First time written to" if self.sent == 0 else f"Written to {self.sent} time{'' if self.sent == 1 else 's'}"


@dataclass(frozen=True)
class Field:
    """One argument. `shape`: text, long, number, flag, empty, list, json or addresses; `name` is its own name in the tool's schema."""

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


@dataclass(frozen=True)
class Line:
    """How and by whom it is run: signed with the rest, so shown with the rest."""

    path: str
    title: str
    value: str
    covers: tuple[str, ...] = ()
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
    """The beginning of a file: a table for CSV, else text. `more` says what is not on it; `withheld` says why there is nothing."""

    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    text: str = ""
    more: str = ""
    withheld: str = ""


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

    @property
    def shown_count(self) -> int:
        return len(self.fields) + (self.letter is not None) + len(self.files) + len(self.lines)

    @property
    def folded_count(self) -> int:
        return len(self.folded)

    @property
    def count(self) -> int:
        return self.shown_count + self.folded_count

    @property
    def files_size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def folded_names(self) -> str:
        return ", ".join(part.title or part.name for part in self.folded)

    @property
    def letter_warns(self) -> tuple[Warn, ...]:
        return self.letter.warns if self.letter else ()


@dataclass(frozen=True)
class Setting:
    """What a card must be told, since it looks nothing up: the tool as it is registered, who is inside, what was found.

    `properties` is the tool's JSON schema by argument; None if the tool is not registered here. `sent` maps an address in lower case
    to how often it was written to.
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


def card(action: CanonicalAction, setting: Setting) -> Card:
    """The card of an action. An unknown kind is drawn by the generic one: nothing is hidden for want of a drawing."""
    draw = KINDS.get(setting.kind, _generic)
    drawn = draw(action, setting)
    placed = {warn for part in _parts(drawn) for warn in _warns_of(part)}
    return replace(drawn, warns=tuple(warn for warn in setting.warns if warn not in placed))


def pointers(action: CanonicalAction) -> list[str]:
    """Every part of an action that is signed, as pointers: each argument, recipient and attachment, and how it is run."""
    return [
        *(pointer("arguments", name) for name in action.arguments),
        *(pointer("recipients", i) for i in range(len(action.recipients))),
        *(pointer("attachments", i) for i in range(len(action.attachments))),
        *(f"/{name}" for name in ("tool", "tool_schema", "target", "credential", "executor", "nonce")),
    ]


def covered(drawn: Card) -> set[str]:
    """The pointers that a card shows or folds."""
    found: set[str] = set()
    for part in _parts(drawn):
        found.add(part.path)
        found.update(getattr(part, "covers", ()))
    return found


def _parts(drawn: Card) -> list[Field | Line | Attached]:
    letter = [drawn.letter] if drawn.letter else []
    return [*drawn.fields, *letter, *drawn.files, *drawn.lines, *drawn.folded]


def _warns_of(part: Any) -> Iterable[Warn]:
    yield from getattr(part, "warns", ())
    for address in getattr(part, "addresses", ()):
        yield from address.warns


# e-mail ------------------------------------------------------------------------------------------------------------------------


def _email(action: CanonicalAction, setting: Setting) -> Card:
    """From, To, Cc, Bcc, Reply-To, Subject, the letter and its files in the open; other headers and how it is run folded and counted."""
    left = dict(action.arguments)
    addressed = [
        _addressed(action, setting, left, names, title)
        for names, title in ((FROM, "From"), (TO, "To"), (CC, "Cc"), (BCC, "Bcc"), (REPLY_TO, "Reply-To"))
    ]
    subject = _take(setting, left, SUBJECT, title="Subject", bold=True)
    letter = _take(setting, left, BODY, title="Message")
    if letter is not None and not isinstance(letter.value, str):
        left[letter.name], letter = letter.value, None
    fields = [each for each in (*addressed, subject) if each]
    fields = _reaching(action, setting, fields)
    headers = tuple(_rest(setting, left))
    return Card(
        kind="email",
        icon="mail",
        heading="",
        tool=action.tool,
        fields=tuple(fields),
        letter=letter,
        files=_files(action, setting),
        folded=(*headers, *_how(action)),
        lines=(_sending(action),),
        raw=dict(action.arguments),
        unit="e-mail",
        verb="send",
        facts=sum_of((len(action.recipients), "recipient"), (len(action.attachments), "attachment")),
    )


def _addressed(action: CanonicalAction, setting: Setting, left: dict[str, Any], names: Sequence[str], title: str) -> Field | None:
    name = next((each for each in names if each in left), None)
    if name is None:
        return None
    path, value = pointer("arguments", name), left[name]
    texts = [value] if isinstance(value, str) and value else value or []
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        return None  # not addresses after all: drawn with the rest, as it is
    del left[name]
    places = [path if isinstance(value, str) else f"{path}/{i}" for i in range(len(texts))]
    reached = {_address_in(text) for text in texts}
    covers = tuple(pointer("recipients", i) for i, to in enumerate(action.recipients) if _address_in(to) in reached)
    addresses = tuple(_address(text, at, setting, action.recipients) for text, at in zip(texts, places, strict=True))
    beside = tuple(warn for warn in setting.warns if warn.at == path and path not in places)
    empty = not addresses
    return Field(path, title, name, "Nobody" if empty else value, "empty" if empty else "addresses", addresses, beside, covers=covers)


def _address(text: str, path: str, setting: Setting, recipients: Sequence[str] = ()) -> Address:
    bare = _address_in(text)
    inside = _is_inside(bare.rpartition("@")[2].lower(), setting.inside)  # what cannot be read as an address is not inside
    places = [path, *(pointer("recipients", i) for i, to in enumerate(recipients) if _address_in(to) == bare)]
    outside = bool(text) and not inside and ("@" in bare or not setting.masked)  # of a hidden address nothing is told
    return Address(text, path, outside, setting.sent.get(bare.lower()), _warns_at(setting, *places))


def _is_inside(domain: str, own: Sequence[str]) -> bool:
    return any(domain == each.lower() or domain.endswith("." + each.lower()) for each in own)


def _reaching(action: CanonicalAction, setting: Setting, fields: list[Field]) -> list[Field]:
    """All fields, and one more if the action reaches somebody whom no field names."""
    named = {at for each in fields for at in each.covers}
    others = [(pointer("recipients", i), to) for i, to in enumerate(action.recipients) if pointer("recipients", i) not in named]
    if not others:
        return fields
    addresses = tuple(_address(to, at, setting) for at, to in others)
    covers = tuple(at for at, _ in others)
    return [*fields, Field("/recipients", "Also reaches", "recipients", None, "addresses", addresses, covers=covers)]


def _sending(action: CanonicalAction) -> Line:
    via = f" through {action.target}" if action.target else ""
    if action.executor == "agent":
        return Line("/executor", "Send", f"Run by the agent{via}; Handrail cannot see the call.", ("/target",))
    return Line("/executor", "Send", f"As soon as approved, once, by Handrail{via}.", ("/target",))


# anything else -------------------------------------------------------------------------------------------------------------------


def _generic(action: CanonicalAction, setting: Setting) -> Card:
    """Every argument by the title its schema gives it, and by its own name."""
    fields = _reaching(action, setting, list(_rest(setting, dict(action.arguments))))
    files = _files(action, setting)
    return Card(
        kind="generic",
        icon="tool",
        heading=setting.title,
        tool=action.tool,
        fields=tuple(fields),
        letter=None,
        files=files,
        folded=_how(action),
        lines=(_running(action),),
        raw=dict(action.arguments),
        unit="call",
        verb="send" if setting.effect == "send" else "run",
        facts=sum_of((len(action.arguments), "argument"), (len(files), "attachment")),
    )


def _running(action: CanonicalAction) -> Line:
    at = f" at {action.target}" if action.target else ""
    if action.executor == "agent":
        return Line("/executor", "Run", f"By the agent{at}; Handrail cannot see the call.", ("/target",))
    return Line("/executor", "Run", f"As soon as approved, once, by Handrail{at}.", ("/target",))


# parts that cards share -------------------------------------------------------------------------------------------------------------


def _take(setting: Setting, left: dict[str, Any], names: Sequence[str], *, title: str, bold: bool = False) -> Field | None:
    name = next((each for each in names if each in left), None)
    return replace(_field(setting, name, left.pop(name)), title=title, bold=bold) if name else None


def _rest(setting: Setting, left: Mapping[str, Any]) -> Iterable[Field]:
    """In the order of the tool's schema; what it does not know comes last."""
    known = [name for name in setting.properties or () if name in left]
    for name in dict.fromkeys((*known, *left)):
        yield _field(setting, name, left[name])


def _field(setting: Setting, name: str, value: Any) -> Field:
    path = pointer("arguments", name)
    schema = setting.properties.get(name) if setting.properties is not None else None
    warns = list(_warns_at(setting, path))
    if schema is None and setting.properties is not None:
        strong, text = "Not in the tool’s schema.", "It has no title or description. It is sent as it is."
        warns.append(Warn("unknown_argument", "warn", path, strong, text))
    title = str((schema or {}).get("title") or "")
    return Field(path, title, name, value, shape(value), warns=tuple(warns), known=schema is not None, mono=schema is None)


def shape(value: Any) -> str:
    """How a JSON value is drawn: empty, flag, number, text, long, list (of short texts and numbers), or json."""
    if value is None or value == "" or value == [] or value == {}:
        return "empty"
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "long" if "\n" in value or len(value) > LONG else "text"
    if isinstance(value, list) and all(isinstance(each, str | int | float) and not isinstance(each, bool) for each in value):
        return "list" if all(len(str(each)) <= LONG and "\n" not in str(each) and each != "" for each in value) else "json"
    return "json"


def empty_word(value: Any) -> str:
    """What an empty value is called. Text without a character, no items, no value at all: three different things."""
    if value is None:
        return "No value"
    return {"": "Empty text"}.get(value, "") if isinstance(value, str) else "Nothing in it"


def _files(action: CanonicalAction, setting: Setting) -> tuple[Attached, ...]:
    return tuple(_attached(i, each, setting) for i, each in enumerate(action.attachments))


def _attached(index: int, file: Attachment, setting: Setting) -> Attached:
    path = pointer("attachments", index)
    label, preview = setting.files.get(index, ("", None))
    return Attached(index, path, file.name, file.media_type, file.size, file.commitment, label, preview, _warns_at(setting, path))


def _warns_at(setting: Setting, *paths: str) -> tuple[Warn, ...]:
    """The warnings about what stands at these places or inside of it."""
    return tuple(warn for warn in setting.warns if any(warn.at == path or warn.at.startswith(path + "/") for path in paths))


def _how(action: CanonicalAction) -> tuple[Line, ...]:
    """What is signed as well, beside the arguments."""
    return (
        Line("/tool", "Tool", f"{action.tool}, schema {action.tool_schema}", ("/tool_schema",)),
        Line("/credential", "Credential", action.credential or "None"),
        Line("/nonce", "Nonce", action.nonce),
    )


def sum_of(*parts: tuple[int, str]) -> str:
    """“2 recipients, 1 attachment”; what there is none of is left out."""
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in parts if n)


def _address_in(text: str) -> str:
    """The address in “Name <address>”; the text itself if it cannot be read so."""
    return parseaddr(text)[1] or text


def pretty(value: Any) -> str:
    """A JSON value over several lines, in the action's own spelling: nothing is escaped that need not be."""
    return json.dumps(value, ensure_ascii=False, indent=2)


KINDS: Mapping[str, Callable[[CanonicalAction, Setting], Card]] = {"email": _email}
