"""Commands beside a running demo need nothing but its data directory, and make none where there is no data."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.triage import TICKETS, Triage
from tests.stack import ROOT

pytestmark = pytest.mark.sqlite_only  # what the demo has unless it is told otherwise


def manage(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "DATA_DIR": str(data)}
    return subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60)


def test_triage_verify_and_agentkey_find_the_demo_by_its_data_directory(new_stack):
    demo = new_stack(desk=True, first=["demo_seed"], env={"SECRET_KEY": "", "HANDRAIL_VAULT_KEY": "", "DATABASE_URL": ""})
    started = manage(demo.data, "triage", str(TICKETS / "duplicate-charge.eml"))
    assert started.returncode == 0, started.stderr
    assert started.stderr.startswith(f"Using the data in {demo.data}.") and demo.base_url in started.stdout
    ref = started.stdout.split()[0]
    Triage(demo, ref).wait_for("waiting")
    verified = manage(demo.data, "verify", ref)
    assert verified.returncode == 0 and f"{ref}: whole" in verified.stdout
    misbehaved = manage(demo.data, "misbehave", "clear")  # reaches the desk
    assert misbehaved.returncode == 0, misbehaved.stderr
    key = manage(demo.data, "agentkey", "support-triage")
    assert key.returncode == 0 and re.fullmatch(r"\S{20,}", key.stdout.strip())


def test_a_command_that_needs_data_makes_no_place_for_it(tmp_path):
    for command in (["triage", "x.eml"], ["verify", "RN-7Q4K"], ["agentkey", "support-triage"], ["misbehave", "clear"]):
        refused = manage(tmp_path / "nothing", *command)
        assert refused.returncode == 1 and f"there is no data in {tmp_path / 'nothing'}." in refused.stderr
    assert not (tmp_path / "nothing").exists()
