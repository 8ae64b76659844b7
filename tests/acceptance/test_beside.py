"""Commands beside a running demo need nothing but its data directory, and make none where there is no data."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from config import beside
from tests.acceptance.triage import TICKETS, Triage
from tests.stack import ROOT

pytestmark = pytest.mark.sqlite_only  # what the demo has unless it is told otherwise


def manage(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "DATA_DIR": str(data)}
    return subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60)


def test_commands_find_the_demo_by_its_data_directory(new_stack):
    demo = new_stack(desk=True, first=["demo_seed"], env={"SECRET_KEY": "", "HANDRAIL_VAULT_KEY": "", "DATABASE_URL": ""})
    started = manage(demo.data, "triage", str(TICKETS / "duplicate-charge.eml"))
    assert started.returncode == 0, started.stderr
    assert started.stderr.startswith(f"Using the data in {demo.data}.") and demo.base_url in started.stdout
    ref = started.stdout.split()[0]
    Triage(demo, ref).wait_for("waiting")
    verified = manage(demo.data, "verify", ref)
    assert verified.returncode == 0 and f"{ref}: whole" in verified.stdout
    replayed = manage(demo.data, "replay", ref)
    assert replayed.returncode == 0, replayed.stderr
    states = manage(demo.data, "lifecycle")
    assert states.returncode == 0 and "stateDiagram-v2" in states.stdout, states.stderr
    source = manage(demo.data, "webhooksource", "crm", "--agent", "support-triage")
    assert source.returncode == 0 and f"{demo.base_url}/api/v1/webhooks/" in source.stdout, source.stderr
    misbehaved = manage(demo.data, "misbehave", "clear")  # reaches the desk
    assert misbehaved.returncode == 0, misbehaved.stderr
    key = manage(demo.data, "agentkey", "support-triage")
    assert key.returncode == 0 and re.fullmatch(r"\S{20,}", key.stdout.strip())


def test_a_command_that_needs_data_makes_no_place_for_it(tmp_path):
    commands = beside.on_what_is_there(ROOT)
    assert {"triage", "verify", "agentkey", "misbehave", "replay", "webhooksource", "lifecycle"} <= commands
    for command in commands:
        refused = manage(tmp_path / "nothing", command)
        assert refused.returncode == 1 and f"there is no data in {tmp_path / 'nothing'}." in refused.stderr
    assert not (tmp_path / "nothing").exists()
