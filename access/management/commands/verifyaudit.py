"""`manage.py verifyaudit`: is the audit trail whole? Says where it breaks, and ends with 1 then."""

import re
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from access.chain import Broken, verify


class Command(BaseCommand):
    help = "Check the chain of the audit trail, from its first entry to its head."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--kept", metavar="NUMBER:HASH", help="a head that an earlier call printed and that you kept elsewhere")

    def handle(self, *, kept: str | None, **_: Any) -> None:
        found = verify(kept=_kept(kept) if kept else None)
        if isinstance(found, Broken):
            self.stderr.write(f"The audit trail: BROKEN at #{found.number}. {found.why}")
            sys.exit(1)
        waiting = f", {found.waiting} not sealed yet" if found.waiting else ""
        self.stdout.write(f"The audit trail: whole, {found.head} entries{waiting}. Head {found.head}:{found.hash}")


def _kept(text: str) -> tuple[int, str]:
    parts = re.fullmatch(r"#?(\d{1,18}):([0-9a-fA-F]{64})", text.strip())
    if parts is None:
        raise CommandError("A kept head looks like 412:9f86d0…, as verifyaudit prints it: a number, a colon, 64 hexadecimal digits.")
    return int(parts[1]), parts[2].lower()
