"""The limits of a tool that moves money, kept where the money is let go: nothing is granted that goes beyond them.

What was found when an action was proposed is of that moment. Others may have been granted since, in other runs, and a day may have passed.
"""

from decimal import Decimal
from uuid import UUID

from approvals import by_kind, exact, history
from approvals.canonical import CanonicalAction
from approvals.errors import ApproveLocked
from approvals.findings import Facts
from approvals.models import Policy, ProposedAction
from approvals.warning_words import words
from runs.engine.tools import TOOLS, Tool


def hold(workspace_id: UUID, tool: Tool) -> None:
    """Let nobody else grant an action of this tool until the transaction ends, if it has a limit. Taken last: after run and action."""
    if tool.limit is not None:
        # the first version of its rule is there for as long as the tool may be used, and nothing else locks it
        Policy.objects.select_for_update(no_key=True).filter(workspace_id=workspace_id, tool=tool.name).order_by("version").first()


def check(action: ProposedAction) -> None:
    """Refuse to grant, with ApproveLocked, what with all that is granted by now goes beyond the limit. Holds the tool."""
    tool = TOOLS.get(action.tool)
    if tool is None or tool.limit is None:
        return
    hold(action.workspace_id, tool)
    what = exact.whole(action)
    facts = Facts(kind="payment", limit=tool.limit, paid_today=moved_today(action.workspace_id, tool, what, but=action.pk))
    if beyond := next(by_kind.amounts(what, facts), None):
        said = words(beyond.code, beyond.params)
        raise ApproveLocked(f"{said.strong} {said.text}")


def moved_today(workspace_id: UUID, tool: Tool, what: CanonicalAction, *, but: UUID | None = None) -> Decimal:
    """What counts against the tool's limit for a day, in the limit's currency."""
    moved = history.of(workspace_id, what, but=but).today
    return moved.get(tool.limit.currency, Decimal()) if tool.limit else Decimal()
