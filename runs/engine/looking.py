"""Finding out, right before an action is proposed, what the people should know who decide on it. It changes nothing outside."""

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any
from uuid import UUID

import rfc8785

from config import clock
from runs import log
from runs.engine import effects
from runs.engine.tools import Call, Looked, OddAnswer, Tool, ToolError
from runs.models import Run

MAX_BYTES, MAX_DEPTH = 256 * 1024, 32  # of what a look gives
MAX_SECONDS = 15.0  # for a look: a proposal waits for it
logger = logging.getLogger(__name__)


def look(
    tool: Tool, arguments: Mapping[str, Any], *, run_id: UUID, step: str, calling: AbstractContextManager[Any] | None = None
) -> Looked | None:
    """What the tool's look finds; None if it has none, or would look outside the run's scope. A failed look stops nothing: it is said.

    It asks the outside, so never inside a transaction. `calling`: what to hold while it is asked, as a lease's deadline.
    """
    if tool.look is None or effects.outside_scope(Run.objects.get(pk=run_id), tool, arguments):
        return None
    call = Call(run_id, step, key="", deadline=min(tool.deadline, MAX_SECONDS), last_check=lambda: None)
    try:
        with calling or nullcontext():
            found = fit(tool.look(call, arguments))
    except ToolError as error:
        found = Looked(trouble=error.said.encode("utf-8", "replace").decode())  # half a surrogate pair can't be kept
    except Exception as error:  # what a look's own code raises is no reason to keep the action from people
        logger.exception("look raised", extra={"run": str(run_id), "step": step})
        found = Looked(trouble=f"The look’s code failed ({type(error).__name__}).")
    return replace(found, at=log.stamp(clock.now()))


def fit(found: Any) -> Looked:
    """What a look gave, if it is of the right kind and can be kept and compared exactly, as RFC 8785 JSON of bounded size and depth.

    OddAnswer if not: a look is somebody's own code, and what it gives must not break what is proposed.
    """
    if not isinstance(found, Looked) or not isinstance(found.facts, dict):
        raise OddAnswer(f"The look gave {type(found).__name__} and not what it found, title by title.")
    texts = [*found.facts, *found.facts.values(), found.paid, found.left, found.trouble, found.at]
    named = found.version is None or (isinstance(found.version, int | str) and not isinstance(found.version, bool))
    if not all(isinstance(text, str) for text in texts) or not named or not isinstance(found.record, Mapping | None):
        raise OddAnswer("The look gave something else than text where it says what it found.")
    try:
        size = len(rfc8785.dumps({"facts": found.facts, "record": _plain(found.record), "version": found.version, "texts": texts}))
    except (rfc8785.CanonicalizationError, ValueError) as error:
        raise OddAnswer(f"What the look gave can’t be kept exactly: {error}") from error
    if size > MAX_BYTES:
        raise OddAnswer(f"The look gave {size:,} bytes; at most {MAX_BYTES:,} are shown.")
    return found


def _plain(value: Any, depth: int = 0) -> Any:
    """The value, if it is nested no deeper than what is drawn of it may be."""
    if depth > MAX_DEPTH:
        raise OddAnswer(f"What the look gave is nested more than {MAX_DEPTH} deep.")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _plain(inner, depth + 1)
    return value
