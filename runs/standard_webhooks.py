"""How a webhook is signed, by https://www.standardwebhooks.com version 1.0.0: HMAC-SHA-256 over `id.timestamp.body`, as it was sent."""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Protocol
from uuid import UUID

from access import hiding
from access.errors import Refusal

PREFIX = "whsec_"
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:@/+-]{0,79}")  # no full stop: it parts what is signed, and could move from one part to another
STAMP = re.compile(r"[0-9]{1,12}")
TOLERANCE = timedelta(minutes=5)
MOST = 10  # signatures that are looked at
OVERLAP = timedelta(hours=24)  # so long the old secret holds beside a new one
SECOND_PRESS = timedelta(minutes=10)


class NotVerified(Refusal):
    """This webhook is not verified."""

    status: ClassVar[int] = 401
    what_next: ClassVar[str] = (
        "Nothing was kept. Send webhook-id, -timestamp and -signature as standardwebhooks.com says, by this source's secret."
    )


class TooOld(NotVerified):
    """This webhook was signed too long ago, or by a clock that is wrong."""

    what_next: ClassVar[str] = "Nothing was kept. Send it again with a new webhook-timestamp and signature, and the same webhook-id."


@dataclass(frozen=True)
class Headers:
    """What a sender says of a webhook, well-formed."""

    id: str
    stamp: int
    signatures: tuple[str, ...]


class Keeper(Protocol):
    """A row with a secret, and with the one before it until `old_until`. `made_at`: the secret."""

    secret_id: UUID
    old_secret_id: UUID | None
    old_until: datetime | None
    made_at: datetime


def rotated(row: Keeper, secret_id: UUID, now: datetime) -> dict[str, Any]:
    """What changes of a row when it gets a new secret: the old one holds too for OVERLAP.

    A second press takes the place of the first: what is in use out there is the one before both.
    """
    values: dict[str, Any] = {"secret_id": secret_id, "made_at": now}
    if row.old_secret_id is None or row.made_at < now - SECOND_PRESS:
        values |= {"old_secret_id": row.secret_id, "old_until": now + OVERLAP}
    return values


def holding(row: Keeper, now: datetime) -> list[UUID]:
    """The secrets of a row that hold now, the newest first."""
    if row.old_secret_id is not None and row.old_until is not None and row.old_until > now:
        return [row.secret_id, row.old_secret_id]
    return [row.secret_id]


def new_secret() -> str:
    """`whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(secret: str, message_id: str, stamp: int, body: bytes) -> str:
    """`v1,` and the base64 of HMAC-SHA-256 over id.timestamp.body."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return "v1," + base64.b64encode(hmac.new(key, f"{message_id}.{stamp}.".encode() + body, hashlib.sha256).digest()).decode()


def headers(given: Mapping[str, str]) -> Headers:
    """The three headers. NotVerified if one is missing or is none. `given`: by name, whatever the case of its letters."""
    message_id, stamp = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not ID.fullmatch(message_id) or hiding.detectors.holds(message_id) or not STAMP.fullmatch(stamp):
        raise NotVerified("It lacks webhook-id or webhook-timestamp, or one of them is none.")
    signatures = tuple(each for each in given.get("webhook-signature", "").split(" ")[:MOST] if each.startswith("v1,"))
    if not signatures:
        raise NotVerified("It has no signature of version v1.")
    return Headers(message_id, int(stamp), signatures)


def verify(told: Headers, body: bytes, known: Iterable[str], *, now: datetime) -> None:
    """NotVerified unless one of the `known` secrets signed exactly this; TooOld if that was not just now."""
    wanted = [_raw(signature(secret, told.id, told.stamp, body)) for secret in known]
    given = [_raw(each) for each in told.signatures]
    # each with each, and all of them: how long it takes says nothing of which was right
    if not sum(hmac.compare_digest(one, other) for one in wanted for other in given):
        raise NotVerified("None of its signatures is of this source's secret.")
    if abs(now.timestamp() - told.stamp) > TOLERANCE.total_seconds():
        raise TooOld(f"It is more than {TOLERANCE.seconds // 60} minutes off our clock.")


def _raw(signed: str) -> bytes:
    try:
        return base64.b64decode(signed.removeprefix("v1,"), validate=True)
    except (binascii.Error, ValueError):
        return b""
