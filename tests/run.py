"""Every test, on everything: `python -m tests.run`, which `make test` calls.

pytest runs once for each database, and apart from that for what needs a browser: Django has one database a process, and Playwright's
loop does not go with asyncio's. What could have been had and is missing is a failure, and so is a skipped test. Words after the
command are given to pytest: `python -m tests.run -k sign_in`.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from config.supervisor import LIFELINE
from tests import chromium, postgres

ROOT = Path(__file__).resolve().parent.parent
NOTHING_COLLECTED = 5
MINUTES_MAX = 40  # for one phase; a hung test ends earlier, by pytest-timeout


@dataclass(frozen=True)
class Phase:
    title: str
    database: str
    marks: str
    dist: str  # how pytest-xdist deals out the tests
    processes: int = 2


@dataclass
class Result:
    phase: Phase
    code: int
    seconds: float
    cpu_seconds: float = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def is_good(self) -> bool:
        return self.code in (0, NOTHING_COLLECTED) and not (self.failed or self.skipped)


def phases() -> list[Phase]:
    # File by file in the order of collection, which begins with the long ones; acceptance tests start the house anyway, so one by one.
    # Three processes on two cores where tests often wait, but not where they say how soon something must have happened.
    unit = {"marks": "not browser and not acceptance", "dist": "loadfile", "processes": 3}
    browser = {"marks": "browser", "dist": "loadfile"}
    acceptance = {"marks": "acceptance and not browser", "dist": "load"}
    return [
        Phase("Unit and integration", "sqlite", **unit),
        Phase("Unit and integration", "postgres", **unit),
        Phase("Browser", "sqlite", **browser),
        Phase("Acceptance", "sqlite", **acceptance),
        Phase("Acceptance", "postgres", **acceptance),
    ]


def main(words: list[str]) -> int:
    _say("Looking for a PostgreSQL and a Chromium")
    given = bool(os.environ.get("DATABASE_URL"))
    databases = {"sqlite": f"SQLite {_sqlite_version()}", "postgres": _postgres_name(given)}
    try:
        browser = f"Chromium {chromium.version(chromium.executable())}"
        os.environ["CHROMIUM"] = chromium.executable()
    except chromium.NoChromium as missing:
        print(f"Handrail: {missing}", file=sys.stderr)
        return 1
    results = [_run(phase, databases, words) for phase in phases()]
    return _tell(results, databases, browser)


def _run(phase: Phase, databases: dict[str, str], words: list[str]) -> Result:
    _say(f"{phase.title} on {databases[phase.database]}")
    began, worked = time.monotonic(), _cpu_seconds()
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        tied = [sys.executable, "-S", "-E", LIFELINE, str(os.getpid())]  # ends with this process, however that ends
        command = [*tied, sys.executable, "-m", "pytest", "-q", "-m", phase.marks, f"--junitxml={report}", "-o", "junit_family=xunit2"]
        # sets in one order: the processes of pytest-xdist have to name their tests alike
        env = os.environ | {"HANDRAIL_TEST_DB": phase.database, "PYTHONHASHSEED": "0"}
        parallel = ["-n", str(phase.processes), "--dist", phase.dist, "--no-loadscope-reorder"]
        try:
            code = subprocess.run([*command, *parallel, *words], cwd=ROOT, env=env, timeout=MINUTES_MAX * 60, check=False).returncode
        except subprocess.TimeoutExpired:
            print(f"Handrail: this did not end within {MINUTES_MAX} minutes", file=sys.stderr)
            code = 1
        result = Result(phase, code, time.monotonic() - began, _cpu_seconds() - worked)
        if report.exists():
            _count(report, result)
    return result


def _cpu_seconds() -> float:
    """What the processes that were started here, and theirs, took of the CPUs so far; of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _count(report: Path, result: Result) -> None:
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):  # noqa: S314  pytest's own file
        told = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
        result.failed += told["failures"] + told["errors"]
        result.skipped += told["skipped"]
        result.passed += told["tests"] - told["failures"] - told["errors"] - told["skipped"]


def _tell(results: list[Result], databases: dict[str, str], browser: str) -> int:
    print("\n==> What ran where")
    for result in results:
        where = databases[result.phase.database] + (f", {browser}" if result.phase.marks == "browser" else "")
        counts = f"{result.passed} passed, {result.failed} failed, {result.skipped} skipped"
        verdict = (
            "" if result.is_good else "   <- NOT GOOD" if result.failed or not result.skipped else "   <- NOT GOOD: nothing may be skipped"
        )
        print(f"    {result.phase.title:<21} {counts:<36} {result.seconds:5.0f} s, {result.cpu_seconds:4.0f} s of CPU   {where}{verdict}")
    passed, failed, skipped = (sum(getattr(result, name) for result in results) for name in ("passed", "failed", "skipped"))
    good = all(result.is_good for result in results) and passed > 0
    print(f"    In all {sum(result.seconds for result in results) / 60:.1f} minutes: {'good' if good else 'NOT GOOD'}\n")
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 0 if good else 1


def _sqlite_version() -> str:
    import sqlite3

    return sqlite3.sqlite_version


def _postgres_name(given: bool) -> str:
    return f"PostgreSQL {postgres.version()}" + (" (the one DATABASE_URL names)" if given else " (of the wheel, fsync off)")


def _say(line: str) -> None:
    print(f"\n==> {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
