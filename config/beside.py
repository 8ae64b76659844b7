"""What a command needs to know to work beside a running demo: its settings, from the data directory. Nothing of Django is loaded yet."""

import json
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path

from config import datadir
from config.env import OddSetting

RUNNING = "up.json"
DATABASE = "handrail.sqlite3"
ON_WHAT_IS_THERE = ("agentkey", "misbehave", "triage", "verify")  # these make no data directory: there is nothing in a new one for them


def join(environ: MutableMapping[str, str], arguments: Sequence[str], home: Path) -> None:
    """Fill in what the demo that runs on DATA_DIR was started with, where nothing else is set; and say which data it is.

    OddSetting if there is no data. Other commands than ON_WHAT_IS_THERE, and those of a database elsewhere, are left alone.
    """
    if len(arguments) < 2 or arguments[1] not in ON_WHAT_IS_THERE or environ.get("DATABASE_URL", "").strip():
        return
    data = Path(environ.get("DATA_DIR", "").strip() or home / "data").expanduser().absolute()
    if not (data / DATABASE).is_file():
        raise OddSetting(f"there is no data in {data}. Start the demo first (make demo), or say where its data is: DATA_DIR=…")
    for name, value in _told(data).items():
        environ.setdefault(name, value)
    print(f"Using the data in {data}.", file=sys.stderr)


def _told(data: Path) -> dict[str, str]:
    """What the supervisor that runs now wrote down; nothing if none does."""
    try:
        told = json.loads((data / RUNNING).read_text()).get("environment", {}) if datadir.in_use(data) else {}
    except (OSError, ValueError):
        return {}
    return {str(name): str(value) for name, value in told.items()}
