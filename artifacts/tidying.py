"""Garbage: sealed files that no row names. A crash between a file and its row leaves one; so does a transaction that was taken back.

Files are listed first and their rows asked for afterwards, and a young file is left alone: what is on its way to its row is never taken.
"""

import itertools
from collections.abc import Iterator, Sequence
from datetime import timedelta

from artifacts import storing, traces, uploading
from artifacts.models import Payload
from config import clock

GRACE = timedelta(hours=1)  # longer than any transaction or upload of a part goes on
_AT_ONCE = 500


def orphans(grace: timedelta = GRACE) -> Iterator[str]:
    """The names of files that are older than `grace` and that nothing names."""
    names = storing.listed()
    while some := list(itertools.islice(names, _AT_ONCE)):
        yield from (name for name in _unnamed(some) if _is_old(name, grace))


def tidy(grace: timedelta = GRACE) -> tuple[int, int]:
    """Remove them, and the uploads whose time is over. How many uploads, and how many files."""
    over, gone = uploading.forget_expired(), 0
    traces.remove()  # what could not be cut off when it was erased
    for name in orphans(grace):
        storing.remove(name)
        gone += 1
    return over, gone


def _unnamed(names: Sequence[str]) -> list[str]:
    kept = set(Payload.objects.filter(stored__in=names).values_list("stored", flat=True))
    needed = uploading.in_flight() if any(name.startswith("uploads/") for name in names) else set()
    return [name for name in names if name not in kept and name.rpartition("/")[0] not in needed]


def _is_old(name: str, grace: timedelta) -> bool:
    written = storing.written_at(name)
    return written is not None and written < clock.now() - clock.offset() - grace  # files know nothing of a clock that was moved
