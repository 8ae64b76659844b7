"""Glances: how far somebody had the log of a run before them when they last left its page. The page says from there on what is new to them.

No part of what happened, and shown to nobody else: it is kept beside the log, one row for each person and run.
"""

from uuid import UUID

from access.rows import only
from access.rules import Actor
from config import clock
from runs.models import Glance, Run


def record(run: Run, *, by: Actor, seq: int) -> None:
    """They had it before them up to this event. A page that was left later, but was behind, takes nothing back."""
    seq, now = min(seq, run.seq), clock.now()
    if by.user_id is None or seq < 1:
        return
    Glance.objects.get_or_create(run=run, person_id=by.user_id, defaults={"seq": seq, "at": now})
    Glance.objects.filter(run=run, person=by.user_id, seq__lte=seq).update(seq=seq, at=now)


def of(run_id: UUID, actor: Actor) -> Glance | None:
    """The last one of this person, if there was one. One query."""
    return only(Glance.objects.filter(run=run_id, person=actor.user_id)) if actor.user_id is not None else None
