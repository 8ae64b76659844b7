"""`manage.py sealaudit`: seal what the audit trail has and no seal covers yet. The worker does the same every few seconds."""

from typing import Any

from django.core.management.base import BaseCommand

from access import sealing


class Command(BaseCommand):
    help = "Chain the entries of the audit trail that have no seal yet. Safe beside a running worker."

    def handle(self, **_: Any) -> None:
        sealed = sealing.seal()
        self.stdout.write(f"{sealed} {'entry' if sealed == 1 else 'entries'} sealed.")
