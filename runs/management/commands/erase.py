"""`manage.py erase RUN --artifact NAME | --event SEQ | --everything --by E-MAIL --reason WHY`: erase payloads of a run for good."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from access.errors import Refusal
from access.models import User
from access.rules import person
from runs import erasing
from runs.management.commands.verify import find


class Command(BaseCommand):
    help = (
        "Destroy the bytes, keys and renditions of payloads, with every copy in the run's family. Without --yes it only says what would go."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", help="its reference (RN-7Q4K) or its id")
        parser.add_argument("--workspace", help="its slug; needed if two workspaces have a run of that reference")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--artifact", help="an artifact's name; all its versions, unless --artifact-version names one")
        what.add_argument("--event", type=int, help="what this event holds; of several texts the one that --role names")
        what.add_argument("--everything", action="store_true", help="all that the run holds")
        parser.add_argument("--artifact-version", type=int)
        parser.add_argument("--role", default="")
        parser.add_argument("--by", required=True, help="the e-mail address of the person who does it, who must have the right to")
        parser.add_argument("--reason", required=True, choices=list(erasing.REASONS))
        parser.add_argument("--words", default="", help="more about the reason; needed with --reason other")
        parser.add_argument("--yes", action="store_true", help="do it")

    def handle(self, *, run: str, workspace: str | None, by: str, reason: str, words: str, yes: bool, **chosen: Any) -> None:
        found = find(run, workspace)
        user = User.objects.filter(email=by.lower()).first()
        if user is None:
            raise CommandError(f"There is nobody with the address {by}. Nothing was erased.")
        try:
            planned = erasing.plan(found, self._payloads(found, chosen))
            if planned.held:
                raise erasing.StillNeeded(" ".join(planned.held))
            much = f"{len(planned.chosen)} payload(s) and {len(planned.copies)} more with the same text"
            if not yes:
                self.stdout.write(f"This would erase {much}, for good. Nothing was erased. Add --yes to do it.")
                return
            erasing.erase(found, planned.chosen, by=person(user.pk), reason=reason, words=words)
        except Refusal as error:
            raise CommandError(error.said) from error
        self.stdout.write(f"Erased {much}. `manage.py verify {found.ref}` says that the log is whole.")

    def _payloads(self, run: Any, chosen: dict[str, Any]) -> Any:
        if chosen["artifact"]:
            return erasing.of_artifact(run, chosen["artifact"], chosen["artifact_version"])
        if chosen["event"]:
            return erasing.of_event(run, chosen["event"], chosen["role"])
        return erasing.of_runs([run.pk])
