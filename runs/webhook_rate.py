"""How many webhooks one source may send in a minute: what keeps a sender gone wild from filling the vault and the workers' time."""

from datetime import timedelta
from math import ceil
from typing import ClassVar
from uuid import UUID

from django.conf import settings

from access.errors import Refusal
from config import clock
from runs.webhook_models import ReceivedWebhook

MINUTE = timedelta(minutes=1)


class TooManyWebhooks(Refusal):
    """This source sends very many webhooks."""

    status: ClassVar[int] = 429
    what_next: ClassVar[str] = "Nothing was kept. Wait as long as Retry-After says, and send it again with the same webhook-id."


def check(source_id: UUID) -> None:
    """TooManyWebhooks if so many were stored within a minute that there is no room for one more. One query, whose index
    walks as many entries as a source may send in a minute."""
    most, now = settings.HANDRAIL_WEBHOOKS_A_MINUTE, clock.now()
    newest = ReceivedWebhook.objects.filter(source=source_id).order_by("-received_at").values_list("received_at", flat=True)
    at = newest[most - 1 : most].first()
    if at is not None and at + MINUTE > now:
        wait = ceil((at + MINUTE - now).total_seconds())
        raise TooManyWebhooks(f"{most} in a minute is the most.", limit=most, retry_after=wait)
