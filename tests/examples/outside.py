"""The outside world as a real process on free ports."""

import re
import signal
import subprocess
import sys
from multiprocessing.connection import wait
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "examples.support_triage.desk"]


class World:
    """A running desk: `http` is a plain client of it, `smtp` the (host, port) of its mail server."""

    def __init__(self, folder: Path, patience: float = 20.0, http_port: int = 0, smtp_port: int = 0) -> None:
        ports = ["--http-port", str(http_port), "--smtp-port", str(smtp_port), "--patience", str(patience)]
        self.process = subprocess.Popen(
            [*COMMAND, "--data", str(folder), *ports], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        ready = wait([self.process.stdout], 60)
        line = self.process.stdout.readline() if ready else ""
        match = re.fullmatch(r"desk: (http://127\.0\.0\.1:(\d+)/) and SMTP on 127\.0\.0\.1:(\d+), data in .*\n", line)
        if not match:
            self.process.kill()
            pytest.fail(f"the desk did not start: {line!r} {self.process.stderr.read()}")
        self.url, self.smtp = match[1], ("127.0.0.1", int(match[3]))
        self.http_port = int(match[2])
        self.http = httpx.Client(base_url=self.url, timeout=40, trust_env=False)

    def stop(self, how: int = signal.SIGTERM) -> str:
        """Stop it, and return what it said on standard error."""
        self.http.close()
        self.process.send_signal(how)
        _, said = self.process.communicate(timeout=40)
        return said

    def plant(self, where: str, fault: str = "drop_answer", times: int = 1) -> None:
        self.http.post("/faults", json={"where": where, "fault": fault, "times": times}).raise_for_status()

    def ledger(self) -> list[dict]:
        return self.http.get("/ledger").json()["effects"]
