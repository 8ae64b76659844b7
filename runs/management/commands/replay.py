"""`manage.py replay RUN`: would its workflow's code do the same? Asks the outside for nothing, and ends with 1 if it would differ."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from artifacts.redaction import plain
from runs.engine import replaying
from runs.engine.replaying import Difference, NotReplayable
from runs.management.commands.verify import find

WHAT = {
    "input": "would be asked for something else",
    "added": "is not recorded, so the replay ends there",
    "removed": "would not be done",
    "raised": "the code stops after it",
}
ENDS = {"ended": "to its end", "open": "to where the run is now", "stopped": "as far as the record goes"}
LINE = 160  # characters of a value


class Command(BaseCommand):
    help = "Run a workflow's code against what a run has recorded, without the outside, and say where it would differ."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", help="its reference (RN-7Q4K) or its id")
        parser.add_argument("--workflow-version", type=int, default=0, help="another version than that with which it started")
        parser.add_argument("--workspace", help="its slug; needed if two workspaces have a run of that reference")

    def handle(self, *, run: str, workflow_version: int, workspace: str | None, **_: Any) -> None:
        row = find(run, workspace)
        try:
            found = replaying.replay(row, version=workflow_version)
        except NotReplayable as refusal:
            raise CommandError(f"{refusal.title} {refusal.more}".strip()) from refusal
        told = f"{found.asked} of {found.recorded} recorded steps, with {row.workflow} version {found.version}, {ENDS[found.end]}"
        if found.same:
            self.stdout.write(f"{row.ref}: same. {told}")
            return
        self.stdout.write("\n".join([f"{row.ref}: differs. {told}", *(line for each in found.differences for line in _lines(each))]))
        sys.exit(1)


def _lines(found: Difference) -> Iterator[str]:
    yield f"  {found.step or 'the start'}{f' (#{found.seq})' if found.seq else ''} {WHAT[found.what]}" + (
        f": {found.detail}" if found.detail else ""
    )
    for change in found.changes:
        before, after = (_short(plain(text)) or "(hidden)" for text in (change.before, change.after))
        yield f"    {change.name}: {before} → {after}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE else f"{line[:LINE]}…"
