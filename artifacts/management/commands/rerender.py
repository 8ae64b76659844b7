"""`manage.py rerender`: make renditions anew that were made under earlier rules of redaction. Beat does the same, bit by bit."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from access.models import Workspace
from artifacts import rerendering


class Command(BaseCommand):
    help = "Make renditions anew under the rules of redaction of now. What was hidden stays hidden. It can be ended and goes on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", help="its slug; without it all of them")

    def handle(self, *, workspace: str | None, **_: Any) -> None:
        chosen = list(Workspace.objects.filter(slug=workspace) if workspace else Workspace.objects.order_by("slug"))
        if workspace and not chosen:
            raise CommandError(f"There is no workspace called {workspace}. Nothing was changed.")
        for each in chosen:
            self._rerender(each)

    def _rerender(self, workspace: Workspace) -> None:
        todo, looked, changed = rerendering.left(workspace.pk), 0, 0
        for batch in rerendering.rerender(workspace):
            looked, changed = looked + batch.looked, changed + batch.changed
            self.stdout.write(f"{workspace.slug}: {looked:,} of {max(todo, looked):,} renditions looked at, {changed:,} changed")
        if not looked:
            self.stdout.write(f"{workspace.slug}: all renditions are of the rules of now")
