"""What is about to run is not what was approved: nothing runs, and whoever looks after this place is told in more than one way, once."""

import logging

from access import audit
from access.rules import Actor
from approvals.models import ProposedAction
from runs import log
from runs.log import Held, Text
from runs.models import Event
from runs.vocabulary import BlockRaised

logger = logging.getLogger(__name__)


def tell(run: Held, action: ProposedAction, *, by: Actor, detail: str = "", **about: str) -> None:
    """A block in the run's log, an entry in the audit trail and a critical line in the server's log, in the caller's transaction.

    `by`: who was about to run it. `about`: what else the entry says.
    """
    if run.row.ended_at is not None or _is_told(run, action):
        return
    texts = {"detail": Text(detail)} if detail else {}
    seq = run.append(BlockRaised(block=_block(action), reason="digest_mismatch", action=action.pk), actor=log.ENGINE, texts=texts)
    about |= {"action": str(action.pk), "run": str(run.row.pk), "seq": str(seq)}
    audit.record(by, "digest_mismatch", workspace_id=run.row.workspace_id, subject=("action", action.pk), **about)
    logger.critical("what would run is not what was approved", extra=about)


def _is_told(run: Held, action: ProposedAction) -> bool:
    blocks = Event.objects.filter(run_month=run.row.month, run_id=run.row.pk, type="block.raised")
    return blocks.filter(body__contains=f'"{_block(action)}"').exists()


def _block(action: ProposedAction) -> str:
    return f"digest-{action.pk}"
