"""Event stream, socket and long-poll give the same events in the same order, none lost and none twice, whatever is cut or restarted."""

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import websockets

from tests.runs.conftest import begin
from tests.runs.serving import House, headers
from tests.waiting import until

pytestmark = [pytest.mark.both_databases, pytest.mark.long]
PATIENCE = 40.0  # seconds, for a slow machine; something is said on every open stream each fifteen, and to each long poll within thirty
NOTE = {"type": "note.posted", "texts": {"note": "Looked at it."}}


@pytest.fixture
def shaken(tmp_path: Path) -> Iterator[House]:
    """A house of the test's own, to be shaken."""
    with House(tmp_path) as house:
        yield house


# readers: each yields seqs as they come over the wire, from a cursor, until it is cut; `Ended` when the server says that is all -----


class Ended(Exception):
    """The server said that nothing follows."""


async def by_stream(house: House, run: str, after: int, who: dict[str, str]) -> AsyncIterator[int]:
    resume = {"Last-Event-ID": str(after)} if after else {}
    address = f"{house.base_url}/api/v1/runs/{run}/stream"
    async with (
        httpx.AsyncClient(timeout=PATIENCE) as client,
        client.stream("GET", address, headers=headers(who) | resume) as answer,
    ):
        if answer.status_code == 204:
            raise Ended
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
        seq, event = None, ""
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "id":
                seq = int(value)
            elif name == "event":
                event = value
            elif name == "data" and event == "end":
                raise Ended
            elif name == "data":
                assert orjson.loads(value)["seq"] == seq
                yield seq


async def by_socket(house: House, run: str, after: int, who: dict[str, str]) -> AsyncIterator[int]:
    async with websockets.connect(
        f"{house.socket_url}/ws/runs/{run}?after={after}", additional_headers=headers(who), open_timeout=PATIENCE
    ) as socket:
        async for text in socket:
            line = orjson.loads(text)
            if line.get("end"):
                await socket.wait_closed()
                assert socket.close_code == 1000
                raise Ended
            yield line["seq"]


async def by_poll(house: House, run: str, after: int, who: dict[str, str]) -> AsyncIterator[int]:
    async with httpx.AsyncClient(timeout=PATIENCE, headers=headers(who)) as client:
        while True:
            answer = await client.get(f"{house.base_url}/api/v1/runs/{run}/events", params={"after": after, "wait": 30, "limit": 100})
            answer.raise_for_status()
            page = answer.json()
            for line in page["events"]:
                yield line["seq"]
            after = page["cursor"]
            if page["ended"]:
                raise Ended


READERS = {"stream": by_stream, "socket": by_socket, "poll": by_poll}
CUT = (httpx.HTTPError, websockets.WebSocketException, OSError, TimeoutError)


async def follow(kind: str, house: House, run: str, who: dict[str, str], cuts: random.Random | None = None) -> list[int]:
    """Everything a client got on the wire until the end, over as many connections as it took. It comes back with its last seq only."""
    got: list[int] = []
    while True:
        left = cuts.randint(20, 400) if cuts else None
        lines = READERS[kind](house, run, got[-1] if got else 0, who)
        try:
            async for seq in lines:
                got.append(seq)
                left = left - 1 if left is not None else None
                if left == 0:
                    break
            await asyncio.sleep(0.05)
        except Ended:
            return got
        except CUT:
            await asyncio.sleep(0.2)
        finally:
            await lines.aclose()


async def write(house: House, run: str, who: dict[str, str], ids: list[str], *, pause: float = 0.0) -> None:
    """Append, a few at a time, each batch until it is acknowledged."""
    async with httpx.AsyncClient(timeout=20, headers=headers(who)) as client:
        for n in range(0, len(ids), 10):
            batch = [{"id": one, **NOTE} for one in ids[n : n + 10]]
            while True:
                try:
                    answer = await client.post(f"{house.base_url}/api/v1/runs/{run}/events", json=batch)
                    if answer.status_code in (200, 201):
                        break
                    assert answer.status_code >= 500, answer.text
                except httpx.HTTPError:
                    pass
                await asyncio.sleep(0.1)
            await asyncio.sleep(pause)


async def finish(house: House, run: str, who: dict[str, str]) -> None:
    async with httpx.AsyncClient(timeout=20, headers=headers(who)) as client:
        answer = await client.post(f"{house.base_url}/api/v1/runs/{run}/ending", json={"outcome": "failed"})
        assert answer.status_code == 200


@pytest.mark.timeout(400)
def test_every_reader_gets_every_event_once_and_in_order_whatever_is_cut(shaken):
    who = shaken.cast["ours"]["agent"]
    each = 500 if shaken.database == "postgres" else 150  # events of a writer: 2,000 in all where it counts, and fewer where writers queue
    with shaken.client(who) as client:
        run = begin(client)["id"]

    async def shake() -> None:
        for part in ("valkey", "web", "valkey", "web"):
            await asyncio.sleep(2)
            await asyncio.to_thread(lambda: shaken.wait_for_new(part, shaken.kill(part)))  # noqa: B023  awaited in this round

    async def all_of_it() -> list[list[int]]:
        readers = [asyncio.create_task(follow(kind, shaken, run, who, random.Random(f"{kind}{n}"))) for kind in READERS for n in range(5)]
        writers = [write(shaken, run, who, [f"w{n}-{i}" for i in range(each)], pause=5 / each) for n in range(4)]
        await asyncio.gather(shake(), *writers)
        await finish(shaken, run, who)
        return await asyncio.gather(*readers)

    everything = list(range(1, 2 + 4 * each + 1 + 1))
    for got in asyncio.run(all_of_it()):
        assert got == everything


@pytest.mark.parametrize("kind", READERS)
def test_a_reader_is_told_at_once_while_wake_ups_are_heard(house, agent, start, kind):
    run, who = start()["id"], house.cast["ours"]["agent"]
    delays: list[float] = []

    async def scene() -> None:
        sent: dict[int, float] = {}
        lines = READERS[kind](house, run, 2, who)

        async def speak() -> None:
            async with httpx.AsyncClient(timeout=PATIENCE, headers=headers(who)) as client:
                await asyncio.sleep(1)
                for n in range(5):
                    sent[3 + n] = time.monotonic()
                    await client.post(f"{house.base_url}/api/v1/runs/{run}/events", json={"id": str(n), **NOTE})
                    await asyncio.sleep(1)  # so that all five would not be found by one of the looks that come every five seconds

        speaker = asyncio.create_task(speak())
        async for seq in lines:
            delays.append(time.monotonic() - sent[seq])
            if seq == 7:
                break
        await lines.aclose()
        await speaker

    asyncio.run(scene())
    assert sorted(delays)[2] < 1.5, delays  # found by the looks alone it would be two and more


def test_while_valkey_does_not_answer_readers_are_told_within_seconds_all_the_same(shaken):
    who = shaken.cast["ours"]["agent"]
    with shaken.client(who) as client:
        run = begin(client)["id"]

        async def scene() -> None:
            readers = [asyncio.create_task(follow(kind, shaken, run, who)) for kind in READERS]
            await asyncio.sleep(1)
            shaken.kill("valkey", signal.SIGSTOP)
            answer = await asyncio.to_thread(client.post, f"runs/{run}/events", json={"id": "a", **NOTE})
            assert answer.status_code == 201
            await finish(shaken, run, who)
            began = time.monotonic()
            for got in await asyncio.gather(*readers):
                assert got == [1, 2, 3, 4]
            assert time.monotonic() - began < 25  # two looks, on a slow machine; a long poll that saw nothing would be over after thirty

        try:
            asyncio.run(scene())
        finally:
            shaken.kill("valkey", signal.SIGCONT)


def test_an_event_stream_ends_by_saying_so_and_then_by_204(house, agent, start):
    run = start()["id"]
    agent.post(f"runs/{run}/ending", json={"outcome": "failed"})
    answer = agent.get(f"runs/{run}/stream")
    blocks = answer.text.split("\n\n")
    assert answer.headers["cache-control"] == "no-store, no-transform" and answer.headers["x-content-type-options"] == "nosniff"
    assert [block.partition("\n")[0] for block in blocks if block.startswith("id")] == ["id: 1", "id: 2", "id: 3"]
    assert blocks[-2].startswith("event: end\ndata: ") and "id:" not in blocks[-2]
    assert orjson.loads(blocks[-2].partition("data: ")[2])["state"] == "failed"
    again = agent.get(f"runs/{run}/stream", headers={"Last-Event-ID": "3"})
    assert again.status_code == 204 and again.content == b""
    assert "id: 3" in agent.get(f"runs/{run}/stream", headers={"Last-Event-ID": "2"}).text


@pytest.mark.parametrize(
    ("path", "extra", "status"),
    [
        ("stream?after=x", {}, 422),
        ("stream", {"Last-Event-ID": "-1"}, 422),
        ("stream?after=7", {}, 416),
        ("stream", {"Last-Event-ID": "3"}, 416),
    ],
)
def test_a_stream_refuses_a_cursor_that_is_none(agent, start, path, extra, status):
    answer = agent.get(f"runs/{start()['id']}/{path}", headers=extra)
    assert answer.status_code == status and answer.headers["content-type"] == "application/problem+json"
    if status == 416:
        assert answer.json()["head"] == 2


def test_a_stream_knows_only_get(agent, start):
    for method in ("POST", "PUT", "DELETE", "HEAD"):
        answer = agent.request(method, f"runs/{start()['id']}/stream")
        assert answer.status_code == 405 and answer.headers["allow"] == "GET"


def listen(house: House, path: str, who: dict[str, str] | None, **more: Any) -> tuple[list[Any], int | None]:
    """Everything a socket says until it closes, and the code it closes with."""

    async def hear() -> tuple[list[Any], int | None]:
        async with websockets.connect(f"{house.socket_url}{path}", additional_headers=headers(who), **more) as socket:
            return await all_said(socket), socket.close_code

    return asyncio.run(hear())


async def all_said(socket: websockets.ClientConnection) -> list[Any]:
    said = []
    with suppress(websockets.ConnectionClosed):
        while True:
            said.append(orjson.loads(await socket.recv()))
    return said


def test_a_socket_says_what_is_wrong_and_closes_with_its_code(house, start):
    run, ours, theirs = start()["id"], house.cast["ours"], house.cast["theirs"]
    for path, who, code in [
        (f"/ws/runs/{run}?after=x", ours["agent"], 4422),
        (f"/ws/runs/{run}?after=9", ours["agent"], 4416),
        (f"/ws/runs/{run}", {"token": "hr_wrong"}, 4401),
        (f"/ws/runs/{run}", theirs["agent"], 4404),
        (f"/ws/runs/{run}", ours["colleague"], 4404),
        ("/ws/runs/01890000-0000-7000-8000-000000000000", ours["agent"], 4404),
        ("/ws/runs/nonsense", ours["agent"], 4404),
    ]:
        said, closed = listen(house, path, who)
        assert closed == code and said[-1]["problem"]["status"] == code - 4000, path
    assert listen(house, f"/ws/runs/{run}?after=9", ours["agent"])[0][0]["problem"]["head"] == 2


def test_a_socket_with_a_cookie_opens_from_our_own_pages_only(house, agent, start):
    run, riley = start()["id"], house.cast["ours"]["riley"]
    agent.post(f"runs/{run}/ending", json={"outcome": "failed"})
    said, closed = listen(house, f"/ws/runs/{run}", riley, origin=house.base_url)
    assert [line.get("seq") for line in said] == [1, 2, 3, 3] and closed == 1000
    for origin in ("https://evil.example", "null", None):
        with pytest.raises(websockets.InvalidStatus):
            listen(house, f"/ws/runs/{run}", riley, origin=origin)


def test_a_right_that_is_withdrawn_closes_the_socket(house, agent, start):
    """At once if a role is taken, at the next event if the person or key is seen to have changed with it, else within 30 s."""
    at_once, in_time = ("revoked", "deactivated", "expired"), ("signed_out", "role")
    run, quiet = start()["id"], start()["id"]
    who = house.made(*at_once, *in_time)

    async def watch(how: str) -> tuple[str, int | None, list[int], float]:
        address = f"{house.socket_url}/ws/runs/{run if how in at_once else quiet}?after=1"
        origin = {} if "token" in who[how] else {"origin": house.base_url}
        async with websockets.connect(address, additional_headers=headers(who[how]), open_timeout=30, **origin) as socket:
            first = orjson.loads(await socket.recv())
            ready[how].set()
            said = await all_said(socket)
            return how, socket.close_code, [first["seq"], *(line["seq"] for line in said if "seq" in line)], time.monotonic()

    async def scene() -> None:
        watching = [asyncio.create_task(watch(how)) for how in who]
        await asyncio.gather(*(each.wait() for each in ready.values()))
        await asyncio.to_thread(house.withdraw, who)
        began = time.monotonic()
        await asyncio.to_thread(agent.post, f"runs/{run}/events", json={"id": "a", **NOTE})
        for how, code, seqs, ended in await asyncio.gather(*watching):
            assert code == (4403 if how == "role" else 4401), how
            assert seqs == [2], how  # not one event more
            assert ended - began < (8 if how == "role" else 30), how

    ready = {how: asyncio.Event() for how in who}
    asyncio.run(scene())


def test_ending_a_session_on_the_account_page_closes_its_socket_and_its_stream_within_a_second(house, start):
    run = start()["id"]
    with closing(signed_in(house, "morgan")) as here, closing(signed_in(house, "morgan")) as there:
        cookie = {"cookie": f"handrail_session={there.cookies['handrail_session']}"}

        async def by_socket(ready: asyncio.Event) -> float:
            address = f"{house.socket_url}/ws/runs/{run}?after=1"
            async with websockets.connect(address, additional_headers=headers(cookie), origin=house.base_url) as socket:
                await socket.recv()
                ready.set()
                await all_said(socket)
                assert socket.close_code == 4401
                return time.monotonic()

        async def by_stream(ready: asyncio.Event) -> float:
            address = f"{house.base_url}/api/v1/runs/{run}/stream"
            async with httpx.AsyncClient(timeout=30) as client, client.stream("GET", address, headers=headers(cookie)) as answer:
                async for line in answer.aiter_lines():
                    ready.set() if line.startswith("data") else None
                return time.monotonic()

        async def scene() -> list[float]:
            ready = asyncio.Event(), asyncio.Event()
            open_now = asyncio.create_task(by_socket(ready[0])), asyncio.create_task(by_stream(ready[1]))
            await asyncio.gather(*(each.wait() for each in ready))
            answer = await asyncio.to_thread(posted, here, "/account/sessions/end-others")
            ended = time.monotonic()
            assert answer.headers["location"] == "/account"
            return [await each - ended for each in open_now]

        assert all(seconds < 1 for seconds in asyncio.run(scene()))
        assert there.get("/account").headers["location"].startswith("/sign-in") and here.get("/account").status_code == 200


def signed_in(house: House, name: str) -> httpx.Client:
    client = httpx.Client(base_url=house.base_url, timeout=PATIENCE)
    assert posted(client, "/sign-in", email=f"{name}@ours.example", password="a long pass phrase").status_code == 302
    return client


def posted(client: httpx.Client, path: str, **data: str) -> httpx.Response:
    client.get("/sign-in")
    return client.post(
        path, data=data | {"csrfmiddlewaretoken": client.cookies["handrail_csrf"]}, headers={"Referer": str(client.base_url)}
    )


def test_waiting_readers_hold_no_database_connection(house, start):
    """More readers wait than there are connections, and the API goes on answering."""
    run, who = start()["id"], house.cast["ours"]["agent"]

    async def scene() -> None:
        async def wait(kind: str) -> None:
            async for _ in READERS[kind](house, run, 2, who):
                raise AssertionError("nothing was written")

        waiting = [asyncio.create_task(wait(kind)) for kind in READERS for _ in range(12)]
        await asyncio.sleep(3)  # for all of them to have read what is there; on a busy machine some read still
        few = partial(until, lambda: house.open_databases() < len(waiting) / 2, within=30, what="only those open that the pool keeps")
        await asyncio.to_thread(few)
        async with httpx.AsyncClient(headers=headers(who)) as client:
            answer = await client.get(f"{house.base_url}/api/v1/runs/{run}", timeout=30)
            assert answer.status_code == 200
        for task in waiting:
            assert not task.done()
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(scene())


def test_a_run_page_is_sent_what_changed_until_the_run_ends(house, agent, start):
    run, morgan = start()["id"], house.cast["ours"]["morgan"]

    async def scene() -> tuple[list[str], int | None]:
        address = f"{house.socket_url}/ws/pages/runs/{run}?after=2"
        async with websockets.connect(address, additional_headers=headers(morgan), origin=house.base_url) as socket:
            said = [await of_the_run(socket)]
            await asyncio.to_thread(agent.post, f"runs/{run}/events", json={"id": "a", **NOTE})
            said.append(await of_the_run(socket))
            await asyncio.to_thread(agent.post, f"runs/{run}/ending", json={"outcome": "failed"})
            with suppress(websockets.ConnectionClosed):
                while True:
                    said.append(await of_the_run(socket))
            return said, socket.close_code

    said, code = asyncio.run(scene())
    assert code == 1000
    assert said[0] == "<!-- still here -->"
    assert 'data-seq="3"' in said[1] and "Looked at it." in said[1] and "data-live-end" not in said[1]
    assert 'data-seq="4"' in said[-1] and "data-live-end" in said[-1]


async def of_the_run(socket: websockets.ClientConnection) -> str:
    """The next message that is not only about what the top bar counts."""
    while 'id="inbox-count"' in (said := str(await socket.recv())):
        pass
    return said
