"""A migrated, otherwise empty database of each kind, and one with the demo's people: made once, by whoever needs it first, and copied from
then on.

Migrating takes seconds; each process of pytest-xdist and each stack needs such a database. They share a directory, in which one of
them makes it while the others wait for the lock.
"""

import atexit
import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

from tests import postgres

OWNER = "handrail"  # an ordinary role, as in life
ROOT = Path(__file__).resolve().parent.parent
VARIABLE = "HANDRAIL_TEST_SHARED"  # tells child processes of the directory that is already there
SECRETS = {"SECRET_KEY": "of the tests' stacks " * 4, "HANDRAIL_VAULT_KEY": "dGVzdHMgb25seSwgMzIgYnl0ZXMgb2YgdGV4dCBoZXI="}


def share() -> Path:
    """The directory: the one that is there, or one that goes with this process."""
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = str(own_directory("handrail-shared-"))
    return Path(os.environ[VARIABLE])


def make_all() -> None:
    """Every database that is copied, one after another, before anybody waits for it."""
    for make in (sqlite, partial(postgres_template, owner=OWNER)):
        make()
        make(seeded=True)


def sqlite(*, seeded: bool = False) -> Path:
    """The file of a database that is to be copied, not opened."""
    data = share() / ("seeded" if seeded else "sqlite")
    file = data / "handrail.sqlite3"
    with _alone(data.name) as done:
        if not done.exists():
            if seeded:
                data.mkdir(mode=0o700)
                (data / ".handrail").touch()
                shutil.copy(sqlite(), file)
            manage("demo_seed" if seeded else "migrate", {"DATA_DIR": str(data)})
            with sqlite3.connect(file) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            done.touch()
    return file


def postgres_template(*, owner: str | None = None, seeded: bool = False) -> str:
    """The name of a database on `postgres.server()` that is to be copied. Its tables belong to `owner`, else to somebody whose tables the
    tests may use."""
    owner = owner or (OWNER if postgres.are_superuser() else None)  # who may do everything needs none of their own
    name = f"{'seeded' if seeded else 'migrated'}_{owner or 'tests'}_{share().name.rpartition('-')[2]}"
    with _alone(name) as done:
        if not done.exists():
            url = postgres.database(name, owner=owner, template=postgres_template(owner=owner) if seeded else None)
            manage("demo_seed" if seeded else "migrate", {"DATA_DIR": str(share() / name), "DATABASE_URL": url})
            done.touch()
    return name


def manage(command: str, env: Mapping[str, str]) -> None:
    environment = {**clean_environment(), **SECRETS, "HANDRAIL_DEMO": "1", **env}
    done = subprocess.run([sys.executable, "manage.py", command, "-v0"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def clean_environment() -> dict[str, str]:
    """What a process of the house may find of this one's environment."""
    ours = ("HANDRAIL_", "DJANGO_", "PYTEST_", "CELERY_", "DATABASE_", "LOG_")
    named = {"VALKEY_URL", "REDIS_URL", "HOST", "PORT", "DEBUG", "DATA_DIR", "WORKERS", "TRUST_PROXY", "ALLOWED_HOSTS"}
    return {name: value for name, value in os.environ.items() if name not in named and not name.startswith(ours)}


def own_directory(prefix: str) -> Path:
    """A new directory that goes with this process."""
    made = mkdtemp(prefix=prefix)
    atexit.register(_remove, made, os.getpid())
    return Path(made)


@contextmanager
def _alone(name: str) -> Iterator[Path]:
    """Nobody else in it at the same time. Gives the file that says that it is done."""
    with (share() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield share() / f"{name}.done"


def _remove(directory: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child runs this hook too
        shutil.rmtree(directory, ignore_errors=True)
