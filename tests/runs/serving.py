"""A served Handrail with a small cast in it, for tests that speak to it as agents and people do: over the wire."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.stack import ROOT, Stack


class House(Stack):
    """A stack without workers. `cast` says who is in it: two workspaces, `ours` and `theirs`, as `seed.py` makes them."""

    def __init__(self, where: Path) -> None:
        super().__init__(where, without=["worker", "beat"])
        self.cast: dict[str, Any] = {}

    def start(self) -> "House":
        super().start()
        self.cast = self.cast or self._seed("cast")
        return self

    @property
    def socket_url(self) -> str:
        return self.base_url.replace("http", "ws", 1)

    def client(self, who: Mapping[str, str] | None = None, **more: Any) -> httpx.Client:
        """A client of the API, as an agent with its key or a person with their session."""
        return httpx.Client(base_url=f"{self.base_url}/api/v1/", headers=headers(who), timeout=60, **more)

    def made(self, *every: str) -> dict[str, dict[str, str]]:
        """For each of these ways somebody whose rights will be withdrawn in that way."""
        return self._seed("made", *every)

    def withdraw(self, every: Mapping[str, Mapping[str, str]]) -> None:
        """From each in their way, one right after the other."""
        self._seed("withdraw", json.dumps(every))

    def open_databases(self) -> int:
        """How many connections the web server has to its database."""
        if self.database == "postgres":
            return self.query("SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'handrail'")[0]["n"]
        there = Path(f"/proc/{self.pid('web')}/fd").iterdir()
        return [each.readlink().name for each in there if each.is_symlink()].count("handrail.sqlite3")

    def _seed(self, *words: str) -> Any:
        command = [sys.executable, "-m", "tests.runs.seed", *words]
        done = subprocess.run(command, cwd=ROOT, env=self.env | {"PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def headers(who: Mapping[str, str] | None) -> dict[str, str]:
    if who is None:
        return {}
    return {"Authorization": f"Bearer {who['token']}"} if "token" in who else {"Cookie": who["cookie"]}
