"""A worker that dies or freezes at the worst moments: the run goes on by itself, and nothing happens twice outside.

Real processes: Daphne, Celery, beat, Valkey, the desk with its mail server. One triage, and one run that is cancelled and undone, tell all
the points that a worker comes to (`runs/engine/points.py`). Then at each of them whoever gets there first is killed (-9).
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest

from runs.engine.points import KILL, RECORD
from tests.acceptance.crashing import ACCOUNT
from tests.acceptance.triage import TICKETS, Person, Triage, arm, ledger, stopped_at, wake_all
from tests.stack import Stack
from tests.waiting import until

LEASE = 2  # seconds
MARGIN = 40.0  # for a machine that is busy with the rest of the tests
TRIAGES, TAKEN_BACK = 8, 4  # runs, for the points to be spread over
FOUND_OUT = ("looked-up-update_crm", "looked-up-send_email")  # who follows a dead worker comes by these
# of each step of the seven, and of each effect with its undoing: before it, while it goes on, when its result is there and not yet kept
EXPECTED = {"claimed", "begin-plan#1", "end-plan#1", "waiting", "end-report#1", "ending", "ended"}
EXPECTED |= {f"{when}-{step}#1" for step in ("read_ticket", "check_account", "model.draft-reply") for when in ("begin", "asking", "end")}
EXPECTED |= {"model-answered", "begin-artifact#4", "end-artifact#4", "begin-propose.send_email#1", "end-propose.send_email#1"}
EXPECTED |= {
    f"{when}-{tool}" for tool in ("update_crm", "send_email", "remove_note") for when in ("proposed", "redeemed", "calling", "called")
}
EXPECTED |= {"approved", "begin-perform#1", "end-perform#1", "begin-perform#2", "end-perform#2", "end-undo:perform#1"}

START = """
from pathlib import Path
from access.models import Agent
from access.rules import Actor
from runs import starting
from runs.management.commands.triage import start
agent = Agent.objects.select_related("owner").get(name="support-triage")
by = Actor("human", str(agent.owner_id), agent.owner.name)
for n in range({triages}):
    start(agent, "support-triage", Path({ticket!r}).read_bytes(), again=True)
for n in range({taken_back}):
    more = {{"workflow": "taken-back", "arguments": {{"name": f"Note {round}.{{n}}"}}, "scope": {{"account": [{account!r}]}}}}
    starting.start(agent=agent, owner=agent.owner, by=by, title=f"Note {round}.{{n}}", **more)
"""
WHOLE = """
from runs.models import Run
from runs.verification import Whole, verify
print([run.ref for run in Run.objects.all() if not isinstance(verify(run), Whole)])
"""


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("points")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, points: Path) -> Iterator[Stack]:
    """One house for all of them: each test has runs of its own in it."""
    env = {"HANDRAIL_STOP_POINTS": str(points), "LEASE_SECONDS": str(LEASE)}
    env["HANDRAIL_WORKFLOWS"] = "examples.support_triage.workflow,tests.acceptance.crashing"
    with Stack(tmp_path_factory.mktemp("killed"), desk=True, first=["demo_seed"], env=env) as stack:
        yield stack


@pytest.fixture(autouse=True)
def nobody_stays_frozen(points: Path) -> Iterator[None]:
    yield
    wake_all(points)


@pytest.fixture(scope="module")
def riley(stack: Stack) -> Iterator[Person]:
    with Person(stack, "Riley") as riley:
        yield riley


@pytest.fixture(scope="module")
def otto(stack: Stack) -> Iterator[Person]:
    with Person(stack, "Otto") as otto:
        yield otto


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_worker_killed_at_any_point_leaves_one_message_one_note_and_one_ending(stack, points, riley, otto, capsys):
    known = all_points(stack, points, riley, otto)
    assert known >= EXPECTED, EXPECTED - known
    armed = known | set(FOUND_OUT)
    for point in armed:
        (points / point).write_text(KILL)
    begin(stack, "2", TRIAGES, TAKEN_BACK)
    to_the_end(stack, riley, otto, within=400, armed=lambda: [point for point in armed if (points / point).exists()])
    with capsys.disabled():
        print(f"\n{len(armed)} points, a worker killed at each; {TRIAGES + TAKEN_BACK} runs: {tally(stack)}")
    ended_well(stack)


def all_points(stack: Stack, points: Path, riley: Person, otto: Person) -> set[str]:
    """The points that workers come to in one triage and in one run that is undone, when nothing goes wrong."""
    (points / RECORD).touch()
    begin(stack, "1", 1, 1)
    to_the_end(stack, riley, otto, within=200)
    found = {line.partition("@")[0] for line in (points / RECORD).read_text().splitlines()}
    (points / RECORD).unlink()
    return found


def begin(stack: Stack, number: str, triages: int, taken_back: int) -> None:
    ticket = str(TICKETS / "duplicate-charge.eml")
    more = {"triages": triages, "taken_back": taken_back, "ticket": ticket, "account": ACCOUNT, "round": number}
    stack.manage("shell", "-v0", "-c", START.format(**more))


def to_the_end(stack: Stack, riley: Person, otto: Person, *, within: float, armed: Any = lambda: []) -> None:
    """Approve what waits, cancel what asks whether it shall stay, until all have ended and every point was come to."""

    def step() -> bool:
        for action in stack.query("SELECT * FROM approvals_proposedaction WHERE state = 'waiting' AND tool = 'send_email'"):
            riley.decide(action, "approved")
        waiting = stack.query("SELECT id, waiting FROM runs_run WHERE workflow = 'taken-back' AND state = 'waiting'")
        for asks in (each for each in waiting if "answer" in str(each["waiting"])):  # one that tries again has written no note yet
            otto.post(f"/runs/{UUID(str(asks['id']))}/signals", {"kind": "cancel", "key": "take it back"})
        return not stack.query("SELECT count(*) AS n FROM runs_run WHERE ended_at IS NULL")[0]["n"]

    until(step, within=within, every=0.5, what=lambda: f"all runs to end, not {tally(stack)}; left: {armed()}\n{stack.output()[-3000:]}")
    assert not armed()


def tally(stack: Stack) -> dict[str, int]:
    rows = stack.query("SELECT workflow, state, count(*) AS n FROM runs_run GROUP BY workflow, state")
    return {f"{row['workflow']} {row['state']}": row["n"] for row in rows}


def ended_well(stack: Stack) -> None:
    """One message and one note of each triage; of the others one note, taken back; each grant redeemed once; whole chains."""
    assert set(tally(stack)) == {"support-triage succeeded", "taken-back cancelled"}
    grants = stack.query(
        "SELECT a.run_id, a.tool, a.step, g.id, g.outcome FROM approvals_grant g JOIN approvals_proposedaction a ON a.id = g.action_id"
    )
    assert {grant["outcome"] for grant in grants} == {"executed"}
    done = {effect["key"]: effect["done"] for effect in ledger(stack) if effect["kind"] != "ticket.file"}
    keys = [str(message_id(grant) if grant["tool"] == "send_email" else UUID(str(grant["id"]))) for grant in grants]
    assert done == dict.fromkeys(keys, 1) and len(keys) == len(set(keys))
    runs = stack.query("SELECT workflow, count(*) AS n FROM runs_run GROUP BY workflow")
    assert len(keys) == 2 * sum(row["n"] for row in runs)
    redeemed = stack.query("SELECT count(*) AS n FROM runs_event WHERE type = 'action.redeemed'")[0]["n"]
    assert redeemed == len(keys)
    assert stack.manage("shell", "-v0", "-c", WHOLE).strip() == "[]"


def message_id(grant: dict[str, Any]) -> str:
    return f"<{uuid5(UUID(str(grant['run_id'])), grant['step'])}@fernhill.example>"


@pytest.mark.parametrize("point", ["redeemed-send_email", "called-send_email"])
def test_a_frozen_worker_that_wakes_too_late_is_fenced_out(stack, points, riley, point):
    run = Triage.start(stack, again=True)
    action = run.waiting_action()
    arm(points, point)
    riley.decide(action, "approved")
    pid = stopped_at(points, point)
    token = run.token_of(pid)  # not the lease's: on a busy machine that may be another's by now
    until(lambda: run.lease()["token"] > token, within=LEASE + 5 + MARGIN, what="another worker to take over")
    run.wait_for("succeeded", within=LEASE + 5 + MARGIN)
    head = run.row["seq"]
    os.kill(pid, signal.SIGCONT)
    notice = f"overtaken: nothing more was written run={run.id} token={token}"
    until(lambda: notice in stack.output(), within=MARGIN, what="the woken worker to notice that it was overtaken")
    assert run.row["seq"] == head and run.types()[-1] == "run.succeeded"
    assert len(run.messages()) == 1
    run.verify()
