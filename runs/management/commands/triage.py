"""`manage.py triage FILE`: start a run of a workflow that takes messages, from an .eml file."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from access.errors import Refusal
from access.models import Agent, User
from access.rules import Actor
from runs import starting
from runs.engine.workflow import WORKFLOWS
from runs.models import Run

STEPS = 60  # of a run whose workflow names no number of its own


class Command(BaseCommand):
    help = "Start a triage run from a message file. The same file again gives the run that it started."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--workflow", default="support-triage")
        parser.add_argument("--workspace", help="its slug; needed if there are several")
        parser.add_argument("--owner", metavar="EMAIL", help="whose run it is; without, the agent's owner's")
        parser.add_argument("--again", action="store_true", help="start another run for a file that has one")

    def handle(self, *, file: Path, workflow: str, workspace: str | None, owner: str | None, again: bool, **_: Any) -> None:
        try:
            message = file.read_bytes()
        except OSError as error:
            raise CommandError(f"{file} can't be read: {error.strerror}. Nothing was started.") from error
        agents = Agent.objects.select_related("owner").filter(name=workflow)
        agents = agents.filter(workspace__slug=workspace) if workspace else agents
        if agents.count() != 1:
            raise CommandError(f"There are {agents.count()} agents called {workflow}. Name the workspace with --workspace.")
        agent = agents.get()
        if owner is not None and (whose := member(agent, owner)) is None:
            raise CommandError(f"{owner} is nobody of {agent.workspace.name}. Nothing was started.")
        try:
            run = start(agent, workflow, message, again, owner=whose if owner else None)
        except Refusal as error:
            raise CommandError(error.said) from error
        self.stdout.write(f"{run.ref}  {settings.HANDRAIL_URL}{reverse('runs:run', args=[run.pk])}")


def member(agent: Agent, email: str) -> User | None:
    """Whom runs of this agent may belong to, by their address."""
    return User.objects.filter(email=email, memberships__workspace=agent.workspace_id, memberships__deactivated_at=None).first()


def limits(workflow: str) -> dict[str, int]:
    """What a run that is started from here may use."""
    known = WORKFLOWS.get(workflow)
    return starting.DEFAULT_BUDGETS | {"steps": known.steps if known and known.steps else STEPS}


def start(agent: Agent, workflow: str, message: bytes, again: bool, by: Actor | None = None, owner: User | None = None) -> Run:
    """A run for the message that belongs to the agent's owner, or to `owner`; as if they had brought it, if nobody is named who did."""
    owner = owner or agent.owner
    by = by or Actor("human", str(owner.pk), owner.name)
    return starting.start_from_message(
        agent=agent, owner=owner, by=by, workflow=workflow, message=message, again=again, budgets=limits(workflow)
    )
