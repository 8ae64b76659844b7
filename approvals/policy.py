"""What using a tool takes. `judge` is pure; `in_force` and `set_rule` read and write the rows.

Deny by default: a tool without a rule is refused.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal
from uuid import UUID

from django.db.models import Max

from access.models import User
from approvals.models import Policy

Outcome = Literal["automatic", "reviewers", "never"]


@dataclass(frozen=True)
class Taint:
    """The three legs that together let data out: what the run has read, and whether this tool sends."""

    read_private: bool
    read_untrusted: bool
    sends_out: bool

    @property
    def lethal(self) -> bool:
        return self.read_private and self.read_untrusted and self.sends_out


@dataclass(frozen=True)
class Judgement:
    """What a rule demands of one action: `needs` people, or nobody (automatic), or that it never runs."""

    outcome: Outcome
    needs: int
    because_tainted: bool = False


def judge(rule: Policy, taint: Taint) -> Judgement:
    """The rule, unless all three legs are there: then a person decides, whatever the rule says."""
    if rule.outcome == "never":
        return Judgement("never", 0)
    if rule.outcome == "automatic" and not taint.lethal:
        return Judgement("automatic", 0)
    return Judgement("reviewers", max(rule.quorum, 1), because_tainted=rule.outcome == "automatic")


def in_force(workspace_id: UUID, tool: str) -> Policy | None:
    """The newest version of a tool's rule."""
    return Policy.objects.filter(workspace_id=workspace_id, tool=tool).order_by("-version").first()


def set_rule(
    workspace_id: UUID,
    tool: str,
    *,
    name: str,
    outcome: Outcome,
    by: User | None,
    quorum: int = 1,
    expires_after: timedelta = timedelta(hours=4),
    grant_lasts: timedelta = timedelta(hours=1),
    recall_delay: timedelta = timedelta(),
) -> Policy:
    """A new version of a tool's rule, in force from now. Actions that are waiting keep the version they were judged by."""
    newest = Policy.objects.filter(workspace_id=workspace_id, tool=tool).aggregate(Max("version"))["version__max"] or 0
    return Policy.objects.create(
        workspace_id=workspace_id,
        tool=tool,
        name=name,
        version=newest + 1,
        outcome=outcome,
        quorum=quorum,
        expires_after=expires_after,
        grant_lasts=grant_lasts,
        recall_delay=recall_delay,
        created_by=by,
    )
