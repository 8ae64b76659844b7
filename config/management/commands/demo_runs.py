"""`manage.py demo_runs`: the demo's example runs, one for each ticket of the project. A ticket that has a run gets no other."""

import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from access.errors import Refusal
from access.models import Agent
from runs.management.commands.triage import start
from runs.models import Run

WORKFLOW = "support-triage"
TICKETS = settings.BASE_DIR / "examples" / "support_triage" / "tickets"
FIRST = "duplicate-charge.eml"  # so that it gets the number that the docs show
PATIENCE = 30.0  # seconds for the help desk to come up


class Command(BaseCommand):
    help = "Start a run for each of the project's example tickets that has none yet."

    def handle(self, **_: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This is not the demo (HANDRAIL_DEMO=1), so nothing was started.")
        agent = Agent.objects.select_related("owner").get(name=WORKFLOW)
        until = time.monotonic() + PATIENCE
        for ticket in sorted(TICKETS.glob("*.eml"), key=lambda file: (file.name != FIRST, file.name)):
            self._start(agent, ticket, until)

    def _start(self, agent: Agent, ticket: Path, until: float) -> None:
        before = Run.objects.filter(agent=agent).count()
        while True:
            try:
                run = start(agent, WORKFLOW, ticket.read_bytes(), again=False)
            except Refusal as refusal:
                if time.monotonic() > until:
                    raise CommandError(f"{ticket.name}: {refusal.detail} {refusal.what_next}") from refusal
                time.sleep(0.2)  # the help desk starts beside us
                continue
            if Run.objects.filter(agent=agent).count() > before:
                self.stdout.write(f"started {run.ref} for {ticket.name}")
            return
