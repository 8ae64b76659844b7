"""`manage.py misbehave NAME`: start a run of the demo and have something go wrong in it, to watch it recover."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from access.errors import Refusal
from config.misbehaving import NAMES, behave, misbehave


class Command(BaseCommand):
    help = "Start a run of the demo and have something go wrong in it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "name", nargs="?", choices=[*NAMES, "clear"], help="without one all are listed; clear ends what the desk still does"
        )

    def handle(self, *, name: str | None, **_: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This is not the demo (HANDRAIL_DEMO=1), so nothing was done.")
        try:
            self._do(name)
        except Refusal as refusal:
            raise CommandError(refusal.said) from refusal

    def _do(self, name: str | None) -> None:
        if name is None:
            self.stdout.write("\n".join(f"{each:22} {one.what}" for each, one in NAMES.items()))
            self.stdout.write("One at a time: another one, or clear, ends what is left of the one before.")
        elif name == "clear":
            behave()
            self.stdout.write("The desk behaves again.")
        else:
            run = misbehave(NAMES[name])
            self.stdout.write(f"{run.ref}  {settings.HANDRAIL_URL}{reverse('runs:run', args=[run.pk])}")
            self.stdout.write(f"Now {NAMES[name].what}. {NAMES[name].watch}")
