"""A real Chromium: the one that CHROMIUM names or that is there, else Playwright's own download, else one of Debian's packages.

`python -m tests.chromium` finds or installs one and prints its path.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

# the headless shell is the same engine without the windows, for half the work
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
DEBIANS = ("chromium-headless-shell", "chromium")
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--no-default-browser-check")


class NoChromium(Exception):
    """No Chromium is there, and none could be had."""


@lru_cache(maxsize=1)
def executable() -> str:
    """Its path; installs one if need be."""
    for candidate in _candidates():
        if version(candidate):
            return candidate
    raise NoChromium(
        "Chromium is needed for the browser tests and could not be had. Install one (on Debian: apt-get install chromium) "
        "or say where it is: CHROMIUM=/path/to/chromium make test"
    )


def options() -> dict[str, object]:
    """What Playwright's `launch` needs. Root has no user namespace to sandbox in, so there Chromium runs without its sandbox."""
    return {"executable_path": executable(), "args": [*QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else [])]}


def version(path: str) -> str:
    """`156.0.8078.108`, or an empty text if it does not run."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found[0] if (found := re.search(r"\d+(\.\d+){1,3}", said)) else ""


def _candidates() -> Iterator[str]:
    """From the nearest to the farthest; each is fetched only when it is asked for."""
    if named := os.environ.get("CHROMIUM"):
        yield named
        raise NoChromium(f"CHROMIUM={named} does not run. Unset it to have one found, or name another.")
    yield from filter(None, map(shutil.which, NAMES))
    yield from _playwrights_own()
    yield from _debians()


def _playwrights_own() -> Iterator[str]:
    yield from _downloaded()
    print("==> No Chromium here; trying Playwright's download", flush=True)
    got = subprocess.run(
        [sys.executable, "-m", "playwright", "install", "chromium"], stdin=subprocess.DEVNULL, capture_output=True, timeout=600
    )
    if got.returncode == 0:
        yield from _downloaded()


def _downloaded() -> Iterator[str]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    if Path(path).exists():
        yield path


def _debians() -> Iterator[str]:
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "env": env}
    print("==> Installing Debian's Chromium", flush=True)
    if subprocess.run([apt, "update"], **quiet).returncode:
        return
    for package in DEBIANS:
        if subprocess.run([apt, "install", "-y", "--no-install-recommends", package], **quiet).returncode == 0:
            yield from filter(None, [shutil.which(package)])


if __name__ == "__main__":
    try:
        print(executable())
    except NoChromium as missing:
        raise SystemExit(f"Handrail: {missing}") from None
