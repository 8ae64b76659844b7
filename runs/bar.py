"""What the top bar shows of other rooms. They register it here; the streams of a run's pages keep it up to date."""

import threading
import time
from collections.abc import Callable, Hashable, Iterable
from uuid import UUID

from access.rules import Actor

Draw = Callable[[Actor], str]  # HTML whose root replaces what has its id
MOST_KEPT = 1000  # people whose bar is kept in memory

_parts: dict[str, Draw] = {}
_drawn: dict[Hashable, tuple[float, str]] = {}  # when its drawing began, and the bar
_drawing = threading.Lock()


def register(capability: str, draw: Draw) -> None:
    """Draw this for whoever has the capability in some workspace, again whenever something moved in one of those."""
    _parts[capability] = draw


def drawn(actor: Actor, since: float | None = None) -> str:
    """The bar as it is now. `since`, of `time.monotonic`: one that was drawn after that moment will do.

    All that a person has open hears of the same news at the same time. So each says when it heard, and the first draws for all of them.
    """
    key = (actor.standing, tuple(sorted(map(str, actor.grants))))
    with _drawing:
        began, html = _drawn.get(key, (0.0, ""))
        if since is not None and began > since:
            return html
        began = time.monotonic()
        html = "".join(draw(actor) for capability, draw in _parts.items() if actor.somewhere(capability))
        if len(_drawn) >= MOST_KEPT:
            _drawn.clear()
        _drawn[key] = began, html
    return html


def workspaces(actor: Actor) -> Iterable[UUID]:
    """Where something may move that this person's bar shows."""
    return {workspace for capability in _parts for workspace in actor.somewhere(capability)}
