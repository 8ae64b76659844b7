"""The example of an agent outside, as a real process against a real house: decided on, killed in the middle, and found out."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.acceptance.triage import PATIENCE, Person
from tests.stack import ROOT, Stack
from tests.waiting import until

pytestmark = pytest.mark.sqlite_only  # the races are tested on both; this is about the processes
LOOP = ROOT / "examples/outside_loop/loop.py"
REASON = "Nothing public before the carrier has said why."


class House:
    """A stack, the agent's key, and every loop that was started."""

    def __init__(self, new_stack: Callable[..., Stack], where: Path) -> None:
        self.where, self.clock = where, where / "clock"
        self.clock.write_text("0")
        self.stack = new_stack(first=["demo_seed"], env={"HANDRAIL_CLOCK_FILE": str(self.clock)})
        self.key = self.stack.manage("agentkey", "outside-loop").strip()
        self.loops: list[subprocess.Popen[bytes]] = []

    def loop(self, *options: str) -> Callable[[], str]:
        """Start the example, which must need nothing of Handrail; gives what reads what it has said so far."""
        said = self.where / f"loop-{len(self.loops)}.log"
        environ = {"PATH": os.environ["PATH"], "HANDRAIL_KEY": self.key}
        command = [sys.executable, "-I", str(LOOP), self.stack.base_url, "--done", str(self.done), *options]
        with said.open("wb") as log:
            self.loops.append(subprocess.Popen(command, cwd=self.where, env=environ, stdout=log, stderr=log))
        return said.read_text

    @property
    def done(self) -> Path:
        return self.where / "done.jsonl"

    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.done.read_text().splitlines()] if self.done.exists() else []

    def actions(self) -> dict[str, dict[str, Any]]:
        rows = self.stack.query("SELECT * FROM approvals_proposedaction WHERE executor = 'agent' ORDER BY proposed_at")
        return {row["tool"]: row for row in rows}

    def grant(self, action: dict[str, Any]) -> dict[str, Any]:
        return self.stack.query("SELECT * FROM approvals_grant WHERE action_id = %s", UUID(str(action["id"])))[0]

    def decide_both(self) -> dict[str, dict[str, Any]]:
        actions = until(lambda: found if len(found := self.actions()) == 2 else None, within=PATIENCE, what="two proposals")
        with Person(self.stack, "Riley") as riley:
            assert riley.decide(actions["issue_voucher"], "approved").status_code == 200
            assert riley.decide(actions["post_notice"], "rejected", REASON).status_code == 200
        return actions


@pytest.fixture
def house(new_stack, tmp_path) -> Iterator[House]:
    made = House(new_stack, tmp_path)
    yield made
    for loop in made.loops:
        loop.kill()
        loop.wait()


def test_of_two_calls_at_once_the_approved_one_is_run_and_the_other_comes_back_with_its_reason(house: House) -> None:
    said = house.loop("--slow", "0")
    actions = house.decide_both()
    assert house.loops[0].wait(PATIENCE) == 0, said()
    assert f"post_notice: rejected. {REASON}" in said() and "succeeded" in said()
    [call] = house.calls()
    grant = house.grant(actions["issue_voucher"])
    assert (call["tool"], UUID(call["key"]), grant["outcome"]) == ("issue_voucher", UUID(str(grant["id"])), "executed")
    assert call["arguments"]["amount"] == "40.00"
    ref = said().split(":")[0]
    assert f"{ref}: whole" in house.stack.manage("verify", ref)
    answers = httpx.get(
        f"{house.stack.base_url}/api/v1/runs/{UUID(str(actions['issue_voucher']['run_id']))}/evidence",
        headers={"Authorization": f"Bearer {house.key}"},
        trust_env=False,
    ).json()["answers"]
    assert {one["answer"] for one in answers} == {"pass", "not_asked"}, answers


def test_an_agent_killed_after_it_redeemed_leaves_an_unknown_outcome_that_a_person_resolves(house: House) -> None:
    said = house.loop("--slow", "600", "--name", "killed")
    action = house.decide_both()["issue_voucher"]
    until(lambda: "issue_voucher: redeemed" in said(), within=PATIENCE, what=said)
    house.loops[0].kill()  # -9
    house.loops[0].wait()
    house.clock.write_text("60")  # its time to report is over
    until(lambda: house.grant(action)["outcome"] == "unknown", within=PATIENCE, what="the silence to be noticed")
    page = f"/actions/{UUID(str(action['id']))}/outcome"
    with Person(house.stack, "Otto") as otto:
        assert "never said what became of it" in otto.http.get(page).text
        again = house.loop("--slow", "0", "--name", "killed")
        house.loops[1].wait(PATIENCE)
        assert "issue_voucher: not run. Somebody else holds the one use of this." in again() and house.calls() == []
        otto.post(page, {"outcome": "did_not_happen", "note": "The voucher service has none."})
        assert "Otto Brandt said that it did not happen" in otto.http.get(page).text
    assert house.grant(action)["outcome"] == "failed"
