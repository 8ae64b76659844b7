"""`python -m config.second_beat SECONDS`: one more clock beside the one that is there, to see that it does no harm. It ends by itself."""

import os
import subprocess
import sys

from config.supervisor import LIFELINE

BEAT = ("-m", "celery", "-A", "config.beat", "-q", "beat", "--pidfile=")


def main(seconds: float) -> None:
    tied = (sys.executable, "-S", "-E", LIFELINE, str(os.getpid()), sys.executable)  # it ends with this process, also if that is killed
    beat = subprocess.Popen([*tied, *BEAT], stdin=subprocess.DEVNULL)  # noqa: S603  the command is ours
    try:
        beat.wait(seconds)
    except subprocess.TimeoutExpired:
        beat.terminate()
        beat.wait()


if __name__ == "__main__":
    main(float(sys.argv[1]))
