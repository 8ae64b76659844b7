"""`manage.py redaction [--add PATH --as KIND | --withdraw NUMBER | --try FILE]`: what is hidden beside what the detectors find."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from access import rules
from access.change_models import AskedChange
from access.errors import Refusal
from access.models import User, Workspace
from access.rules import Actor
from artifacts import redaction_changes, redaction_policies
from artifacts.detectors import KINDS
from artifacts.models import RedactionPolicy
from artifacts.redaction_policies import About
from artifacts.rendition import plain


class Command(BaseCommand):
    help = "List the redaction policies of a workspace, try one on a JSON file, put one in force, or withdraw one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", help="its slug; needed if there are several")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--add", metavar="PATH", help="a JSONPath; what it names is hidden from now on")
        what.add_argument("--try", metavar="FILE", dest="sample", help="show what of this JSON would be shown; nothing is kept")
        what.add_argument("--withdraw", type=int, metavar="NUMBER")
        parser.add_argument("--path", help="with --try: a policy that is not in force yet")
        parser.add_argument("--as", dest="kind", default="secret", choices=[*KINDS, "shown"], help="as what it is hidden")
        parser.add_argument("--event", default="", help="the types of events, as tool.*")
        parser.add_argument("--tool", default="", help="the tools, as crm_*")
        parser.add_argument("--why", default="")
        parser.add_argument("--by", default="", help="the e-mail address of the person who does it, who must have the right to")

    def handle(self, *, workspace: str | None, add: str | None, sample: str | None, withdraw: int | None, **given: Any) -> None:
        where = _workspace(workspace)
        kind = "" if given["kind"] == "shown" else given["kind"]
        base = redaction_policies.version(where.pk)
        try:
            if sample:
                self._try(where, Path(sample), given, kind)
            elif add:
                by = _person(given["by"], where)
                of = {"event": given["event"], "tool": given["tool"]}
                made = redaction_changes.make(where.pk, by=by, path=add, kind=kind, why=given["why"], base=base, **of)
                if isinstance(made, AskedChange):
                    return self._waits()
                self.stdout.write(f"In force as number {made.number}. What was kept before is rendered anew by the workers.")
            elif withdraw:
                row = RedactionPolicy.objects.filter(workspace=where, number=withdraw).first()
                if row is None:
                    raise CommandError(f"There is no policy number {withdraw}.")
                if redaction_changes.withdraw(row, by=_person(given["by"], where), why=given["why"], base=base):
                    return self._waits()
                self.stdout.write("Withdrawn. What it hid so far stays hidden.")
            else:
                self._list(where)
        except Refusal as error:
            raise CommandError(error.said) from error

    def _waits(self) -> None:
        self.stdout.write("Asked. Nothing changes until another admin confirms it on the page of permissions.")

    def _list(self, where: Workspace) -> None:
        rows = RedactionPolicy.objects.filter(workspace=where, withdrawn_in=None).order_by("number")
        for row in rows:
            does = f"hidden as {row.kind}" if row.kind else "shown"
            self.stdout.write(f"{row.number}  {row.path}  {does}, in events {row.event}, of tools {row.tool}")
        if not rows:
            self.stdout.write("No policy is in force. What the detectors find is hidden all the same.")

    def _try(self, where: Workspace, sample: Path, given: dict[str, Any], kind: str) -> None:
        fields = redaction_policies.checked(given["event"], given["tool"], given["path"], kind) if given["path"] else None
        of = About(given["event"].replace("*", "") or "tool.ended", given["tool"].replace("*", ""))
        draft = RedactionPolicy(**fields) if fields else None
        text = sample.read_text("utf-8")
        _, after = redaction_policies.tried(where.pk, text, label="internal", of=of, draft=draft)
        self.stdout.write(plain(after.text))


def _workspace(slug: str | None) -> Workspace:
    found = list(Workspace.objects.filter(slug=slug) if slug else Workspace.objects.all())
    if len(found) != 1:
        raise CommandError(f"There are {len(found)} such workspaces: name one with --workspace.")
    return found[0]


def _person(email: str, where: Workspace) -> Actor:
    user = User.objects.filter(email=email.lower(), is_active=True).first()
    actor = rules.person(user.pk) if user else rules.NOBODY
    if not rules.can(actor, "redaction.manage", where.pk):
        raise CommandError("Say with --by who does it: a person of the workspace who may change what is hidden. Nothing was changed.")
    return actor
