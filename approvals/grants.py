"""Grants: the right to run one exact action once. Given by a decision or a rule, voided, or redeemed by `execution`."""

from approvals import limits
from approvals.models import Grant, ProposedAction
from config import clock
from runs import log
from runs.log import Held
from runs.vocabulary import ActionGranted


def give(run: Held, action: ProposedAction, *, automatic: bool = False) -> Grant:
    """Grant an approved action its one use. In the caller's transaction. ApproveLocked if its tool may not move that much any more."""
    limits.check(action)
    grant = Grant(action=action, digest=action.digest, expires_at=clock.now() + action.policy.grant_lasts)
    data = ActionGranted(action=action.pk, grant=grant.pk, digest=action.digest, automatic=automatic, until=grant.expires_at)
    run.append(data, actor=log.ENGINE)
    grant.save(force_insert=True)
    return grant


def void(action: ProposedAction) -> None:
    """Take back a grant that nobody redeemed."""
    Grant.objects.filter(action=action, redeemed_at=None).update(voided_at=clock.now())
