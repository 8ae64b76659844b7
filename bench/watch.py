"""Many viewers of one run in one process, for `bench.viewers`: `python -m bench.watch socket|stream ADDRESS HEAD COUNT`, the key in KEY.

Says `ready` when each of them has the event HEAD. When the log has ended for all, tells in one line of JSON what came after HEAD:
`lines` in all, `distinct` ones, `in_order` for each viewer, how often one was `cut` off, and milliseconds from each event's own time to
each sight of it.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

import orjson
import websockets

AT_ONCE = 50  # connections that are opened together
PATIENCE = 60.0  # seconds to open one


@dataclass
class Crowd:
    """What all viewers share."""

    address: str
    head: int
    headers: dict[str, str]
    doors: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    bodies: dict[int, bytes] = field(default_factory=dict)  # each event once, to know its time afterwards


@dataclass
class Viewer:
    """Somebody who follows a run, and comes back with their cursor when cut off."""

    crowd: Crowd
    seen: list[tuple[int, float]] = field(default_factory=list)  # seq and when
    there: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False
    cut: int = 0

    async def watch(self, kind: str) -> None:
        cursor = 0
        while not self.ended:
            with suppress(websockets.ConnectionClosedError, ConnectionError):  # to be cut is no news: there is a cursor to come back with
                async with aclosing(READERS[kind](self.crowd, cursor)) as lines:
                    async for line in lines:
                        self.take(line)
            cursor = self.seen[-1][0] if self.seen else 0
            self.cut += not self.ended

    def take(self, line: bytes) -> None:
        now = time.time()
        if line.startswith(b'{"end"'):
            self.ended = True
            return
        seq = int(line[len(b'{"seq":') : line.index(b",")])  # and no more than that: parsing would be measured too
        self.seen.append((seq, now))
        self.crowd.bodies.setdefault(seq, line)
        if seq >= self.crowd.head:
            self.there.set()


async def by_socket(crowd: Crowd, after: int) -> AsyncIterator[bytes]:
    address = crowd.address.replace("http", "ws", 1)
    options = {"additional_headers": crowd.headers, "compression": None, "ping_interval": None, "open_timeout": PATIENCE}
    async with crowd.doors:
        socket = await websockets.connect(f"{address}?after={after}", **options)
    async with socket:
        async for text in socket:
            yield text.encode()


async def by_stream(crowd: Crowd, after: int) -> AsyncIterator[bytes]:
    """HTTP/1.0, so that the body comes as it is."""
    parts = urlsplit(crowd.address)
    async with crowd.doors:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(parts.hostname, parts.port), PATIENCE)
        headers = "".join(f"{name}: {value}\r\n" for name, value in {"Host": parts.netloc, **crowd.headers}.items())
        writer.write(f"GET {parts.path}?after={after} HTTP/1.0\r\n{headers}\r\n".encode())
        status = await reader.readline()
        assert b" 200 " in status, status
    async for line in reader:
        if line.startswith(b"data: "):
            yield line[len(b"data: ") :]
    writer.close()


READERS = {"socket": by_socket, "stream": by_stream}


async def main(kind: str, address: str, head: int, count: int) -> None:
    key = os.environ.get("KEY")
    crowd = Crowd(address, head, {"Authorization": f"Bearer {key}"} if key else {})
    viewers = [Viewer(crowd) for _ in range(count)]
    async with asyncio.TaskGroup() as group:
        for viewer in viewers:
            group.create_task(viewer.watch(kind))
        for viewer in viewers:
            await viewer.there.wait()
        print("ready", flush=True)
    print(orjson.dumps(told(crowd, viewers)).decode(), flush=True)


def told(crowd: Crowd, viewers: list[Viewer]) -> dict[str, object]:
    after = [[(seq, when) for seq, when in viewer.seen if seq > crowd.head] for viewer in viewers]
    seqs = [[seq for seq, _ in seen] for seen in after]
    at = {seq: time_of(line) for seq, line in crowd.bodies.items()}
    return {
        "lines": sum(map(len, seqs)),
        "distinct": sum(len(set(each)) for each in seqs),
        "in_order": all(each == sorted(each) for each in seqs),
        "cut": sum(viewer.cut for viewer in viewers),
        "ms": [(when - at[seq]) * 1000 for seen in after for seq, when in seen],
    }


def time_of(line: bytes) -> float:
    return datetime.fromisoformat(orjson.loads(line)["body"]["at"]).timestamp()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
