"""Runs a few processes as one: they start together, are started again when they end, and none outlives the supervisor.

It knows nothing of Django. Parts start in the order given and stop in the reverse order of their `rank`; all of one rank stop together.
"""

import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LIFELINE = str(Path(__file__).with_name("lifeline.py"))
BACK_OFF = (0.2, 1.0, 2.0, 5.0, 10.0)  # seconds before the first, second, … start again
STEADY = 30.0  # seconds after which a part counts as well, and its back-off starts anew
TICK = 0.2
LINE_MAX = 8192


@dataclass(frozen=True)
class Part:
    """One process. `grace` is how many seconds it has to end by itself; a part of a lower `rank` stops after those of a higher one.

    Lines of its output that match `hide` are not shown. One that runs `once` is done when it ends well.
    """

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    keep: Sequence[int] = ()  # file descriptors that it inherits
    grace: float = 5.0
    rank: int = 1
    hide: str = r"(?!)"  # nothing
    once: bool = False


@dataclass
class _Running:
    part: Part
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    failures: int = 0
    start_at: float | None = None  # when to start again
    unfinished: bytes = b""  # the beginning of a line


class Supervisor:
    """`add` starts a part, `watch` looks after all until a signal asks to stop, `stop` ends them. Meant for the main thread.

    `state` names a JSON file that always tells `{"pid": …, "parts": {name: pid}}` and what is in `more`; it is gone after a clean end.
    """

    def __init__(self, state: Path, more: Mapping[str, object] | None = None) -> None:
        self.state = state
        self.more = dict(more or {})
        self.parts: dict[str, _Running] = {}
        self.stopping = 0  # how many times somebody asked
        self.width = 0
        self.selector = selectors.DefaultSelector()
        self.wake_read, self.wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
        self.selector.register(self.wake_read, selectors.EVENT_READ, None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._asked_to_stop)

    def add(self, part: Part) -> None:
        self.width = max(self.width, len(part.name))
        running = self.parts[part.name] = _Running(part)
        self._start(running)

    def watch(self, *, until: Callable[[], bool] = lambda: False, seconds: float = float("inf")) -> None:
        """Pass on output and start again what ended; returns when asked to stop, when `until` holds, or after `seconds`."""
        end = time.monotonic() + seconds
        while not self.stopping and not until() and time.monotonic() < end:
            self._pass_on_output(max(0.0, min(TICK, end - time.monotonic())))
            self._start_again_what_ended()

    def stop(self) -> None:
        """Ask every part to end, rank by rank from the highest; kill what does not within its grace, or at the second request."""
        for rank in sorted({running.part.rank for running in self.parts.values()}, reverse=True):
            self._stop_together([running for running in self.parts.values() if running.part.rank == rank])
        self.state.unlink(missing_ok=True)

    def say(self, line: str, name: str = "") -> None:
        """One line on stdout, with the part's name in front. If nobody reads any more, that is a reason to stop."""
        try:
            print(f"{name:<{self.width}} | {line}" if name else line, flush=True)
        except (BrokenPipeError, ValueError):
            self.stopping += 1
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123  stays open until the process ends

    def alive(self, name: str) -> bool:
        running = self.parts[name]
        return running.process is not None and running.process.poll() is None

    def _start(self, running: _Running) -> None:
        part = running.part
        running.start_at, running.started = None, time.monotonic()
        running.process = subprocess.Popen(  # noqa: S603  the commands are ours
            [sys.executable, "-S", "-E", LIFELINE, str(os.getpid()), *part.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **part.env},
            pass_fds=tuple(part.keep),
            start_new_session=True,  # Ctrl-C reaches the supervisor alone, which then stops the parts in their order
        )
        os.set_blocking(running.process.stdout.fileno(), False)
        self.selector.register(running.process.stdout, selectors.EVENT_READ, running)
        self._write_state()

    def _start_again_what_ended(self) -> None:
        now = time.monotonic()
        for running in self.parts.values():
            if running.process is not None and running.process.poll() is not None:
                if running.part.once and running.process.returncode == 0:
                    self._put_away(running)
                    continue
                if now - running.started > STEADY:
                    running.failures = 0
                wait = BACK_OFF[min(running.failures, len(BACK_OFF) - 1)]
                running.failures += 1
                running.start_at = now + wait
                self.say(f"{_how_it_ended(running.process.returncode)}; starts again in {wait:g} s", running.part.name)
                self._put_away(running)
            elif running.process is None and running.start_at is not None and now >= running.start_at:
                self._start(running)

    def _stop_together(self, group: list[_Running]) -> None:
        asked = time.monotonic()
        impatient = self.stopping  # a further signal from here on means: at once
        for running in group:
            _signal(running, signal.SIGTERM)
        left = [running for running in group if running.process is not None]
        while left:
            self._pass_on_output(0.05)
            for running in left:
                if time.monotonic() - asked > running.part.grace or self.stopping > impatient:
                    _signal(running, signal.SIGKILL, whole_group=True)
            ended = [running for running in left if running.process is not None and running.process.poll() is not None]
            for running in ended:
                self._put_away(running)
            left = [running for running in left if running not in ended]

    def _put_away(self, running: _Running) -> None:
        _signal(running, signal.SIGKILL, whole_group=True)  # what it may have left behind
        self._read(running)
        self._stop_reading(running)
        running.process = None
        self._write_state()

    def _pass_on_output(self, seconds: float) -> None:
        for key, _ in self.selector.select(seconds):
            if key.data is None:
                os.read(self.wake_read, 64)
            else:
                self._read(key.data)

    def _read(self, running: _Running) -> None:
        if running.process.stdout.closed:
            return
        try:
            chunk = os.read(running.process.stdout.fileno(), 65536)
        except BlockingIOError:
            return
        if not chunk:
            self._stop_reading(running)
        *lines, running.unfinished = (running.unfinished + chunk).split(b"\n")
        if (not chunk and running.unfinished) or len(running.unfinished) > LINE_MAX:
            lines, running.unfinished = [*lines, running.unfinished], b""
        for line in lines:
            shown = line.decode(errors="replace").rstrip()
            if shown and not re.search(running.part.hide, shown):
                self.say(shown, running.part.name)

    def _stop_reading(self, running: _Running) -> None:
        if not running.process.stdout.closed:
            self.selector.unregister(running.process.stdout)
            running.process.stdout.close()

    def _write_state(self) -> None:
        pids = {name: running.process.pid for name, running in self.parts.items() if running.process is not None}
        draft = self.state.with_suffix(".new")
        draft.write_text(json.dumps({"pid": os.getpid(), "parts": pids, **self.more}))
        draft.replace(self.state)

    def _asked_to_stop(self, *_: object) -> None:
        self.stopping += 1
        os.write(self.wake_write, b"!")


def _signal(running: _Running, number: int, *, whole_group: bool = False) -> None:
    if running.process is None:
        return
    try:
        # the pid stays ours until we have waited for it; its group has the same number, by start_new_session
        (os.killpg if whole_group else os.kill)(running.process.pid, number)
    except (ProcessLookupError, PermissionError):  # macOS says "permission" of a group of zombies
        return


def _how_it_ended(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
