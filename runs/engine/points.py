"""Named points at which a worker can be made to stand still or to die, for tests and for showing recovery.

A file called like the point, in the directory that `HANDRAIL_STOP_POINTS` names, stops the first worker that gets there with SIGSTOP and
is renamed to `point.pid`. Kill that process, or wake it with SIGCONT. `point@run` is for the workers of one run; one that holds the word
`kill` has the worker killed there and then. Into a file called `reached` each point is written that a worker comes to.

    claimed                        the run is this worker's; nothing was done yet
    begin-STEP    end-STEP         in the transaction that writes a step down: that it begins, and what it gave; `:` stands for `/` in it
    asking-STEP   model-answered   a read or a model is about to be asked; a model has answered
    proposed-TOOL                  an action was put up
    approved   redeemed-TOOL   calling-TOOL   called-TOOL   looked-up-TOOL
    waiting   ending   ended       in the transactions with which a walk ends, and after the last
"""

import os
import re
import signal
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from django.conf import settings

RECORD, KILL = "reached", "kill"


def reached(name: str, run_id: UUID | None = None) -> None:
    """A worker has come to this point. Does nothing without the setting."""
    if directory := settings.HANDRAIL_STOP_POINTS:
        _reached(Path(directory), re.sub(r"undo-[\d-]+/", "undo:", name).replace("/", ":"), run_id)


def _reached(directory: Path, name: str, run_id: UUID | None) -> None:
    with suppress(FileNotFoundError):
        record = os.open(directory / RECORD, os.O_WRONLY | os.O_APPEND)
        os.write(record, f"{name}@{run_id}\n".encode())
        os.close(record)
    for wanted in (directory / name, directory / f"{name}@{run_id}"):
        taken = wanted.with_name(f"{wanted.name}.{os.getpid()}")
        try:
            wanted.rename(taken)  # one worker wins
        except FileNotFoundError:
            continue
        os.kill(os.getpid(), signal.SIGKILL if taken.read_text() == KILL else signal.SIGSTOP)
