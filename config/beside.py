"""What a command needs to know to work beside a running demo: its settings, from the data directory. Nothing of Django is loaded yet."""

import json
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path

from config import datadir
from config.env import OddSetting

RUNNING = "up.json"
DATABASE = "handrail.sqlite3"
MAKING = ("up", "demo_seed", "demo_runs")  # of our commands those that may begin with nothing; the others make no data directory


def join(environ: MutableMapping[str, str], arguments: Sequence[str], home: Path) -> None:
    """Fill in what the demo that runs on DATA_DIR was started with, where nothing else is set; and say which data it is.

    OddSetting if there is no data. Django's own commands, those of MAKING, and those of a database elsewhere, are left alone.
    """
    asked = arguments[1] if len(arguments) > 1 else ""
    if asked not in on_what_is_there(home) or {"-h", "--help"} & set(arguments) or environ.get("DATABASE_URL", "").strip():
        return
    data = Path(environ.get("DATA_DIR", "").strip() or home / "data").expanduser().absolute()
    if not (data / DATABASE).is_file():
        raise OddSetting(f"there is no data in {data}. Start the demo first (make demo), or say where its data is: DATA_DIR=…")
    for name, value in _told(data).items():
        environ.setdefault(name, value)
    print(f"Using the data in {data}.", file=sys.stderr)


def on_what_is_there(home: Path) -> set[str]:
    """The commands that work on data which is there already."""
    return {command.stem for command in home.glob("*/management/commands/[a-z]*.py")} - set(MAKING)


def _told(data: Path) -> dict[str, str]:
    """What the supervisor that runs now wrote down; nothing if none does."""
    try:
        told = json.loads((data / RUNNING).read_text()).get("environment", {}) if datadir.in_use(data) else {}
    except (OSError, ValueError):
        return {}
    return {str(name): str(value) for name, value in told.items()}
