"""`manage.py secondadmin WORKSPACE always|two|never`: whether a change of roles takes a second admin. No admin alone can say so."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from access import roles
from access.models import Workspace
from access.rules import SYSTEM

SAYS = {"always": True, "two": None, "never": False}


class Command(BaseCommand):
    help = "Say whether a change of roles takes a second admin: always, as soon as there are two (the default), or never."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="its short name")
        parser.add_argument("when", choices=SAYS)

    def handle(self, *, workspace: str, when: str, **_: Any) -> None:
        found = Workspace.objects.filter(slug=workspace).first()
        if found is None:
            raise CommandError(f"There is no workspace {workspace}. Nothing was changed.")
        roles.say_second(found.pk, SAYS[when], by=SYSTEM)
        self.stdout.write(
            f"{found.name}: {'a second admin confirms' if roles.needs_second(found.pk) else 'no second admin is asked for'} now."
        )
