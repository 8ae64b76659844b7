"""The inbox's own stream: it says what changed for this person, and ends when their right does."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import orjson
import pytest
from asgiref.testing import ApplicationCommunicator
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.test import Client

from access.models import Membership, User
from access.rules import person
from approvals import decisions
from config.asgi import application
from runs.hub import in_thread
from tests.approvals.mailing import Proposed, propose_mail

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
WITHIN = 10.0  # seconds


class Socket(WebsocketCommunicator):
    """Channels' own keeps connections open, for the sake of databases in memory; these are files and servers."""

    send_input = ApplicationCommunicator.send_input
    receive_output = ApplicationCommunicator.receive_output


def cookie(user: User) -> bytes:
    client = Client()
    client.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}".encode()


def inbox(user: User | None) -> AbstractAsyncContextManager[WebsocketCommunicator]:
    return stream_of(user, "/ws/pages/inbox")


@asynccontextmanager
async def stream_of(user: User | None, address: str) -> Iterator[WebsocketCommunicator]:
    headers = [(b"host", b"handrail.test"), (b"origin", b"https://handrail.test")]
    headers += [(b"cookie", await in_thread(cookie)(user))] if user else []
    socket = Socket(application, address, headers=headers)
    connected, _ = await socket.connect(WITHIN)
    assert connected
    try:
        yield socket
    finally:
        await socket.disconnect()
        # what was being drawn goes on in its thread, and gives its connection back before the database is taken away
        await asyncio.get_running_loop().shutdown_default_executor()


async def opened(socket: WebsocketCommunicator, proposed: Proposed | None, state: str = "") -> str:
    """Say what is open, and hear the first drawing."""
    await socket.send_to(text_data=orjson.dumps({"open": str(proposed.action.pk) if proposed else None, "state": state}).decode())
    return await socket.receive_from(WITHIN)


async def hear(socket: WebsocketCommunicator, words: str) -> str:
    """The next message that has these words in it."""
    for _ in range(20):
        message = await socket.receive_from(WITHIN)
        if words in message:
            return message
    raise AssertionError(f"nothing said {words}")


async def ended(socket: WebsocketCommunicator) -> int:
    """The code with which the stream is closed, whatever was said before."""
    for _ in range(20):
        message = await socket.receive_output(WITHIN)
        if message["type"] == "websocket.close":
            return message["code"]
    raise AssertionError("it was not closed")


@in_thread
def propose(cast, **changes) -> Proposed:
    return propose_mail(cast, **changes)


@in_thread
def decide(proposed, who, verdict="approved", reason=""):
    decisions.decide(proposed.action, reviewer=person(who.pk), verdict=verdict, digest=proposed.action.digest, reason=reason)


async def test_a_new_action_comes_into_the_queue_by_itself(cast):
    async with inbox(cast.riley) as socket:
        assert "Nothing." in await opened(socket, None)
        proposed = await propose(cast)
        message = await hear(socket, f'id="row-{proposed.action.pk}"')
        assert '<section hx-swap-oob="morph" class="queue"' in message and 'data-count="1"' in message


async def test_an_open_action_that_somebody_else_decides_is_shown_as_decided_in_its_place(cast):
    proposed, other = await propose(cast), await propose(cast, name="Other")
    async with inbox(cast.riley) as socket:
        await opened(socket, proposed)
        await decide(proposed, cast.sam, "rejected", "Not yet.")
        message = await hear(socket, "Sam rejected this.")
        assert f'id="decide-{proposed.action.pk}" data-over' in message
        assert f'id="next-{proposed.action.pk}" data-next="row-{other.action.pk}"' in message
        rows = message.index(f'id="row-{proposed.action.pk}"'), message.index(f'id="row-{other.action.pk}"')
        assert rows[0] < rows[1], "the open row keeps its place"


async def test_an_answer_that_was_drawn_before_what_was_pushed_is_made_good(cast):
    proposed = await propose(cast)
    async with inbox(cast.riley) as socket:
        await opened(socket, proposed)
        await decide(proposed, cast.sam, "rejected", "Not yet.")
        await hear(socket, "Sam rejected this.")
        assert "Sam rejected this." in await opened(socket, proposed, "an older state")


async def test_what_comes_keeps_to_the_filter_of_the_page_and_to_its_length(cast):
    held = await propose(cast, name="Held")
    await in_thread(decisions.claim)(held.action, by=await in_thread(person)(cast.sam.pk))
    async with stream_of(cast.riley, "/ws/pages/inbox?view=mine&q=reply") as socket:
        first = await opened(socket, None)
        assert str(held.action.pk) not in first and "held by nobody else" in first
        free = await propose(cast, name="Free")
        message = await hear(socket, f'id="row-{free.action.pk}"')
        assert str(held.action.pk) not in message and f'href="/actions/{free.action.pk}?view=mine&amp;q=reply"' in message


async def test_what_a_reader_missed_is_sent_once_more_when_the_reader_says_what_is_drawn(cast):
    proposed = await propose(cast)
    async with inbox(cast.riley) as socket:
        before = drawn(await opened(socket, proposed))
        await decide(proposed, cast.sam, "rejected", "Not yet.")
        now = drawn(await last(socket))
        assert before != now
        await say(socket, proposed, before)
        assert drawn(await last(socket)) == now
        await say(socket, proposed, now)
        assert not any("data-drawn" in message for message in await heard(socket)), "what a reader has is not sent again"


async def last(socket: WebsocketCommunicator) -> str:
    """The open action as it was drawn last before a pause; a message of the queue alone says nothing of it."""
    first = await hear(socket, "data-drawn")
    return [first, *(later for later in await heard(socket) if "data-drawn" in later)][-1]


async def heard(socket: WebsocketCommunicator) -> list[str]:
    """What comes until nothing has come for a second; it may only say that the stream is there."""
    messages = []
    while not await socket.receive_nothing(1):
        messages.append(await socket.receive_from(1))
    return messages


def drawn(message: str) -> str:
    return re.search(r'data-drawn="([^"]+)"', message)[1]


async def say(socket: WebsocketCommunicator, proposed: Proposed, state: str) -> None:
    said = {"open": str(proposed.action.pk), "state": state, "again": True}
    await socket.send_to(text_data=orjson.dumps(said).decode())


async def test_where_the_run_is_moves_after_the_decision(cast):
    proposed = await propose(cast)
    async with inbox(cast.riley) as socket:
        assert place(await opened(socket, proposed))["Get approval"] == "waiting"
        await decide(proposed, cast.sam, "rejected", "Not yet.")
        while (steps := place(await hear(socket, "Where the run is")))["Get approval"] == "waiting":
            pass  # drawn just before the decision
        assert steps["Get approval"] == "cancelled", "nobody said yes, so it is not in green"
        await in_thread(proposed.walk)()
        while (steps := place(await hear(socket, "Where the run is")))["Send the reply"] != "":
            pass
        assert steps == {"Read the ticket": "done", "Check the account": "done", "Get approval": "cancelled", "Send the reply": ""}


def place(message: str) -> dict[str, str]:
    """What the side column says of each step of the plan."""
    plan = message.partition("Where the run is")[2].partition("</ol>")[0]
    return {re.sub("<[^>]+>", "", step).strip(): shade for shade, step in re.findall(r'<li data-s="(\w*)">(.*?)</li>', plan)}


async def test_a_claim_is_heard_of(cast):
    proposed = await propose(cast)
    async with inbox(cast.riley) as socket:
        await opened(socket, proposed)
        client = Client()
        await in_thread(client.force_login)(cast.sam)
        await in_thread(client.post)(proposed.url("claim"))
        assert "Sam is on it." in await hear(socket, "is on it.")


async def test_a_run_s_page_hears_how_much_waits_in_the_inbox(cast):
    watched = await propose(cast)
    async with stream_of(cast.riley, f"/ws/pages/runs/{watched.run.pk}?after=0") as socket:
        assert ">1<" in await hear(socket, 'id="inbox-count"')
        await propose(cast)
        assert ">2<" in await hear(socket, 'id="inbox-count"')


async def test_nothing_of_another_workspace_is_heard(cast):
    proposed = await propose(cast)
    async with inbox(cast.olga) as socket:
        assert str(proposed.action.pk) not in await opened(socket, proposed)


async def test_nobody_is_told_so_and_the_stream_ends(cast):
    async with inbox(None) as socket:
        assert await ended(socket) == 4401


async def test_a_right_that_was_withdrawn_ends_the_stream_at_the_next_move(cast):
    proposed = await propose(cast)
    async with inbox(cast.riley) as socket:
        await opened(socket, proposed)
        await in_thread(Membership.objects.filter(user=cast.riley).delete)()
        await decide(proposed, cast.sam)
        assert await ended(socket) == 4403


ODD = [" ", "{", "[]", '"x"', '{"open": 7}', '{"open": "../x"}', "x" * 5000, '{"open": null, "state": "' + "y" * 600 + '"}']


@pytest.mark.parametrize("said", ODD)
async def test_odd_words_from_a_reader_change_nothing(cast, said):
    async with inbox(cast.riley) as socket:
        await socket.send_to(text_data=said)
        assert "Nothing." in await opened(socket, None)
