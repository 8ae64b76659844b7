"""Characters that cannot be seen, change how others are read, or pass for others. Pure; used to draw text and to warn about it."""

import re
import unicodedata
from functools import cache
from itertools import groupby
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

import regex

HIDDEN_CATEGORIES = ("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp")
ALLOWED = "\n\t"
MARKS = {"Mn", "Me"}
# letters and symbols by category, blank to the eye: fillers, braille blank, grapheme joiner, Khmer inherent vowels
BLANK = "\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5"
# right after a pictograph these only choose its colour drawing
PRESENTATION = "\ufe0e\ufe0f"
SELECTORS = (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0), *range(0x180B, 0x1810))  # of variants
MARKS_IN_A_ROW = 3
MOST_OF_ONE = 32  # code points that one character as people see it is made of, at most; real ones have fewer than half of that
NAMES = {
    0x00: "Null",
    0x07: "Bell",
    0x08: "Backspace",
    0x0B: "Vertical tab",
    0x0C: "Form feed",
    0x0D: "Carriage return",
    0x1B: "Escape",
    0x7F: "Delete",
    0xAD: "Soft hyphen",
    0xFEFF: "Zero-width no-break space",
}


# letters of other scripts that are drawn like Latin ones, as far as people send them; https://www.unicode.org/reports/tr39/ has all
LOOKALIKES = (
    "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u04ae\u050c\u051a\u051c\u0501\u051b\u051d"
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u04cf\u04c0\u04af\u044c\u0432\u043a\u043c\u043d\u0442"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03b1\u03b3\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7"
    "\u0555\u0561\u0563\u0570\u0578\u057d\u0581\u0584\u0585"
)
# Latin letters and digits in disguise: full width, and mathematical alphabets
DISGUISED = "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff"
ASCII_HIDDEN = re.compile(r"(?:(?!\r\n)[\x00-\x08\x0b-\x1f\x7f])+")
# two letters that are a flag by themselves, for of a row of them \X looks at each from the row's beginning on
FLAG = r"[\U0001F1E6-\U0001F1FF]{2}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*"
SEEN_AS_ONE = regex.compile(rf"{FLAG}|\X")
WORD = re.compile(r"(\w+)")
LATIN = re.compile("[A-Za-z]")
SUSPECT = re.compile(f"([{LOOKALIKES}{DISGUISED}])")
IN_DISGUISE = re.compile(f"([{DISGUISED}])")


LOWERED = str.maketrans(ascii_uppercase, ascii_lowercase)


def as_kept(email: str) -> str:
    """An address as it is kept, to be looked for. Its ASCII letters alone have no case: what else a database or Unicode takes for the same
    letter (an ı without a dot for an I, a Kelvin sign for a k) is another address, and may be the mailbox of somebody else."""
    return email.strip().translate(LOWERED)


class Hidden(NamedTuple):
    """One character, written `count` times in a row."""

    char: str
    count: int = 1

    @property
    def code(self) -> str:
        return f"U+{ord(self.char):04X}"

    @property
    def name(self) -> str:
        return name(self.char)


def parts(text: str) -> list[str | list[Hidden]]:
    """The text cut at what cannot be seen: plain strings, and between them runs of hidden characters, in order, none lost.

    CR LF counts as a line break and so as visible. Joined again in order, the parts are the text.
    """
    found: list[str | list[Hidden]] = []
    at = 0
    for match in _hidden_in(text).finditer(text):
        if match.start() > at:
            found.append(text[at : match.start()])
        found.append([Hidden(char, len(list(same))) for char, same in groupby(match.group())])
        at = match.end()
    if at < len(text):
        found.append(text[at:])
    return found


def has_hidden(text: str) -> bool:
    return _hidden_in(text).search(text) is not None


class Lookalike(NamedTuple):
    """A letter that is read as another one."""

    char: str

    @property
    def code(self) -> str:
        return f"U+{ord(self.char):04X}"

    @property
    def name(self) -> str:
        return name(self.char)


def seen_length(text: str) -> int:
    """How many characters of it a reader can see, not counting blanks before and after."""
    return len(_hidden_in(text).sub("", text).strip())


def whole(text: str, end: int) -> int:
    """Where a text can end, at `end` or a little before it, without cutting what people see as one character (UAX #29): a letter and its
    marks, an emoji made of several, a flag. A part of it would be read as another one.
    """
    end, at = min(end, len(text)), 0
    for seen in SEEN_AS_ONE.finditer(text, endpos=end + MOST_OF_ONE):
        if seen.end() > end:
            break
        at = seen.end()
    return at if end - at < MOST_OF_ONE else end  # so many marks are of no letter


def too_marked(text: str) -> list[str | list[Hidden]]:
    """As `parts`, cut at those marks alone that are piled upon one letter: they would cover what stands above and below it."""
    found: list[str | list[Hidden]] = []
    at = 0
    for match in () if text.isascii() else _piled().finditer(text):
        found += [text[at : match.start()], [Hidden(char, len(list(same))) for char, same in groupby(match.group())]]
        at = match.end()
    return [part for part in (*found, text[at:]) if part]


def lookalikes(text: str) -> list[str | Lookalike]:
    """The text cut at letters that pass for Latin ones: of another script in a word with plain Latin letters, or in disguise anywhere.

    A word wholly of another script is left alone here; an address is also judged as a whole elsewhere.
    """
    if not SUSPECT.search(text):
        return [text] if text else []
    return [part for word in WORD.split(text) if word for part in _marked(word)]


def passing(text: str) -> str:
    """The first letter in it that passes for a Latin one, in words; empty if there is none. For names that everybody reads."""
    found = next((part for part in lookalikes(text) if isinstance(part, Lookalike)), None)
    return f"the letter {found.name} ({found.code})" if found else ""


def _marked(word: str) -> list[str | Lookalike]:
    suspect = SUSPECT if LATIN.search(word) else IN_DISGUISE
    return [Lookalike(piece) if suspect.fullmatch(piece) else piece for piece in suspect.split(word) if piece]


def name(char: str) -> str:
    """What people call a character: "Right-to-left override"."""
    code = ord(char)
    if code in NAMES:
        return NAMES[code]
    if 0xE0020 <= code <= 0xE007E:
        return f"Tag “{chr(code - 0xE0000)}”"
    official = unicodedata.name(char, "")
    if official:
        return official.capitalize().replace("Zero width", "Zero-width")
    return {"Cc": "Control character", "Co": "Private use", "Cs": "Half of a broken character"}.get(
        unicodedata.category(char), "Not a character"
    )


def _hidden_in(text: str) -> re.Pattern[str]:
    return ASCII_HIDDEN if text.isascii() else _hidden()


@cache
def _hidden() -> re.Pattern[str]:
    """A run of hidden characters. Built once, on first use: it asks Unicode about every code point."""
    kinds = list(map(unicodedata.category, map(chr, range(0x110000))))
    for code in (*map(ord, BLANK), *SELECTORS):
        kinds[code] = "blank"
    for char in f" {ALLOWED}":
        kinds[ord(char)] = "seen"
    runs = [(kind, len(list(same))) for kind, same in groupby(kinds)]
    hidden, marks, pictographs = _ranges(runs, {*HIDDEN_CATEGORIES, "Zs", "blank"}), _ranges(runs, MARKS), _ranges(runs, {"So"})
    # CR before LF, one presentation selector after a pictograph or in a keycap, and the first few marks on a letter are as they should be
    single = (
        rf"(?!\r\n)(?!(?<=[{pictographs}])[{PRESENTATION}](?![{PRESENTATION}]))(?!(?<=[0-9#*])\ufe0f\u20e3)[{hidden}]"
        rf"|(?<=[{marks}]{{{MARKS_IN_A_ROW}}})[{marks}]"
    )
    return re.compile(f"(?:{single})+")


@cache
def _piled() -> re.Pattern[str]:
    """Marks in a row beyond those that a letter may have. Built once, on first use."""
    marks = _ranges([(kind, len(list(same))) for kind, same in groupby(map(unicodedata.category, map(chr, range(0x110000))))], MARKS)
    return re.compile(f"(?:[{marks}](?<=[{marks}]{{{MARKS_IN_A_ROW + 1}}}))+")


def _ranges(runs: list[tuple[str, int]], wanted: set[str]) -> str:
    """The inside of a character class: of all code points, told as runs of one kind, those of the wanted kinds, neighbours joined."""
    text, start = [], 0
    for is_wanted, same in groupby(runs, lambda run: run[0] in wanted):
        end = start + sum(length for _, length in same)
        if is_wanted:
            text.append(f"\\U{start:08x}" if end == start + 1 else f"\\U{start:08x}-\\U{end - 1:08x}")
        start = end
    return "".join(text)
