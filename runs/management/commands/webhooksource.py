"""`manage.py webhooksource NAME --agent AGENT`: somebody outside who may send webhooks. Prints where to, and the secret, this one time."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from access.errors import Refusal
from access.models import Agent
from access.rules import SYSTEM
from runs import webhooks
from runs.models import WebhookSource


class Command(BaseCommand):
    help = "Make a source of webhooks, give it a new secret, or close it. A secret is printed once and kept sealed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="by which workflows wait for it")
        parser.add_argument("--agent", help="whose runs its webhooks are for; needed for a new one")
        parser.add_argument("--workspace", help="its slug; needed if several workspaces have this name")
        parser.add_argument("--workflow", default="", help="that its webhooks start; without one they only feed runs that wait")
        parser.add_argument("--rotate", action="store_true", help="a new secret; the old one holds too for a day")
        parser.add_argument("--close", action="store_true", help="take nothing from it any more")

    def handle(self, *, name: str, agent: str | None, workspace: str | None, workflow: str, rotate: bool, close: bool, **_: Any) -> None:
        try:
            if rotate or close:
                self._change(_only(WebhookSource, workspace, name=name, closed_at=None), close)
            else:
                self._make(_only(Agent, workspace, name=agent or ""), name, workflow)
        except Refusal as error:
            raise CommandError(" ".join(filter(None, (error.title, error.more, "Nothing was changed.")))) from error

    def _make(self, agent: Agent, name: str, workflow: str) -> None:
        source, secret = webhooks.make_source(agent, name, workflow=workflow, by=SYSTEM)
        self._tell(source, secret)

    def _change(self, source: WebhookSource, close: bool) -> None:
        if close:
            webhooks.close_source(source, by=SYSTEM)
            self.stderr.write(f"Nothing is taken from {source.name} any more.")
        else:
            self._tell(source, webhooks.rotate(source, by=SYSTEM))

    def _tell(self, source: WebhookSource, secret: str) -> None:
        self.stderr.write("Send to this address, signed with this secret as standardwebhooks.com says. It is not shown again:")
        self.stdout.write(f"{webhooks.address(source)}\n{secret}")


def _only(model: type[Any], workspace: str | None, **named: Any) -> Any:
    found = model.objects.select_related("workspace").filter(**named)
    found = found.filter(workspace__slug=workspace) if workspace else found
    if found.count() != 1:
        raise CommandError(f"There are {found.count()} called {named['name'] or '(name one with --agent)'}. Nothing was changed.")
    return found.get()
