"""A message as a signed POST, by https://www.standardwebhooks.com: webhook-id, webhook-timestamp, webhook-signature.

The secret is made here, shown once, and lies in the vault. A new one signs beside the old one for a day. Where it goes is looked up
once, checked, and that very address is connected to: no private network, no redirect, bounded in time and size.
"""

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import SplitResult, urlsplit
from uuid import UUID

import httpx
import orjson
from django.conf import settings
from django.db import transaction

from access import audit
from access.errors import BadInput
from access.models import User
from access.rows import only
from access.rules import Actor
from approvals.notifications.models import Message, Webhook
from approvals.notifications.outcomes import Failed, Outcome, Sent
from approvals.notifications.wording import Item
from artifacts import vault
from artifacts.models import Payload
from config import clock
from runs import log
from runs.standard_webhooks import holding, new_secret, rotated, signature

SECONDS, ANSWER_MAX = 10.0, 64 * 1024  # for all of it; bytes that are read of an answer
# each holds an IPv4 address inside, which may be any
TUNNELS = tuple(ipaddress.ip_network(net) for net in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32"))

PRIVATE = "It stands for an address in a private network."
GIVEN_OUT = ipaddress.ip_network("2000::/3")


class OddAddress(BadInput):
    """This address can't be posted to."""

    what_next: ClassVar[str] = "Nothing was saved. Give an https address that is reached from here without a private network."


def set_up(workspace_id: UUID, *, by: Actor, url: str) -> str:
    """Post this person's notifications there. Gives the secret, which is shown this once; empty if only the address changed."""
    parsed(url)
    with transaction.atomic(durable=True):
        User.objects.select_for_update(no_key=True).get(pk=by.user_id)
        audit.record(by, "webhook_set", workspace_id=workspace_id)
        if Webhook.objects.filter(user_id=by.user_id).update(url=url):
            return ""
        secret = new_secret()
        kept = vault.keep(workspace_id, secret, label="secret")
        Webhook.objects.create(user_id=by.user_id, workspace_id=workspace_id, url=url, secret=kept)
    return secret


def rotate(*, by: Actor) -> str:
    """A new secret, shown this once. The old one signs too for a day. Empty if there is no webhook."""
    with transaction.atomic(durable=True):
        hook = only(Webhook.objects.select_for_update(no_key=True).filter(user_id=by.user_id))
        if hook is None:
            return ""
        secret = new_secret()
        kept = vault.keep(hook.workspace_id, secret, label="secret")
        Webhook.objects.filter(pk=hook.pk).update(**rotated(hook, kept.pk, clock.now()))
        audit.record(by, "webhook_secret_rotated", workspace_id=hook.workspace_id)
    return secret


def remove(*, by: Actor) -> None:
    """Post to it no more. Nothing happens if there is none."""
    with transaction.atomic(durable=True):
        hook = only(Webhook.objects.filter(user_id=by.user_id))
        if hook is not None:
            Webhook.objects.filter(pk=hook.pk).delete()
            audit.record(by, "webhook_removed", workspace_id=hook.workspace_id)


def send(message: Message, items: Sequence[Item]) -> Outcome:
    """Post it. Anything but a 2xx is a failure; 410 means that nobody wants it there any more."""
    hook = only(Webhook.objects.filter(user_id=message.user_id))
    if hook is None:
        return Failed("no webhook", retryable=False)
    body = _body(message, items)
    try:
        return _post(hook.url, body, _headers(hook, message, body, clock.now()))
    except OddAddress:
        return Failed("address refused", retryable=False)
    except httpx.TimeoutException:
        return Failed("timed out", retryable=True)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError):  # the last of a name that can't be looked up
        return Failed("not reached", retryable=True)


def _body(message: Message, items: Sequence[Item]) -> bytes:
    told = [{"kind": each.kind, "title": each.title, "text": each.text, "link": each.link} for each in items]
    data = {"count": len(items), "test": message.test, "items": told}
    return orjson.dumps({"type": "handrail.notification", "timestamp": log.stamp(message.created_at), "data": data})


def _headers(hook: Webhook, message: Message, body: bytes, now: datetime) -> dict[str, str]:
    stamp = int(now.timestamp())
    ids = holding(hook, now)
    kept = Payload.objects.select_related("key").in_bulk(ids)
    signed = [signature(vault.open_bytes(kept[pk]).decode(), str(message.pk), stamp, body) for pk in ids]
    return {
        "content-type": "application/json",
        "user-agent": "Handrail",
        "webhook-id": str(message.pk),
        "webhook-timestamp": str(stamp),
        "webhook-signature": " ".join(signed),
    }


def _post(url: str, body: bytes, headers: dict[str, str]) -> Outcome:
    parts = parsed(url)
    host = str(parts.hostname)
    address = _resolved(host, parts.port or (443 if parts.scheme == "https" else 80))
    shown = f"[{address}]" if ":" in address else address
    there = httpx.URL(url).copy_with(host=shown)
    end = time.monotonic() + SECONDS
    options: dict[str, Any] = {"timeout": SECONDS / 2, "follow_redirects": False, "trust_env": False}
    with _cut_off(end) as connected, httpx.Client(verify=ssl.create_default_context(), **options) as client:
        named = headers | {"host": parts.netloc.rpartition("@")[2]}
        extensions = {"sni_hostname": host, "trace": connected}
        with client.stream("POST", there, content=body, headers=named, extensions=extensions) as answer:
            with suppress(httpx.HTTPError):  # the status is known by now, and nothing else of the answer counts
                _pass_over(answer, end)
            return _judged(answer.status_code)


def _pass_over(answer: httpx.Response, end: float) -> None:
    read = 0
    for chunk in answer.iter_raw():
        read += len(chunk)
        if read > ANSWER_MAX or time.monotonic() > end:
            return


@contextmanager
def _cut_off(end: float) -> Iterator[Callable[[str, dict[str, Any]], None]]:
    """A listener of httpx's that shuts the connection at `end`. Its time-outs are of one read each: headers could come byte by byte."""
    open_ones: list[socket.socket] = []

    def cut() -> None:
        for each in open_ones:
            with suppress(OSError):  # it is closed already
                socket.socket.shutdown(each, socket.SHUT_RDWR)

    def connected(event: str, info: dict[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            open_ones.append(info["return_value"].get_extra_info("socket"))
            if time.monotonic() >= end:
                cut()

    timer = threading.Timer(max(end - time.monotonic(), 0), cut)
    timer.daemon = True
    timer.start()
    try:
        yield connected
    finally:
        timer.cancel()


def _judged(status: int) -> Outcome:
    if 200 <= status < 300:
        return Sent()
    if 300 <= status < 400:
        return Failed("redirected", retryable=False)
    return Failed("gone" if status == 410 else "refused", retryable=status != 410)


def parsed(url: str) -> SplitResult:
    """The address in its parts. OddAddress says what is wrong with it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise OddAddress("This is not an address.") from None
    schemes = ("https", "http") if settings.HANDRAIL_PRIVATE_WEBHOOKS else ("https",)
    if parts.scheme not in schemes or not parts.hostname or len(url) > 500 or not _is_plain(url):
        raise OddAddress(f"The address must start with {schemes[0]}:// and name a host.")
    if parts.username or parts.password or parts.fragment or port == 0:
        raise OddAddress("The address may hold no name, password or #.")
    if not settings.HANDRAIL_PRIVATE_WEBHOOKS and _is_private(parts.hostname):  # any other name is looked up when something is sent
        raise OddAddress(PRIVATE)
    return parts


def _is_private(host: str) -> bool:
    """Whether a host says by itself that it lies in a private network."""
    try:
        return not is_public(host)
    except ValueError:
        return host.rstrip(".").rpartition(".")[2].casefold() == "localhost"


def _is_plain(url: str) -> bool:
    return url.isascii() and url.isprintable() and " " not in url


def _resolved(host: str, port: int) -> str:
    """The address to connect to. OddAddress if any that the name stands for is one we may not reach."""
    found = [info[4][0] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    if not found:
        raise OSError("no address")
    if not settings.HANDRAIL_PRIVATE_WEBHOOKS and not all(is_public(str(each)) for each in found):
        raise OddAddress(PRIVATE)
    return str(found[0])


def is_public(text: str) -> bool:
    """Whether an IP address is one of the internet, and of no network behind it."""
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None:
        address = mapped
    # what IPv6 calls global is more than what is given out: old site-local addresses, and IPv4 ones at the end of zeros
    other = address.version == 6 and (address not in GIVEN_OUT or any(address in net for net in TUNNELS))
    return address.is_global and not address.is_multicast and not other
