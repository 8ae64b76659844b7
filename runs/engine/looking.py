"""Finding out, right before an action is proposed, what the people should know who decide on it. It changes nothing outside."""

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any
from uuid import UUID

from config import clock
from runs import log
from runs.engine import effects
from runs.engine.tools import Call, Looked, Tool, ToolError
from runs.models import Run

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
            found = tool.look(call, arguments)
    except ToolError as error:
        found = Looked(trouble=str(error) or type(error).__doc__ or "")
    except Exception as error:  # what a look's own code raises is no reason to keep the action from people
        logger.exception("look raised", extra={"run": str(run_id), "step": step})
        found = Looked(trouble=f"The look raised {type(error).__name__}.")
    return replace(found, at=log.stamp(clock.now()))
