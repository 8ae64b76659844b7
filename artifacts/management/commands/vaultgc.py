"""`manage.py vaultgc`: remove the sealed files that nothing names, and uploads whose time is over. Beat does the same every ten minutes."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from artifacts import tidying


class Command(BaseCommand):
    help = "Remove the sealed files that no payload and no open upload names. What is younger than an hour is left alone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--older-than", type=int, default=60, metavar="MINUTES", help="at least 10: files come before their rows")
        parser.add_argument("--look", action="store_true", help="only say what would go")

    def handle(self, *, older_than: int, look: bool, **_: Any) -> None:
        if older_than < 10:
            raise CommandError("A file comes before the row that names it: at least 10 minutes. Nothing was removed.")
        grace = timedelta(minutes=older_than)
        if look:
            self.stdout.write(f"{sum(1 for _ in tidying.orphans(grace)):,} file(s) are named by nothing. Nothing was removed.")
            return
        over, gone = tidying.tidy(grace)
        self.stdout.write(f"{gone:,} file(s) and {over:,} expired upload(s) removed.")
