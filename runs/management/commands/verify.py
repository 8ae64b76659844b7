"""`manage.py verify RUN`: is the run's log whole? Says where it breaks, and ends with 1 then."""

import sys
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q

from access.ids import NotAReference, parse_reference
from artifacts.redaction import hide
from runs.models import Run
from runs.verification import Broken, verify


class Command(BaseCommand):
    help = "Check the hash chain and the payload commitments of a run's log, from its first event to its head."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", help="its reference (RN-7Q4K) or its id")
        parser.add_argument("--workspace", help="its slug; needed if two workspaces have a run of that reference")

    def handle(self, *, run: str, workspace: str | None, **_: Any) -> None:
        found = verify(find(run, workspace))
        if isinstance(found, Broken):
            self.stderr.write(f"{run}: BROKEN at #{found.seq:,}. {found.why}")
            sys.exit(1)
        erased = f", {found.erased} payload{'s' * (found.erased > 1)} erased" if found.erased else ""
        unsure = f", {found.unsure} rendition{'s' * (found.unsure > 1)} of earlier rules not compared" if found.unsure else ""
        self.stdout.write(f"{run}: whole, #1 to #{found.head:,}{erased}{unsure}. Head {found.hash}")


def find(called: str, workspace: str | None) -> Run:
    """The one run of this reference or id. CommandError if there is none, or more than one."""
    runs = Run.objects.filter(_names(called))
    runs = list(runs.filter(workspace__slug=workspace) if workspace else runs)
    if not runs:
        raise CommandError(f"There is no run called {hide(called)}.")
    if len(runs) > 1:
        raise CommandError(f"There are {len(runs)} runs called {called}: name the workspace with --workspace.")
    return runs[0]


def _names(called: str) -> Q:
    try:
        return Q(pk=UUID(called))
    except ValueError:
        pass
    try:
        return Q(ref=parse_reference(called))
    except NotAReference:
        raise CommandError(f"There is no run called {hide(called)}. A reference looks like RN-7Q4K.") from None
