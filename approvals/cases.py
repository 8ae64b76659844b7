"""What the rules may ask about an action: gathered when it is proposed, kept with it, and read back when a draft is tried on it."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from access.models import Workspace
from approvals import canonical, contacts, inspection
from approvals.canonical import CanonicalAction
from approvals.conditions import Case, Taint
from approvals.models import LEGS, ProposedAction
from artifacts import vault
from artifacts.models import Payload
from config import clock
from runs.engine.tools import Tool
from runs.models import Run

AT_ONCE = 250  # payloads opened together: their bytes are in memory only for so long


def of(run: Run, tool: Tool, what: CanonicalAction, taint: Taint) -> Case:
    """The case of what is about to be proposed."""
    to = [address for address in map(contacts.bare, what.recipients) if address]
    known = contacts.written_to(run.workspace_id, to)
    return Case(
        agent=run.agent.name,
        tool=tool.name,
        effect=tool.effect,
        label=tool.label,
        taint=taint,
        at=clock.now(),
        arguments=what.arguments,
        recipients=len(what.recipients),
        outside=_some_outside(run.workspace_id, what.recipients),
        new=len(to) < len(what.recipients) or any(not times for times in known.values()),
        planned=run.plans > 0,
    )


def kept(case: Case) -> dict[str, Any]:
    """What is kept of a case on the action's row: nothing that somebody wrote."""
    taint = (case.taint.read_private, case.taint.read_untrusted, case.taint.sends_out)
    return {
        "legs": [name for name, there in zip(LEGS, taint, strict=True) if there],
        "label": case.label,
        "recipients": case.recipients,
        "outside": case.outside,
        "new": case.new,
        "planned": case.planned,
    }


def read(actions: Sequence[ProposedAction], *, arguments: bool = True) -> dict[UUID, Case]:
    """The cases of past actions, by id, as they were when they were proposed. What can't be read any more, or was proposed before a case
    was kept, is left out. One query for 250 of them; none, and no vault is opened, if nobody asks about arguments."""
    if not arguments:
        return {action.pk: _case(action, {}) for action in actions if action.judged_on}
    found: dict[UUID, Case] = {}
    for at in range(0, len(actions), AT_ONCE):
        some = [action for action in actions[at : at + AT_ONCE] if action.judged_on]
        payloads = Payload.objects.select_related("key").in_bulk([action.canonical_id for action in some])
        for action in some:
            read = _arguments(payloads[action.canonical_id])
            if read is not None:
                found[action.pk] = _case(action, read)
    return found


def _case(action: ProposedAction, arguments: Mapping[str, Any]) -> Case:
    on = action.judged_on
    return Case(
        agent=action.run.agent.name,
        tool=action.tool,
        effect=action.effect,
        label=on["label"],
        taint=Taint("private" in on["legs"], "untrusted" in on["legs"], "sends" in on["legs"]),
        at=action.proposed_at,
        arguments=arguments,
        recipients=on["recipients"],
        outside=on["outside"],
        new=on["new"],
        planned=on["planned"],
    )


def _arguments(payload: Payload) -> Mapping[str, Any] | None:
    try:
        read = canonical.parse_json(vault.opened(payload) or b"")
    except canonical.NotCanonical:
        return None
    return read.get("arguments") if isinstance(read, dict) else None


def _some_outside(workspace_id: UUID, recipients: Sequence[str]) -> bool:
    """Whether some recipient is outside, or can't be told to be inside."""
    if not recipients:
        return False
    inside = frozenset(Workspace.objects.values_list("mail_domains", flat=True).get(pk=workspace_id))
    return any(inspection.is_outside(each, inside) for each in recipients)
