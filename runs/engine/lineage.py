"""The same, done in a run and in one that was forked from it: asked with the same input, the outside knows it as the same."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid5

from artifacts import vault
from runs.engine import gates
from runs.engine.tools import Tool
from runs.models import JournalEntry, Run


def kept_nonce(run: Run, step: str, tool: Tool, arguments: Mapping[str, Any], files: Sequence[gates.Attached]) -> str:
    """What the identity of a proposed action is made of. A run's own; but in a fork that of the run it was forked from, if that had
    proposed the same here before it was forked: then what is made of it, such as a Message-ID, is the same too."""
    at = run
    while at.forked_from is not None:
        before = JournalEntry.objects.filter(run_id=at.forked_from_id, step=step, action_id__isnull=False, started_at__lte=run.created_at)
        action_id = before.values_list("action_id", flat=True).first()
        if action_id is not None:
            then = gates.current().proposed(action_id)
            complete = tool.prepare(dict(arguments), then.nonce) if tool.prepare else arguments
            if then.tool.name == tool.name and dict(then.arguments) == dict(complete) and same_files(then.attachments, files):
                return then.nonce
        at = at.forked_from
    return str(uuid5(run.pk, step))


def same_files(some: Sequence[gates.Attached], others: Sequence[gates.Attached]) -> bool:
    """Whether two lists of files have the same names and the same bytes, whichever payloads they are in."""
    return len(some) == len(others) and all(
        (one.name, one.media_type, one.payload.size) == (other.name, other.media_type, other.payload.size)
        and (one.payload.pk == other.payload.pk or vault.opened(one.payload) == vault.opened(other.payload) is not None)
        for one, other in zip(some, others, strict=True)
    )
