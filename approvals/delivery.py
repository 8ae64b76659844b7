"""Delivery truth: how far an action came, with the time of each stage, for whoever asks over the API. No further than is known."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from approvals import freezes, taking_back
from approvals.models import Decision, Grant, ProposedAction
from artifacts import vault
from artifacts.redaction import plain
from config import clock


def told(action: ProposedAction, made: Sequence[Decision], grant: Grant | None) -> dict[str, Any]:
    """`delivery`: the stages reached, in order. `recall_until`: while an approval can be recalled. `frozen`: what is in its way."""
    over = action.state not in ("waiting", "approved") or (grant is not None and (grant.redeemed_at or grant.voided_at))
    frozen = None if over else freezes.on(action)
    closed = vault.shown([action.closed_why_id]) if action.closed_why_id else {}
    return {
        "closed_why": next((plain(each.text) for each in closed.values()), None),
        "recall_until": grant.held_until if grant and taking_back.can_be_recalled(grant) else None,
        "frozen": freezes.as_json(frozen) if frozen else None,
        "delivery": [{"stage": stage, "at": at} for stage, at in _stages(made, grant) if at],
    }


def _stages(made: Sequence[Decision], grant: Grant | None) -> list[tuple[str, datetime | None]]:
    decided = [("decided", each.decided_at) for each in made]
    if grant is None:
        return [*decided]
    gone = grant.expires_at if grant.redeemed_at is None and grant.voided_at is None and grant.expires_at <= clock.now() else None
    return [
        *decided,
        ("granted", grant.granted_at),
        ("delivered", grant.delivered_at),
        ("voided", grant.voided_at),
        ("lapsed", gone),  # nobody came to redeem it in time: its agent is gone
        ("redeemed", grant.redeemed_at),
        ("unknown", grant.unknown_at),
        ("executed", grant.executed_at),
        ("verified", grant.verified_at),
    ]
