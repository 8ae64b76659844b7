"""Notices that were told are kept for a while, to see what was sent to whom, and then forgotten. The log keeps what happened.

What waits, is held for quiet hours, or could not be delivered and is an operator's to look at stays; so does what was said of an action
that waits still, for that is how it is known that it was said.
"""

from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from approvals.notifications.models import Delivery, Message, Notice
from config import clock

BATCH = 1000  # rows of each kind at once; the next beat goes on


def tidy() -> int:
    """How many messages were forgotten. Two at once do no harm."""
    now = clock.now()
    before = now - timedelta(days=settings.HANDRAIL_NOTICES_KEPT)
    old = Message.objects.filter(state__in=("sent", "dropped"), settled_at__lt=before).order_by("settled_at")
    messages = list(old.values_list("pk", flat=True)[:BATCH])
    Delivery.objects.filter(message__in=messages).delete()
    Message.objects.filter(pk__in=messages).exclude(Exists(Delivery.objects.filter(message=OuterRef("pk")))).delete()
    told = Notice.objects.filter(spread_at__lt=before, created_at__lt=before).exclude(action__state="waiting")
    told = told.filter(Q(until=None) | Q(until__lt=now)).exclude(Exists(Delivery.objects.filter(notice=OuterRef("pk"))))
    Notice.objects.filter(pk__in=list(told.order_by("created_at").values_list("pk", flat=True)[:BATCH])).delete()
    return len(messages)
