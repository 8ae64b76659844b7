"""`manage.py agentkey AGENT`: make a key for an agent and print it, this one time."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from access import keys
from access.models import Agent
from access.rules import SYSTEM


class Command(BaseCommand):
    help = "Make a key for an agent. It is printed once and kept as a hash only."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("agent", help="the agent's name")
        parser.add_argument("--workspace", help="its slug; needed if agents of several workspaces have this name")
        parser.add_argument("--name", default="made on the command line", help="what the key is for")
        parser.add_argument("--days", type=int, default=90, help="how long it is good for")

    def handle(self, *, agent: str, workspace: str | None, name: str, days: int, **_: Any) -> None:
        if not 1 <= days <= 730:
            raise CommandError("A key is good for 1 to 730 days. No key was made.")
        agents = Agent.objects.filter(name=agent)
        agents = agents.filter(workspace__slug=workspace) if workspace else agents
        if agents.count() != 1:
            raise CommandError(f"There are {agents.count()} agents called {agent}. No key was made.")
        key, token = keys.make(agents.get(), name=name[:60], by=SYSTEM, days=days)
        self.stderr.write(f"A key for {agent}, good until {key.expires_at:%d %B %Y}. It is not shown again:")
        self.stdout.write(token)
