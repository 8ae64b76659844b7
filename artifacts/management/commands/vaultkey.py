"""`manage.py vaultkey`: the versions of workspaces' keys; `rotate`, `rewrap` and `rewrap-master`. docs/vault.md says when."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from access.errors import Refusal
from access.models import Workspace
from access.rules import SYSTEM
from artifacts import keys, rotation


class Command(BaseCommand):
    help = "Show the versions of the keys that wrap payloads, make new ones, and wrap under them what older ones wrapped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        told = "status: show; rotate: new versions; rewrap: go on with what is left; rewrap-master: seal them under HANDRAIL_VAULT_KEY"
        parser.add_argument("do", nargs="?", default="status", choices=["status", "rotate", "rewrap", "rewrap-master"], help=told)
        parser.add_argument("--workspace", help="its slug; without it all of them")
        parser.add_argument("--later", action="store_true", help="with rotate: leave older payloads to the job that beat starts")

    def handle(self, *, do: str, workspace: str | None, later: bool, **_: Any) -> None:
        if do == "rewrap-master":
            self._rewrap_master(workspace)
            return
        chosen = self._workspaces(workspace)
        if do == "rotate":
            for each in chosen:
                self._rotate(each)
        if do == "rewrap" or (do == "rotate" and not later):
            for each in chosen:
                self._rewrap(each)
        for each in chosen:
            self._status(each)

    def _workspaces(self, slug: str | None) -> list[Workspace]:
        found = list(Workspace.objects.filter(slug=slug) if slug else Workspace.objects.order_by("slug"))
        if slug and not found:
            raise CommandError(f"There is no workspace called {slug}. Nothing was changed.")
        return found

    def _rotate(self, workspace: Workspace) -> None:
        try:
            made = keys.rotate(workspace, by=SYSTEM)
        except Refusal as error:
            raise CommandError(f"{workspace.slug}: {error.title} {error.what_next}") from error
        when = f"at once here, within {keys.REMEMBERED:g} s elsewhere"
        self.stdout.write(f"{workspace.slug}: version {made.version} was made. It seals what is new, {when}.")

    def _rewrap(self, workspace: Workspace) -> None:
        todo, done, closed = rotation.left(workspace.pk), 0, 0
        for batch in rotation.rewrap(workspace.pk):
            done, closed = done + batch.moved, closed + batch.closed
            self.stdout.write(f"{workspace.slug}: {done:,} of {max(todo, done):,} payloads wrapped anew")
        if closed:
            self.stderr.write(f"{workspace.slug}: {closed} payload(s) do not open under the key they name. They and their version stay.")

    def _status(self, workspace: Workspace) -> None:
        for each in rotation.versions(workspace.pk):
            word = "seals" if each.newest else "retired, to be destroyed" if each.retired else "old"
            self.stdout.write(f"{each.workspace}: version {each.version}, {word}, {each.payloads:,} payloads")

    def _rewrap_master(self, workspace: str | None) -> None:
        if workspace:
            raise CommandError("The master key is one for all workspaces: leave out --workspace. Nothing was changed.")
        moved, closed = keys.rewrap_master(by=SYSTEM)
        self.stdout.write(f"{moved} key(s) sealed under HANDRAIL_VAULT_KEY.")
        if closed:
            named = ", ".join(f"{key.workspace_id} version {key.version}" for key in closed)
            raise CommandError(f"These open under no master key that is set: {named}. Put theirs into HANDRAIL_VAULT_KEY_OLD.")
        self.stdout.write("All open under it: HANDRAIL_VAULT_KEY_OLD is needed no more.")
