"""The demo's policies. Called by `manage.py demo_seed`; safe to repeat."""

from datetime import timedelta

from access import rules
from access.models import User, Workspace
from approvals import groups, policy
from approvals.models import Policy, PolicySet, ReviewerGroup

# the back office's tools: each takes one reviewer. Name of its rule, hours until what nobody decided expires, and whose of the reviewers it
# is if not everybody's; what a dry run found is soon old
BACK_OFFICE = {
    "update_customer": ("Changes of customers", 24, ""),
    "refund_payment": ("Refunds up to €2,000", 3, "Finance"),
    "run_sql": ("SQL that changes data", 25 / 60, "Operations"),
    "call_desk": ("Calls of the help desk", 12, ""),
    "run_command": ("Commands on this machine", 8, "Operations"),
    "schedule_removal": ("Access that goes", 6, "Operations"),
}
# what the billing desk may do by itself: each can be undone, and no money moves
BILLING_DESK = {
    "hold_refund": ("Refund holds up to €2,000", 0, ""),
    "set_ticket": ("Where a ticket is", 0, ""),
    "release_hold": ("Release refund holds", 0, ""),
    "put_ticket_back": ("Put tickets back", 0, ""),
}
# what the agent outside of `outside_loop` proposes; it runs them itself
OUTSIDE_LOOP = {"issue_voucher": ("Vouchers by agents outside", 4, ""), "post_notice": ("Public notices", 2, "")}
LETTERS = {
    "send_email": ("Outside e-mail", 4, ""),
    "send_offer": ("Offers to customers", 48, "Finance"),
    "update_crm": ("Notes in the CRM", 0, ""),
    "remove_note": ("Take notes back", 0, ""),
    "change_terms": ("Terms of payment", 0, ""),
}
# those of the letters that have a time of their own: where an argument holds what, and hours
SOME_LETTERS = {
    "Letters to Hallstedt, a key account": ("$.to[*]", "@moebelwerk-hallstedt.example", 2),
    "Letters to Alder Press": ("$.to[*]", "@alderpress.example", 12),
    "Letters about statements": ("$.subject", "statement", 8),
}
GROUPS = ("Finance", "Operations")


def policies(workspace: Workspace, by: User | None = None) -> None:
    """What using each tool of the examples takes, unless a rule of it was there before: what was changed or taken out stays so."""
    wanted = LETTERS | BACK_OFFICE | BILLING_DESK | OUTSIDE_LOOP
    missing = {tool: said for tool, said in wanted.items() if not policy.was_ruled(workspace.pk, tool)}
    if not missing:
        return
    made = _groups(workspace)
    rules_ = [_rule(workspace, tool, name, hours, made.get(group)) for tool, (name, hours, group) in missing.items()]
    policy.add_last(workspace.pk, rules_, by=by, why="A rule for each tool of the examples.")


def first(workspace: Workspace) -> None:
    """Two of a group are asked about what costs a lot, and about where invoices go; some letters wait less long than others, or longer.

    Nothing happens if somebody has changed the policy since it was set up.
    """
    made = ReviewerGroup.objects.filter(workspace=workspace, name="Finance", closed_at=None).first()
    if made is None or PolicySet.objects.filter(workspace=workspace).count() != 1:
        return
    large = [
        {"what": "argument", "path": "$.currency", "test": "is", "value": "EUR"},
        {"what": "amount", "test": "more", "value": "1000 EUR"},
    ]
    invoices = [{"what": "argument", "path": "$.after.invoice_email", "test": "there", "value": ""}]
    two = {"outcome": "reviewers", "quorum": 2, "group": made, "grant_lasts": timedelta(hours=1)}
    asked = (("Refunds over €1,000", "refund_payment", large, 3), ("Where invoices go", "update_customer", invoices, 24))
    rules_ = [
        policy.rule(workspace.pk, name=name, tool=tool, conditions=conditions, expires_after=timedelta(hours=hours), **two)
        for name, tool, conditions, hours in asked
    ]
    rules_ += [
        policy.rule(
            workspace.pk,
            name=name,
            tool="send_email",
            conditions=[{"what": "argument", "path": path, "test": "contains", "value": value}],
            outcome="reviewers",
            expires_after=timedelta(hours=hours),
            grant_lasts=timedelta(hours=1),
        )
        for name, (path, value, hours) in SOME_LETTERS.items()
    ]
    policy.put_first(
        workspace.pk, *rules_, by=None, why="Two for what costs a lot and where invoices go; some letters have their own time."
    )


def _groups(workspace: Workspace) -> dict[str, ReviewerGroup]:
    """Those of the demo's groups that are open, by name; made if there is none at all: what was changed stays so."""
    people = [user.pk for user in rules.holders(workspace.pk, "approvals.decide")]
    if len(people) > 1 and not ReviewerGroup.objects.filter(workspace=workspace).exists():
        return {name: groups.make(workspace.pk, name=name, members=people, by=None) for name in GROUPS}
    return {group.name: group for group in ReviewerGroup.objects.filter(workspace=workspace, name__in=GROUPS, closed_at=None)}


def _rule(workspace: Workspace, tool: str, name: str, hours: float, group: ReviewerGroup | None = None) -> Policy:
    """The rule of one tool. Without hours to decide in, it asks nobody."""
    asks = {"outcome": "reviewers" if hours else "automatic", "quorum": 1, "group": group}
    times = {"expires_after": timedelta(hours=hours or 4), "grant_lasts": timedelta(hours=1), "recall_delay": timedelta()}
    return policy.rule(workspace.pk, tool=tool, name=name, **asks, **times)
