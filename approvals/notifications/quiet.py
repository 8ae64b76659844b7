"""Quiet hours. Pure: nothing here reads a clock or a database."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from itertools import product
from zoneinfo import ZoneInfo, available_timezones

SATURDAY = 5
LONGEST = 5  # days on end that quiet hours can take: a weekend with the evening before and the morning after


@dataclass(frozen=True)
class Quiet:
    """When somebody wants to be left alone: from–to on their own clock (over midnight too), and perhaps all weekend."""

    start: time | None = None
    end: time | None = None
    weekends: bool = False
    zone: str = "UTC"


def over(quiet: Quiet, at: datetime) -> datetime | None:
    """When the quiet time that `at` falls into ends; None if it is not quiet then."""
    local = at.astimezone(zone(quiet.zone))
    if not _is_quiet(quiet, local):
        return None
    ends = [t for t in (quiet.end, time(0)) if t is not None]
    for day in range(LONGEST):
        for end, fold in product(sorted(ends), (0, 1)):
            # on the wall clock, so that a night with 23 or 25 hours ends when the person says: where an hour comes twice, at either end
            then = datetime.combine(local.date() + timedelta(days=day), end, local.tzinfo).replace(fold=fold)
            if then.astimezone(UTC) > at.astimezone(UTC) and not _is_quiet(quiet, then):
                return then.astimezone(UTC)
    return None


def zone(name: str) -> ZoneInfo:
    return ZoneInfo(name if is_zone(name) else "UTC")


def is_zone(name: str) -> bool:
    return name in zones()


@lru_cache(maxsize=1)
def zones() -> frozenset[str]:
    """All there are. Kept, for the library reads hundreds of files each time it is asked."""
    return frozenset(available_timezones())


def _is_quiet(quiet: Quiet, local: datetime) -> bool:
    if quiet.weekends and local.weekday() >= SATURDAY:
        return True
    if quiet.start is None or quiet.end is None or quiet.start == quiet.end:
        return False
    now = local.time().replace(tzinfo=None)
    if quiet.start < quiet.end:
        return quiet.start <= now < quiet.end
    return now >= quiet.start or now < quiet.end
