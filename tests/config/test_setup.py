"""What `make demo` and `make test` say when the machine lacks something: one line, and what to do. Each runs the real script on a copy."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("sh", "dirname", "id", "mkdir", "grep", "tail", "rm", "env", "make")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The files that set-up needs, and a PATH with a handful of programs: no Python, no uv."""
    copy = tmp_path / "project"
    (copy / "config").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "uv.lock", "config/setup.sh", "config/demo.sh"):
        shutil.copy(ROOT / name, copy / name)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    return copy


def make(project: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": str(project.parent / "bin"), "HOME": str(project.parent), **more}
    return subprocess.run(["make", "-s", *words], cwd=project, env=env, capture_output=True, text=True, timeout=120)


def python(project: Path, script: str) -> None:
    """A `python3` on that PATH."""
    program = project.parent / "bin" / "python3"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    lines = [line for line in done.stderr.splitlines() if not line.startswith("make:")]
    assert done.returncode != 0 and len(lines) == 1, done.stderr
    assert all(word in lines[0] for word in ("Handrail: ", *words)), lines


@pytest.mark.parametrize("target", ["demo", "test"])
def test_no_python(project: Path, target: str) -> None:
    refused(make(project, target), "python3 is not installed", "apt-get install python3 python3-venv")


def test_an_old_python(project: Path) -> None:
    python(project, 'case "$2" in *%d.%d*) echo 3.9 ;; *) exit 1 ;; esac')
    refused(make(project, "demo"), "Python 3.11 or newer is needed", "python3 is 3.9")


def test_a_python_without_venv_and_pip(project: Path) -> None:
    hidden = project.parent / "sitecustomize.py"
    hidden.write_text("import sys\nsys.modules['ensurepip'] = sys.modules['pip'] = None\n")
    # the script asks that Python for its own path and goes on with it, so the wrapper has to be that path
    python(project, f'case "$2" in *sys.executable*) echo "$0" ;; *) PYTHONPATH="{hidden.parent}" exec "{sys.executable}" "$@" ;; esac')
    refused(make(project, "demo"), "neither venv nor pip", "apt-get install python3-venv")


def test_no_network(project: Path) -> None:
    python(project, f'exec "{sys.executable}" "$@"')
    # the proxy that pip is told of is not there
    done = make(project, "demo", PIP_PROXY="http://127.0.0.1:9", PIP_CONFIG_FILE="/dev/null", PIP_NO_CACHE_DIR="1", PIP_RETRIES="0")
    assert done.returncode != 0
    assert "the package index cannot be reached" in done.stderr and "Is there a network" in done.stderr, done.stderr


def test_an_odd_port_or_place_for_data_is_one_line(project: Path) -> None:
    shutil.copy(ROOT / "manage.py", project)
    for room in ("config", "approvals", "runs", "artifacts", "access"):
        shutil.copytree(ROOT / room, project / room, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (project / ".venv" / "bin").mkdir(parents=True)
    own = project / ".venv" / "bin" / "python"
    own.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    own.chmod(0o755)
    demo = ["sh", "config/demo.sh"]
    for odd, word in (({"PORT": "http"}, "PORT must be"), ({"PORT": "70000"}, "PORT must be"), ({"DATA_DIR": "Makefile"}, "DATA_DIR=")):
        env = {"PATH": str(project.parent / "bin"), "PORT": "8000", "DATA_DIR": "data"} | odd
        refused(subprocess.run(demo, cwd=project, env=env, capture_output=True, text=True, timeout=60), word)
