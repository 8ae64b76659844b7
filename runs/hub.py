"""The hub: one per process. It subscribes once to the wake-ups, reads each watched run once per wake, and fans out to every viewer here.

A wake-up is only a hint. Each viewer has a cursor of its own and takes from the hub only what follows it without a gap; whatever it
could not keep up with, or never heard of, it reads from the log. So a lost wake-up, a dead Valkey or a slow viewer costs time, never an
event. Nobody holds a database connection while waiting: every read is one short visit to a thread.

    async for batch in hub.follow(run_id, after=33, actor=actor, recheck=recheck): …
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

import orjson
import redis.asyncio
from channels.db import database_sync_to_async
from django.conf import settings

from access import rules
from access.rules import Actor, Standing
from runs import live, stream
from runs.models import Run
from runs.stream import Page

POLL = 5.0  # seconds between looks at the log without a wake-up
RECHECK = 20.0  # seconds after which a viewer's rights are looked up again, whatever happened; withdrawn ones end within 30
HEARTBEAT = 15.0  # seconds of silence after which a follower gets an empty batch
KEPT = 1000  # events that wait for one viewer; beyond that it reads the log itself
LINGER = 10.0  # seconds the hub stays up after its last viewer
PAUSES = (0.1, 0.5, 1.0, 2.0)  # seconds between attempts to reach Valkey

logger = logging.getLogger(__name__)
# a thread of its own for each read, and its connection given back at the end of it
in_thread = partial(database_sync_to_async, thread_sensitive=False)
Recheck = Callable[[], Awaitable[Actor]]


@dataclass(frozen=True)
class Batch:
    """Events in a row as JSON lines, and where the log stood when they were read. Encoded once, for all viewers."""

    lines: list[bytes]
    seqs: list[int]
    head: int
    ended: bool

    @classmethod
    def of(cls, page: Page) -> "Batch":
        return cls(page.lines, page.seqs, page.head, page.ended)

    @cached_property
    def texts(self) -> list[str]:
        """One text frame an event."""
        return [line.decode() for line in self.lines]

    @cached_property
    def sse(self) -> bytes:
        """All events as one chunk of an event stream."""
        return b"".join(b"id: %d\ndata: %b\n\n" % (seq, line) for seq, line in zip(self.seqs, self.lines, strict=True))

    def after(self, cursor: int) -> "Batch":
        """What of it follows the cursor; all of it is the same object, so that its encodings are shared."""
        passed = sum(seq <= cursor for seq in self.seqs) if self.seqs and self.seqs[0] <= cursor else 0
        return Batch(self.lines[passed:], self.seqs[passed:], self.head, self.ended) if passed else self


@dataclass(eq=False)
class Feed:
    """What waits for one viewer."""

    standing: Standing
    batches: deque[Batch] = field(default_factory=deque)
    behind: bool = False  # something was dropped or not seen: read the log
    doubtful: bool = False  # the viewer's rights may have changed
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, batch: Batch) -> None:
        if sum(len(waiting.lines) for waiting in self.batches) + len(batch.lines) > KEPT:
            self.batches.clear()
            self.behind = True
        else:
            self.batches.append(batch)
        self.news.set()

    def take(self, cursor: int) -> Batch | None:
        """What follows the cursor without a gap. None if there is nothing, or if the log must be read (`behind`)."""
        while self.batches:
            batch = self.batches[0].after(cursor)
            if batch.seqs and batch.seqs[0] > cursor + 1:
                self.batches.clear()
                self.behind = True
                return None
            self.batches.popleft()
            if batch.seqs:
                return batch
        return None

    async def wait(self, seconds: float) -> bool:
        """Whether there is news within so many seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.news.wait(), max(seconds, 0))
        heard = self.news.is_set()
        self.news.clear()
        return heard


@dataclass(eq=False)
class Watched:
    """A run that somebody here watches."""

    feeds: set[Feed] = field(default_factory=set)
    seq: int | None = None  # what was fanned out so far; unknown until the first viewer has read the log
    hint: int = 0  # what the wake-ups say
    reading: asyncio.Task[None] | None = None


class Hub:
    """The followers of one event loop. Nothing here is touched from another thread."""

    def __init__(self) -> None:
        self.runs: dict[UUID, Watched] = {}
        self.rooms: dict[UUID, set[Room]] = {}
        self.tasks: list[asyncio.Task[None]] = []
        self.connected = False
        self.looks: set[asyncio.Task[None]] = set()  # kept, so that none is collected while it runs

    @contextmanager
    def watch(self, run_id: UUID, actor: Actor) -> Iterator[Feed]:
        """A feed of one run, as long as the block lasts."""
        self._start()
        watched = self.runs.setdefault(run_id, Watched())
        feed = Feed(actor.standing)
        watched.feeds.add(feed)
        try:
            yield feed
        finally:
            watched.feeds.discard(feed)
            if not watched.feeds and self.runs.get(run_id) is watched:
                del self.runs[run_id]
            self._rest_later()

    @contextmanager
    def watch_workspace(self, workspace_id: UUID) -> Iterator["Room"]:
        """The runs of a workspace that move, as long as the block lasts."""
        self._start()
        room = Room()
        self.rooms.setdefault(workspace_id, set()).add(room)
        try:
            yield room
        finally:
            self.rooms[workspace_id].discard(room)
            if not self.rooms[workspace_id]:
                del self.rooms[workspace_id]
            self._rest_later()

    def known(self, run_id: UUID, head: int) -> None:
        """A viewer has read the log up to `head`."""
        watched = self.runs.get(run_id)
        if watched is not None and watched.seq is None:
            watched.seq = head
            self._read_up(run_id, watched)

    def wake(self, run_id: UUID, seq: int) -> None:
        """Run R is at `seq`."""
        watched = self.runs.get(run_id)
        if watched is not None:
            watched.hint = max(watched.hint, seq)
            self._read_up(run_id, watched)

    def _read_up(self, run_id: UUID, watched: Watched) -> None:
        if watched.seq is not None and watched.hint > watched.seq and watched.reading is None:
            watched.reading = asyncio.create_task(self._read(run_id, watched))

    async def _read(self, run_id: UUID, watched: Watched) -> None:
        """Once for all viewers, until the hint is reached."""
        try:
            while watched.feeds and watched.hint > watched.seq:
                page, doubtful = await in_thread(_read)(run_id, watched.seq, {feed.standing for feed in watched.feeds})
                for feed in watched.feeds:
                    feed.doubtful |= feed.standing in doubtful
                    feed.put(Batch.of(page))
                watched.seq = max(watched.seq, page.cursor)
                if not page.seqs:
                    watched.hint = watched.seq  # somebody promised more than there is
        except Exception as error:  # a database that is away, most likely; nothing is lost, for nothing was counted as given
            logger.warning("run not read; the next look will", extra={"run": str(run_id), "error": type(error).__name__})
        finally:
            watched.reading = None

    def _start(self) -> None:
        if not self.tasks:
            self.tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._poll())]

    def _rest_later(self) -> None:
        if not self.runs and not self.rooms:
            asyncio.get_running_loop().call_later(LINGER, self._rest)

    def _rest(self) -> None:
        if not self.runs and not self.rooms:
            for task in self.tasks:
                task.cancel()
            self.tasks, self.connected = [], False

    async def _listen(self) -> None:
        """Hear the wake-ups, and look at everything each time the subscription stands anew."""
        failures = 0
        while True:
            try:
                async with redis.asyncio.Redis.from_url(settings.VALKEY_URL, **_PATIENCE) as valkey, valkey.pubsub() as channel:
                    await channel.subscribe(live.CHANNEL)
                    while True:
                        if message := await channel.get_message(timeout=POLL):
                            failures = 0
                            self._heard(message)
            except (redis.RedisError, OSError) as error:
                if failures == 0:
                    logger.warning("wake-ups are not heard; looking every few seconds", extra={"error": type(error).__name__})
            except Exception:  # whatever it is, the next attempt may fare better, and readers are served meanwhile
                logger.exception("hearing wake-ups failed")
            self.connected = False
            await asyncio.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
            failures += 1

    def _heard(self, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe":  # also when the client library has subscribed again by itself
            self.connected = True
            self._begin(self._look(rooms=True))
        elif message["type"] == "message":
            try:
                said = orjson.loads(message["data"])
                if said.get("rights"):
                    self._begin(self._doubt())
                    return
                run_id, workspace_id, seq = UUID(said["run"]), UUID(said["workspace"]), int(said["seq"])
            except (ValueError, KeyError, TypeError, AttributeError):
                logger.warning("a wake-up that makes no sense")
                return
            self.wake(run_id, seq)
            for room in self.rooms.get(workspace_id, ()):
                room.put(run_id)

    def _begin(self, look: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(look)
        self.looks.add(task)
        task.add_done_callback(self.looks.discard)

    async def _doubt(self) -> None:
        """Somebody's rights have changed: whose, of those who read here?"""
        feeds = [feed for watched in self.runs.values() for feed in watched.feeds]
        try:
            doubtful = await in_thread(rules.changed)({feed.standing for feed in feeds})
        except Exception as error:  # the recheck that comes in any case will find it
            logger.warning("rights not read", extra={"error": type(error).__name__})
            return
        for feed in feeds:
            if feed.standing in doubtful:
                feed.doubtful = True
                feed.news.set()
        for room in self._all_rooms():
            room.put(None)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL)
            await self._look(rooms=not self.connected)

    async def _look(self, *, rooms: bool) -> None:
        """See for ourselves how far each watched run is. `rooms`: whether workspaces are told to look too."""
        try:
            heads = await in_thread(_heads)(list(self.runs)) if self.runs else {}
        except Exception as error:  # the next look may fare better, and must come
            logger.warning("heads not read", extra={"error": type(error).__name__})
            return
        for run_id, head in heads.items():
            self.wake(run_id, head)
        for room in self._all_rooms() if rooms else ():
            room.put(None)

    def _all_rooms(self) -> list["Room"]:
        return [room for rooms in self.rooms.values() for room in rooms]


@dataclass(eq=False)
class Room:
    """What moved in one workspace since its viewer last looked."""

    moved: set[UUID] = field(default_factory=set)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, run_id: UUID | None) -> None:
        if run_id is not None:
            self.moved.add(run_id)
        self.news.set()

    def take(self) -> frozenset[UUID]:
        moved = frozenset(self.moved)
        self.moved.clear()
        self.news.clear()
        return moved


_PATIENCE: dict[str, Any] = {"socket_connect_timeout": 2, "health_check_interval": 15}
_HUBS: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """The hub of the running event loop; a server has one loop, and so one hub."""
    return _HUBS.setdefault(asyncio.get_running_loop(), Hub())


async def follow(run_id: UUID, *, after: int, actor: Actor, recheck: Recheck) -> AsyncIterator[Batch]:
    """Every event with seq > `after`, in order, none twice, as it comes; returns when the run has ended and all was given.

    An empty batch at once if there is nothing new yet, and after at most HEARTBEAT seconds of silence. `recheck` gives the actor as it
    is now, or raises a Refusal, which ends this; it is awaited when a wake found the actor's rights changed, and every RECHECK seconds.
    CursorAhead if `after` is past the head.
    """
    with hub().watch(run_id, actor) as feed:
        cursor, checked = after, time.monotonic()
        batch = await _from_log(run_id, cursor)
        while True:
            if feed.doubtful or time.monotonic() - checked >= RECHECK:
                feed.doubtful, checked = False, time.monotonic()
                feed.standing = (await recheck()).standing
            if batch.seqs or not batch.ended:
                yield batch
            cursor = batch.seqs[-1] if batch.seqs else cursor
            if batch.ended and cursor >= batch.head:
                return
            patience = min(HEARTBEAT, checked + RECHECK - time.monotonic())
            batch = await _next(run_id, feed, cursor, unread=cursor < batch.head, patience=patience)


async def _next(run_id: UUID, feed: Feed, cursor: int, *, unread: bool, patience: float) -> Batch:
    """What follows the cursor, from the hub if it has that, else from the log. Empty after so many seconds of silence."""
    while True:
        batch = feed.take(cursor)
        if batch is not None:
            return batch
        if feed.doubtful and not unread:
            return Batch([], [], cursor, False)
        if feed.behind or unread:
            feed.behind = unread = False
            batch = await _from_log(run_id, cursor)
            if batch.seqs or batch.ended:
                return batch
        elif not await feed.wait(patience):
            return Batch([], [], cursor, False)


async def follow_workspace(workspace_id: UUID, *, recheck: Recheck, gap: float = 0.5) -> AsyncIterator[frozenset[UUID]]:
    """Says when to look at a workspace again, at most every `gap` seconds: the runs that moved; none if that is not known.

    Says so after HEARTBEAT seconds of silence too, and every POLL seconds while wake-ups are not heard. `recheck` is awaited each time.
    """
    with hub().watch_workspace(workspace_id) as room:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(room.news.wait(), HEARTBEAT)
            await recheck()
            yield room.take()
            await asyncio.sleep(gap)


async def grown(run_id: UUID, *, beyond: int, actor: Actor, seconds: float) -> bool:
    """Wait until the run's log has more than `beyond` events, at most so long; for who will read it then. Whether it has."""
    until = time.monotonic() + seconds
    with hub().watch(run_id, actor) as feed:
        head, _ = await in_thread(stream.head_of)(run_id)
        hub().known(run_id, head)
        while head <= beyond:
            if not await feed.wait(until - time.monotonic()):
                return False
            head = max([head, *(batch.head for batch in feed.batches)])
            feed.batches.clear()
            if feed.behind:
                feed.behind = False
                head, _ = await in_thread(stream.head_of)(run_id)
        return True


async def _from_log(run_id: UUID, cursor: int) -> Batch:
    page = await in_thread(stream.read)(run_id, after=cursor)
    hub().known(run_id, page.head)
    return Batch.of(page)


def _read(run_id: UUID, after: int, standings: Iterable[Standing]) -> tuple[Page, set[Standing]]:
    page = stream.read(run_id, after=after)
    return page, rules.changed(standings)  # in this order: rights that were gone when the events were read are always noticed


def _heads(run_ids: list[UUID]) -> dict[UUID, int]:
    return dict(Run.objects.filter(pk__in=run_ids).values_list("pk", "seq"))
