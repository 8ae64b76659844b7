"""The limits of a tool that moves money, kept where the money is let go: nothing is granted that goes beyond them.

What was found when an action was proposed is of that moment. Others may have been granted since, in other runs, and a day may have passed.
"""

from collections.abc import Mapping
from decimal import Decimal
from uuid import UUID

from approvals import by_kind, exact, history, money
from approvals.canonical import CanonicalAction
from approvals.errors import ApproveLocked
from approvals.findings import Facts
from approvals.models import Policy, PolicySet, ProposedAction
from approvals.warning_words import words
from runs.engine.tools import TOOLS, Tool


def hold(workspace_id: UUID, tool: Tool | None, rule: Policy) -> None:
    """Let nobody else grant what has a limit until the transaction ends, if this has one. Taken last: after run and action."""
    if (tool is not None and tool.limit is not None) or rule.a_day is not None or rule.a_day_amount:
        # the first version of the rules is there for as long as anything may be used, and nothing else locks it
        PolicySet.objects.select_for_update(no_key=True).filter(workspace_id=workspace_id).order_by("version").first()


def check(action: ProposedAction) -> None:
    """Refuse to grant, with ApproveLocked, what with all that is granted by now goes beyond a limit of its tool or its rule. Holds them."""
    hold(action.workspace_id, TOOLS.get(action.tool), action.policy)
    _check_tool(action)
    # what is beyond the limit of a rule that asks nobody waits for a person, and a person may go on
    if action.policy.outcome != "automatic" and (beyond := beyond_rule(action.policy, exact.whole(action), but=action.pk)):
        raise ApproveLocked(f"{beyond} Nothing more is granted under it today.")


def beyond_rule(rule: Policy, what: CanonicalAction, *, but: UUID | None = None) -> str:
    """Which limit of the day its rule would go beyond with this action, as a sentence; empty if none. The rule is held."""
    if rule.a_day is None and not rule.a_day_amount:
        return ""
    done = history.granted_under(rule, but=but)
    if rule.a_day is not None and done.times >= rule.a_day:
        return f"The policy “{rule.name}” allows {rule.a_day} a day, and {done.times} were granted today."
    return _beyond_amount(rule, what, done.sums) if rule.a_day_amount else ""


def _beyond_amount(rule: Policy, what: CanonicalAction, sums: Mapping[str, Decimal]) -> str:
    most, currency = rule.a_day_amount.split()
    number = money.read(what.arguments.get("amount"))
    if number is None or what.arguments.get("currency") != currency:
        return f"The policy “{rule.name}” has a limit of {most} {currency} a day, and how much this moves can’t be read for certain."
    if sums.get(currency, Decimal()) + abs(number) > Decimal(most):
        return f"The policy “{rule.name}” allows {money.spell(Decimal(most), currency)} a day; with this it would be more."
    return ""


def _check_tool(action: ProposedAction) -> None:
    tool = TOOLS.get(action.tool)
    if tool is None or tool.limit is None:
        return
    what = exact.whole(action)
    facts = Facts(kind="payment", limit=tool.limit, paid_today=moved_today(action.workspace_id, tool, what, but=action.pk))
    if beyond := next(by_kind.amounts(what, facts), None):
        said = words(beyond.code, beyond.params)
        raise ApproveLocked(f"{said.strong} {said.text}")


def moved_today(workspace_id: UUID, tool: Tool, what: CanonicalAction, *, but: UUID | None = None) -> Decimal:
    """What counts against the tool's limit for a day, in the limit's currency."""
    moved = history.of(workspace_id, what, but=but).today
    return moved.get(tool.limit.currency, Decimal()) if tool.limit else Decimal()
