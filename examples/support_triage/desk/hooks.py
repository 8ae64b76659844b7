"""Webhooks of the desk: whoever subscribed is told of every change, signed as https://www.standardwebhooks.com says, until it says 2xx.

What is to be told stands in the transaction of the change; it leaves afterwards.
"""

import base64
import binascii
import hashlib
import hmac
import json
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from sqlite3 import Connection, Row
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from . import faults
from .errors import Malformed
from .store import Store, now, stamp

MOST_TRIES = 8
SECONDS = 10.0  # for one of them
_PAUSE = 0.2  # between looks
_PREFIX = "whsec_"


def subscribe(db: Connection, *, url: str, ticket: str, secret: str) -> dict[str, Any]:
    """Tell this address from now on, of one ticket or, without one, of all; the same again has the new secret. Raises Malformed."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Malformed('"url" is an address with http or https.')
    try:
        _key(secret)
    except (binascii.Error, ValueError) as error:
        raise Malformed('"secret" is whsec_ and base64.') from error
    db.execute("INSERT OR REPLACE INTO hook (url, ticket, secret) VALUES (?, ?, ?)", (url, ticket, secret))
    return {"url": url, "ticket": ticket}


def listing(db: Connection) -> list[dict[str, Any]]:
    """Who is told."""
    return [dict(row) for row in db.execute("SELECT url, ticket FROM hook ORDER BY url, ticket").fetchall()]


def deliveries(db: Connection) -> list[dict[str, Any]]:
    """What was told, newest first: `status` is the last answer, null before the first."""
    rows = db.execute("SELECT id, url, tries, status FROM delivery ORDER BY number DESC LIMIT 100").fetchall()
    return [dict(row) for row in rows]


def clear(db: Connection) -> int:
    """Tell nobody any more. Returns how many were told."""
    return db.execute("DELETE FROM hook").rowcount


def tell(db: Connection, kind: str, data: dict[str, Any], *, about: str) -> None:
    """Have everybody who subscribed told of it, in the caller's transaction. `about`: its ticket, or what else it is about."""
    body = json.dumps({"type": kind, "timestamp": now(), "data": data})
    for row in db.execute("SELECT url, secret FROM hook WHERE ticket IN ('', ?)", (about,)).fetchall():
        values = (f"msg_{uuid4().hex}", row["url"], row["secret"], body, time.monotonic())
        db.execute("INSERT INTO delivery (id, url, secret, body, tries, due) VALUES (?, ?, ?, ?, 0, ?)", values)


class Sender:
    """Sends what is due, until it is stopped."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._over = threading.Event()

    def run(self) -> None:
        with self._store.changing() as db:
            db.execute("UPDATE delivery SET due = 0")  # another process's clock
        while not self._over.wait(_PAUSE):
            for row in self._due():
                self._send(row)

    def stop(self) -> None:
        self._over.set()

    def _due(self) -> list[Row]:
        with self._store.reading() as db:
            due = "SELECT * FROM delivery WHERE (status IS NULL OR status >= 300) AND tries < ? AND due <= ? ORDER BY number"
            return db.execute(due, (MOST_TRIES, time.monotonic())).fetchall()

    def _send(self, row: Row) -> None:
        with self._store.changing() as db:
            hitch = faults.strike(db, "webhook", faults.SENDING) or faults.Hitch()
        ids = [f"msg_{uuid4().hex}" if hitch.new_ids and copy else row["id"] for copy in range(hitch.copies)]
        with ThreadPoolExecutor(hitch.copies) as threads:
            statuses = list(threads.map(lambda each: _post(row["url"], row["secret"], each, row["body"].encode()), ids))
        with self._store.changing() as db:
            values = (max(statuses), time.monotonic() + 2 ** row["tries"], row["number"])
            db.execute("UPDATE delivery SET status = ?, tries = tries + 1, due = ? WHERE number = ?", values)


def _post(url: str, secret: str, message_id: str, body: bytes) -> int:
    """The status of the answer; 599 if there was none."""
    at = stamp()
    signed = base64.b64encode(hmac.new(_key(secret), f"{message_id}.{at}.".encode() + body, hashlib.sha256).digest()).decode()
    headers = {"Content-Type": "application/json", "webhook-id": message_id, "webhook-timestamp": str(at)}
    request = urllib.request.Request(url, body, headers | {"webhook-signature": f"v1,{signed}"}, method="POST")  # noqa: S310  see subscribe
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 599


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
