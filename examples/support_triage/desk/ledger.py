"""What was really done, once per key: the desk's idempotency, and the book that shows it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from sqlite3 import Connection, Row
from typing import Any

from .errors import KeyReused
from .store import now


@dataclass(frozen=True)
class Outcome:
    """What is answered, and whether it is the answer of an earlier request with the same key."""

    answer: dict[str, Any]
    repeated: bool


def once(db: Connection, *, key: str | None, kind: str, digest: str, do: Callable[[], tuple[str, dict[str, Any]]]) -> Outcome:
    """Do it, unless `key` did it before: then the first answer again. `do` returns (target, answer). Raises KeyReused."""
    earlier = db.execute("SELECT * FROM effect WHERE key = ?", (key,)).fetchone() if key else None
    if earlier is None:
        target, answer = do()
        _write(db, key, kind, target, digest, answer)
        return Outcome(answer, repeated=False)
    if (earlier["kind"], earlier["digest"]) != (kind, digest):
        raise KeyReused(
            f"{key} stands for {earlier['kind']} on {earlier['target']} since {earlier['first_at']}, with another body or address."
        )
    db.execute("UPDATE effect SET asked = asked + 1, last_at = ? WHERE number = ?", (now(), earlier["number"]))
    return Outcome(json.loads(earlier["answer"]), repeated=True)


def delivered(db: Connection, *, message_id: str, number: int, digest: str) -> None:
    """Note one delivery of a message. Mail is never held back: a second delivery counts as done twice."""
    again = "UPDATE effect SET asked = asked + 1, done = done + 1, last_at = ? WHERE key = ?"
    if not message_id or not db.execute(again, (now(), message_id)).rowcount:
        _write(db, message_id or None, "smtp", f"mail/{number}", digest, {"delivery": number})


def find(db: Connection, key: str) -> dict[str, Any]:
    """What `key` (an Idempotency-Key, or a Message-ID with its angle brackets) did: always says found or not."""
    row = db.execute("SELECT * FROM effect WHERE key = ?", (key,)).fetchone()
    if row is None:
        return {"key": key, "found": False, "looked_at": now()}
    return {"found": True, "looked_at": now(), **_entry(db, row)}


def entries(db: Connection) -> list[dict[str, Any]]:
    """Every effect, oldest first."""
    return [_entry(db, row) for row in db.execute("SELECT * FROM effect ORDER BY number").fetchall()]


def _write(db: Connection, key: str | None, kind: str, target: str, digest: str, answer: dict[str, Any]) -> None:
    db.execute(
        "INSERT INTO effect (key, kind, target, digest, answer, asked, done, first_at, last_at) VALUES (?, ?, ?, ?, ?, 1, 1, ?, ?)",
        (key, kind, target, digest, json.dumps(answer), now(), now()),
    )


def _entry(db: Connection, row: Row) -> dict[str, Any]:
    entry = {name: row[name] for name in ("key", "kind", "target", "asked", "done", "first_at", "last_at")}
    if row["kind"] == "smtp" and row["key"]:
        rows = db.execute("SELECT number FROM mail WHERE message_id = ? ORDER BY number", (row["key"],))
        return {**entry, "deliveries": [number for (number,) in rows]}
    return {**entry, "answer": json.loads(row["answer"])}
