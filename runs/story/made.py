"""How artifacts are told: what each holds, in a line, and how a version differs from the one before it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from access import wording
from artifacts.gist import record
from artifacts.rendition import UNREADABLE, WORDS, is_cut
from runs.story.aligning import opcodes
from runs.story.course import count
from runs.story.draft import Draft, tells
from runs.story.shapes import Difference, File, Label, Made, Part, Piece, Quote, Rich, Tag, Text
from runs.story.wire import Line

RECORD = 60  # characters of a record's name
SENSITIVE = ("personal", "secret", "")  # labels that are named in the story
COMPARED = 800  # words of a text that is compared with its next version
ALIGNED = 200  # words between what begins and what ends the same; more are one place
VERSIONS = 20  # of a run, the latest, that tell what they changed
PLACES, AROUND = 2, 3  # of a difference: how many places are shown, with how many words before each
WHOLE, LONGEST = 200, 10  # characters of what differs in a place, up to which it stands whole; and how many words of what is longer
PARTED = 2  # words that are the same between two places, at most, for these to be one
NOT_COMPARED = "Hidden values are not compared."
Place = tuple[int, int, int, int]  # of words: from where to where before, and now
WORD = re.compile(r"(?:⟦[^⟦⟧]*⟧|\S)+")  # what is hidden is one word with what it stands in


@tells("artifact.created")
def artifact_created(draft: Draft, line: Line) -> None:
    made = Made(
        line.word("artifact"),
        line.word("name"),
        line.count("version", 1),
        line.word("label"),
        line.word("media_type"),
        line.count("size"),
        line.flag("outside"),
        line.seq,
    )
    draft.artifacts.append(made)
    title: list[Part] = [File(made.id, made.name)]
    if made.version > 1:
        title.append(f", version {made.version}")
    if made.outside:
        title += [" ", Tag("Outside text")]
    content, before = line.text("content"), draft.contents.get(made.name)
    holds = _holds(made, content, before)
    label: Rich = (Label(made.label), *((" ",) if holds else ())) if made.label in SENSITIVE else ()
    row = draft.add(line, "artifact", tuple(title), icon="file", lines=((*label, *holds),) if label or holds else ())
    if content and any(isinstance(part, Difference) for part in holds):
        draft.compared.append((row.first, (*label, _quoted(made, content))))
        if len(draft.compared) > VERSIONS:
            earliest, without = draft.compared.popleft()
            draft.change(earliest, lines=(without,))
    if content:
        draft.contents[made.name] = content


def _holds(made: Made, content: Text | None, before: Text | None) -> Rich:
    """What it holds: of a text its first words, or what of them is new in this version; of a record how much."""
    if content is None:
        return ()
    if content.erased:
        return (content,)
    if content.text.strip() and made.media_type.startswith("text/plain"):
        if before and not before.erased and made.version > 1:
            hides = bool(before.hidden and content.hidden)
            if _both(before.text, content.text):
                return (Difference(before.text, content.text, hides),)
            if hides:  # what stands in them may be all that differs
                return (_quoted(made, content), f" {NOT_COMPARED}")
        return (_quoted(made, content),)
    told, hidden = held_in(content), hidden_words(content)
    return tuple(part for part in (told, f", {hidden}" if told and hidden else hidden) if part)


def _quoted(made: Made, content: Text) -> Quote:
    return Quote(body_of(content) if made.outside else content)


def differences(before: str, after: str, *, hides: bool = False) -> tuple[Piece, ...]:
    """The first places in which a text differs from the one before it, in words. Empty if it does not, or is too long to be compared."""
    both = _both(before, after)
    if both is None:
        return ()
    old, new = both
    places = _places(opcodes(old, new, ALIGNED))
    left = len(places) - PLACES
    words = ". ".join([*([f"and {count(left, 'more change')}"] if left > 0 else []), *([NOT_COMPARED] if hides else [])])
    more = (Piece("more", words),) if words else ()
    return (*(piece for number, place in enumerate(places[:PLACES]) for piece in _place(old, new, place, first=not number)), *more)


def _both(before: str, after: str) -> tuple[list[str], list[str]] | None:
    """The words of both, if they differ and can be compared."""
    old, new = ([found[0] for found in islice(WORD.finditer(text), COMPARED + 1)] for text in (before, after))
    return None if old == new or max(len(old), len(new)) > COMPARED or is_cut(before) or is_cut(after) else (old, new)


def _places(codes: Iterable[tuple[str, int, int, int, int]]) -> list[Place]:
    """Where words differ; what a word or two part is one place, as a reader sees it."""
    places: list[Place] = []
    for kind, *place in codes:
        if kind == "equal":
            continue
        was, was_end, now, now_end = place
        if places and now - places[-1][3] <= PARTED:
            was, _, now, _ = places.pop()
        places.append((was, was_end, now, now_end))
    return places


def _place(old: list[str], new: list[str], place: Place, *, first: bool) -> Iterator[Piece]:
    was, was_end, now, now_end = place
    lead = " ".join(new[max(0, now - AROUND) : now])
    yield Piece("same", f"{'…' if now > AROUND or not first else ''} {lead}".strip())
    for kind, words in (("del", old[was:was_end]), ("ins", new[now:now_end])):
        if words:
            said = " ".join(words)
            yield Piece(kind, said if len(said) <= WHOLE else " ".join(words[:LONGEST]) + " …")


def held_in(content: Text) -> Text | str:
    """What a record holds, counted: “Brightwater Logistics: 2 contacts, 2 invoices”, “2 rows”. Empty if it is none, or not all is there."""
    if is_cut(content.text):
        return ""
    if content.media_type.startswith("application/json"):
        told = record(content.text, RECORD)
        return replace(content, text=told) if told else ""
    if content.media_type.startswith("text/csv"):
        rows = sum(bool(line.strip()) for line in content.text.splitlines()) - 1
        return count(rows, "row") if rows > 0 else ""
    return ""


def body_of(message: Text) -> Text:
    """A message's text without the headers it begins with."""
    headers, _, body = message.text.partition("\n\n")
    return replace(message, text=body) if body.strip() and headers.startswith("From:") else message


def hidden_words(text: Text | None) -> str:
    """What the rendition hides, counted: “1 IBAN and 2 card numbers hidden”."""
    if text is None or not text.hidden:
        return ""
    if UNREADABLE in text.hidden:
        return "no text to show"
    kinds = [f"{number} {WORDS.get(kind, kind)}{_plural(WORDS.get(kind, kind), number)}" for kind, number in text.hidden.items()]
    return f"{wording.listed(kinds)} hidden"


def _plural(word: str, number: int) -> str:
    return "" if number == 1 else "es" if word.endswith("s") else "s"
