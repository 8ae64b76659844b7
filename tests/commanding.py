"""Management commands of a stack from one process that has the house loaded: a fork of it for each, instead of loading it for each.

`python -m tests.commanding`, in the environment that the commands are to have. Reads a JSON list of arguments a line, and answers with
a JSON list: what `manage.py` with these arguments ended with, its output, and its errors.
"""

import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any

from config.supervisor import LIFELINE
from tests.migrated import ROOT

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


class Commander:
    """The process, as who asks sees it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = dict(env)
        command = [sys.executable, "-S", "-E", LIFELINE, str(os.getpid()), sys.executable, "-m", "tests.commanding"]
        self._process = subprocess.Popen(command, cwd=ROOT, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, arguments: Sequence[str], *, within: float) -> tuple[int, str, str]:
        self._process.stdin.write(json.dumps(list(arguments)) + "\n")
        self._process.stdin.flush()
        if not wait([self._process.stdout], within):  # select knows no file beyond the thousandth, and tests of many readers open more
            self.stop()
            raise AssertionError(f"manage.py {' '.join(arguments)} did not end within {within:g} s")
        code, output, errors = json.loads(self._process.stdout.readline())
        return code, output, errors

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()


def main() -> None:
    import django
    from django.urls import get_resolver

    django.setup()
    _ = get_resolver().url_patterns  # which imports the rest
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), flush=True)


def _run(arguments: list[str]) -> list[Any]:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            _become(arguments, output.fileno(), errors.fileno())
        _, status = os.waitpid(child, 0)
        said = []
        for file in (output, errors):
            file.seek(0)
            said.append(file.read().decode(errors="replace"))
        return [os.waitstatus_to_exitcode(status), *said]


def _become(arguments: list[str], output: int, errors: int) -> None:
    """In the child: what `python manage.py …` does. Never returns."""
    import manage

    code: object = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(errors, 2)
        sys.argv = ["manage.py", *arguments]
        manage.main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
        if not isinstance(code, int):
            print(code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    main()
