"""The job after a change of the rules of redaction: renditions are made anew, and never show what they did not show before.

It keeps no state: what is left are the payloads that carry an earlier version of the rules. Two at once do no harm.
"""

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from access import audit
from access.models import Workspace
from access.rules import SYSTEM
from artifacts import ruling, vault
from artifacts.common import common
from artifacts.models import Payload
from artifacts.redaction import Policy, Rendition, narrow, redact
from artifacts.rendition import Hidden, segments

BATCH = 50  # payloads that are read, and then changed in one transaction


@dataclass(frozen=True)
class Batch:
    """What one transaction did: how many renditions were looked at, and how many of them changed."""

    looked: int
    changed: int


def left(workspace_id: UUID) -> int:
    """How many renditions are of earlier rules."""
    return _outdated(workspace_id, ruling.rules(workspace_id)[0]).count()


def rerender(workspace: Workspace) -> Generator[Batch, None, None]:
    """All that is left of a workspace, a transaction at a time. Whoever stops early closes it: the audit trail tells how many changed."""
    version, policy = ruling.rules(workspace.pk)
    looked = changed = 0
    try:
        while rows := list(_outdated(workspace.pk, version).select_related("key").order_by("rules", "pk")[:BATCH]):
            done = vault.rerendered([(row, _rendition(row, policy)) for row in rows], version)
            looked, changed = looked + len(rows), changed + done
            yield Batch(len(rows), done)
    finally:
        if looked:
            audit.record(SYSTEM, "rerendered", workspace_id=workspace.pk, payloads=changed, looked=looked, rules=version)


def _outdated(workspace_id: UUID, version: int) -> QuerySet[Payload]:
    return Payload.objects.filter(workspace_id=workspace_id, rules__lt=version, erased_at=None)


def _rendition(row: Payload, policy: Policy) -> Rendition:
    """Under the rules of now, and without what the rendition that there is does not show."""
    before = row.rendition or ""
    content = vault.opened(row)
    if content is None:  # damaged, or too large to be looked through
        return narrow(before, label=row.label, policy=policy)
    after = redact(content, media_type=row.media_type, label=row.label, policy=policy, about=row.about)
    text = common(before, after.text)
    if text == after.text:
        return after
    return Rendition(text, dict(sorted(Counter(part.kind for part in segments(text) if isinstance(part, Hidden)).items())))
