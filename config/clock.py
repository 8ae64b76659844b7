"""The one clock. Everything that needs the time of day asks `now()`; nothing else in the project reads a clock for a decision.

`HANDRAIL_CLOCK_FILE` moves the time of every process at once: it names a file that holds an offset in seconds. For acceptance tests, and
for the demo, where a day can be let pass.
"""

import os
import pathlib
from datetime import UTC, datetime, timedelta

VARIABLE = "HANDRAIL_CLOCK_FILE"


def now() -> datetime:
    """The current time, aware, in UTC, with microseconds."""
    moved = offset()
    return datetime.now(UTC) + moved if moved else datetime.now(UTC)


def offset() -> timedelta:
    """How far the clock is moved; zero unless a clock file is set and holds a number of seconds."""
    file = os.environ.get(VARIABLE)
    if not file:
        return timedelta()
    try:
        return timedelta(seconds=float(pathlib.Path(file).read_text()))
    except FileNotFoundError:
        return timedelta()


def forward(by: timedelta) -> bool:
    """Let so much time pass for every process that shares the clock file; False if none is set. Never back: what was done stays before."""
    file = os.environ.get(VARIABLE)
    if not file or by <= timedelta():
        return False
    draft = pathlib.Path(f"{file}.{os.getpid()}")
    draft.write_text(str((offset() + by).total_seconds()))
    draft.replace(file)  # who reads it meanwhile reads the old or the new
    return True
