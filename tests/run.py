"""Every test, on everything: `python -m tests.run`, which `make test` calls.

pytest runs once for each database, and apart from that for what needs a browser: Django has one database a process, and Playwright's
loop does not go with asyncio's. Some such runs go on at the same time, as each of them often waits. What could have been had and is
missing is a failure, and so is a skipped test. Words after the command are given to pytest: `python -m tests.run -k sign_in`.
"""

import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from config.supervisor import LIFELINE
from tests import chromium, migrated, postgres

ROOT = Path(__file__).resolve().parent.parent
NOTHING_COLLECTED = 5
MINUTES_MAX = 40  # for one phase; a hung test ends earlier, by pytest-timeout
AT_ONCE = 2  # phases
PROCESSES = 2  # of pytest-xdist, for one phase
TOLD_MAX = 8  # failures that the end tells of, with so many lines of each at most, so wide
LINES_MAX = 8
WIDTH_MAX = 300


@dataclass(frozen=True)
class Phase:
    title: str
    database: str
    marks: str
    where: tuple[str, ...]  # the directories to collect from
    dist: str  # how pytest-xdist deals out the tests


@dataclass
class Result:
    phase: Phase
    code: int
    seconds: float
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)  # the test's name, and what it said

    @property
    def is_good(self) -> bool:
        return self.code in (0, NOTHING_COLLECTED) and not (self.failed or self.skipped)


def phases() -> list[Phase]:
    # File by file in the order of collection, which begins with the long ones; acceptance tests start the house anyway, so one by one.
    unit = {"marks": "not browser and not acceptance", "where": ("tests",), "dist": "loadfile"}
    browser = {"marks": "browser", "where": ("tests/browser",), "dist": "loadfile"}
    acceptance = {"marks": "acceptance and not browser", "where": ("tests/acceptance",), "dist": "load"}
    # What waits (for leases, for browsers) goes beside what computes, and last comes what keeps every processor busy to its end.
    return [
        Phase("Unit and integration", "sqlite", **unit),
        Phase("Acceptance", "sqlite", **acceptance),
        Phase("Acceptance", "postgres", **acceptance),
        Phase("Browser", "sqlite", **browser),
        Phase("Unit and integration", "postgres", **unit),
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
    migrated.share()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each of all the processes, those of the stacks too, compiles everything anew
    began = time.monotonic()
    with ThreadPoolExecutor(1) as beside, ThreadPoolExecutor(AT_ONCE) as pool:
        # while the first tests are collected; a few tests that somebody names need few databases, and make them themselves
        making = None if words else beside.submit(migrated.make_all)
        results = list(pool.map(lambda phase: _run(phase, databases, words), phases()))
    if making and making.exception():
        print(f"Handrail: the databases that are copied could not be made: {making.exception()}", file=sys.stderr)
    return _tell(results, time.monotonic() - began, databases, browser)


def _run(phase: Phase, databases: dict[str, str], words: list[str]) -> Result:
    _say(f"{phase.title} on {databases[phase.database]} begins")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        code = _pytest(phase, [f"--junitxml={report}", *words])
        result = Result(phase, code, time.monotonic() - began)
        if report.exists():
            _count(report, result)
    _say(f"{phase.title} on {databases[phase.database]} took {result.seconds:.0f} s")
    return result


def _pytest(phase: Phase, words: list[str]) -> int:
    """What it ended with. Each line that it says goes out at once, with the phase in front: phases speak at the same time."""
    tied = [sys.executable, "-S", "-E", LIFELINE, str(os.getpid())]  # ends with this process, however that ends
    parallel = ["-n", str(PROCESSES), "--dist", phase.dist, "--no-loadscope-reorder"]
    command = [*tied, sys.executable, "-m", "pytest", "-q", "-m", phase.marks, "-o", "junit_family=xunit2", *parallel, *words, *phase.where]
    # sets in one order: the processes of pytest-xdist have to name their tests alike
    env = os.environ | {"HANDRAIL_TEST_DB": phase.database, "PYTHONHASHSEED": "0"}
    name = f"{phase.title.split()[0].lower()} {phase.database}"
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as run:
        end = threading.Timer(MINUTES_MAX * 60, lambda: (run.kill(), _say(f"{name} did not end within {MINUTES_MAX} minutes")))
        end.start()
        for line in run.stdout:
            print(f"{name:<19} {line.rstrip()}", flush=True)
        end.cancel()
    return run.returncode


def _count(report: Path, result: Result) -> None:
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        told = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
        result.failed += told["failures"] + told["errors"]
        result.skipped += told["skipped"]
        result.passed += told["tests"] - told["failures"] - told["errors"] - told["skipped"]
        for case in suite.iter("testcase"):
            for fallen in (*case.iter("failure"), *case.iter("error")):
                result.failures.append((f"{case.get('classname')}.{case.get('name')}", fallen.get("message", "")))


def _tell(results: list[Result], seconds: float, databases: dict[str, str], browser: str) -> int:
    print("\n==> What ran where")
    for result in results:
        where = databases[result.phase.database] + (f", {browser}" if result.phase.marks == "browser" else "")
        counts = f"{result.passed} passed, {result.failed} failed, {result.skipped} skipped"
        verdict = (
            "" if result.is_good else "   <- NOT GOOD" if result.failed or not result.skipped else "   <- NOT GOOD: nothing may be skipped"
        )
        print(f"    {result.phase.title:<21} {counts:<36} {result.seconds:5.0f} s   {where}{verdict}")
    passed, failed, skipped = (sum(getattr(result, name) for result in results) for name in ("passed", "failed", "skipped"))
    good = all(result.is_good for result in results) and passed > 0
    print(f"    In all {seconds / 60:.1f} minutes, {_cpu_seconds() / 60:.1f} minutes of CPU: {'good' if good else 'NOT GOOD'}\n")
    _tell_failures(results)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 0 if good else 1


def _tell_failures(results: list[Result]) -> None:
    """At the very end, as a log is often kept by its end alone: which tests failed, and the first and last lines of what each said."""
    failures = [(result.phase, *failure) for result in results for failure in result.failures]
    for phase, name, message in failures[:TOLD_MAX]:
        print(f"FAILED on {phase.database}: {name}")
        lines = [line[:WIDTH_MAX] for line in message.splitlines() if line.strip()]
        half = LINES_MAX // 2
        for line in lines if len(lines) <= LINES_MAX else [*lines[:half], *lines[-half:]]:
            print(f"    {line}")
    if len(failures) > TOLD_MAX:
        print(f"… and {len(failures) - TOLD_MAX} more failed")
    if failures:
        print()


def _cpu_seconds() -> float:
    """What the processes that were started here, and theirs, took of the CPUs; of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _sqlite_version() -> str:
    import sqlite3

    return sqlite3.sqlite_version


def _postgres_name(given: bool) -> str:
    return f"PostgreSQL {postgres.version()}" + (" (the one DATABASE_URL names)" if given else " (of the wheel, fsync off)")


def _say(line: str) -> None:
    print(f"\n==> {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
