"""What a model is sent, and how it is made to fit. Pure.

The instructions come from a prompt's file and from nowhere else. What the run has read goes beside them, as JSON under its names, so that
a text from outside never stands where an order would. In a loop the model also gets its own turns, and what each of them gave.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

BYTES = 3  # of JSON that a token is taken to have: models differ, and few need more tokens for it
KEPT_TURNS = 2  # the newest stay whole
KEPT = 200  # characters of a text of an earlier call
SHORTEST = 500  # characters that a text keeps at least
AROUND = 200  # tokens of the form that everything is sent in


@dataclass(frozen=True)
class Function:
    """A tool as a model is told of it."""

    name: str
    version: int
    about: str
    schema: Mapping[str, Any] = field(repr=False)

    @property
    def told(self) -> str:
        """read_ticket@2, as the log names it."""
        return f"{self.name}@{self.version}"


@dataclass(frozen=True)
class Turn:
    """What the model chose, and what it was told of it: {"result": …} or {"refused": why}."""

    chosen: Mapping[str, Any]
    told: Mapping[str, Any]

    @property
    def size(self) -> int:
        return _size([self.chosen, self.told])


@dataclass(frozen=True)
class Request:
    """One request. `answer` names the tool by which the model gives its answer, `gives` is what that holds, as JSON Schema."""

    instructions: str = field(repr=False)
    variables: Mapping[str, Any] = field(repr=False)
    gives: Mapping[str, Any] = field(repr=False)
    answer: str = "answer"
    functions: Sequence[Function] = ()
    turns: Sequence[Turn] = field(default=(), repr=False)

    @property
    def tokens(self) -> int:
        """How many it has, roughly."""
        return AROUND + -(-len(orjson.dumps(self.as_sent())) // BYTES)

    def as_sent(self, *, whole: bool = True) -> dict[str, Any]:
        """What is sent, for the record; without `whole`, only what goes with what is known."""
        sent: dict[str, Any] = {"instructions": self.instructions, "gives": self.gives}
        if self.functions:
            sent["tools"] = [{"name": each.name, "version": each.version, "schema": each.schema} for each in self.functions]
        if whole:
            sent |= {"variables": self.variables, "turns": [[each.chosen, each.told] for each in self.turns]}
        return sent


@dataclass(frozen=True)
class Fitted:
    """A request that fits: what earlier turns gave is left out of `left_out`, and `shortened` texts are cut."""

    request: Request
    left_out: int = 0
    shortened: int = 0


class TooLarge(Exception):
    """It does not fit, whatever is left out."""


def fit(request: Request, room: int) -> Fitted:
    """The request, made to fit into `room` tokens: first without what the oldest turns gave, then with its longest texts cut.

    Instructions, schemas and the newest turns stay whole. TooLarge if that is not enough.
    """
    turns, left_out, over = list(request.turns), 0, request.tokens - room
    for place in range(max(len(turns) - KEPT_TURNS, 0)):
        if over <= 0:
            break
        short = _left_out(turns[place])
        saved = (turns[place].size - short.size) // BYTES
        if saved > 0:
            turns[place], left_out, over = short, left_out + 1, over - saved
    request = replace(request, turns=tuple(turns)) if left_out else request
    if request.tokens <= room:
        return Fitted(request, left_out)
    cut, shortened = _shortened(request.variables, (request.tokens - room) * BYTES)
    request = replace(request, variables=cut)
    if request.tokens > room:
        raise TooLarge(f"It has about {request.tokens} tokens, and {room} fit.")
    return Fitted(request, left_out, shortened)


def _left_out(turn: Turn) -> Turn:
    """A turn without what it gave, and with the longer texts of its call cut: what was done stays told."""
    long = {place: f"{text[:KEPT]} [cut to fit]" for place, text in _texts(turn.chosen) if len(text) > 2 * KEPT}
    told = {key: f"[left out to fit: {_size(value)} bytes]" if key == "result" else value for key, value in turn.told.items()}
    return Turn(_with(turn.chosen, long), told)


def _size(value: Any) -> int:
    return len(orjson.dumps(value))


def _shortened(variables: Mapping[str, Any], bytes_over: int) -> tuple[dict[str, Any], int]:
    """The variables with as few texts cut as possible, the longest first, so that they have `bytes_over` bytes fewer; how many were cut."""
    longest = sorted(_texts(variables), key=lambda found: -_size(found[1]))
    cut: dict[tuple[Any, ...], str] = {}
    for place, text in longest:
        if bytes_over <= 0 or len(text) <= SHORTEST:
            break
        per_character = _size(text) / len(text)
        keep = max(SHORTEST, len(text) - int(bytes_over / per_character) - 60)
        cut[place] = f"{text[:keep]} [cut to fit: {len(text) - keep} characters more]"
        bytes_over -= _size(text) - _size(cut[place])
    return _with(variables, cut), len(cut)


def _texts(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Every text in a JSON value, with the way to it."""
    match value:
        case str():
            yield place, value
        case Mapping():
            for key, inner in value.items():
                yield from _texts(inner, (*place, key))
        case list() | tuple():
            for index, inner in enumerate(value):
                yield from _texts(inner, (*place, index))


def _with(value: Any, cut: Mapping[tuple[Any, ...], str], place: tuple[Any, ...] = ()) -> Any:
    match value:
        case str():
            return cut.get(place, value)
        case Mapping():
            return {key: _with(inner, cut, (*place, key)) for key, inner in value.items()}
        case list() | tuple():
            return [_with(inner, cut, (*place, index)) for index, inner in enumerate(value)]
    return value
