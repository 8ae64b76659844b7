"""What stands where in a webhook's body, and finding those by it that nobody has taken yet without opening any.

A place together with its value is kept as a keyed hash, under a key of the source's own that lies in the vault: the table says nothing of
what was sent. It is for what is open; as soon as a webhook is settled its hashes go.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from typing import Any
from uuid import UUID

import orjson
from django.db.models import QuerySet

from artifacts import vault
from artifacts.models import Payload
from runs.webhook_models import ReceivedWebhook, WebhookPlace, WebhookSource

MOST = 2000  # places of one webhook that are kept; of one with more, its body has to be looked at
ROOM = 1024 * 1024  # characters of the names of all these places: below one long name there may be many, and each is hashed whole
OPENED = 1000  # webhooks, the newest, whose bodies are looked at for one wait: a run's lock is held that long
AT_ONCE = 20  # webhooks that are read from the database together


@dataclass(frozen=True)
class Places:
    """The hashes of what stands where. `all_there`: there is nothing else in the body that somebody could wait for by one value."""

    tokens: frozenset[str]
    all_there: bool


def parsed(content: bytes) -> dict[str, Any] | None:
    """The JSON object that a body is; None if it is none."""
    try:
        value = orjson.loads(content)
        orjson.dumps(value)  # what is nested deeper than can be written down again is none
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None
    return value if isinstance(value, dict) else None


def fits(match: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Whether each place of the body, as `data.ticket`, has the value that is wanted there."""
    return all(_is(_at(body, place), wanted) for place, wanted in match.items())


def _is(came: Any, wanted: Any) -> bool:
    """In JSON true is not 1."""
    return bool(came == wanted) and isinstance(came, bool) == isinstance(wanted, bool)


def _at(body: Any, place: str) -> Any:
    for name in place.split("."):
        if not isinstance(body, dict) or name not in body:
            return _NOWHERE
        body = body[name]
    return body


_NOWHERE = object()


# keeping ----------------------------------------------------------------------------------------------------------------------------


def new_key(workspace_id: UUID) -> Payload:
    """A key for a source's hashes, in the caller's transaction."""
    return vault.keep(workspace_id, base64.b64encode(secrets.token_bytes(32)).decode(), label="secret")


def key_of(source: WebhookSource) -> bytes:
    """The key of a source's hashes. One query."""
    return vault.open_bytes(Payload.objects.select_related("key").get(pk=source.places_key_id))


def of(key: bytes, body: Mapping[str, Any] | None) -> Places:
    """What stands where in a body; nothing where there is none that could be read."""
    found: set[str] = set()
    room = ROOM
    for place, value in _leaves(body or {}):
        room -= len(place)
        if len(found) == MOST or room < 0:
            return Places(frozenset(found), all_there=False)
        found.add(_token(key, place, value))
    return Places(frozenset(found), all_there=True)


def keep(webhook: ReceivedWebhook, places: Places) -> None:
    """In the caller's transaction. One statement."""
    WebhookPlace.objects.bulk_create(WebhookPlace(webhook=webhook, token=token) for token in places.tokens)


def forget(webhook_id: UUID) -> None:
    """It is settled: nobody looks for it any more. In the caller's transaction."""
    WebhookPlace.objects.filter(webhook=webhook_id).delete()


def _leaves(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each single value and its place. What has a full stop in its name can't be named, and lists are not looked into.

    A place is put together only for who takes it: below a long name there may be very many.
    """
    names: list[str] = []
    left = [iter(body.items())]
    while left:
        name, value = next(left[-1], ("", _NOWHERE))
        if value is _NOWHERE:
            left.pop()
            names[len(left) - 1 :] = []
        elif "." in name or isinstance(value, list):
            continue
        elif isinstance(value, dict):
            names.append(name)
            left.append(iter(value.items()))
        else:
            yield ".".join([*names, name]), value


def _token(key: bytes, place: str, value: Any) -> str:
    said = f"{place}\0{_canonical(value)}".encode("utf-8", "surrogatepass")
    return base64.urlsafe_b64encode(hmac.new(key, said, hashlib.sha256).digest()[:16]).decode().rstrip("=")


def _canonical(value: Any) -> str:
    """Equal for what `_is` takes for the same, and for nothing else: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, str):
        return "text " + value
    if isinstance(value, bool) or value is None:
        return str(value)
    return str(int(value)) if value == int(value) else repr(float(value))


# finding ----------------------------------------------------------------------------------------------------------------------------


def candidates(source: WebhookSource, match: Mapping[str, Any], stored: QuerySet[ReceivedWebhook]) -> Iterable[ReceivedWebhook]:
    """Those of `stored` that may fit, the earliest first: by the hashes of what is wanted, and of those that these don't tell all of
    the newest OPENED."""
    wanted = {place: value for place, value in match.items() if not isinstance(value, dict | list)}
    if match and (not wanted or source.places_key_id is None):
        stored = _newest(stored)
    elif match:
        key, found = key_of(source), stored.filter(all_places=True)
        for place, value in wanted.items():
            found = found.filter(kept_places__token=_token(key, place, value))
        parts = (found if len(wanted) == len(match) else _newest(found), _newest(stored.filter(all_places=False)))
        return merge(*map(_each, parts), key=lambda webhook: (webhook.received_at, webhook.pk))
    return _each(stored)


def _newest(rows: QuerySet[ReceivedWebhook]) -> QuerySet[ReceivedWebhook]:
    """What has to be opened, for so many may have come."""
    return rows.filter(pk__in=rows.order_by("-received_at", "-pk").values("pk")[:OPENED])


def _each(rows: QuerySet[ReceivedWebhook]) -> Iterator[ReceivedWebhook]:
    return rows.order_by("received_at", "pk").iterator(chunk_size=AT_ONCE)
