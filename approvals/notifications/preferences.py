"""What each person wants to be told. Who never said anything is told by e-mail of what asks something of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings

from access.errors import BadInput
from access.rules import Actor
from approvals.notifications import quiet
from approvals.notifications.models import CHANNELS, KINDS, Preferences, Webhook
from approvals.notifications.quiet import Quiet

BY_DEFAULT: Mapping[str, tuple[str, ...]] = {"ended": (), "answered": ("mail",)}
DEFAULT: Mapping[str, tuple[str, ...]] = {kind: BY_DEFAULT.get(kind, CHANNELS) for kind in KINDS}


class OddPreference(BadInput):
    """These settings can't be kept."""

    what_next = "Nothing was saved. Mend what is said here, and save again."


@dataclass(frozen=True)
class Wishes:
    """One person's wishes. `channels` maps a kind to the channels it goes by."""

    channels: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: DEFAULT)
    quiet: Quiet = Quiet()
    lets_through: bool = True


def of(user_id: UUID) -> Wishes:
    return of_all([user_id])[user_id]


def of_all(user_ids: Iterable[UUID]) -> dict[UUID, Wishes]:
    """The wishes of these people. One query."""
    ids = set(user_ids)
    kept = Preferences.objects.in_bulk(ids)
    return {pk: _wishes(kept[pk]) if pk in kept else Wishes() for pk in ids}


def reachable(user_ids: Iterable[UUID]) -> dict[UUID, tuple[str, ...]]:
    """By which channels each can be reached at all."""
    ids = set(user_ids)
    hooked = set(Webhook.objects.filter(user_id__in=ids).values_list("user_id", flat=True))
    mail = ("mail",) if settings.HANDRAIL_MAIL else ()
    return {pk: (*mail, *(("webhook",) if pk in hooked else ())) for pk in ids}


def keep(actor: Actor, wishes: Wishes) -> None:
    """Keep what this person wants. OddPreference says what can't be."""
    start, end = wishes.quiet.start, wishes.quiet.end
    if (start is None) != (end is None):
        raise OddPreference("Quiet hours need both a beginning and an end, or neither.")
    if start is not None and start == end:
        raise OddPreference("Quiet hours that begin when they end would never be over.")
    if not quiet.is_zone(wishes.quiet.zone):
        raise OddPreference("Choose a time zone from the list.")
    told = {kind: [c for c in CHANNELS if c in wishes.channels.get(kind, ())] for kind in KINDS}
    values = {
        "channels": told,
        "quiet_from": start,
        "quiet_to": end,
        "quiet_weekends": wishes.quiet.weekends,
        "time_zone": wishes.quiet.zone,
        "lets_through": wishes.lets_through,
    }
    Preferences.objects.update_or_create(user_id=actor.user_id, defaults=values)


def _wishes(kept: Preferences) -> Wishes:
    channels = {kind: tuple(kept.channels.get(kind, DEFAULT[kind])) for kind in KINDS}
    return Wishes(channels, Quiet(kept.quiet_from, kept.quiet_to, kept.quiet_weekends, kept.time_zone), kept.lets_through)
