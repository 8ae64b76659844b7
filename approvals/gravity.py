"""What is approved only by somebody who has just shown who they are. Rejecting is asked of nobody twice: it lets nothing happen."""

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest

from access import rules, step_up
from approvals.models import ProposedAction

HIGH = 3  # as `approvals.inbox.RISKS` has it


def check(request: HttpRequest, action: ProposedAction, verdict: str) -> None:
    """StepUpNeeded if this would approve something of high risk that waits, and the session has not shown for a while who is there."""
    if verdict == "approved" and action.risk >= HIGH and action.state == "waiting":
        step_up.require(request, within=timedelta(minutes=settings.HANDRAIL_DECISION_STEP_UP))


def check_all(request: HttpRequest, ids: Collection[UUID], verdict: str) -> None:
    """The same of several that are decided together, whichever of them the address names: that one may be decided already."""
    grave = rules.visible(request.actor, ProposedAction, "approvals.decide").filter(pk__in=ids, risk__gte=HIGH, state="waiting")
    if verdict == "approved" and (one := grave.first()) is not None:
        check(request, one, verdict)
