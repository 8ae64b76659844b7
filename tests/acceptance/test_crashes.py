"""Workers are killed at random, several times a second, and Valkey and PostgreSQL crash meanwhile: every run ends, every effect is there
exactly once or undone exactly once, and who follows a run over a socket hears each event once.

HANDRAIL_CRASHES=200 runs it at full size, with two minutes of killing; without it a smaller number is enough to find a mistake. The
PostgreSQL that crashes is a server of this test's own; SQLite has none.
"""

import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from uuid import UUID

import httpx
import pytest
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests import postgres
from tests.acceptance.crashing import ACCOUNT, ADDRESS
from tests.acceptance.triage import PATIENCE, Person
from tests.stack import Stack
from tests.waiting import until

RUNS = int(os.environ.get("HANDRAIL_CRASHES", "10"))
SECONDS = 120.0 if RUNS >= 200 else 8.0
ENDING = 900.0 if RUNS >= 200 else 240.0  # a bound for a machine that does much else
AWAY = 3.0  # seconds without PostgreSQL
FOLLOWED = 3  # runs
START = """
from access.models import Agent
from access.rules import Actor
from runs import starting
agent = Agent.objects.select_related("owner").get(name="support-triage")
by = Actor("human", str(agent.owner_id), agent.owner.name)
for n in range({runs}):
    scope = {{"account": ["{account}"], "email": ["{address}"]}}
    more = {{"workflow": "crashing", "arguments": {{"name": f"Crash {{n}}"}}, "scope": scope}}
    run = starting.start(agent=agent, owner=agent.owner, by=by, title=f"Crash {{n}}", **more)
    print(run.pk)
"""
CANCEL = """
from access.models import User
from access.rules import person
from runs import signals
from runs.models import Run
otto = person(User.objects.get(email="otto@fernhill.example").pk)
for pk in {runs}:
    signals.send(Run.objects.get(pk=pk), kind="cancel", key="crash", by=otto)
"""


WHOLE = """
from runs.models import Run
from runs.verification import Whole, verify
for run in Run.objects.filter(workflow="crashing"):
    print(isinstance(verify(run), Whole))
"""


@pytest.fixture
def cluster() -> postgres.Cluster | None:
    """A PostgreSQL that may crash. It keeps each commit: only the machine may not fail."""
    on_sqlite = os.environ.get("HANDRAIL_TEST_DB", "sqlite") == "sqlite"
    return None if on_sqlite else postgres.Cluster(postgres.FAST | {"synchronous_commit": "on"})


@pytest.fixture
def stack(tmp_path, cluster) -> Iterator[Stack]:
    env = {"HANDRAIL_WORKFLOWS": "examples.support_triage.workflow,tests.acceptance.crashing", "LEASE_SECONDS": "2"}
    with Stack(tmp_path, desk=True, first=["demo_seed"], env=env, cluster=cluster) as stack:
        yield stack


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_workers_killed_at_random_lose_nothing_and_do_nothing_twice(stack, cluster, capsys):
    runs = stack.manage("shell", "-v0", "-c", START.format(runs=RUNS, account=ACCOUNT, address=ADDRESS)).split()
    followers = [Follower(stack, run) for run in runs[-FOLLOWED:]]
    told = killing(stack, cluster, cancelled=runs[::4])
    until(lambda: not open_runs(stack), within=ENDING, what=lambda: f"all runs to end, not {states(stack)}\n{stack.output()[-3000:]}")
    notes = httpx.get(f"{stack.desk_url}/accounts/{ACCOUNT}/notes", trust_env=False).json()["notes"]
    with capsys.disabled():
        back = sum(1 for note in notes if note["removed_at"])
        cuts = sum(follower.hear_all() for follower in followers)
        print(f"\n{RUNS} runs, {told}: {states(stack)}; {len(notes)} notes, {back} taken back; {FOLLOWED} followed, cut off {cuts} times")
    effects_are_there_once(stack, notes)
    assert stack.manage("shell", "-v0", "-c", WHOLE).split() == ["True"] * RUNS


class Follower(threading.Thread):
    """Follows one run over a socket, and comes back with its cursor whenever it is cut off."""

    def __init__(self, stack: Stack, run: str) -> None:
        super().__init__(daemon=True)
        self.stack, self.run_id, self.seqs, self.cuts, self.end = stack, run, [], 0, {}
        with Person(stack, "Otto") as otto:
            self.headers = {"Cookie": "; ".join(f"{cookie.name}={cookie.value}" for cookie in otto.http.cookies.jar)}
        self.start()

    def run(self) -> None:
        while not self.end:
            try:
                self._listen()
            except (OSError, WebSocketException):
                self.cuts += 1
                time.sleep(0.5)

    def _listen(self) -> None:
        address = f"{self.stack.base_url.replace('http', 'ws')}/ws/runs/{self.run_id}?after={self.seqs[-1] if self.seqs else 0}"
        with connect(address, additional_headers=self.headers, origin=self.stack.base_url, proxy=None) as socket:
            for frame in socket:
                said = json.loads(frame)
                if "end" in said or "problem" in said:
                    self.end = said
                else:
                    self.seqs.append(said["seq"])
        if not self.end:
            raise ConnectionError

    def hear_all(self) -> int:
        """How often it was cut off, once it has heard the end. Each event came once, in order, and none is missing."""
        self.join(PATIENCE)
        head = self.stack.query("SELECT seq FROM runs_run WHERE id = %s", UUID(self.run_id))[0]["seq"]
        assert self.end.get("end") and self.seqs == list(range(1, head + 1)), (self.end, self.seqs)
        return self.cuts


def killing(stack: Stack, cluster: postgres.Cluster | None, *, cancelled: list[str]) -> str:
    """Kill whoever holds a lease, at random; after a third PostgreSQL crashes, half-way some runs are cancelled and Valkey crashes."""
    chance, began, kills, crashes = random.Random(7), time.monotonic(), 0, ["Valkey"]
    while (passed := (time.monotonic() - began) / SECONDS) < 1:
        pool = set(stack.children(stack.pids().get("worker", 0)))
        pids = {row["pid"] for row in stack.query("SELECT pid FROM runs_lease WHERE pid > 0 AND until IS NOT NULL")} & pool
        for pid in chance.sample(sorted(pids), k=min(1, len(pids))):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                kills += 1
        if cluster is not None and passed > 1 / 3 and "PostgreSQL" not in crashes:
            crashes.append("PostgreSQL")
            began += crash(cluster)  # however long that takes here, it is followed by the rest
        if cancelled and passed > 1 / 2:
            stack.kill("valkey")
            stack.manage("shell", "-v0", "-c", CANCEL.format(runs=cancelled))
            cancelled = []
        time.sleep(chance.uniform(0.1, 0.5))
    return f"{kills} workers killed, {' and '.join(sorted(crashes))} crashed once"


def crash(cluster: postgres.Cluster) -> float:
    """It ends without a word, is away for a while, and recovers from its log. Gives the seconds until it answers again."""
    began = time.monotonic()
    cluster.stop(signal.SIGQUIT)
    time.sleep(AWAY)
    cluster.start()
    return time.monotonic() - began


def open_runs(stack: Stack) -> int:
    return stack.query("SELECT count(*) AS n FROM runs_run WHERE workflow = %s AND ended_at IS NULL", "crashing")[0]["n"]


def states(stack: Stack) -> dict[str, int]:
    rows = stack.query("SELECT state, count(*) AS n FROM runs_run WHERE workflow = %s GROUP BY state", "crashing")
    return {row["state"]: row["n"] for row in rows}


def effects_are_there_once(stack: Stack, notes: list[dict]) -> None:
    """By what the desk itself says: no note twice; of a run that is done all five, of a cancelled one none that was not taken back."""
    texts = [note["text"] for note in notes]
    assert len(texts) == len(set(texts))
    rows = stack.query("SELECT state FROM runs_run WHERE workflow = %s ORDER BY created_at", "crashing")
    assert {row["state"] for row in rows} <= {"succeeded", "cancelled"}
    for number, state in enumerate(row["state"] for row in rows):
        mine = [note for note in notes if note["text"].startswith(f"Crash {number},")]
        stand = [note for note in mine if not note["removed_at"]]
        assert (len(mine), len(stand)) == (5, 5) if state == "succeeded" else not stand, (number, state, mine)
