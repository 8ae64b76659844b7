"""The only writer of events, and of a run's row.

    with log.holding(run_id) as run:
        run.append(NotePosted(), actor=actor, texts={"note": Text("…")})
        run.move(State.WAITING, RunWaiting(on="decision"), actor=ENGINE)

One transaction holds the run's row lock, checks the fencing token, appends, moves the state and commits; a wake-up is sent after that.
`at_once` does all of it in one statement where the writer knows the run's row already: on PostgreSQL one round trip instead of five.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
from django.db import connection, transaction

from access.errors import NotFound
from access.rows import copied, only
from access.rules import SYSTEM, Actor
from artifacts import redaction_policies, vault
from artifacts.models import Artifact, Payload
from config import clock
from runs import lifecycle, live, statements
from runs.errors import IllegalTransition, InvalidEvent, RunEnded, StaleToken
from runs.lifecycle import State
from runs.models import Event, Lease, Run
from runs.statements import Rows
from runs.vocabulary import Data, PlanSet, ToolStarted

ENGINE = SYSTEM
MAX_BODY = 64 * 1024


# listener → the types of events of which it is told before they are committed, last of all, so that whom to tell stands in the same
# transaction (approvals: the outbox)
listeners: dict[Callable[["Held"], None], Collection[str]] = {}
# asked before a run ends: each raises if something of it is still open (approvals: an effect without a known outcome), or writes what
# has to stand before the ending (signals: notes that nobody read)
ending_guards: list[Callable[["Held"], None]] = []


@dataclass(frozen=True)
class Text:
    """Something somebody wrote, on its way into the vault."""

    content: str | bytes
    label: str = "internal"
    media_type: str = "text/plain"


@dataclass
class _Pending:
    seq: int
    type: str
    body: str
    prev_hash: bytes
    hash: bytes
    artifact_id: UUID | None
    payloads: dict[str, str]
    sender: str | None


@dataclass
class Held:
    """A run whose row lock is held. `row` is as the database has it; changes go through `append`, `move` and `change`."""

    row: Run
    changed: dict[str, Any] = field(default_factory=dict)
    pending: list[_Pending] = field(default_factory=list)
    texts: list[Payload] = field(default_factory=list)  # sealed, and stored with the events
    rows: dict[str, Rows] = field(default_factory=dict)  # by whose they are (engine: its journal)
    ending: State | None = None  # what `move` is ending the run as
    version: str = ""  # of the row as the database has it; see Seen

    def append(
        self,
        data: Data,
        *,
        actor: Actor,
        texts: Mapping[str, Text | Payload] | None = None,
        artifact: Artifact | None = None,
        caused_by: int | None = None,
        sender: str | None = None,
        sent_at: datetime | None = None,
        at: datetime | None = None,
    ) -> int:
        """Append one event and return its sequence number. RunEnded once the run has ended; an ending is written by `move` alone.

        `at`: when it was, if it is written down a moment after.
        """
        if self.row.ended_at is not None:
            raise RunEnded(f"The run ended as {self.row.state}.", state=self.row.state)
        if lifecycle.ENDINGS.get(data.type) != self.ending:
            raise IllegalTransition(f"{data.type} does not make a run {self.ending or self.row.state}.", state=self.row.state)
        if vars(data).get("artifact") != (artifact and artifact.pk) or (artifact and artifact.run_id != self.row.pk):
            raise InvalidEvent("An artifact stands in the event that made it, in the log of its own run.", type=data.type)
        payloads = self._sealed(data, texts or {})
        commitments = {role: payload.commitment for role, payload in payloads.items()}
        body = _body(data, actor, commitments, caused_by, sender, sent_at, at)
        seq, prev = self.row.seq + 1, bytes(self.row.head_hash)
        digest = chained(prev, seq, body)
        ids = {role: str(payload.pk) for role, payload in payloads.items()}
        self.pending.append(_Pending(seq, data.type, body, prev, digest, artifact and artifact.pk, ids, sender))
        self.change(seq=seq, head_hash=digest)
        self._sum_up(data)
        return seq

    def move(self, to: State, data: Data, *, actor: Actor = ENGINE, waiting: dict[str, Any] | None = None, **more: Any) -> int:
        """Change the state and write the event of it. IllegalTransition if there is no such way."""
        if not lifecycle.may(self.row.state, to):
            if self.row.ended_at is not None:
                raise RunEnded(f"The run ended as {self.row.state}.", state=self.row.state)
            raise IllegalTransition(f"A run that is {self.row.state} can't become {to.value}.", state=self.row.state)
        if lifecycle.ended(to):
            for guard in ending_guards:
                guard(self)
        self.ending = to if lifecycle.ended(to) else None
        now = clock.now()
        seq = self.append(data, actor=actor, **more)
        self.change(state=to.value, state_since=now, waiting=waiting or {}, wake_at=None)
        if lifecycle.ended(to):
            self.change(ended_at=now)
        return seq

    def change(self, **fields: Any) -> None:
        """Set fields of the run's row; they are saved with the events."""
        for name, value in fields.items():
            setattr(self.row, name, value)
        self.changed.update(fields)

    def keep(self, text: Text) -> Payload:
        """Seal something that belongs to no event. It is stored with the events."""
        [made] = vault.sealed(self.row.workspace_id, [(text.content, text.label, text.media_type)])
        self.texts.append(made)
        return made

    @property
    def seen(self) -> "Seen":
        """The row as this writer leaves it, once it is committed."""
        return Seen(self.row, self.version)

    def appended(self) -> Iterator[tuple[int, str, str]]:
        """What this transaction has appended so far: sequence number, type, body."""
        yield from ((event.seq, event.type, event.body) for event in self.pending)

    def _sum_up(self, data: Data) -> None:
        """Keep on the row what is asked of the log at each proposal, so that nobody reads the whole log for it."""
        if isinstance(data, PlanSet):
            self.change(plans=self.row.plans + 1)
        elif isinstance(data, ToolStarted) and self.row.workflow and data.tool not in self.row.tools:
            self.change(tools=[*self.row.tools, data.tool])  # an agent outside counts as having read all, whatever it says

    def _sealed(self, data: Data, texts: Mapping[str, Text | Payload]) -> dict[str, Payload]:
        """A payload for each text; what is not one yet is sealed, and stored when the events are."""
        if not texts:
            return {}
        for role, text in texts.items():
            if not data.roles.fullmatch(role):
                raise InvalidEvent(f"{data.type} carries no text called “{role[:40]}”.", type=data.type)
            if isinstance(text, Payload) and text.workspace_id != self.row.workspace_id:
                raise InvalidEvent("This text belongs to another workspace.", type=data.type)
        plain = {role: text for role, text in texts.items() if isinstance(text, Text)}
        contents = [(text.content, text.label, text.media_type) for text in plain.values()]
        with redaction_policies.about(data.type, vars(data).get("tool", "")):
            made = dict(zip(plain, vault.sealed(self.row.workspace_id, contents) if contents else (), strict=True))
        self.texts.extend(made.values())
        return {role: made.get(role, text) for role, text in texts.items()}


@dataclass(frozen=True)
class Seen:
    """A run's row as a writer read or wrote it last. `version`: by which PostgreSQL tells whether anybody changed it since; else empty."""

    row: Run
    version: str = ""


@contextmanager
def holding(run_id: UUID, *, token: int | None = None) -> Iterator[Held]:
    """Lock the run, let the caller change it, and commit state and events together. Never nested.

    `token`: the writer's fencing token; StaleToken if another worker has taken over since.
    """
    with transaction.atomic(durable=True):
        held, newest = _locked(run_id, fenced=token is not None)
        if newest != token:
            raise StaleToken(f"Token {token} has been overtaken.", token=token)
        before = held.row.seq
        yield held
        _flush(held, before)


def at_once(seen: Seen, token: int, write: Callable[[Held], None]) -> Seen | None:
    """Have `write` append to a run as it was `seen`, and commit that in one statement, if nobody has changed the run or taken it over.

    None if somebody has, if that can't be told here, or if more is to be done than append: nothing is written then, and the caller
    does it again under the lock. Never inside a transaction.
    """
    if not seen.version or connection.in_atomic_block:
        return None
    held = Held(copied(seen.row), version=seen.version)
    write(held)
    if _interested(held) or not held.pending or held.row.state != seen.row.state or not statements.write_unheld(held, seen.row.seq, token):
        return None
    live.wake(held.row.pk, held.row.workspace_id, held.row.seq)  # it is committed
    return held.seen


def create(run: Run) -> Held:
    """Insert a new run's row inside the caller's transaction; append to what is returned, then `finish` it."""
    run.save(force_insert=True)
    return Held(run)


def give_to_team(agent_id: UUID, team_id: UUID | None) -> int:
    """All runs of an agent are of this team from now on. Gives how many. It stands in no log: a run is what it was, others see it.

    In the caller's transaction, before it locks anything else.
    """
    rows = Run.objects.filter(agent_id=agent_id).exclude(team_id=team_id)
    found = list(rows.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
    return rows.update(team_id=team_id) if found else 0


def finish(held: Held) -> None:
    """Write what was appended to a run that `create` made, in the same transaction."""
    _flush(held, 0)


def chained(prev: bytes, seq: int, body: str) -> bytes:
    """The hash of an event: SHA-256(hash before ‖ seq as 8 bytes, big-endian ‖ body in UTF-8)."""
    return hashlib.sha256(prev + seq.to_bytes(8, "big") + body.encode()).digest()


def stamp(at: datetime) -> str:
    """A time as the log writes it: UTC, microseconds, Z."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _body(
    data: Data,
    actor: Actor,
    commitments: Mapping[str, str],
    caused_by: int | None,
    sender: str | None,
    sent_at: datetime | None,
    at: datetime | None = None,
) -> str:
    body: dict[str, Any] = {
        "v": 1,
        "type": data.type,
        "at": stamp(at or clock.now()),
        "actor": {"kind": actor.kind, "id": actor.id},
        "data": data.model_dump(mode="json", exclude_none=True),
        "payloads": dict(commitments),
    }
    if caused_by is not None:
        body["caused_by"] = caused_by
    if sender is not None:
        body["sender"] = {"id": sender} | ({"at": stamp(sent_at)} if sent_at else {})
    # Equal to RFC 8785 here: keys are ASCII and there are no floats, so sorted keys and orjson's shortest escapes are the canonical form.
    text = orjson.dumps(body, option=orjson.OPT_SORT_KEYS).decode()
    if len(text) > MAX_BODY:
        raise InvalidEvent(f"The event is {len(text)} bytes; at most {MAX_BODY} are kept. Put long text into a payload.")
    return text


def _locked(run_id: UUID, *, fenced: bool) -> tuple[Held, int | None]:
    """The run with its row's lock, and if it is `fenced` the newest token: asked under the lock, so that nobody changes it any more."""
    version, newest = "", None
    if connection.vendor == "postgresql":
        row, version, newest = statements.locked(run_id, fenced)
    else:
        row = only(Run.objects.select_for_update(no_key=True).filter(pk=run_id))
        if row is not None and fenced:
            newest = only(Lease.objects.values_list("token", flat=True).filter(run_id=run_id))
    if row is None:
        raise NotFound
    return Held(row, version=version), newest


def _flush(held: Held, before: int) -> None:
    if held.texts or held.rows or held.changed:
        _write(held, before)
    if not held.changed:
        return
    if held.row.parent_id is not None and "ended_at" in held.changed:
        _wake_parent(held.row.parent_id)
    for listener in _interested(held):
        listener(held)
    _after_commit(live.wake, held.row.pk, held.row.workspace_id, held.row.seq)
    if held.changed.get("state") in (State.QUEUED.value, State.COMPENSATING.value) and held.row.workflow:
        _after_commit(live.call_worker, held.row.pk)


def _interested(held: Held) -> list[Callable[[Held], None]]:
    appended = {event.type for event in held.pending}
    return [listener for listener, types in listeners.items() if not appended.isdisjoint(types)]


def _write(held: Held, before: int) -> None:
    """Payloads, events, what else there is, and last of all the run's row."""
    if connection.vendor == "postgresql":
        moved = statements.write_held(held, before)
    else:
        if held.texts:
            vault.store(held.texts)
        month, run_id = held.row.month, held.row.pk
        Event.objects.bulk_create(Event(run_month=month, run_id=run_id, **vars(event)) for event in held.pending)
        for rows in held.rows.values():
            rows.write()
        moved = not held.changed or Run.objects.filter(pk=held.row.pk, seq=before).update(**held.changed) == 1
    # the row lock makes this certain; the condition makes a mistake in locking loud
    if not moved:
        raise StaleToken("The log moved under this writer.")


def _wake_parent(parent_id: UUID) -> None:
    """Have the sweep wake who waits for a child that ends now.

    Under the parent's lock, so that it either waits already or will see the ending when it does. A child's lock comes before its parent's;
    nobody takes them the other way round.
    """
    parent = Run.objects.select_for_update(no_key=True).get(pk=parent_id)
    if parent.state == State.WAITING and parent.waits_on("child"):
        Run.objects.filter(pk=parent_id).update(wake_at=clock.now())


def _after_commit(tell: Callable[..., None], *about: Any) -> None:
    """Whatever goes wrong in it is logged, and takes nothing back."""
    # not a partial: Django names what failed by its __qualname__, which a partial lacks
    transaction.on_commit(lambda: tell(*about), robust=True)
