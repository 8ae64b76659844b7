"""What the rows of approvals say that a run's log tells: with them a log is found out whose end was cut off, also if the run's own row
was made to fit."""

from collections.abc import Iterator

from approvals.models import Decision, Grant, ProposedAction
from runs.models import Run
from runs.verification import Claim

HAPPENED = ("action.executed", "action.resolved")


def claims(run: Run) -> Iterator[Claim]:
    """Three queries."""
    for pk, proposed, settled in ProposedAction.objects.filter(run_id=run.pk).values_list("pk", "proposed_seq", "settled_seq"):
        yield Claim(f"action {pk}", proposed, ("action.proposed",), pk)
        if settled:
            yield Claim(f"the outcome of action {pk}", settled, names=pk)
    for pk, seq in Decision.objects.filter(action__run_id=run.pk).values_list("pk", "seq"):
        yield Claim(f"decision {pk}", seq, ("action.decided",), pk)
    for grant in Grant.objects.filter(action__run_id=run.pk).only("redeemed_at", "unknown_at", "outcome"):
        yield from _of_grant(grant)


def _of_grant(grant: Grant) -> Iterator[Claim]:
    yield Claim(f"grant {grant.pk}", types=("action.granted",), names=grant.pk)
    if grant.redeemed_at is not None:
        yield Claim(f"the use of grant {grant.pk}", types=("action.redeemed",), names=grant.pk)
    if grant.unknown_at is not None:
        yield Claim(f"the lost answer of grant {grant.pk}", types=("action.unknown",), names=grant.pk)
    if grant.outcome in ("executed", "failed"):
        yield Claim(f"what came of grant {grant.pk}", types=HAPPENED, names=grant.pk)
