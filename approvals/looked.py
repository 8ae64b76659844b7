"""What was found out about an action before it was proposed: a payload of the event that proposed it, read back for its card."""

from dataclasses import asdict
from uuid import UUID

import orjson

from approvals.models import ProposedAction
from artifacts import vault
from artifacts.models import Payload
from runs.engine.tools import TOOLS, Looked
from runs.models import Event

ROLE = "looked"


def kept(workspace_id: UUID, found: Looked | None, *, label: str) -> dict[str, Payload]:
    """What was found, kept as a text of the event that proposes."""
    if found is None:
        return {}
    return {ROLE: vault.keep(workspace_id, orjson.dumps(asdict(found)), label=label, media_type="application/json")}


def read(action: ProposedAction, *, full: bool) -> Looked | None:
    """What was found out, or its redacted rendition; None if the tool looks nothing up, or the bytes are gone. Two queries at most."""
    tool = TOOLS.get(action.tool)
    if tool is None or tool.look is None:
        return None
    told = Event.objects.filter(run_month=action.run.month, run_id=action.run_id, seq=action.proposed_seq)
    payloads = told.values_list("payloads", flat=True).first() or {}
    return _opened(UUID(payloads[ROLE]), full) if ROLE in payloads else None


def _opened(pk: UUID, full: bool) -> Looked | None:
    payload = Payload.objects.select_related("key").get(pk=pk)
    if payload.erased_at:
        return None
    try:
        return Looked(**orjson.loads(vault.opened(payload) or b"" if full else payload.rendition or "{}"))
    except (orjson.JSONDecodeError, TypeError):  # a rendition is cut off at its size, and bytes may be damaged
        return None
