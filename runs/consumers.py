"""Streams of a run that stay open: a socket of JSON lines, an event stream (SSE), and the run page's fragments.

All follow the hub from the reader's own cursor, and end by saying so. A reader that was cut off comes back with the last seq it got.
The rights of whoever reads are looked up again at each change of them and every 30 s; withdrawn, the stream is closed with 4403 (4401
if nobody is signed in any more).
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Any, ClassVar
from urllib.parse import parse_qs
from uuid import UUID

import orjson
from channels.exceptions import StopConsumer
from channels.generic.http import AsyncHttpConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.http import QueryDict

from access import problems, refusals, rules, sockets
from access.errors import Forbidden, NotFound, Refusal
from access.rules import Actor
from runs import bar, forms, looking, pushing, signals, stream
from runs.errors import MethodNotAllowed, Withdrawn
from runs.hub import Batch, follow, follow_workspace, in_thread
from runs.models import Run

# Some servers (Daphne) don't say that a client reads slowly, and keep for it in memory what is not read yet. So no stream gives more
# bytes than this; a reader that keeps up just comes back with its cursor.
MOST = 32 * 1024 * 1024
COME_BACK = 1013  # close code: try again
BROKEN = 1011
GAP = 0.2  # seconds between two drawings of a page, whatever happens in between
BAR_GAP = 1.0  # the same for its top bar
LIST_GAP = 2.0  # seconds between two drawings of the list of runs
STILL_HERE = "<!-- still here -->"

logger = logging.getLogger(__name__)


class _Reader:
    """What every stream of a run does: know the reader, read the cursor, follow."""

    capability: ClassVar[str]
    scope: dict[str, Any]

    @property
    def run_id(self) -> str:
        return self.scope["url_route"]["kwargs"]["run_id"]

    def cursor(self) -> int:
        """`after` of the address; 0 if there is none. BadCursor if it is no number."""
        given = parse_qs(self.scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True).get("after", ["0"])[-1]
        return stream.cursor(given)

    async def enter(self) -> tuple[Actor, Run]:
        """Who reads, and the run, if they may."""
        return await in_thread(self._enter)()

    def _enter(self) -> tuple[Actor, Run]:
        actor = sockets.actor_of(self.scope)
        try:
            return actor, rules.get(actor, Run, self.run_id, self.capability)
        except (Forbidden, NotFound) as refusal:
            refusals.note(actor, refusal, at="stream")
            raise

    async def recheck(self) -> Actor:
        """Who reads, as things stand now. Withdrawn if they may no longer."""
        try:
            return (await self.enter())[0]
        except NotFound:
            raise Withdrawn from None

    async def ending(self, run_id: UUID) -> dict[str, Any]:
        return {"end": True, **(await in_thread(signals.ending_of)(run_id) or {})}


class _Socket(_Reader, AsyncWebsocketConsumer):
    """A WebSocket that only speaks. What goes wrong is said in a last frame and in the close code: 4000 + the HTTP status."""

    task: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        await self.accept()  # first, for a refused handshake tells a browser nothing
        self.task = asyncio.create_task(self._speak())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """A reader has nothing to say; signals are posted."""

    async def disconnect(self, code: int) -> None:
        if self.task is not None:
            self.task.cancel()

    async def _speak(self) -> None:
        try:
            await self.speak()
        except Refusal as refusal:
            await self.refuse(refusal)
        except Exception:
            logger.exception("a socket broke")
            await self.close(BROKEN)

    async def speak(self) -> None:
        raise NotImplementedError

    async def refuse(self, refusal: Refusal) -> None:
        await self.close(4000 + refusal.status, refusal.title)


class RunSocket(_Socket):
    """`ws/runs/<id>?after=`: each event as one text frame, then `{"end": true, …}` and close code 1000 when the run has ended."""

    capability = "runs.events"

    async def speak(self) -> None:
        after = self.cursor()
        actor, run = await self.enter()
        sent = 0
        async with aclosing(follow(run.pk, after=after, actor=actor, recheck=self.recheck)) as batches:
            async for batch in batches:
                for text in batch.texts:
                    await self.base_send({"type": "websocket.send", "text": text})
                    sent += len(text)
                if sent > MOST:
                    return await self.close(COME_BACK, "Come back with your cursor.")
        await self.send(orjson.dumps(await self.ending(run.pk)).decode())
        return await self.close(1000)

    async def refuse(self, refusal: Refusal) -> None:
        await self.send(orjson.dumps({"problem": problems.problem(refusal)}, default=str).decode())
        await super().refuse(refusal)


class RunPage(_Socket):
    """`ws/pages/runs/<id>?after=`: what makes the run's page, drawn at `after`, the page as it is now, as HTML. Ends with the run.

    `view` names another page of the run that is pushed to: see `pushing.PUSHES`. `q`: what is looked for on the page.
    """

    capability = "runs.view"

    async def speak(self) -> None:
        drawn = self.cursor()
        self.actor, run = await self.enter()
        beside = asyncio.create_task(self._keep_bar())
        try:
            await self._follow(run, drawn)
        finally:
            beside.cancel()
        await self.close(1000)

    async def _follow(self, run: Run, drawn: int) -> None:
        async with aclosing(follow(run.pk, after=drawn, actor=self.actor, recheck=self.recheck)) as batches:
            async for batch in batches:
                if batch.seqs and batch.seqs[-1] <= drawn:
                    continue  # it came while the page was being drawn
                html, drawn = await in_thread(self.push)(run.pk, self.actor, drawn) if batch.seqs else ("", drawn)
                await self.send(html or STILL_HERE)
                await asyncio.sleep(GAP)

    async def _keep_bar(self) -> None:
        """The top bar's parts, whenever they are not as they were sent last: what moved may be another run."""
        news = asyncio.Event()
        news.set()
        hearing = [asyncio.create_task(self._hear(workspace_id, news)) for workspace_id in bar.workspaces(self.actor)]
        shown = ""
        try:
            while await news.wait():
                heard = time.monotonic()
                news.clear()
                html = await self._bar(shown, heard)
                if html != shown:
                    shown = html
                    await self.send(html)
                await asyncio.sleep(BAR_GAP)
        finally:
            for task in hearing:
                task.cancel()

    async def _bar(self, shown: str, heard: float) -> str:
        """The bar as it is now; as it was if it could not be read, so that it is read again when something moves."""
        try:
            return await in_thread(bar.drawn)(self.actor, heard)
        except Exception:  # one look that fails must not end the looking
            logger.exception("the bar could not be read")
            return shown

    async def _hear(self, workspace_id: UUID, news: asyncio.Event) -> None:
        async def known() -> Actor:
            return self.actor  # whoever follows the run looks the rights up again, and ends this too

        async for _ in follow_workspace(workspace_id, recheck=known):
            news.set()

    @property
    def push(self) -> Callable[..., tuple[str, int]]:
        query = QueryDict(self.scope.get("query_string", b""))
        view, (q, _) = query.get("view", ""), forms.place(query)
        return partial(looking.push, q=q) if q and not view else pushing.PUSHES.get(view, pushing.push)

    async def recheck(self) -> Actor:
        self.actor = await super().recheck()
        return self.actor


class RunsPage(_Socket):
    """`ws/pages/runs`: the top bar's parts and, whenever something moved, a mark that makes the list of runs fetch itself again."""

    capability = "runs.view"

    async def speak(self) -> None:
        actor = await self.recheck()
        await self.send(await in_thread(bar.drawn)(actor) or STILL_HERE)
        news: asyncio.Queue[frozenset[UUID] | Refusal] = asyncio.Queue()
        hearing = [asyncio.create_task(self._hear(workspace_id, news)) for workspace_id in actor.somewhere(self.capability)]
        try:
            while True:
                moved = await news.get()
                if isinstance(moved, Refusal):
                    raise moved
                await self.send(pushing.RUNS_MOVED + await in_thread(bar.drawn)(actor) if moved else STILL_HERE)
                await asyncio.sleep(LIST_GAP)
        finally:
            for task in hearing:
                task.cancel()

    async def _hear(self, workspace_id: UUID, news: asyncio.Queue[frozenset[UUID] | Refusal]) -> None:
        try:
            async for moved in follow_workspace(workspace_id, recheck=self.recheck, gap=LIST_GAP):
                news.put_nowait(moved)
        except Refusal as refusal:
            news.put_nowait(refusal)

    async def recheck(self) -> Actor:
        return await in_thread(self._who)()

    def _who(self) -> Actor:
        actor = sockets.actor_of(self.scope)
        rules.require(actor, self.capability)
        return actor


class RunStream(_Reader, AsyncHttpConsumer):
    """`GET /api/v1/runs/<id>/stream`: server-sent events. `id` is the seq, so that `Last-Event-ID` resumes; comments are heartbeats;
    `event: end` when the run has ended, and then 204, which stops a browser's EventSource from coming back."""

    capability = "runs.events"
    task: asyncio.Task[None] | None = None
    started = False

    async def http_request(self, message: dict[str, Any]) -> None:
        if self.task is None:  # as a task, so that a reader who leaves is heard
            self.task = asyncio.create_task(self._serve())

    async def http_disconnect(self, message: dict[str, Any]) -> None:
        if self.task is not None:
            self.task.cancel()
        raise StopConsumer

    async def _serve(self) -> None:
        try:
            await self.serve()
        except Refusal as refusal:
            await self._refuse(refusal)
        except Exception:
            logger.exception("a stream broke")
            await (self.send_body(b"") if self.started else self.send_response(500, b""))

    async def serve(self) -> None:
        if self.scope["method"] != "GET":
            raise MethodNotAllowed("A stream is read with GET.")
        after, resumed = self.resume()
        actor, run = await self.enter()
        sent = 0
        async with aclosing(follow(run.pk, after=after, actor=actor, recheck=self.recheck)) as batches:
            async for batch in batches:
                await self.start()
                sent += await self.tell(batch)
                if sent > MOST:
                    return await self.send_body(b"")
        if resumed and not self.started:
            return await self.send_response(204, b"", headers=HEADERS)
        await self.start()
        return await self.send_body(b"event: end\ndata: %b\n\n" % orjson.dumps(await self.ending(run.pk)))

    def resume(self) -> tuple[int, bool]:
        """The cursor, and whether a reader comes back with it."""
        last = next((value for name, value in self.scope["headers"] if name.lower() == b"last-event-id"), b"").decode("latin-1")
        return (stream.cursor(last), True) if last else (self.cursor(), False)

    async def start(self) -> None:
        if not self.started:
            self.started = True
            await self.send_headers(headers=[(b"content-type", b"text/event-stream; charset=utf-8"), *HEADERS])
            await self.send_body(b"retry: 1000\n\n", more_body=True)

    async def tell(self, batch: Batch) -> int:
        chunk = batch.sse or b": still here\n\n"
        await self.send_body(chunk, more_body=True)
        return len(chunk)

    async def _refuse(self, refusal: Refusal) -> None:
        body = problems.as_json(refusal)
        if self.started:
            return await self.send_body(b"event: problem\ndata: %b\n\n" % body)
        headers = [(b"content-type", problems.MEDIA_TYPE.encode()), *HEADERS]
        if isinstance(refusal, MethodNotAllowed):
            headers.append((b"allow", b"GET"))
        return await self.send_response(refusal.status, body, headers=headers)


# a proxy that kept or gathered what it is given would hold up the stream
HEADERS = [(b"cache-control", b"no-store, no-transform"), (b"x-accel-buffering", b"no"), (b"vary", b"Cookie, Authorization")]
