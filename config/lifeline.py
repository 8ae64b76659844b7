"""Ties a process to the life of its parent, so that nothing is left running when the parent is killed with -9.

`python lifeline.py PARENT COMMAND…` becomes COMMAND and ends with process PARENT. On Linux the kernel sees to it
(`PR_SET_PDEATHSIG`); elsewhere this process stays as a watcher between the two. Standard library only, and fast to start.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
LOOK_EVERY = 0.5  # seconds, where the kernel cannot tell


def tie(parent: int) -> None:
    """End this process by SIGKILL when `parent` ends, also if it already has. To be called in the child."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    else:
        threading.Thread(target=_watch, args=(parent,), name="lifeline", daemon=True).start()
    if os.getppid() != parent:  # it ended before the tie was made
        os.kill(os.getpid(), signal.SIGKILL)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os.kill(os.getpid(), signal.SIGKILL)


def main(parent: int, command: list[str]) -> None:
    if sys.platform == "linux":
        tie(parent)
        os.execvp(command[0], command)  # noqa: S606  the command is the supervisor's own
    sys.exit(_stand_between(parent, command))


def _stand_between(parent: int, command: list[str]) -> int:
    """Where a process cannot be tied: run the command as a child, pass signals on, and kill it when `parent` is gone."""
    child = subprocess.Popen(command, close_fds=False)  # noqa: S603  as above
    for passed in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(passed, lambda number, _: child.send_signal(number))
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(LOOK_EVERY)
        if os.getppid() != parent:
            child.kill()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
