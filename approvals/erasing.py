"""What of a run's payloads approvals hold, and which of its actions need theirs still."""

from collections.abc import Collection, Iterator
from uuid import UUID

from django.db.models import Q

from access.rows import only
from approvals.models import OPEN, Decision, Grant, ProposedAction, StandingGrant
from config import clock
from runs import erasing
from runs.models import Run


def register() -> None:
    """Have the runs' erasing ask here too."""
    if held not in erasing.holders:
        erasing.holders.append(held)
        erasing.needs.append(needed)
        erasing.parts.append(proposed)


def proposed(run: Run, seq: int) -> tuple[str, Collection[UUID]]:
    """Of the action that this event put up: its arguments, words and files."""
    row = only(ProposedAction.objects.filter(run_id=run.pk, proposed_seq=seq).values_list("canonical", "subject", "reason", "attachments"))
    *ids, files = row or ([],)
    return "the action: arguments, words and files", [pk for pk in ids if pk] + [UUID(each) for each in files]


def held(runs: Collection[UUID]) -> Iterator[UUID]:
    """Arguments, words, attachments, reasons, receipts; and the standing grants that were made from these actions."""
    actions = ProposedAction.objects.filter(run_id__in=runs)
    for *ids, attachments in actions.values_list("canonical", "subject", "reason", "closed_why", "attachments"):
        yield from (pk for pk in ids if pk)
        yield from map(UUID, attachments)
    of_theirs = (
        Decision.objects.filter(action__run_id__in=runs).values_list("reason"),
        Grant.objects.filter(action__run_id__in=runs).values_list("receipt"),
        StandingGrant.objects.filter(made_from__run_id__in=runs).values_list("kept"),
    )
    for rows in of_theirs:
        yield from (pk for (pk,) in rows if pk)


def needed(runs: Collection[UUID]) -> Iterator[str]:
    """Actions that wait for a decision, may still run, or of which nobody knows what came."""
    rows = ProposedAction.objects.filter(run_id__in=runs).order_by("proposed_at")
    waits = rows.filter(state="waiting").values_list("tool", "run__ref")
    yield from (f"{tool} of {ref} waits for a decision. Decide on it, or withdraw it." for tool, ref in waits)
    granted = rows.filter(state__in=OPEN, grant__voided_at=None, grant__redeemed_at=None, grant__expires_at__gt=clock.now())
    for tool, ref in granted.values_list("tool", "run__ref"):
        yield f"{tool} of {ref} is approved and has not run. Recall it, or let it run."
    lost = rows.filter(Q(grant__redeemed_at__isnull=False, grant__outcome="none") | Q(grant__outcome="unknown")).values_list(
        "tool", "run__ref"
    )
    yield from (f"Nobody knows yet what came of {tool} of {ref}. Say what happened to it first." for tool, ref in lost)
