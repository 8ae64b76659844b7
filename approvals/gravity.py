"""What is approved only by somebody who has just shown who they are. Rejecting is asked of nobody twice: it lets nothing happen."""

from datetime import timedelta

from django.conf import settings
from django.http import HttpRequest

from access import step_up
from approvals.models import ProposedAction

HIGH = 3  # as `approvals.inbox.RISKS` has it


def check(request: HttpRequest, action: ProposedAction, verdict: str) -> None:
    """StepUpNeeded if this would approve something of high risk that waits, and the session has not shown for a while who is there."""
    if verdict == "approved" and action.risk >= HIGH and action.state == "waiting":
        step_up.require(request, within=timedelta(minutes=settings.HANDRAIL_DECISION_STEP_UP))
