"""What stops an action on its way, as its course shows it: a freeze, and the time to recall its approval. Renditions only."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from access.rules import Actor
from approvals import freezes, taking_back
from approvals.background import Stage
from approvals.models import Freeze, Grant, ProposedAction
from artifacts import vault


@dataclass(frozen=True)
class Freezing:
    """A freeze, for the eye. `why` is a rendition."""

    what: str
    by: str
    since: datetime
    until: datetime | None
    why: str


@dataclass(frozen=True)
class Recalling:
    """Until when an approval can be recalled, and whether this person may."""

    since: datetime
    until: datetime
    may: bool


WITHDRAWN = {"cancelled": "The run was cancelled.", "ended": "The run has ended."}


def freezing(action: ProposedAction, actor: Actor) -> Freezing | None:
    """What keeps this action from being granted or redeemed now. No query once it is over."""
    grant: Grant | None = getattr(action, "grant", None)
    over = action.state not in ("waiting", "approved") or (grant is not None and (grant.redeemed_at or grant.voided_at))
    stands = None if over else freezes.on(action)
    return shown(stands, actor) if stands else None


def now(actor: Actor) -> list[Freezing]:
    """All that is frozen where this person is, the newest first. One query if nothing is, else two."""
    return [shown(each, actor) for each in freezes.seen_by(actor)]


def shown(frozen: Freeze, actor: Actor) -> Freezing:
    by = "you" if str(frozen.by_id) == actor.id else frozen.by.name
    why = "Erased" if frozen.reason.rendition is None else frozen.reason.rendition
    return Freezing(freezes.target_words(frozen), by, frozen.since, frozen.until, why)


def recalling(action: ProposedAction, may: bool) -> Recalling | None:
    """The time to recall an approval, while it runs."""
    grant: Grant | None = getattr(action, "grant", None)
    if action.state != "approved" or grant is None or not taking_back.can_be_recalled(grant) or grant.held_until is None:
        return None
    return Recalling(grant.granted_at, grant.held_until, may)


def closed_why(action: ProposedAction) -> str:
    """The reason with which it was recalled or withdrawn, as a rendition. No query where there is none."""
    if action.closed_why_id is None:
        return ""
    shown = vault.shown([action.closed_why_id]).get(action.closed_why_id)
    return shown.text if shown else "Erased"


def withdrawn(action: ProposedAction, stages: Iterable[Stage], actor: Actor, names: Mapping[str, str], done: str) -> tuple[str, str] | None:
    """What withdrew it, as the log tells, in strong words and in what follows them; None if its agent did. `done`: sent or run."""
    last = next((stage for stage in stages if stage.seq == action.settled_seq), None)
    if last is not None and last.why == "revised":
        who = "You" if last.by == actor.id else names.get(last.by, "Somebody")
        return f"{who} asked for another plan, so this was withdrawn.", f"Nothing was {done}."
    if action.closed_why_id is not None:
        return None
    return f"This was withdrawn, so nothing was {done}.", WITHDRAWN.get(last.why, "") if last else ""
