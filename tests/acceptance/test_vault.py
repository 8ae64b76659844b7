"""Keys rotated and payloads erased while the house runs: what was kept opens, what was erased says by whom and when, the log is whole."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from tests.acceptance.triage import PATIENCE, Person, set_clock
from tests.stack import Stack
from tests.waiting import until

REPLY = "Dear Marta Oyelaran,\nyour refund of 54.60 EUR was sent today.\n"
SCAN = os.urandom(300_000)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    where = tmp_path_factory.mktemp("vault")
    with Stack(where, first=["demo_seed"], without=["worker"], env={"HANDRAIL_CLOCK_FILE": str(where / "clock")}) as stack:
        yield stack


@pytest.fixture(scope="module")
def agent(stack) -> Iterator[httpx.Client]:
    key = stack.manage("agentkey", "support-triage").strip()
    with httpx.Client(
        base_url=f"{stack.base_url}/api/v1/", headers={"Authorization": f"Bearer {key}"}, trust_env=False, timeout=30
    ) as http:
        yield http


def keep(agent: httpx.Client, run: str, name: str, content: bytes, media_type: str) -> str:
    headers = {"Idempotency-Key": name, "Content-Type": media_type}
    agent.post(f"runs/{run}/artifacts", params={"name": name}, content=content, headers=headers).raise_for_status()
    return next(each["id"] for each in agent.get(f"runs/{run}/artifacts").json()["artifacts"] if each["name"] == name)


def versions(stack: Stack, run: str) -> list[int]:
    """The versions of the workspace's key under which what the run's artifacts hold is wrapped."""
    rows = stack.query(
        "SELECT k.version FROM artifacts_artifact a JOIN artifacts_payload p ON p.id = a.payload_id"
        " JOIN artifacts_workspacekey k ON k.id = p.key_id WHERE a.run_id = %s ORDER BY k.version",
        UUID(run),
    )
    return [row["version"] for row in rows]


def test_keys_are_rotated_and_payloads_erased_while_the_house_runs(stack, agent):
    started = agent.post("runs", json={"title": "Answer Marta", "agent_version": "1"}, headers={"Idempotency-Key": "a"}).json()
    run, ref = started["id"], started["ref"]
    reply = keep(agent, run, "reply.txt", REPLY.encode(), "text/plain")
    scan = keep(agent, run, "scan.bin", SCAN, "application/octet-stream")
    files = Path(stack.env["DATA_DIR"]) / "payloads"
    assert len([each for each in files.rglob("*") if each.is_file()]) == 1 and versions(stack, run) == [1, 1]

    # rotation, by another process than the one that serves: at once for what is new, then for what is old
    assert "version 2 was made" in stack.manage("vaultkey", "rotate", "--later")
    number = iter(range(1000))
    until(
        lambda: keep(agent, run, f"new-{next(number)}", b"x", "text/plain") and 2 in versions(stack, run),
        within=PATIENCE,
        what="a new key in use",
    )
    assert versions(stack, run)[:2] == [1, 1]
    assert "payloads wrapped anew" in stack.manage("vaultkey", "rewrap")
    assert set(versions(stack, run)) == {2}
    set_clock(Path(stack.env["HANDRAIL_CLOCK_FILE"]), seconds=700)  # the ten minutes for which an old key is kept are over
    assert "version 1" not in stack.manage("vaultkey", "rewrap")
    opened = agent.get(f"runs/{run}/artifacts/{scan}/content")
    assert opened.content == SCAN and agent.get(f"runs/{run}/artifacts/{reply}/content").text == REPLY
    part = agent.get(f"runs/{run}/artifacts/{scan}/content", headers={"Range": "bytes=262140-262150"})
    assert (part.status_code, part.content) == (206, SCAN[262140:262151])
    assert "whole" in stack.manage("verify", ref)

    # erasure: not while the run goes on
    with Person(stack, "Ada") as ada:
        at = f"/runs/{run}/artifacts/{reply}/erasure"
        assert "has not ended" in ada.http.get(at).text
        report = {"outcome": "succeeded", "report": {"title": "Answered", "cites": [1]}}
        agent.post(f"runs/{run}/ending", json=report).raise_for_status()
        shown = re.search(r'name="shown" value="(\w+)"', ada.http.get(at).text)[1]
        said = {"what": "this", "reason": "asked", "sure": "on", "shown": shown}
        done = ada.post(at, said)  # whoever a test signs in has shown who they are, which is asked for here
        assert "Ada" in done.text and "erased for good" in done.text, done.text[-3000:]
        assert "Oyelaran" not in ada.http.get(f"/runs/{run}").text + ada.http.get(f"/runs/{run}/events").text
    gone = agent.get(f"runs/{run}/artifacts/{reply}/content")
    assert gone.status_code == 410 and re.search(r"Erased by Ada.* on \d+ \w+ \d{4}", gone.json()["detail"])
    told = stack.manage("erase", ref, "--artifact", "scan.bin", "--by", address(stack, "Ada"), "--reason", "no_longer", "--yes")
    assert "Erased 1 payload(s)" in told and not [each for each in files.rglob("*") if each.is_file()]
    assert re.search(r"whole, #1 to #\d+, 2 payloads erased", stack.manage("verify", ref))
    assert hashlib.sha256(SCAN).hexdigest() not in stack.output()


def address(stack: Stack, name: str) -> str:
    return next(row["email"] for row in stack.query("SELECT email, name FROM access_user") if row["name"].startswith(name))
