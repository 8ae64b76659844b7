"""The demo's policies. Called by `manage.py demo_seed`; safe to repeat."""

from datetime import timedelta

from access import rules
from access.models import User, Workspace
from approvals import groups, policy
from approvals.models import Policy, ReviewerGroup

# the back office's tools: each takes one reviewer. Name of its rule, and hours until what nobody decided expires; what a dry run found is
# soon old
BACK_OFFICE = {
    "update_customer": ("Changes of customers", 24),
    "refund_payment": ("Refunds up to €2,000", 3),
    "run_sql": ("SQL that changes data", 25 / 60),
    "call_desk": ("Calls of the help desk", 4),
    "run_command": ("Commands on this machine", 8),
    "schedule_removal": ("Access that goes", 6),
}
# what the agent outside of `outside_loop` proposes; it runs them itself
OUTSIDE_LOOP = {"issue_voucher": ("Vouchers by agents outside", 4), "post_notice": ("Public notices", 2)}


def policies(workspace: Workspace, by: User | None = None) -> None:
    """What using each tool of the examples takes, unless a rule of it was there before: what was changed or taken out stays so."""
    wanted = {"send_email": ("Outside e-mail", 4), "update_crm": ("Notes in the CRM", 0), "remove_note": ("Take notes back", 0)}
    wanted |= BACK_OFFICE | OUTSIDE_LOOP
    missing = [_rule(workspace, tool, *said) for tool, said in wanted.items() if not policy.was_ruled(workspace.pk, tool)]
    if missing:
        policy.add_last(workspace.pk, missing, by=by)


def _rule(workspace: Workspace, tool: str, name: str, hours: float) -> Policy:
    """The rule of one tool. Without hours to decide in, it asks nobody."""
    asks = {"outcome": "reviewers" if hours else "automatic", "quorum": 1}
    times = {"expires_after": timedelta(hours=hours or 4), "grant_lasts": timedelta(hours=1), "recall_delay": timedelta()}
    return policy.rule(workspace.pk, tool=tool, name=name, **asks, **times)


def finance(workspace: Workspace) -> None:
    """A group, two of whom are asked about what costs a lot. Nothing happens if there is a group: this one may have been changed."""
    people = rules.holders(workspace.pk, "approvals.decide")
    if len(people) < 2 or ReviewerGroup.objects.filter(workspace=workspace).exists():
        return
    made = groups.make(workspace.pk, name="Finance", members=[user.pk for user in people], by=None)
    large = [
        {"what": "argument", "path": "$.currency", "test": "is", "value": "EUR"},
        {"what": "amount", "test": "more", "value": "1000 EUR"},
    ]
    asks = {"tool": "refund_payment", "conditions": large, "outcome": "reviewers", "quorum": 2, "group": made}
    times = {"expires_after": timedelta(hours=3), "grant_lasts": timedelta(hours=1)}
    policy.put_first(workspace.pk, policy.rule(workspace.pk, name="Refunds over €1,000", **asks, **times), by=None)
