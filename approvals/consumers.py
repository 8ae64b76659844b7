"""The inbox's own stream: HTML fragments for whoever has the inbox open, drawn again when something in the workspace moved.

The address carries the filter of the page, `?view=&q=`. A reader says which action is open,
`{"open": id or null, "state": what it is drawn as, "shown": how many rows}`, and is sent what changed since; and says so again, with
`"again": true`, at each heartbeat, so that whatever it missed is sent once more. The rights are looked up again for each drawing;
withdrawn, the stream is closed with 4403, or 4401 if nobody is signed in any more.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from channels.generic.websocket import AsyncWebsocketConsumer

from access import rules, sockets
from access.errors import Refusal
from access.rules import Actor
from approvals import presenting, wanted
from approvals.models import ProposedAction
from approvals.presenting import Push
from runs.consumers import STILL_HERE, RunPage
from runs.hub import follow_workspace, in_thread
from runs.models import Run

SILENCE = 10.0  # seconds after which a reader hears that the stream is there
MOST_SAID = 500  # characters that a reader may say at once
BROKEN = 1011

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Said:
    """What a reader said: the open action, what it is drawn as, how many rows are drawn, and whether this was only said again."""

    open: UUID | None
    state: str
    again: bool = False
    shown: int = 0


class InboxSocket(AsyncWebsocketConsumer):
    """`ws/pages/inbox`."""

    task: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        self.news = asyncio.Event()
        self.open: UUID | None = None
        self.drawn_as = ""
        self.shown = 0
        self.wanted = wanted.of_query(self.scope.get("query_string", b"").decode("latin-1"))
        self.said = 0  # how often the reader said what is open: each time after an answer was drawn, which may be older than what was sent
        await self.accept()  # first, for a refused handshake tells a browser nothing
        self.task = asyncio.create_task(self._speak())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        said = _said(text_data)
        if said is None or (said.again and (said.open, said.state, said.shown) == (self.open, self.drawn_as, self.shown)):
            return
        self.open, self.drawn_as, self.shown = said.open, said.state, said.shown
        self.said += 1
        self.news.set()

    async def disconnect(self, code: int) -> None:
        if self.task is not None:
            self.task.cancel()

    async def _speak(self) -> None:
        try:
            actor = await self.recheck()
            async with asyncio.TaskGroup() as together:
                for workspace_id in actor.somewhere("approvals.view"):
                    together.create_task(self._hear(workspace_id))
                together.create_task(self._tell())
        except* Refusal as refused:
            refusal = refused.exceptions[0]
            await self.close(4000 + getattr(refusal, "status", 403), getattr(refusal, "title", ""))
        except* Exception:
            logger.exception("an inbox's stream broke")
            await self.close(BROKEN)

    async def _hear(self, workspace_id: UUID) -> None:
        async for _ in follow_workspace(workspace_id, recheck=self.recheck):
            self.news.set()

    async def _tell(self) -> None:
        """Draw when there is news; send what is not there yet, or may have been drawn over by an answer."""
        there: Any = None
        at = time.monotonic()
        while True:
            await self.news.wait()
            self.news.clear()
            said = self.said
            push = await in_thread(self._draw)()
            if (push.queue, push.key, push.frozen, said) != there:
                there, at = (push.queue, push.key, push.frozen, said), time.monotonic()
                self.drawn_as = push.key if said == self.said else self.drawn_as
                await self.send(push.html)
            elif time.monotonic() - at > SILENCE:
                at = time.monotonic()
                await self.send(STILL_HERE)

    async def recheck(self) -> Actor:
        return await in_thread(self._enter)()

    def _enter(self) -> Actor:
        actor = sockets.actor_of(self.scope)
        rules.require(actor, "approvals.view")
        return actor

    def _draw(self) -> Push:
        keep = self.drawn_as.startswith(presenting.WAITING)
        return presenting.push_inbox(self._enter(), self.open, self.wanted, keep=keep, last_key=self.drawn_as, shown=self.shown)


class OutcomeSocket(RunPage):
    """`ws/pages/actions/<id>/outcome?after=`: what makes the page of an unknown outcome the page as it is now. Ends with the run."""

    @property
    def action_id(self) -> str:
        return self.scope["url_route"]["kwargs"]["action_id"]

    def _enter(self) -> tuple[Actor, Run]:
        actor = sockets.actor_of(self.scope)
        return actor, rules.get(actor, ProposedAction, self.action_id, "approvals.view", related=("run",)).run

    @property
    def push(self) -> Callable[..., tuple[str, int]]:
        return lambda _, actor, after: presenting.push_outcome(actor, UUID(self.action_id), after)


def _said(text: str | None) -> Said | None:
    """None if it makes no sense."""
    try:
        said = orjson.loads(text or "") if len(text or "") <= MOST_SAID else None
        shown = int(said.get("shown", 0))
        return Said(UUID(said["open"]) if said["open"] else None, str(said.get("state", "")), said.get("again") is True, shown)
    except (orjson.JSONDecodeError, TypeError, KeyError, ValueError, AttributeError, OverflowError):
        return None
