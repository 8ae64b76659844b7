"""Delivery truth: how far an action came, in words and with the time of each stage. No further than is known."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from approvals import freezes, taking_back
from approvals.models import Decision, Grant, ProposedAction
from artifacts import vault
from artifacts.redaction import plain
from config import clock
from runs.lifecycle import State


def words(action: ProposedAction, done: str) -> str:
    """How far it got, and no further than is known, in a sentence or two. `done`: sent | run."""
    grant: Grant | None = getattr(action, "grant", None)
    if grant is None:
        return ""
    if taking_back.can_be_recalled(grant):
        return f"It is not {done} before the time to recall it is over."
    if action.executor == "agent" and (words := _outside(grant, done)):
        return words
    if grant.outcome == "executed":
        said = f"A person said that it was {done}."
        return said if grant.verified_at is None else f"It was {done}, once, and what ran is what was approved."
    if grant.outcome == "failed" and grant.unknown_at is not None:
        return f"A person said that it was not {done}. The approval is spent."
    if grant.outcome == "failed":
        return f"It was not {done}: the tool refused it. The approval is spent."
    if grant.outcome == "unknown":
        return f"Whether it was {done} is not known. An operator must say; it is not repeated."
    if grant.redeemed_at is not None:
        return f"It is being {done} now."
    if grant.voided_at is not None:
        return f"The run was cancelled before it was {done}. The approval is void."
    if grant.expires_at <= clock.now():
        return f"The approval was not used in time: nobody came for it. Nothing was {done}."
    return f"It is not {done} yet: the run has to reach it."


def _outside(grant: Grant, done: str) -> str:
    """The same of what an agent outside runs: its word, for Handrail cannot see the call. Empty where that makes no difference."""
    unseen = "Handrail cannot see the call."
    if grant.outcome == "executed" and grant.unknown_at is None:
        return f"The agent says that it was {done}. {unseen}"
    if grant.outcome == "failed" and grant.unknown_at is None:
        return f"The agent says that it was not {done}. {unseen} The approval is spent."
    if grant.outcome == "none" and grant.redeemed_at is not None:
        return f"The agent took it to run it, and has not said yet what became of it. {unseen}"
    if grant.outcome == "none" and grant.voided_at is None:
        gone = grant.expires_at <= clock.now()
        return f"The agent never came for it, so nothing was {done}." if gone else f"It is not {done} yet: the agent has to come for it."
    return ""


def after_no(action: ProposedAction) -> str:
    """What follows from a rejection or a recall: where its run is now, and no promise of what its agent will do."""
    match State(action.run.state):
        case State.SUCCEEDED:
            return "The run has ended."
        case State.FAILED:
            return "The run has failed."
        case State.CANCELLED:
            return "The run was cancelled."
        case State.CANCELLING | State.COMPENSATING:
            return "The run is being undone."
        case State.PARKED:
            return "The run is stuck until an operator chooses how it goes on."
        case _ if action.executor == "agent":
            return "The agent gets the reason when it asks, and goes on or ends the run."
        case State.PAUSED:
            return "The run is paused. It gets the reason once somebody resumes it."
        case State.WAITING:
            return "The run waits for something else now."
    return "The run gets the reason, and its workflow says whether it goes on or ends."


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
