"""The only writer of the audit trail. What it tells is a closed list: `VERBS`."""

from typing import Any
from uuid import UUID

from access.models import AuditEntry
from access.rules import Actor
from access.verbs import GROUPS, VERBS, Verb

__all__ = ["GROUPS", "VERBS", "Verb", "record"]


def record(
    actor: Actor, verb: str, *, workspace_id: UUID | None = None, subject: tuple[str, object] | None = None, **data: Any
) -> AuditEntry:
    """Write down that `actor` did `verb` to `subject` (kind, id). `data` holds ids, numbers and words of ours only.

    A verb that is new gets its words in access/verbs.py. Nothing is waited for: see access/sealing.py for how entries become a chain.
    """
    kind, pk = subject or ("", "")
    if workspace_id is not None and (glass := actor.glass.get(workspace_id)) is not None:
        data["glass"] = str(glass.id)  # done while the actor held rights that it took by break-glass
    return AuditEntry.objects.create(
        workspace_id=workspace_id, actor_kind=actor.kind, actor_id=actor.id, verb=verb, subject_kind=kind, subject_id=str(pk), data=data
    )
