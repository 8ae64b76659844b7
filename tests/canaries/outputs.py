"""Everything that comes out: each address that there is as each person, streams and sockets, mails, webhooks, commands."""

import asyncio
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from typing import Any

from asgiref.testing import ApplicationCommunicator
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.core.management import CommandError, call_command

from artifacts.models import Artifact
from config import asgi
from config.api import api
from runs.models import Event, Run
from tests import test_who_may as who_may
from tests.canaries.world import Output, World
from tests.factories import make_run
from tests.together import together

ALIKE = {"asked", "held", "fallen write"}  # runs that say no more than others do
PEOPLE = ("nobody", "olga", "riley", "morgan", "otto", "ada", "agent")
ENDS_THE_SESSION = {"sign-out"}


def pages(world: World, things: Mapping[str, Any]) -> None:
    """Each address that answers GET, as each person; and those of each run, action and artifact as those who see most of them."""
    for who in PEOPLE:
        client = world.client(who)
        for address in sorted(_addresses()):
            _get(world, who, client, who_may.filled(address, things))
    for who, address in _of_each(world, things):
        _get(world, who, world.client(who), address)


FIELDS = ["name", "why", "reason", "note", "words", "details", "text", "title", "url", "email", "path", "question", "answer"]


def forms(world: World, things: Mapping[str, Any]) -> None:
    """Each address of a page that takes a form is sent one, with canaries in all fields that people write text into."""
    for method, address, expected, sent in who_may.TABLE:
        if method == "POST" and not address.startswith("api/") and address not in ENDS_THE_SESSION:
            path, may = who_may.filled(address, things), dict(zip(who_may.PEOPLE, expected.split(), strict=True))
            for who in [name for name in ("ada", "riley", "otto") if may[name] == "ok"][:1] or ["ada"]:
                typed = {name: world.garden.line(f"POST {path}", 55 if name in ("name", "to") else 300) for name in FIELDS}
                world.post(who, path, typed | dict(sent.get("data") or {}) | {"why": typed["why"]}, page=True)


def _get(world: World, who: str, client: Any, address: str) -> None:
    if any(out.who == who and out.where.startswith(f"GET {address} ") for out in world.outputs):
        return
    world.keep(f"GET {address}", who, client.get(address, secure=True))


def _addresses() -> set[str]:
    """From the resolver and the API's own description, so that none is left out."""
    plain = {address for address, _ in who_may.addresses() if not address.startswith("api/")} - ENDS_THE_SESSION
    told = api.get_openapi_schema(path_prefix="/api/v1/")["paths"].items()
    return plain | {path.removeprefix("/").replace("{", "<").replace("}", ">") for path, ways in told if "get" in ways}


def _of_each(world: World, things: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is shown of each run, event, artifact and action, by somebody who sees it."""
    addresses = sorted(_addresses())
    for run in (run for name, run in world.runs.items() if name not in ALIKE):
        for address in addresses:
            if re.search(r"<(uuid:)?run_id>", address) and not re.search("seq|artifact_id", address):
                who = "otto" if re.search("undo|forks|recovery", address) else "morgan" if "api" not in address else "agent"
                yield who, "/" + re.sub(r"<(uuid:)?run_id>", str(run.pk), address)
    seen: set[tuple[bool, str]] = set()
    for run_id, seq, type_ in Event.objects.filter(run__in=world.runs.values()).values_list("run_id", "seq", "type"):
        if (
            (outside := run_id == world.runs["outside"].pk),
            type_,
        ) not in seen:  # each type once, as the agent told it and as the engine did
            seen.add((outside, type_))
            yield "morgan", f"/runs/{run_id}/events/{seq}"
    for pk, run_id in Artifact.objects.values_list("pk", "run_id"):
        yield from (("riley", f"/artifacts/{pk}{more}") for more in ("", "/content"))
        yield "morgan", f"/runs/{run_id}/artifacts/{pk}"
    for action in world.actions.values():
        for address in addresses:
            if re.match(r"(api/v1/)?actions/<", address):
                filled = re.sub(r"<(uuid:)?action_id>", str(action.pk), address).replace("<int:index>", "0").replace("<int:page>", "1")
                yield from ((who, f"/{filled}") for who in ("riley", "morgan"))
    for asked in ("q=canary", "q=card"):
        yield from (("otto", f"/{page}?{asked}") for page in ("runs", "inbox", "recovery"))
        yield "morgan", f"/runs/{world.runs['outside'].pk}/events?{asked}"


# streams -------------------------------------------------------------------------------------------------------------------------------


def streams(world: World, things: Mapping[str, Any]) -> None:
    """What each stream and socket says to who opens it, of the run in which most is planted and of one that waits."""

    heads = {who: _headers(world, who) for who in ("riley", "otto", "agent", "olga")}

    async def all_of_them() -> None:
        for kind, address, _ in who_may.STREAMS:
            for who in heads:
                for name in ("outside", "open"):
                    path = who_may.filled(address, things).replace(str(things["outside"].pk), str(world.runs[name].pk))
                    path = path.replace(str(things["run"].pk), str(world.runs[name].pk)).replace(
                        str(things["action"].pk), str(world.actions["open"].pk)
                    )
                    said = await (_by_http if kind == "http" else _by_socket)(path, heads[who])
                    world.outputs.append(Output(f"{kind} {path}", who, said))

    asyncio.run(all_of_them())


def long_polls(world: World) -> None:
    """What somebody gets who waits for the next events, from the one that comes meanwhile."""
    run = Run.objects.get(pk=make_run(world.cast, title="Somebody waits for it").pk)  # which has not ended, as the others have
    text = {"note": {"text": world.garden.line("note while somebody waits, personal", 900), "label": "personal"}}

    def waits(who: str) -> Any:
        return world.client(who).get(f"/api/v1/runs/{run.pk}/events?after={run.seq}&wait=10", secure=True)

    *answers, _ = together([partial(waits, "riley"), partial(waits, "agent"), partial(world.tell, run, "note.posted", {}, text)])
    for who, answer in zip(("riley", "agent"), answers, strict=True):
        assert f'"seq":{run.seq + 1}'.encode() in answer.content, answer.content[:300]
        world.keep(f"GET runs/{run.pk}/events?wait", who, answer)


def _headers(world: World, who: str) -> dict[str, str]:
    if who in world.tokens:
        return {"authorization": f"Bearer {world.tokens[who]}"}
    return who_may.signed_in(getattr(world.cast, who))


QUIET = 0.4  # seconds after which a stream has said what it has to say


async def _by_http(path: str, who: Mapping[str, str]) -> bytes:
    asked = {"type": "http", "method": "GET", "http_version": "1.1", "scheme": "https", "path": path, "query_string": b""}
    stream = ApplicationCommunicator(asgi.application, asked | {"headers": who_may.as_scope(who)})
    await stream.send_input({"type": "http.request"})
    said = b""
    with suppress(TimeoutError):
        while True:
            said += (await stream.receive_output(QUIET if said else 10)).get("body", b" ")
    await who_may.closed(stream)
    return said


async def _by_socket(path: str, who: Mapping[str, str]) -> bytes:
    socket = WebsocketCommunicator(asgi.application, path, headers=who_may.as_scope(dict(who) | {"origin": settings.HANDRAIL_URL}))
    await socket.connect(10)
    await socket.send_to(text_data='{"open": null, "state": ""}')
    said = b""
    with suppress(TimeoutError):
        while True:
            output = await socket.receive_output(QUIET if said else 10)
            said += (output.get("text") or " ").encode()
            if output["type"] == "websocket.close":
                break
    await who_may.closed(socket)
    return said


# commands ------------------------------------------------------------------------------------------------------------------------------


def commands(world: World) -> None:
    for name, run in world.runs.items():
        for words in (["verify", run.ref], ["replay", run.ref]):
            said = io.StringIO()
            with redirect_stdout(said), redirect_stderr(said):
                try:
                    call_command(*words, stdout=said, stderr=said)
                except (CommandError, SystemExit) as error:
                    said.write(str(error))
            world.outputs.append(Output(f"manage.py {words[0]} {name}", "operator", said.getvalue().encode()))
