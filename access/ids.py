"""Names of things: UUIDv7 for machines, short references for people."""

import re
import secrets
from uuid import UUID

from uuid_utils import compat

from access.errors import BadInput

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32: no I, L, O or U
_PREFIX = "RN"
_SHORTEST, _LONGEST = 4, 9  # characters after the dash; the column holds twelve in all
_READ_AS = str.maketrans("OIL", "011")
_NOT_PART = re.compile(r"[\s\-\u2010-\u2015\u2212_#]+")  # what people and mail programs put between the parts


class NotAReference(BadInput, ValueError):
    """This is not the reference of a run."""

    what_next = "A reference looks like RN-7Q4K; it stands at the top of the run's page."


def uuid7() -> UUID:
    """A new UUIDv7 as the standard library's UUID: unique everywhere, and in order of the time it was made."""
    return compat.uuid7()


def reference(length: int = _SHORTEST) -> str:
    """A new random reference such as `RN-7Q4K`. Four characters are a million names: on a clash ask again, with one more."""
    if not _SHORTEST <= length <= _LONGEST:
        raise ValueError(f"A reference has {_SHORTEST} to {_LONGEST} characters, not {length}.")
    return f"{_PREFIX}-{''.join(secrets.choice(_ALPHABET) for _ in range(length))}"


def parse_reference(text: str) -> str:
    """The reference somebody meant, as it is stored: any case, with or without `RN-`, O for 0, I or L for 1. Raises NotAReference."""
    first, *rest = _NOT_PART.sub(" ", text[:64]).upper().split() or [""]
    if first == _PREFIX and rest:
        first = ""
    elif len(first) >= len(_PREFIX) + _SHORTEST:
        first = first.removeprefix(_PREFIX)
    body = "".join([first, *rest]).translate(_READ_AS)
    if not _SHORTEST <= len(body) <= _LONGEST or not set(body) <= set(_ALPHABET):
        raise NotAReference
    return f"{_PREFIX}-{body}"


def as_number(text: str, *, digits: int = 9) -> int | None:
    """What somebody sent as a whole number from 0; None if it is none, or has more digits than any of ours."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= digits else None


def as_uuid(text: str) -> UUID | None:
    """What somebody sent as an id; None if it is none."""
    try:
        return UUID(text)
    except ValueError:
        return None
