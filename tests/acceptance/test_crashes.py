"""Workers are killed at random, several times a second: every run ends, and every effect is there exactly once or undone exactly once.

HANDRAIL_CRASHES=200 runs it at full size, with two minutes of killing; without it a smaller number is enough to find a mistake.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from tests.acceptance.crashing import ACCOUNT, ADDRESS
from tests.stack import Stack
from tests.waiting import until

RUNS = int(os.environ.get("HANDRAIL_CRASHES", "10"))
SECONDS = 120.0 if RUNS >= 200 else 8.0
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
def stack(tmp_path) -> Iterator[Stack]:
    env = {"HANDRAIL_WORKFLOWS": "examples.support_triage.workflow,tests.acceptance.crashing", "LEASE_SECONDS": "2"}
    with Stack(tmp_path, desk=True, first=["demo_seed"], env=env) as stack:
        yield stack


@pytest.mark.long
@pytest.mark.timeout(900)
def test_workers_killed_at_random_lose_nothing_and_do_nothing_twice(stack, capsys):
    runs = stack.manage("shell", "-v0", "-c", START.format(runs=RUNS, account=ACCOUNT, address=ADDRESS)).split()
    cancelled = runs[::4]
    kills = killing(stack, cancelled)
    until(lambda: not open_runs(stack), within=240, what=lambda: f"all runs to end, not {states(stack)}\n{stack.output()[-3000:]}")
    notes = httpx.get(f"{stack.desk_url}/accounts/{ACCOUNT}/notes", trust_env=False).json()["notes"]
    with capsys.disabled():
        back = sum(1 for note in notes if note["removed_at"])
        print(f"\n{RUNS} runs, {kills} workers killed: {states(stack)}; {len(notes)} notes, {back} taken back")
    effects_are_there_once(stack, notes)
    assert stack.manage("shell", "-v0", "-c", WHOLE).split() == ["True"] * RUNS


def killing(stack: Stack, cancelled: list[str]) -> int:
    """Kill whoever holds a lease, at random; half-way cancel some runs and restart Valkey. Gives how many were killed."""
    chance, end, kills, half = random.Random(7), time.monotonic() + SECONDS, 0, time.monotonic() + SECONDS / 2
    while time.monotonic() < end:
        pids = {row["pid"] for row in stack.query("SELECT pid FROM runs_lease WHERE pid > 0 AND until IS NOT NULL")}
        pool = set(stack.children(stack.pids().get("worker", 0)))
        for pid in chance.sample(sorted(pids & pool), k=min(1, len(pids & pool))):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                kills += 1
        if cancelled and time.monotonic() > half:
            stack.kill("valkey")
            stack.manage("shell", "-v0", "-c", CANCEL.format(runs=cancelled))
            cancelled = []
        time.sleep(chance.uniform(0.1, 0.5))
    return kills


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
