"""What people choose on the pages of notifications, read from the form. Odd input becomes a sentence, never an error."""

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta

from django.http import QueryDict

from approvals.notifications import quiet
from approvals.notifications.delegation import DelegationRefused
from approvals.notifications.models import CHANNELS, KINDS
from approvals.notifications.preferences import Wishes
from approvals.notifications.quiet import Quiet


def wishes(posted: QueryDict) -> tuple[Wishes, str]:
    """What was chosen, and what of it is no time of day; empty if all is."""
    channels = {kind: tuple(c for c in CHANNELS if c in posted.getlist(kind)) for kind in KINDS}
    start, end = _time(posted.get("quiet_from", "")), _time(posted.get("quiet_to", ""))
    kept = Quiet(_none(start), _none(end), posted.get("weekends") == "on", posted.get("zone", "UTC")[:60])
    wrong = "A time of day is written as 18:30." if start is False or end is False else ""
    return Wishes(channels, kept, posted.get("through") == "on"), wrong


def days(posted: Mapping[str, str], zone: str) -> tuple[datetime, datetime]:
    """From the first moment of one day to the last of the other, on the person's own clock."""
    try:
        first, last = (datetime.combine(datetime.strptime(posted.get(name, ""), "%Y-%m-%d"), time()) for name in ("from", "until"))
        here = quiet.zone(zone)
        return first.replace(tzinfo=here).astimezone(UTC), (last + timedelta(days=1)).replace(tzinfo=here).astimezone(UTC)
    except (ValueError, OverflowError):
        raise DelegationRefused("Give both days, as 2026-12-07.") from None


def minutes(text: str) -> timedelta:
    """So many minutes; none if it is no number."""
    plain = text.strip()
    return timedelta(minutes=int(plain)) if plain.isascii() and plain.isdigit() and len(plain) < 7 else timedelta()


def _time(text: str) -> time | None | bool:
    """A time of day, None if nothing was given, False if it is none: a time that names its own offset is none on the person's clock."""
    if not text.strip():
        return None
    try:
        found = time.fromisoformat(text.strip())
    except ValueError:
        return False
    return found.replace(second=0, microsecond=0) if found.tzinfo is None else False


def _none(found: time | None | bool) -> time | None:
    return found if isinstance(found, time) else None
