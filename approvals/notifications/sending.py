"""Sending. Deliveries that are due become messages; a message is claimed with a fencing token, sent, and settled.

At least once: who dies between sending and saying so leaves the message to the next, which sends it under the same id.
"""

import logging
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q

from access import audit, rules
from access.rules import Actor
from approvals.notifications import audience, mail, preferences, webhooks, wording
from approvals.notifications.models import Delivery, Message, Notice
from approvals.notifications.outcomes import Dropped, Failed, Outcome, Sent
from config import clock
from runs.engine import points, retry
from runs.engine.retry import Retry
from runs.models import Run

POLICY = Retry(attempts=8, first=10, factor=4, longest=4 * 3600)  # seconds; about eight hours in all
LEASE = timedelta(seconds=90)  # longer than the slowest conversation with a mail server
GROUP, BATCH = 50, 20
CHANNELS = {"mail": mail.send, "webhook": webhooks.send}
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Claim:
    message: Message
    token: int


def pack() -> int:
    """Put what is due for one person by one channel into one message. Gives how many messages were made."""
    due = Delivery.objects.filter(message=None, due_at__lte=clock.now()).values_list("notice__workspace_id", "user_id", "channel")
    return sum(_pack(*group) for group in list(due.distinct()[:BATCH]))


def send_due() -> int:
    """Send what can be sent now. Gives how many were tried."""
    now = clock.now()
    free = Q(lease_until=None) | Q(lease_until__lt=now)
    waiting = Message.objects.filter(free, state="waiting", next_at__lte=now).order_by("next_at").values_list("pk", flat=True)
    return sum(_send(pk) for pk in list(waiting[:BATCH]))


def send_test(actor: Actor, workspace_id: UUID, channel: str) -> Message:
    """A message that says how messages look, to this person by this channel. Sent by a worker, like any other; one at a time."""
    first = Message.objects.filter(user_id=actor.user_id, channel=channel, test=True, state="waiting").first()
    return first or Message.objects.create(workspace_id=workspace_id, user_id=actor.user_id, channel=channel, test=True)


def try_again(message: Message, *, by: Actor) -> bool:
    """Let a dead letter be sent after all. False if it was not dead any more."""
    with transaction.atomic(durable=True):
        dead = Message.objects.filter(pk=message.pk, state="dead")
        again = dead.update(state="waiting", attempts=0, next_at=clock.now(), lease_until=None, settled_at=None, trouble="") == 1
        if again:
            audit.record(by, "notification_tried_again", workspace_id=message.workspace_id, subject=("message", message.pk))
    return again


@dataclass(frozen=True)
class Letter:
    """What could not be delivered for good: the message, and the runs that it tells of, as far as this person sees them."""

    message: Message
    runs: tuple[Run, ...]

    @property
    def more(self) -> int:
        """How many runs beside the first."""
        return len(self.runs) - 1

    @property
    def arrived(self) -> tuple[str, str]:
        """Whether the other side may have it all the same: how that is drawn, and its word."""
        return ("unknown", "Not known") if self.message.trouble == "timed out" else ("planned", "No")


def dead_letters(actor: Actor) -> list[Letter]:
    """What could not be delivered for good, newest first, for operators. A fixed number of queries."""
    rows = rules.visible(actor, Message, "runs.recover").filter(state="dead")
    messages = list(rows.select_related("user").order_by("-settled_at")[:100])
    about: dict[UUID, dict[UUID, None]] = {message.pk: {} for message in messages}
    told = Delivery.objects.filter(message__in=messages, notice__run__isnull=False).order_by("notice__created_at")
    for message, run in told.values_list("message_id", "notice__run_id"):
        about[message][run] = None
    seen = rules.visible(actor, Run, "runs.view").select_related("title").in_bulk({run for runs in about.values() for run in runs})
    return [Letter(message, tuple(seen[run] for run in about[message.pk] if run in seen)) for message in messages]


def _pack(workspace_id: UUID, user_id: UUID, channel: str) -> bool:
    """All that waits for this person goes along, but for what their quiet hours hold back."""
    now = clock.now()
    ready = Q(due_at__lte=now) | Q(held=False)
    waiting = Delivery.objects.filter(ready, message=None, user_id=user_id, channel=channel, notice__workspace_id=workspace_id)
    ids = list(waiting.order_by("due_at").values_list("pk", flat=True)[:GROUP])
    with transaction.atomic(durable=True):
        message = Message.objects.create(workspace_id=workspace_id, user_id=user_id, channel=channel)
        packed = Delivery.objects.filter(pk__in=ids, message=None).update(message=message)
        if packed:
            Message.objects.filter(pk=message.pk).update(count=packed)
        else:  # another worker was faster
            Message.objects.filter(pk=message.pk).delete()
    return packed > 0


def _send(pk: UUID) -> bool:
    claim = _claim(pk)
    if claim is None:
        return False
    outcome = _tried(claim.message)
    points.reached("notified")
    _settle(claim, outcome)
    return True


def _claim(pk: UUID) -> _Claim | None:
    now = clock.now()
    message = Message.objects.select_related("user").get(pk=pk)
    free = Q(lease_until=None) | Q(lease_until__lt=now)
    mine = Message.objects.filter(free, pk=pk, state="waiting", next_at__lte=now, token=message.token)
    if mine.update(token=F("token") + 1, attempts=F("attempts") + 1, lease_until=now + LEASE) != 1:
        return None
    message.attempts += 1
    return _Claim(message, message.token + 1)


def _tried(message: Message) -> Outcome:
    try:
        items = _items(message)
        return CHANNELS[message.channel](message, items) if items else Dropped()
    except Exception as error:  # one message that breaks its sender must not keep the others
        logger.exception("a notification broke its sender", extra={"notification": str(message.pk)})
        return Failed(type(error).__name__[:20], retryable=True)


def _items(message: Message) -> list[wording.Item]:
    """What it says. Each notice is judged again: who may no longer act on it, or has nothing to do any more, is not told."""
    zone = preferences.of(message.user_id).quiet.zone
    if message.test:
        return [wording.example(zone)]
    notices = Notice.objects.filter(deliveries__message=message).select_related(*audience.OF_ACTION).order_by("created_at")
    told: dict[tuple[str, object], wording.Item] = {}
    for notice in audience.still(notices, message.user_id):
        told[(notice.kind, notice.action_id or notice.run_id or notice.pk)] = wording.item(notice, zone)
    return list(told.values())


def _settle(claim: _Claim, outcome: Outcome) -> None:
    now, pk = clock.now(), claim.message.pk
    match outcome:
        case Sent():
            values = {"state": "sent", "settled_at": now, "trouble": ""}
        case Dropped():
            values = {"state": "dropped", "settled_at": now, "trouble": ""}
        case Failed(trouble=trouble, retryable=retryable):
            values = {"trouble": trouble} | _after(claim.message, retryable)
            logger.warning(
                "notification not delivered", extra={"notification": str(pk), "channel": claim.message.channel, "error": trouble}
            )
    mine = Message.objects.filter(pk=pk, token=claim.token, state="waiting")
    if mine.update(lease_until=None, **values) != 1:
        logger.warning("overtaken: another worker has this notification", extra={"notification": str(pk)})


def _after(message: Message, retryable: bool) -> dict[str, object]:
    match retry.decide(POLICY, attempt=message.attempts, retryable=retryable):
        case retry.Again(wait=seconds):
            return {"next_at": clock.now() + timedelta(seconds=seconds)}
    return {"state": "dead", "settled_at": clock.now()}
