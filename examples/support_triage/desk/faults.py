"""Misbehaviour on demand, so that a caller's courage can be tested: each fault waits at a place and strikes a number of times.

A fault is one function that says what goes wrong; the two servers only carry it out. Every new one is a function and a line in KINDS.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from .errors import Malformed, Missing
from .store import now

AFTER = "after"  # the thing is done and kept, the answer is not yet on its way
PLACES = ("ticket.file", "ticket.read", "ticket.status", "account.read", "crm.note", "crm.note.remove", "effect.read", "smtp")


@dataclass(frozen=True)
class Hitch:
    """What goes wrong this time."""

    drop: bool = False  # the connection closes without an answer


@dataclass(frozen=True)
class Kind:
    """One kind of fault: the stage of a request at which it strikes, and what it then does, from its options."""

    stage: str
    hitch: Callable[[dict[str, Any]], Hitch]


def drop_answer(options: dict[str, Any]) -> Hitch:
    """The thing is done, and whoever asked never hears of it."""
    return Hitch(drop=True)


KINDS = {"drop_answer": Kind(AFTER, drop_answer)}


def plant(db: Connection, *, place: str, fault: str, times: int, options: dict[str, Any]) -> dict[str, Any]:
    """Let `fault` strike at `place` the next `times` times. Raises Malformed."""
    if place not in PLACES or fault not in KINDS:
        raise Malformed(f'"where" is one of {", ".join(PLACES)}; "fault" is one of {", ".join(KINDS)}.')
    if not 1 <= times <= 1000:
        raise Malformed('"times" is from 1 to 1000.')
    values = (place, fault, json.dumps(options), times, now())
    number = db.execute("INSERT INTO fault (place, fault, options, times, used, created_at) VALUES (?, ?, ?, ?, 0, ?)", values).lastrowid
    return next(entry for entry in listing(db) if entry["id"] == number)


def strike(db: Connection, place: str, stage: str) -> Hitch | None:
    """Use up one strike of the oldest fault that waits at this place and stage, if there is one."""
    waiting = db.execute("SELECT * FROM fault WHERE place = ? AND used < times ORDER BY number", (place,)).fetchall()
    for row in waiting:
        kind = KINDS.get(row["fault"])
        if kind and kind.stage == stage:
            db.execute("UPDATE fault SET used = used + 1 WHERE number = ?", (row["number"],))
            return kind.hitch(json.loads(row["options"]))
    return None


def listing(db: Connection) -> list[dict[str, Any]]:
    """All faults, used up or not, oldest first."""
    return [_entry(dict(row)) for row in db.execute("SELECT * FROM fault ORDER BY number").fetchall()]


def clear(db: Connection, number: int | None = None) -> int:
    """Take away one fault, or all. Returns how many. Raises Missing when the one is not there."""
    gone = db.execute("DELETE FROM fault WHERE ? IS NULL OR number = ?", (number, number)).rowcount
    if number is not None and not gone:
        raise Missing(f"There is no fault {number}.")
    return gone


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["number"],
        "where": row["place"],
        "fault": row["fault"],
        "options": json.loads(row["options"]),
        "times": row["times"],
        "used": row["used"],
        "left": row["times"] - row["used"],
        "created_at": row["created_at"],
    }
