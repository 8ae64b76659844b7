"""The example of an agent outside, as a real process against a real house: decided on, killed in the middle, and found out."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from tests.acceptance.triage import PATIENCE, Person, set_clock
from tests.stack import ROOT, Stack
from tests.waiting import until

pytestmark = pytest.mark.sqlite_only  # the races are tested on both; this is about the processes
LOOP = ROOT / "examples/outside_loop/loop.py"
REASON = "Nothing public before the carrier has said why."


class Story:
    """One run in a house that all of these tests share, and every process that worked on it."""

    def __init__(self, house: "House", name: str) -> None:
        self.house, self.stack, self.name = house, house.stack, name
        self.done = house.where / f"{name}.jsonl"
        self.loops: list[subprocess.Popen[bytes]] = []

    def loop(self, *options: str) -> Callable[[], str]:
        """Start the example, which must need nothing of Handrail; gives what reads what it has said so far."""
        said = self.house.where / f"{self.name}-{len(self.loops)}.log"
        environ = {"PATH": os.environ["PATH"], "HANDRAIL_KEY": self.house.key}
        command = [sys.executable, "-I", str(LOOP), self.stack.base_url, "--done", str(self.done), "--name", self.name, "--lease", "3"]
        with said.open("wb") as log:
            self.loops.append(subprocess.Popen([*command, *options], cwd=self.house.where, env=environ, stdout=log, stderr=log))
        return said.read_text

    def lines(self, word: str) -> list[dict[str, Any]]:
        """What it did outside: `tool`, its calls; `looked`, looking for the parcel."""
        lines = [json.loads(line) for line in self.done.read_text().splitlines()] if self.done.exists() else []
        return [line for line in lines if word in line]

    @property
    def run(self) -> dict[str, Any]:
        return self.stack.query("SELECT * FROM runs_run WHERE start_key = %s", self.name)[0]

    def actions(self) -> dict[str, dict[str, Any]]:
        of_run = "SELECT a.* FROM approvals_proposedaction a JOIN runs_run r ON r.id = a.run_id WHERE r.start_key = %s ORDER BY proposed_at"
        return {row["tool"]: row for row in self.stack.query(of_run, self.name)}

    def types(self) -> list[str]:
        rows = self.stack.query("SELECT type FROM runs_event WHERE run_id = %s ORDER BY seq", UUID(str(self.run["id"])))
        return [row["type"] for row in rows]

    def grant(self, action: dict[str, Any]) -> dict[str, Any]:
        return self.stack.query("SELECT * FROM approvals_grant WHERE action_id = %s", UUID(str(action["id"])))[0]

    def decide_both(self) -> dict[str, dict[str, Any]]:
        actions = until(lambda: found if len(found := self.actions()) == 2 else None, within=PATIENCE, what="two proposals")
        with Person(self.stack, "Riley") as riley:
            assert riley.decide(actions["issue_voucher"], "approved").status_code == 200
            assert riley.decide(actions["post_notice"], "rejected", REASON).status_code == 200
        return actions


class House:
    """A stack and the agent's key."""

    def __init__(self, stack: Stack, where: Path, clock: Path) -> None:
        self.stack, self.where, self.clock = stack, where, clock
        self.key = stack.manage("agentkey", "outside-loop").strip()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    where = tmp_path_factory.mktemp("outside-loop")
    clock = where / "clock"
    clock.write_text("0")
    with Stack(where, first=["demo_seed"], env={"HANDRAIL_CLOCK_FILE": str(clock)}) as stack:
        yield House(stack, where, clock)


@pytest.fixture
def story(house: House) -> Iterator[Story]:
    made = Story(house, f"story-{uuid4().hex[:8]}")
    yield made
    for loop in made.loops:
        loop.kill()
        loop.wait()


def test_of_two_calls_at_once_the_approved_one_is_run_and_the_other_comes_back_with_its_reason(story: Story) -> None:
    said = story.loop("--slow", "0", "--look", "0")
    actions = story.decide_both()
    assert story.loops[0].wait(PATIENCE) == 0, said()
    assert f"post_notice: rejected. {REASON}" in said() and "succeeded" in said()
    [call] = story.lines("tool")
    grant = story.grant(actions["issue_voucher"])
    assert (call["tool"], UUID(call["key"]), grant["outcome"]) == ("issue_voucher", UUID(str(grant["id"])), "executed")
    assert call["arguments"]["amount"] == "40.00"
    ref = story.run["ref"]
    assert f"{ref}: whole" in story.stack.manage("verify", ref)
    answers = httpx.get(
        f"{story.stack.base_url}/api/v1/runs/{UUID(str(actions['issue_voucher']['run_id']))}/evidence",
        headers={"Authorization": f"Bearer {story.house.key}"},
        trust_env=False,
    ).json()["answers"]
    assert {one["answer"] for one in answers} == {"pass", "not_asked"}, answers


def test_an_agent_killed_in_the_middle_is_taken_over_by_another_elsewhere_which_finishes(story: Story) -> None:
    said = story.loop("--slow", "0", "--look", "0")
    until(lambda: len(story.actions()) == 2, within=PATIENCE, what=said)
    story.loops[0].kill()  # -9, with its first step done and two begun
    story.loops[0].wait()
    story.decide_both()
    other = story.loop("--slow", "0", "--look", "0")
    assert story.loops[1].wait(PATIENCE) == 0, other()
    assert "find_parcel: done before" in other() and "9 days late" in other() and "going on with what" in other()
    assert len(story.lines("looked")) == 1 and [call["tool"] for call in story.lines("tool")] == ["issue_voucher"]
    types = story.types()
    assert types[-1] == "run.succeeded" and types.count("action.proposed") == 2 and types.count("step.completed") == 3
    ref = story.run["ref"]
    assert f"{ref}: whole" in story.stack.manage("verify", ref)


def test_an_agent_frozen_past_its_lease_and_woken_changes_nothing_any_more(story: Story) -> None:
    said = story.loop("--slow", "0", "--look", "5")  # in which it is frozen, also if this process stands still for a while
    until(lambda: "find_parcel: looking" in said(), within=PATIENCE, what=said)
    story.loops[0].send_signal(signal.SIGSTOP)
    other = story.loop("--slow", "0", "--look", "0")
    until(lambda: len(story.actions()) == 2, within=PATIENCE, what=other)
    before = story.types()
    story.loops[0].send_signal(signal.SIGCONT)
    assert story.loops[0].wait(PATIENCE) == 1
    assert "Another process has taken over this run" in said() and story.types() == before
    story.decide_both()
    assert story.loops[1].wait(PATIENCE) == 0, other()
    assert story.types().count("step.completed") == 3
    assert [call["tool"] for call in story.lines("tool")] == ["issue_voucher"]


def test_an_agent_killed_after_it_redeemed_leaves_an_unknown_outcome_that_a_person_resolves(story: Story) -> None:
    said = story.loop("--slow", "600", "--look", "0")
    action = story.decide_both()["issue_voucher"]
    until(lambda: "issue_voucher: redeemed" in said(), within=PATIENCE, what=said)
    story.loops[0].kill()  # -9
    story.loops[0].wait()
    set_clock(story.house.clock, seconds=60)  # its time to report is over
    until(lambda: story.grant(action)["outcome"] == "unknown", within=PATIENCE, what="the silence to be noticed")
    page = f"/actions/{UUID(str(action['id']))}/outcome"
    with Person(story.stack, "Otto") as otto:
        assert "never said what became of it" in otto.http.get(page).text
        again = story.loop("--slow", "0", "--look", "0")
        story.loops[1].wait(PATIENCE)
        assert "issue_voucher: not run. Somebody else holds the one use of this." in again() and story.lines("tool") == []
        otto.post(page, {"outcome": "did_not_happen", "note": "The voucher service has none."})
        assert "Otto Brandt said that it did not happen" in otto.http.get(page).text
    assert story.grant(action)["outcome"] == "failed"
