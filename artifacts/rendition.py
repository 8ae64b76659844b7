"""A rendition's text: what is shown, with a mark where something is hidden. `⟦card⟧` hides a card number, `⟦u202e⟧` names a character
that would act on the reader's screen, `⟦+512⟧` says how many bytes more there are. Text cannot forge a mark: its own ⟦ is doubled.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from artifacts.detectors import CARD, EMAIL, IBAN, PATH, PHONE, PROMPT, SECRET

UNREADABLE = "unreadable"
WORDS: Mapping[str, str] = {
    SECRET: "secret",
    CARD: "card number",
    IBAN: "IBAN",
    PATH: "local path",
    EMAIL: "e-mail address",
    PHONE: "phone number",
    PROMPT: "prompt",
    UNREADABLE: "content",
}


@dataclass(frozen=True)
class Text:
    """Text to show as it is (and to escape as HTML)."""

    type: ClassVar[Literal["text"]] = "text"
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Hidden:
    """Here stood something of this kind."""

    type: ClassVar[Literal["hidden"]] = "hidden"
    kind: str

    @property
    def words(self) -> str:
        return WORDS[self.kind]

    def __str__(self) -> str:
        return f"[{self.words} hidden]"


@dataclass(frozen=True)
class Glyph:
    """A character that is not seen or acts on its neighbours; show its code."""

    type: ClassVar[Literal["glyph"]] = "glyph"
    code: int

    @property
    def words(self) -> str:
        return f"U+{self.code:04X}"

    def __str__(self) -> str:
        return f"[{self.words}]"


@dataclass(frozen=True)
class More:
    """The rendition ends here; so many bytes of the content do not show."""

    type: ClassVar[Literal["more"]] = "more"
    size: int

    @property
    def words(self) -> str:
        return f"… {self.size:,} bytes more"

    def __str__(self) -> str:
        return self.words


Segment = Text | Hidden | Glyph | More


def segments(text: str) -> list[Segment]:
    """The parts of a rendition's text, in order. What acts on its neighbours is drawn as a glyph, also where it was not marked: a
    rendition may have been read as JSON since, and that knows escapes of its own."""
    found: list[Segment] = []
    at = 0
    for mark in _MARK.finditer(text):
        _add_plain(found, text[at : mark.start()])
        at = mark.end()
        if mark["kind"]:
            found.append(Hidden(mark["kind"]))
        elif mark["code"]:
            found.append(Glyph(int(mark["code"], 16)))
        elif mark["size"]:
            found.append(More(int(mark["size"])))
        else:
            add_text(found, "⟦")
    _add_plain(found, text[at:])
    return found


def _add_plain(found: list[Segment], text: str) -> None:
    at = 0
    for acting in _ACTING.finditer(text):
        add_text(found, text[at : acting.start()])
        found.append(Glyph(ord(acting[0])))
        at = acting.end()
    add_text(found, text[at:])


def is_cut(text: str) -> bool:
    """Whether the content goes on where a rendition ends."""
    return bool(_CUT.search(text[-24:]))


def whole_marks(text: str) -> str:
    """The beginning of a rendition that was cut anywhere, without half a mark at its end."""
    at = text.rfind("⟦")
    return text[:at].rstrip("⟦") if at > text.rfind("⟧") else text


_CUT = re.compile(r"⟦\+\d{1,15}⟧\Z")


def plain(text: str) -> str:
    """A rendition as plain text: “Card [card number hidden]”. For notifications, logs and exports."""
    return "".join(map(str, segments(text)))


_MARK = re.compile(rf"⟦(?:(?P<kind>{'|'.join(WORDS)})⟧|u(?P<code>[0-9a-f]{{4,6}})⟧|\+(?P<size>\d{{1,15}})⟧|⟦)")
# controls but tab and line feeds, bidirectional embeddings, overrides and isolates, invisible operators, tags, half surrogate pairs.
# letters that are blank. Joiners and plain direction marks stay: many scripts need them to be read
_ACTING = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\ufdd0-\ufdef"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)


def add_text(found: list[Segment], text: str) -> None:
    """Put text behind the others."""
    if text and found and isinstance(found[-1], Text):
        found[-1] = Text(found[-1].text + text)
    elif text:
        found.append(Text(text))


def add(found: list[Segment], part: Segment) -> None:
    """Put a part behind the others; text that follows text is one text."""
    if isinstance(part, Text):
        add_text(found, part.text)
    else:
        found.append(part)


def marked(parts: Iterable[Segment]) -> str:
    """The text of a rendition: the opposite of `segments`."""
    return "".join(mark(part) for part in parts)


def mark(part: Segment) -> str:
    """One part as it stands in a rendition's text."""
    match part:
        case Text(text):
            return _ACTING.sub(lambda m: f"⟦u{ord(m[0]):04x}⟧", text.replace("⟦", "⟦⟦"))
        case Hidden(kind):
            return f"⟦{kind}⟧"
        case Glyph(code):
            return f"⟦u{code:04x}⟧"
        case More(size):
            return f"⟦+{size}⟧"
