"""What a card is told about an action: its tool as it is registered here, who is inside, and everything that was found out."""

from decimal import Decimal
from typing import Any

from approvals import contacts, history, looked, previews, warned
from approvals.canonical import CanonicalAction
from approvals.cards import Setting
from approvals.models import ProposedAction
from runs.engine.tools import TOOLS, Tool


def of(action: ProposedAction, what: CanonicalAction, *, full: bool) -> Setting:
    """The setting of an action's card. Of a redacted one nothing is told that would say more than its rendition."""
    tool = TOOLS.get(action.tool)
    return Setting(
        title=tool.title if tool else action.tool,
        effect=action.effect,
        kind=action.card,
        properties=tool.arguments.model_json_schema().get("properties", {}) if tool else None,
        inside=action.workspace.mail_domains,
        sent=contacts.written_to(action.workspace_id, what.recipients) if full and action.effect == "send" else {},
        warns=warned.read(action.warnings),
        files=previews.of(action, full=full),
        masked=not full,
        looked=looked.read(action, full=full),
        dialect=tool.dialect if tool else "",
        **(_paid(action, what, tool) if tool and full else {}),
    )


def _paid(action: ProposedAction, what: CanonicalAction, tool: Tool) -> dict[str, Any]:
    """Of a payment: its limit, and what the tool had paid when this one was proposed, whenever it is looked at."""
    if action.card != "payment":
        return {}
    before = history.of(action.workspace_id, what, until=action.proposed_at, but=action.pk, team=action.run.team_id)
    today = before.today.get(tool.limit.currency, Decimal()) if tool.limit else Decimal()
    return {"limit": tool.limit, "earlier": before.earlier, "times": before.times, "today": str(today)}
