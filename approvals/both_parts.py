"""Whether the text and the HTML of one message say the same: word by word as people see them, and link by link. Pure.

How it is laid out does not count: bullets, emphasis, line breaks. A word is letters and digits; addresses and links are compared by
where they go, for a text writes out what HTML puts behind words. What is shown only while an image is not counts for neither.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from artifacts.markup import Reading

TOLD = 60  # words and links that are named


@dataclass(frozen=True)
class Difference:
    """What only one of them has, in order, each as it is written there, TOLD at most; and how many words and links there are in all."""

    only_text: tuple[str, ...] = ()
    only_html: tuple[str, ...] = ()
    words: int = 0
    links: int = 0
    links_only_text: tuple[str, ...] = ()
    links_only_html: tuple[str, ...] = ()
    order: bool = False  # the same words in another order

    def __bool__(self) -> bool:
        return bool(self.words or self.links or self.order)

    @property
    def more_words(self) -> int:
        return self.words - _count(self.only_text) - _count(self.only_html)

    @property
    def more_links(self) -> int:
        return self.links - len(self.links_only_text) - len(self.links_only_html)


def compare(text: str, reading: Reading) -> Difference:
    """What only the text has and what only the HTML has."""
    of_text, of_html = _split(text), _split(reading.text)
    one, other = ([_folded(word) for word in split.words] for split in (of_text, of_html))
    words = _unlike(of_text.words, of_html.words, _split(reading.instead).words) if one != other else ([], [])
    links = _links(text, of_text, of_html, reading)
    return Difference(
        only_text=tuple(words[0][:TOLD]),
        only_html=tuple(words[1][:TOLD]),
        words=_count(words[0]) + _count(words[1]),
        links=len(links[0]) + len(links[1]),
        links_only_text=links[0][:TOLD],
        links_only_html=links[1][:TOLD],
        order=one != other and Counter(one) == Counter(other),
    )


# Words


def _count(runs: Sequence[str]) -> int:
    return sum(run.count(" ") + 1 for run in runs)


@dataclass(frozen=True)
class _Split:
    """A text as its words, its links and its addresses."""

    words: list[str]
    links: list[str]
    addresses: list[str]


_LINK = re.compile(r"\b(?:https?|ftp)://[^\s<>()\[\]{}\"'“”‘’»«]{1,2000}", re.IGNORECASE)
_ADDRESS = re.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[\w-]{1,63}\.){1,8}[\w-]{1,63}")
_WORD = re.compile(
    r"(?:(?<![^\s($€£¥])[-+−±])?\d+(?:[.,]\d+)*(?![^\W_])"  # a number with its sign
    r"|[^\W_]+(?:['’][^\W_]+)*"
    r"|(?<![^\s(])[-+−±](?=[$€£¥]\s?\d)|(?<=[^\s>] )[<>]=?(?=\s?\d)"  # a sign or comparison before a number; no > of what is quoted
    r"|[$%‰¢-¥₠-⃏×÷∀-⋿\u2600-\u2793\U0001f300-\U0001faff]"  # money, parts, mathematics, ticks and crosses, emoji
)


def _split(text: str) -> _Split:
    links = [match.rstrip(".,;:!?…") for match in _LINK.findall(text)]
    rest = _LINK.sub(" ", text)
    addresses = _ADDRESS.findall(rest)
    return _Split(_WORD.findall(_ADDRESS.sub(" ", rest)), links, addresses)


def _folded(word: str) -> str:
    if word.isascii():
        return word.casefold()
    return unicodedata.normalize("NFKC", word).casefold().replace("’", "'").replace("−", "-")


def _unlike(of_text: list[str], of_html: list[str], instead: list[str]) -> tuple[list[str], list[str]]:
    """The words that one has more often than the other; such as follow each other are one text."""
    text, other = Counter(map(_folded, of_text)), Counter(map(_folded, of_html))
    return _left(of_text, text - other - Counter(map(_folded, instead))), _left(of_html, other - text)


def _left(words: list[str], left: Counter[str]) -> list[str]:
    """The last of these words, as many of each as are left over, in order."""
    found: list[list[str]] = []
    before = -1
    for at in range(len(words) - 1, -1, -1):
        key = _folded(words[at])
        if left[key] <= 0:
            continue
        left[key] -= 1
        if at + 1 != before:
            found.append([])
        found[-1].append(words[at])
        before = at
    return [" ".join(reversed(run)) for run in reversed(found)]


# Links


def _links(text: str, of_text: _Split, of_html: _Split, reading: Reading) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where only the text goes, and where only the HTML goes. A text need not write `https://` for it to count."""
    going = list(dict.fromkeys(link.to for link in reading.links if _goes_out(link.to)))
    mail = {_mail(to) for to in going if _is_mail(to)} | {each.casefold() for each in of_html.addresses}
    html = {_bare(to) for to in (*going, *of_html.links)}
    said = _Said({_bare(each.strip(_AROUND)) for each in text.split()}, {each.casefold() for each in of_text.addresses}, _digits(text))
    only_text = [link for link in dict.fromkeys(of_text.links) if _bare(link) not in html]
    only_text += [each for each in dict.fromkeys(of_text.addresses) if each.casefold() not in mail]
    only_html = [to for to in going if not said.has(to)]
    only_html += [each for each in dict.fromkeys(of_html.addresses) if each.casefold() not in said.mail]
    return tuple(only_text), tuple(dict.fromkeys(only_html))


_AROUND = "<>()[]{}\"'“”‘’»«.,;:!?…*_|"


@dataclass(frozen=True)
class _Said:
    """Where a text goes: what may be a link in it, bare; its addresses; its digits, for the numbers of telephones."""

    links: set[str]
    mail: set[str]
    digits: str

    def has(self, to: str) -> bool:
        if _is_mail(to):
            return _mail(to) in self.mail
        if re.match(r"(?:tel|sms|callto):", to, re.IGNORECASE):
            return _digits(to.partition("?")[0]) in self.digits
        return _bare(to.strip(_AROUND)) in self.links


def _digits(text: str) -> str:
    return re.sub(r"[^\w]|_", "", text.partition(":")[2] if text[:7].lower().startswith(("tel:", "sms:", "callto:")) else text)


def _goes_out(to: str) -> bool:
    return re.match(r"(?!cid:|javascript:|vbscript:)[a-z][a-z0-9+.\-]*:|[/\\]{2}", to, re.IGNORECASE) is not None


def _is_mail(to: str) -> bool:
    return to[:7].lower() == "mailto:"


def _mail(to: str) -> str:
    return unquote(to[len("mailto:") :].partition("?")[0]).strip().casefold()


def _bare(link: str) -> str:
    """A link as people would write it: without its scheme, `www.` and a last slash."""
    return re.sub(r"^(?:(?:[a-z][a-z0-9+.-]*:)?//)?(?:www\.)?|/$", "", link.strip().casefold())
