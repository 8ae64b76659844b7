"""Misbehaviour on demand, so that a caller's courage can be tested: each fault waits at a place and strikes a number of times.

A fault is one function that says what goes wrong; the two servers only carry it out. Every new one is a function and a line in KINDS.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import Any

from .errors import Malformed, Missing
from .store import now
from .web import Answer, json_answer, problem

BEFORE = "before"  # nothing was done yet, and nothing will be if the fault answers
SENDING = "sending"  # a webhook is on its way out
AFTER = "after"  # the thing is done and kept, the answer is not yet on its way
PLACES = (
    *("ticket.file", "ticket.read", "ticket.status", "account.read", "crm.note", "crm.note.remove", "crm.terms", "effect.read"),
    *("smtp", "webhook"),
)
MOST_SECONDS = 120.0


@dataclass(frozen=True)
class Hitch:
    """What goes wrong this time."""

    full: bool = False  # a mailbox takes no more
    drop: bool = False  # the connection closes without an answer
    wait: float = 0.0  # seconds until the answer leaves
    answer: Answer | None = None  # instead of the true one
    half: bool = False  # the answer breaks off in the middle
    copies: int = 1  # of a webhook
    new_ids: bool = False  # each copy has an id of its own
    rename: Mapping[str, str] = field(default_factory=dict)  # fields of the answer that have another name now

    def changed(self, answer: Answer) -> Answer:
        """The answer as it leaves."""
        if self.answer is not None:
            return self.answer
        if not self.rename:
            return answer
        value = json.loads(answer.body)
        return json_answer(answer.status, {self.rename.get(key, key): inner for key, inner in value.items()})


@dataclass(frozen=True)
class Kind:
    """One kind of fault: the stage of a request at which it strikes, and what it then does, from its options."""

    stage: str
    hitch: Callable[[dict[str, Any]], Hitch]


def drop_answer(options: dict[str, Any]) -> Hitch:
    """The thing is done, and whoever asked never hears of it."""
    return Hitch(drop=True)


def half_answer(options: dict[str, Any]) -> Hitch:
    """The thing is done, and the answer breaks off in the middle."""
    return Hitch(half=True)


def delay(options: dict[str, Any]) -> Hitch:
    """The thing is done, and the answer comes late: {"seconds": 30}."""
    seconds = options.get("seconds", 30)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= MOST_SECONDS:
        raise Malformed(f'"seconds" is from 0 to {MOST_SECONDS:.0f}.')
    return Hitch(wait=float(seconds))


def fail_before(options: dict[str, Any]) -> Hitch:
    """500, and nothing was done."""
    return Hitch(answer=problem(500, "Internal error", "The desk misbehaves as it was told to; nothing was done."))


def fail_after(options: dict[str, Any]) -> Hitch:
    """500, although it was done."""
    return Hitch(answer=problem(500, "Internal error", "The desk misbehaves as it was told to."))


def change_schema(options: dict[str, Any]) -> Hitch:
    """The answer's fields have other names: {"rename": {"customer": "client"}}."""
    rename = options.get("rename", {})
    if not isinstance(rename, dict) or not rename or not all(isinstance(name, str) for name in rename.values()):
        raise Malformed('"rename" says which field of the answer is called what now.')
    return Hitch(rename=rename)


def refuse_key(options: dict[str, Any]) -> Hitch:
    """401: the key that was good is not any more. Nothing was done."""
    return Hitch(answer=problem(401, "Unauthorized", "This key is no longer good."))


def lock(options: dict[str, Any]) -> Hitch:
    """423: the account is locked for now. Nothing was done."""
    return Hitch(answer=problem(423, "Locked", "The account is locked while its invoices are being written."))


def mailbox_full(options: dict[str, Any]) -> Hitch:
    """552: the mailbox takes no more. Nothing was delivered."""
    return Hitch(full=True)


def webhook_twice(options: dict[str, Any]) -> Hitch:
    """Every webhook leaves several times, all at once: {"copies": 2}; with {"ids": "new"} each has an id of its own."""
    copies = options.get("copies", 2)
    if type(copies) is not int or not 2 <= copies <= 50 or options.get("ids", "same") not in ("same", "new"):
        raise Malformed('"copies" is from 2 to 50, and "ids" is same or new.')
    return Hitch(copies=copies, new_ids=options.get("ids") == "new")


KINDS = {
    "drop_answer": Kind(AFTER, drop_answer),
    "half_answer": Kind(AFTER, half_answer),
    "delay": Kind(AFTER, delay),
    "fail_before": Kind(BEFORE, fail_before),
    "fail_after": Kind(AFTER, fail_after),
    "change_schema": Kind(AFTER, change_schema),
    "refuse_key": Kind(BEFORE, refuse_key),
    "lock": Kind(BEFORE, lock),
    "mailbox_full": Kind(BEFORE, mailbox_full),
    "webhook_twice": Kind(SENDING, webhook_twice),
}
AT_SMTP = ("drop_answer", "mailbox_full")  # what the mail server can do; the rest is for HTTP


def plant(db: Connection, *, place: str, fault: str, times: int, options: dict[str, Any]) -> dict[str, Any]:
    """Let `fault` strike at `place` the next `times` times. Raises Malformed."""
    if place not in PLACES or fault not in KINDS:
        raise Malformed(f'"where" is one of {", ".join(PLACES)}; "fault" is one of {", ".join(KINDS)}.')
    if place == "smtp" and fault not in AT_SMTP:
        raise Malformed(f'At smtp "fault" is one of {", ".join(AT_SMTP)}.')
    if (place == "webhook") != (KINDS[fault].stage == SENDING):
        raise Malformed('At webhook "fault" is webhook_twice, and nowhere else.')
    KINDS[fault].hitch(options)  # its options, before they are kept
    if not 1 <= times <= 1000:
        raise Malformed('"times" is from 1 to 1000.')
    values = (place, fault, json.dumps(options), times, now())
    number = db.execute("INSERT INTO fault (place, fault, options, times, used, created_at) VALUES (?, ?, ?, ?, 0, ?)", values).lastrowid
    return next(entry for entry in listing(db) if entry["id"] == number)


def strike(db: Connection, place: str, stage: str, *, to: Sequence[str] = ()) -> Hitch | None:
    """Use up one strike of the oldest fault that waits at this place and stage, if there is one.

    `to`: of a message, whom it goes to; of a request, what its address names. A fault with the option "to" waits for one to that.
    """
    waiting = db.execute("SELECT * FROM fault WHERE place = ? AND used < times ORDER BY number", (place,)).fetchall()
    for row in waiting:
        kind = KINDS.get(row["fault"])
        wanted = json.loads(row["options"]).get("to")
        if kind and kind.stage == stage and (wanted is None or wanted in to):
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
