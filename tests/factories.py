"""Makers of what tests start from. Each goes the house's own way, so that nothing here could not have come about."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from django.db import connection, transaction

from access import append_only, keys
from access.models import Agent, User
from access.rules import SYSTEM, Actor, authenticate, person
from runs import log, starting
from runs.lifecycle import State
from runs.log import ENGINE, Text
from runs.models import Event, Run
from runs.vocabulary import Data, NotePosted, ReportPublished, RunCancelled, RunFailed, RunSucceeded
from tests.cast import Cast


def make_run(cast: Cast, *, agent: Agent | None = None, by: Actor | None = None, title: str = "Ticket ZN-4821", **more: Any) -> Run:
    """A run that its agent works on itself, so that it is running at once: #1 run.created, #2 run.started."""
    agent = agent or cast.agent
    return starting.start(agent=agent, owner=agent.owner, by=by or person(agent.owner_id), title=title, agent_version="3.2.1", **more)


def append(run: Run, data: Data, *, actor: Actor = ENGINE, **more: Any) -> int:
    """One event, in a transaction of its own."""
    with log.holding(run.pk) as held:
        return held.append(data, actor=actor, **more)


def note(run: Run, text: str = "A note", *, label: str = "internal", **more: Any) -> int:
    return append(run, NotePosted(), texts={"note": Text(text, label=label)}, **more)


ENDINGS = {State.SUCCEEDED: RunSucceeded(), State.FAILED: RunFailed(reason="error"), State.CANCELLED: RunCancelled(signal=uuid4())}


def end(run: Run, state: State = State.SUCCEEDED) -> int:
    """The run's last event."""
    with log.holding(run.pk) as held:
        held.append(ReportPublished(), actor=ENGINE, texts={"title": Text("Answered")})
        return held.move(state, ENDINGS[state])


def line(run: Run, seq: int) -> Event:
    return Event.objects.get(run_id=run.pk, seq=seq)


def actor(user: User) -> Actor:
    return person(user.pk)


def bearer(token: str) -> Actor:
    """Who sends this key."""
    return authenticate({"headers": [(b"authorization", b"Bearer " + token.encode())]})


def agent_actor(agent: Agent, **more: Any) -> Actor:
    return bearer(keys.make(agent, name="test", by=SYSTEM, **more)[1])


@contextmanager
def behind_its_back() -> Iterator[None]:
    """Change protected tables as somebody could who owns the database: without the triggers that refuse it."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # else “pending trigger events” keep the triggers from being dropped
        append_only.remove()
        yield
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        append_only.install()
