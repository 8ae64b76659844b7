"""Named points at which a worker can be made to stand still, for tests and for showing recovery.

A file called like the point, in the directory that `HANDRAIL_STOP_POINTS` names, stops the first worker that gets there with SIGSTOP and
is renamed to `point.pid`. Kill that process, or wake it with SIGCONT. Without the setting this does nothing.
"""

import os
import signal
from pathlib import Path

from django.conf import settings


def reached(name: str) -> None:
    directory = settings.HANDRAIL_STOP_POINTS
    if not directory:
        return
    wanted = Path(directory) / name
    try:
        wanted.rename(f"{wanted}.{os.getpid()}")  # one worker wins
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGSTOP)
