"""The demo's policies. Called by `manage.py demo_seed`; safe to repeat."""

from datetime import timedelta

from access.models import User, Workspace
from approvals import policy


def policies(workspace: Workspace, by: User | None = None) -> None:
    """What using each tool of support triage takes."""
    if policy.in_force(workspace.pk, "send_email") is None:
        policy.set_rule(workspace.pk, "send_email", name="Outside e-mail", outcome="reviewers", by=by, expires_after=timedelta(hours=4))
    if policy.in_force(workspace.pk, "update_crm") is None:
        policy.set_rule(workspace.pk, "update_crm", name="Notes in the CRM", outcome="automatic", by=by)
