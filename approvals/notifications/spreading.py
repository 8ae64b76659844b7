"""From the outbox to people: each notice becomes a delivery for everybody it asks something of, by the channels they chose.

Two workers at once do no harm: a notice is spread by a guarded change, in the transaction that writes its deliveries.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from approvals.notifications import audience, preferences, quiet
from approvals.notifications.models import Delivery, Notice
from approvals.notifications.preferences import Wishes
from config import clock

GATHER = timedelta(seconds=5)  # what comes so close together becomes one message
BATCH = 200


def spread() -> int:
    """Gives how many notices were spread."""
    waiting = Notice.objects.filter(spread_at=None).order_by("created_at").values_list("pk", flat=True)
    return sum(_spread(pk) for pk in list(waiting[:BATCH]))


def due(notice: Notice, wishes: Wishes, now: datetime) -> tuple[datetime, bool]:
    """When this may be told to somebody, and whether it is held for their quiet hours. Pure."""
    soon = now + GATHER
    until = quiet.over(wishes.quiet, soon)
    if until is None or (wishes.lets_through and _presses(notice, until)):
        return soon, False
    return until, True


def _presses(notice: Notice, quiet_until: datetime) -> bool:
    grave = notice.kind in ("alarm", "glass") or (notice.action is not None and notice.action.risk == 3)
    return grave or (notice.until is not None and notice.until <= quiet_until)


def _spread(pk: UUID) -> bool:
    with transaction.atomic(durable=True):
        now = clock.now()
        if Notice.objects.filter(pk=pk, spread_at=None).update(spread_at=now) != 1:
            return False  # another worker was faster
        notice = Notice.objects.select_related(*audience.OF_ACTION).get(pk=pk)
        ids = [user.pk for user in audience.people(notice)]
        wishes, reach = preferences.of_all(ids), preferences.reachable(ids)
        rows = []
        for user_id in ids:
            at, held = due(notice, wishes[user_id], now)
            chosen = (c for c in wishes[user_id].channels[notice.kind] if c in reach[user_id])
            rows += [Delivery(notice=notice, user_id=user_id, channel=channel, due_at=at, held=held) for channel in chosen]
        Delivery.objects.bulk_create(rows, ignore_conflicts=True)
    return True
