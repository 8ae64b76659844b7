"""The exact form of an action, and the digest that names it. One shape from proposal to receipt.

RFC 8785 (JSON Canonicalization Scheme) gives the bytes, SHA-256 the digest. Two actions have the same digest only if every tool,
argument, recipient, attachment, target and credential is the same; text is compared as it is, never normalised. What two JSON
readers could read as different things (a key twice, a number that a double cannot hold, half a surrogate pair) is refused.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from difflib import SequenceMatcher
from typing import Any, Final

import rfc8785

from access.errors import BadInput

MAX_DEPTH = 64
MAX_SAFE_INTEGER = 2**53 - 1
EXECUTORS = ("handrail", "agent")
_DIFF_ITEMS = 400  # longer lists are compared place by place: aligning them costs the square of their length


class NotCanonical(BadInput, ValueError):
    """This cannot be written down exactly."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """One attached file: its name, media type, size in bytes, and the commitment SHA-256(salt ‖ bytes) in hex."""

    name: str
    media_type: str
    size: int
    commitment: str

    def __post_init__(self) -> None:
        for name in ("name", "media_type", "commitment"):
            _need(isinstance(getattr(self, name), str), f"An attachment's {name} is text.")
        _need(_is_count(self.size), "An attachment's size is a whole number of bytes.")


@dataclass(frozen=True)
class CanonicalAction:
    """One exact action. `arguments` is copied when it is made, so that the caller's later changes do not reach it; read it only.

    `recipients` are all addresses it reaches, expanded; `executor` is who runs it: "handrail" or "agent". Raises NotCanonical.
    """

    tool: str
    tool_schema: int
    arguments: Mapping[str, Any]
    target: str
    credential: str
    nonce: str
    executor: str = "handrail"
    recipients: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()

    def __post_init__(self) -> None:
        for name in ("tool", "target", "credential", "nonce"):
            _need(isinstance(getattr(self, name), str), f"{name} is text.")
        _need(bool(self.tool), "An action names its tool.")
        _need(_is_count(self.tool_schema), "tool_schema is a whole number.")
        _need(self.executor in EXECUTORS, f"executor is one of {', '.join(EXECUTORS)}.")
        _need(isinstance(self.arguments, Mapping), "arguments is an object.")
        _need(not isinstance(self.recipients, str) and all(isinstance(r, str) for r in self.recipients), "recipients is a list of text.")
        _need(all(isinstance(a, Attachment) for a in self.attachments), "attachments is a list of attachments.")
        object.__setattr__(self, "recipients", tuple(self.recipients))
        object.__setattr__(self, "attachments", tuple(self.attachments))
        object.__setattr__(self, "arguments", parse_json(canonical_json(self.arguments)))
        canonical_bytes(self)  # the other fields hold text, which may be unfit as well


def canonical_bytes(action: CanonicalAction) -> bytes:
    """The action's one and only spelling: RFC 8785 JSON in UTF-8."""
    return canonical_json(_as_json(action))


def digest(action: CanonicalAction) -> str:
    """SHA-256 of the canonical bytes, 64 hex digits."""
    return hashlib.sha256(canonical_bytes(action)).hexdigest()


def parse(data: bytes) -> CanonicalAction:
    """The action behind its canonical bytes. Strict: a missing or extra key, or any other spelling of the same JSON, is NotCanonical."""
    body = parse_json(data)
    _need(isinstance(body, dict), "An action is an object.")
    _keys(body, CanonicalAction, "An action")
    _need(isinstance(body["attachments"], list), "attachments is a list.")
    _need(isinstance(body["recipients"], list), "recipients is a list of text.")
    action = CanonicalAction(**{**body, "attachments": tuple(_attachment(a) for a in body["attachments"])})
    _need(canonical_bytes(action) == data, "These bytes are not in canonical form.")
    return action


def canonical_json(value: Any) -> bytes:
    """Any JSON value as RFC 8785 bytes. Refuses NaN, infinity, integers beyond 2⁵³−1, half surrogate pairs, keys that are not text."""
    return rfc8785.dumps(_plain(value))


def parse_json(text: bytes | str) -> Any:
    """JSON text as Python values. Refuses what `canonical_json` refuses, and a key that stands twice in one object."""
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        value = json.loads(decoded, object_pairs_hook=_no_key_twice, parse_constant=_no_constant, parse_int=_safe_integer)
    except UnicodeDecodeError as error:
        raise NotCanonical("This is not UTF-8.") from error
    except json.JSONDecodeError as error:
        raise NotCanonical(f"This is not JSON: {error.msg} (line {error.lineno}, column {error.colno}).") from error
    except RecursionError as error:
        raise NotCanonical(_TOO_DEEP) from error
    return _plain(value)


# Differences


class _Absent:
    """Stands where a value is not there at all, which is not the same as null. False in a template's `if`."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = _Absent()


@dataclass(frozen=True)
class Change:
    """One difference. `path` is an RFC 6901 pointer such as `/arguments/to/0`: into the old action if removed, else into the new one."""

    path: str
    before: Any
    after: Any

    @property
    def kind(self) -> str:
        """`added`, `removed` or `changed`."""
        if self.before is ABSENT:
            return "added"
        return "removed" if self.after is ABSENT else "changed"


def diff(old: CanonicalAction, new: CanonicalAction) -> tuple[Change, ...]:
    """Every difference between two actions, in the order of the paths; empty exactly when the digests are equal."""
    return tuple(_changes("", _as_json(old), _as_json(new)))


def pointer(*parts: str | int) -> str:
    """An RFC 6901 JSON pointer: `pointer("arguments", "to", 0)` is `/arguments/to/0`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def _changes(path: str, old: Any, new: Any) -> Iterator[Change]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _changes(path + pointer(key), old.get(key, ABSENT), new.get(key, ABSENT))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_changes(path, old, new)
    elif old is ABSENT or new is ABSENT or canonical_json(old) != canonical_json(new):
        yield Change(path, old, new)


def _list_changes(path: str, old: list[Any], new: list[Any]) -> Iterator[Change]:
    for old_from, old_to, new_from, new_to in _unlike(old, new):
        both = min(old_to - old_from, new_to - new_from)
        for i in range(both):
            yield from _changes(path + pointer(new_from + i), old[old_from + i], new[new_from + i])
        for i in range(old_from + both, old_to):
            yield Change(path + pointer(i), old[i], ABSENT)
        for i in range(new_from + both, new_to):
            yield Change(path + pointer(i), ABSENT, new[i])


def _unlike(old: list[Any], new: list[Any]) -> Iterator[tuple[int, int, int, int]]:
    """Stretches that differ, aligned so that one item added in front is one change and not as many as there are items."""
    if max(len(old), len(new)) > _DIFF_ITEMS:
        yield 0, len(old), 0, len(new)
        return
    matcher = SequenceMatcher(None, [canonical_json(v) for v in old], [canonical_json(v) for v in new], autojunk=False)
    yield from (block[1:] for block in matcher.get_opcodes() if block[0] != "equal")


# What can be written down

_TOO_DEEP = f"Values are nested more than {MAX_DEPTH} deep."
_BEYOND = "A whole number beyond 2⁵³−1 is not held exactly by every JSON reader; send it as text."
HALF_PAIR = re.compile("[\ud800-\udfff]")


def _plain(value: Any, depth: int = 0) -> Any:
    """A copy of `value` in dicts, lists and scalars only; NotCanonical if some reader could read its JSON as something else."""
    _need(depth <= MAX_DEPTH, _TOO_DEEP)
    if isinstance(value, str):
        _need(HALF_PAIR.search(value) is None, "Text holds half a surrogate pair.")
    elif isinstance(value, int) and not isinstance(value, bool):
        _need(abs(value) <= MAX_SAFE_INTEGER, _BEYOND)
    elif isinstance(value, float):
        _need(math.isfinite(value), f"{value} is not a number that JSON knows.")
    elif isinstance(value, Mapping):
        return {_key(key): _plain(item, depth + 1) for key, item in value.items()}
    elif isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    elif value is not None and not isinstance(value, bool):
        raise NotCanonical(f"{type(value).__name__} is not a JSON value.")
    return value


def _key(key: Any) -> str:
    _need(isinstance(key, str), f"A key is text, not {type(key).__name__}.")
    return _plain(key)


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise NotCanonical(f"The key {_quoted(twice)} stands twice in one object.")
    return found


def _safe_integer(digits: str) -> int:
    # the length first: turning a very long text into an int is slow
    _need(len(digits) <= 17 and abs(int(digits)) <= MAX_SAFE_INTEGER, _BEYOND)
    return int(digits)


def _no_constant(name: str) -> Any:
    raise NotCanonical(f"{name} is not a number that JSON knows.")


def _as_json(action: CanonicalAction) -> dict[str, Any]:
    body = {f.name: getattr(action, f.name) for f in fields(CanonicalAction)}
    attachments = [{f.name: getattr(a, f.name) for f in fields(Attachment)} for a in action.attachments]
    return {**body, "recipients": list(action.recipients), "attachments": attachments}


def _attachment(value: Any) -> Attachment:
    _need(isinstance(value, dict), "An attachment is an object.")
    _keys(value, Attachment, "An attachment")
    return Attachment(**value)


def _keys(found: Mapping[str, Any], shape: type, what: str) -> None:
    wanted = {f.name for f in fields(shape)}
    _need(not found.keys() - wanted, f"{what} has no key {', '.join(map(_quoted, sorted(found.keys() - wanted)))}.")
    _need(not wanted - found.keys(), f"{what} needs {', '.join(sorted(wanted - found.keys()))}.")


def _quoted(text: str) -> str:
    return ascii(text[:40])


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_SAFE_INTEGER


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise NotCanonical(otherwise)
