"""Grants: the right to run one exact action once. Given by a decision or a rule, voided, or redeemed by `execution`."""

from django.db.models import Q

from access import audit
from access.rules import SYSTEM
from approvals import freezes, limits
from approvals.models import Grant, ProposedAction
from config import clock
from runs import log
from runs.log import Held
from runs.vocabulary import ActionGranted

UNUSED = Q(redeemed_at=None, voided_at=None)


def give(run: Held, action: ProposedAction, *, automatic: bool = False) -> Grant:
    """Grant an approved action its one use. In the caller's transaction. Frozen if it is; ApproveLocked if its tool may not move that much.

    It can be recalled for as long as its policy says, whoever or whatever approved it; until then nobody redeems it.
    """
    freezes.check(run.row, action.tool)  # before the limits, which are locked last
    limits.check(action)
    now, delay = clock.now(), action.policy.recall_delay
    grant = Grant(action=action, digest=action.digest, granted_at=now, expires_at=now + delay + action.policy.grant_lasts)
    grant.held_until = now + delay if delay else None
    data = ActionGranted(action=action.pk, grant=grant.pk, digest=action.digest, automatic=automatic, until=grant.expires_at)
    run.append(data, actor=log.ENGINE)
    grant.save(force_insert=True)
    if automatic:  # one that a person gave stands in the audit trail as their decision
        told = {"grant": str(grant.pk), "digest": action.digest}
        audit.record(SYSTEM, "granted", workspace_id=action.workspace_id, subject=("action", action.pk), **told)
    return grant


def void(action: ProposedAction) -> None:
    """Take back a grant that nobody redeemed."""
    Grant.objects.filter(UNUSED, action=action).update(voided_at=clock.now())
