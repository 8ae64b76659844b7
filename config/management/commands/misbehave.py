"""`manage.py misbehave NAME`: start a run of the demo and have something go wrong in it, to watch it recover."""

import os
import signal
import time
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any
from uuid import uuid4

import httpx
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from access.models import Agent
from runs.management.commands.triage import start
from runs.models import Lease, Run

PATIENCE = 20.0  # seconds
CUSTOMER = "marta.oyelaran@brightwater.example"


@dataclass(frozen=True)
class Misbehaviour:
    """What goes wrong, and what to look for on the run's page. `faults`: what the desk is told to do, as (where, fault, times, options)."""

    what: str
    watch: str
    faults: tuple[tuple[str, str, int, dict[str, Any]], ...] = ()
    then: Callable[[Run], None] | None = None


def kill_worker(run: Run) -> None:
    """Kill whoever works on the run, once somebody does."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        pid = Lease.objects.filter(run=run, until__isnull=False).values_list("pid", flat=True).first()
        if pid and pid != os.getpid():
            os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.01)
    raise CommandError("No worker took the run up in time, so none was killed. Is the demo running?")


NAMES = {
    "killed-worker": Misbehaviour("its worker is killed", "Another goes on from the last completed step within seconds.", then=kill_worker),
    "crm-answer-lost": Misbehaviour(
        "the CRM writes the note and drops the answer",
        "Approve the reply: the note is looked up by its key, found, and not written again.",
        (("crm.note", "drop_answer", 1, {}),),
    ),
    "crm-half-answer": Misbehaviour(
        "the CRM’s answers about the account break off in the middle, twice",
        "It is asked again, and the run goes on.",
        (("account.read", "half_answer", 2, {}),),
    ),
    "crm-fails-after": Misbehaviour(
        "the CRM writes the note and answers 500",
        "Approve the reply: whether the note is there is looked up.",
        (("crm.note", "fail_after", 1, {}),),
    ),
    "desk-down": Misbehaviour(
        "the help desk answers 500 for a while",
        "The run is tried four times and is then stuck. Clear the fault, and as Otto try it again on the page Recovery.",
        (("ticket.read", "fail_before", 1000, {}),),
    ),
    "changed-schema": Misbehaviour(
        "the help desk calls a field of its answer by another name",
        "The answer does not fit, so it is not tried again: the run is stuck, with the field named.",
        (("ticket.read", "change_schema", 1, {"rename": {"customer": "client"}}),),
    ),
    "key-refused": Misbehaviour(
        "the CRM no longer takes our key",
        "Approve the reply: nothing was written, the run is stuck, and trying again asks people anew.",
        (("crm.note", "refuse_key", 1, {}),),
    ),
    "sent-answer-lost": Misbehaviour(
        "the mail server takes the message and drops the connection",
        "Approve the reply: the message is looked up by its Message-ID, and is in the mailbox once.",
        (("smtp", "drop_answer", 1, {"to": CUSTOMER}),),
    ),
}


class Command(BaseCommand):
    help = "Start a run of the demo and have something go wrong in it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "name", nargs="?", choices=[*NAMES, "clear"], help="without one all are listed; clear ends what the desk still does"
        )

    def handle(self, *, name: str | None, **_: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This is not the demo (HANDRAIL_DEMO=1), so nothing was done.")
        if name is None:
            self.stdout.write("\n".join(f"{each:17} {one.what}" for each, one in NAMES.items()))
        elif name == "clear":
            _desk("DELETE")
            self.stdout.write("The desk behaves again.")
        else:
            self._misbehave(NAMES[name])

    def _misbehave(self, chosen: Misbehaviour) -> None:
        _desk("DELETE")  # what an earlier one left
        for where, fault, times, options in chosen.faults:
            _desk("POST", json={"where": where, "fault": fault, "times": times, "options": options})
        agent = Agent.objects.select_related("owner").get(name="support-triage")
        run = start(agent, "support-triage", _message(), again=False)
        self.stdout.write(f"{run.ref}  {settings.HANDRAIL_URL}{reverse('runs:run', args=[run.pk])}")
        if chosen.then:
            chosen.then(run)
        self.stdout.write(f"Now {chosen.what}. {chosen.watch}")


def _message() -> bytes:
    """A customer's message that is like no other, so that it starts a run of its own."""
    mail = EmailMessage(policy=SMTP)
    mail["From"] = f"Marta Oyelaran <{CUSTOMER}>"
    mail["To"] = "support@fernhill.example"
    mail["Subject"] = "Charged twice for INV-20931"
    mail["Message-ID"] = f"<{uuid4()}@brightwater.example>"
    mail.set_content("Hello,\n\nwe have been charged twice for INV-20931. Please have a look.\n\nMarta\n")
    return mail.as_bytes()


def _desk(method: str, **more: Any) -> None:
    try:
        httpx.request(method, f"{settings.HANDRAIL_DESK_URL}/faults", timeout=5, trust_env=False, **more).raise_for_status()
    except (httpx.HTTPError, httpx.UnsupportedProtocol) as error:
        raise CommandError(f"The example's help desk can't be told to misbehave: {error}. Is the demo running?") from error
