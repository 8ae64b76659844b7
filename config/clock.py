"""The one clock. Everything that needs the time of day asks `now()`; nothing else in the project reads a clock for a decision.

An acceptance test moves the time of every process at once: `HANDRAIL_CLOCK_FILE` names a file that holds an offset in seconds.
"""

import os
import pathlib
from datetime import UTC, datetime, timedelta

_OFFSET_FILE = os.environ.get("HANDRAIL_CLOCK_FILE", "")


def now() -> datetime:
    """The current time, aware, in UTC, with microseconds."""
    return datetime.now(UTC) + offset()


def offset() -> timedelta:
    """How far the clock is moved; zero unless a clock file is set and holds a number of seconds."""
    if not _OFFSET_FILE:
        return timedelta()
    try:
        return timedelta(seconds=float(pathlib.Path(_OFFSET_FILE).read_text()))
    except FileNotFoundError:
        return timedelta()
