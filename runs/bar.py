"""What the top bar shows of other rooms. They register it here; the streams of a run's pages keep it up to date."""

from collections.abc import Callable, Iterable
from uuid import UUID

from access.rules import Actor

Draw = Callable[[Actor], str]  # HTML whose root replaces what has its id

_parts: dict[str, Draw] = {}


def register(capability: str, draw: Draw) -> None:
    """Draw this for whoever has the capability in some workspace, again whenever something moved in one of those."""
    _parts[capability] = draw


def drawn(actor: Actor) -> str:
    return "".join(draw(actor) for capability, draw in _parts.items() if actor.workspaces(capability))


def workspaces(actor: Actor) -> Iterable[UUID]:
    """Where something may move that this person's bar shows."""
    return {workspace for capability in _parts for workspace in actor.workspaces(capability)}
