"""`manage.py demo_runs`: the demo's example runs, one for each message of the examples. A message that has a run gets no other.

Of what they put to people one thing is claimed by a reviewer, so that there are others at work when the first person looks.
"""

import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from access import rules
from access.errors import BadInput, Refusal
from access.models import Agent, User
from approvals import decisions
from approvals.models import ProposedAction
from runs import live
from runs.management.commands.triage import start
from runs.models import Run

EXAMPLES = settings.BASE_DIR / "examples"
MESSAGES = {"support-triage": EXAMPLES / "support_triage" / "tickets", "back-office": EXAMPLES / "back_office" / "requests"}
FIRST = "duplicate-charge.eml"  # so that it gets the number that the docs show
CLAIMED, BY = "refund.eml", "sam@fernhill.example"
PATIENCE = 30.0  # seconds for the help desk to come up


class Command(BaseCommand):
    help = "Start a run for each of the examples' messages that has none yet."

    def handle(self, **_: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This is not the demo (HANDRAIL_DEMO=1), so nothing was started.")
        until = time.monotonic() + PATIENCE
        for workflow, messages in MESSAGES.items():
            agent = Agent.objects.select_related("owner").get(name=workflow)
            for message in sorted(messages.glob("*.eml"), key=lambda file: (file.name != FIRST, file.name)):
                run = self._start(agent, message, until)
                if run is not None and message.name == CLAIMED:
                    claim(run, by=BY, until=until)

    def _start(self, agent: Agent, message: Path, until: float) -> Run | None:
        """The run that was started; None if there was one."""
        before = Run.objects.filter(agent=agent).count()
        while True:
            try:
                run = start(agent, agent.name, message.read_bytes(), again=False)
            except Refusal as refusal:
                if isinstance(refusal, BadInput) or time.monotonic() > until:  # waiting mends no message
                    raise CommandError(f"{message.name}: {refusal.detail} {refusal.what_next}") from refusal
                time.sleep(0.2)  # the help desk starts beside us
                continue
            if Run.objects.filter(agent=agent).count() > before:
                self.stdout.write(f"started {run.ref} for {message.name}")
                return run
            return None


def claim(run: Run, *, by: str, until: float) -> bool:
    """Have a person claim what a run puts to people, once it has; False if it does not in time, or they may not."""
    person = User.objects.filter(email=by).first()
    while person is not None and time.monotonic() < until:
        action = ProposedAction.objects.select_related("policy", "run__agent").filter(run=run, state="waiting").first()
        if action is not None:
            try:
                decisions.claim(action, by=rules.person(person.pk))
            except Refusal:
                return False
            live.wake(run.pk, run.workspace_id, run.seq)
            return True
        time.sleep(0.2)  # a worker works on it
    return False
