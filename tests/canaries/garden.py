"""What was planted where, and what of it is to be seen in something that came out."""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, cycle, islice

from tests.canaries.values import BY_KEY, DRESSES, KINDS, PERSONAL, core

_WIDTH = 12  # characters: letters and digits alone, by which a value is known again
_WIDE = 24  # and of what is encoded, where a few letters are fewer bytes
_NOT_SQUEEZED = bytes(set(range(256)) - set(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
_FIRST = 100_003  # numbers that mean nothing else


@dataclass(frozen=True)
class Canary:
    """A value in a dress, planted at a place. `personal`: may be seen where the place's label is not personal."""

    kind: str
    dress: str
    place: str
    text: str
    personal: bool = False

    def __str__(self) -> str:
        return f"{self.kind} ({self.dress}) planted in {self.place}"


class Garden:
    """Makes canaries and finds them again."""

    def __init__(self) -> None:
        self.planted: list[Canary] = []
        self._numbers = count(_FIRST, 7)
        self._known: dict[bytes, Canary] = {}
        self._parts: dict[int, set[bytes]] = {_WIDTH: set(), _WIDE: set()}  # every half of what is known, by its width
        self._turns = {}

    def one(self, place: str, kind: str = "", dress: str = "plain") -> str:
        """One value; kinds take turns if none is named."""
        if not kind:
            kind = next(self._turns.setdefault("kind", cycle([*KINDS, *PERSONAL])))
        make = {**KINDS, **PERSONAL, **BY_KEY}[kind]
        number = next(self._numbers)
        value, other = make(number), make(number + 1)
        canary = Canary(kind, dress, place, DRESSES[dress](value), kind in PERSONAL)
        self.planted.append(canary)
        self._remember(_squeezed(core(kind, value)), _WIDTH, canary)
        if dress in ("base64", "hex"):
            dressed, another = _squeezed(canary.text), _squeezed(DRESSES[dress](other))
            last = max(at for at, (a, b) in enumerate(zip(dressed, another, strict=True)) if a != b)
            self._remember(dressed[: last + 1], _WIDE, canary)  # up to where its number ends
        return canary.text

    def remember(self, place: str, secret: str) -> None:
        """A secret that was made elsewhere."""
        canary = Canary("secret", "plain", place, secret)
        self.planted.append(canary)
        self._remember(_squeezed(secret), _WIDTH, canary)

    def _remember(self, squeezed: bytes, width: int, canary: Canary) -> None:
        end = squeezed[-width:]
        assert len(end) == width and end not in self._known, (canary, squeezed)
        self._known[end] = canary
        self._parts[width].update(end[at : at + width // 2] for at in range(width // 2))

    def line(self, place: str, room: int = 180) -> str:
        """A sentence with as many values of different kinds and dresses as there is room for."""
        kinds, dresses = [*KINDS, *PERSONAL], [name for name in DRESSES if name not in ("key", "json in a string")]
        said = "About"
        for _ in range(40):
            kind = next(self._turns.setdefault("line", cycle(kinds)))
            dress = next(self._turns.setdefault("dress", cycle(dresses)))
            if len(said) + 3 * len({**KINDS, **PERSONAL}[kind](1)) + 60 > room and dress != "plain":
                dress = "plain"
            if len(said) + len({**KINDS, **PERSONAL}[kind](1)) + 8 > room or "\n" in KINDS.get(kind, str)(1):
                continue
            said += f" {self.one(place, kind, dress)} and"
        return said.removesuffix(" and") + "."

    def dossier(self, place: str, dresses: Iterable[str] = ("plain",)) -> str:
        """A text with every kind in each of these dresses, a paragraph each."""
        return "\n\n".join(f"Next is {self.one(place, kind, dress)} as was said." for dress in dresses for kind in (*KINDS, *PERSONAL))

    def seen_in(self, output: bytes | str) -> Iterator[Canary]:
        """Those that somebody who gets this could read, also after undoing what a browser or a reader of JSON undoes."""
        text = output if isinstance(output, str) else output.decode("utf-8", "replace")
        found: dict[bytes, Canary] = {}
        for squeezed in {_squeezed(text), _squeezed(_undone(text))}:
            for width in (_WIDTH, _WIDE):
                found |= self._windows(squeezed, width)
        yield from found.values()

    def _windows(self, squeezed: bytes, width: int) -> dict[bytes, Canary]:
        """What is known of this width, wherever it stands: some half of it begins at a multiple of the half's length."""
        half, parts = width // 2, self._parts[width]
        found: dict[bytes, Canary] = {}
        for at in range(0, len(squeezed) - half + 1, half):
            if squeezed[at : at + half] in parts:
                for begin in range(max(0, at - half + 1), at + 1):
                    window = squeezed[begin : begin + width]
                    if window in self._known:
                        found[window] = self._known[window]
        return found


def _squeezed(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").translate(None, _NOT_SQUEEZED)


_TAG = re.compile(r"<(?!input|textarea|meta)/?[a-zA-Z][^<>]*>")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})|=([0-9A-F]{2})|\\u([0-9a-fA-F]{4})|(\\[nrt])|(=\n)")


def _undone(text: str) -> str:
    plain = html.unescape(html.unescape(_TAG.sub("", text)))
    return _ESCAPED.sub(lambda m: chr(int(m[1] or m[2] or m[3], 16)) if m[1] or m[2] or m[3] else " ", plain)


def batches(canaries: Iterable[Canary], size: int = 5) -> list[str]:
    """The first few of each place, for a failure that can be read."""
    by_place: dict[str, list[str]] = {}
    for canary in canaries:
        by_place.setdefault(canary.place, []).append(f"{canary.kind} ({canary.dress})")
    return [
        f"{place}: {', '.join(islice(kinds, size))}{f' and {len(kinds) - size} more' if len(kinds) > size else ''}"
        for place, kinds in by_place.items()
    ]
