"""`manage.py agentkey AGENT`: make a key for an agent and print it, this one time; or rotate, revoke and list keys."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from access import keys, rules
from access.errors import Refusal
from access.models import Agent, AgentKey, User, Workspace
from access.rules import AGENT_CAPABILITIES, SYSTEM


class Command(BaseCommand):
    help = "Make a key for an agent. It is printed once and kept as a hash only. Also: rotate, revoke and list keys."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("agent", help="the agent's name; with --provisioner the short name of the workspace")
        parser.add_argument("--workspace", help="its slug; needed if agents of several workspaces have this name")
        parser.add_argument("--name", default="made on the command line", help="what the key is for")
        parser.add_argument("--days", type=int, default=90, help="how long it is good for")
        parser.add_argument("--right", action="append", choices=AGENT_CAPABILITIES, help="what it may do; again for more. Without it: all")
        parser.add_argument("--workflow", action="append", default=[], help="of which alone it may start runs; again for more")
        parser.add_argument("--tool", action="append", default=[], help="with which alone it may act; again for more")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--list", action="store_true", help="list the agent's keys")
        what.add_argument("--rotate", metavar="PREFIX", help="put a new key in the place of this one")
        what.add_argument("--revoke", metavar="PREFIX", help="end this key now")
        what.add_argument("--provisioner", metavar="OWNER", help="make a provisioner key; the e-mail of the person who answers for it")
        parser.add_argument("--overlap", type=int, default=60, help="minutes for which a rotated key stays valid")

    def handle(self, *, agent: str, workspace: str | None, **given: Any) -> None:
        try:
            if given["provisioner"]:
                return self._provisioner(agent, given)
            return self._of_agent(self._agent(agent, workspace), given)
        except Refusal as refusal:
            raise CommandError(f"{refusal.detail} {refusal.what_next}") from None

    def _of_agent(self, agent: Agent, given: dict[str, Any]) -> None:
        if given["list"]:
            for key in agent.keys.order_by("created_at"):
                self.stdout.write(_line(key))
        elif given["revoke"]:
            key = _key(agent, given["revoke"])
            keys.revoke(key, by=SYSTEM)
            self.stderr.write(f"The key {key.prefix}… of {agent.name} is revoked.")
        elif given["rotate"]:
            old = _key(agent, given["rotate"])
            made, token = keys.rotate(old, by=SYSTEM, overlap=timedelta(minutes=given["overlap"]), days=_days(given))
            self._print(f"A new key for {agent.name}; the old one ends within {given['overlap']} minutes", made, token)
        else:
            scope = {"capabilities": given["right"] or AGENT_CAPABILITIES, "workflows": given["workflow"], "tools": given["tool"]}
            made, token = keys.make(agent, name=given["name"][:60], by=SYSTEM, days=_days(given), **scope)
            self._print(f"A key for {agent.name}", made, token)

    def _provisioner(self, slug: str, given: dict[str, Any]) -> None:
        place = Workspace.objects.filter(slug=slug).first()
        owner = User.objects.by_email(given["provisioner"]).filter(memberships__workspace=place).first() if place else None
        if place is None or owner is None:
            raise CommandError(f"There is no workspace {slug} with a person of that address. No key was made.")
        made, token = keys.make_provisioner(place.pk, name=given["name"][:60], owner=owner, by=SYSTEM, days=_days(given))
        self._print(f"A provisioner key of {slug}", made, token)

    def _print(self, what: str, key: Any, token: str) -> None:
        self.stderr.write(f"{what}, good until {key.expires_at:%d %B %Y}. It is not shown again:")
        self.stdout.write(token)

    def _agent(self, name: str, workspace: str | None) -> Agent:
        agents = Agent.objects.filter(name=name)
        agents = agents.filter(workspace__slug=workspace) if workspace else agents
        if agents.count() != 1:
            raise CommandError(f"There are {agents.count()} agents called {name}. No key was made.")
        return agents.get()


def _days(given: dict[str, Any]) -> int:
    if not 1 <= given["days"] <= keys.MAX_DAYS:
        raise CommandError("A key is good for 1 to 730 days. No key was made.")
    return int(given["days"])


def _key(agent: Agent, prefix: str) -> AgentKey:
    found = list(agent.keys.filter(prefix=prefix.rstrip("…"), revoked_at=None))
    if len(found) != 1:
        raise CommandError(f"{agent.name} has {len(found)} keys that begin with {prefix} and are not revoked. Nothing was changed.")
    return found[0]


def _line(key: AgentKey) -> str:
    ends = f"revoked {key.revoked_at:%Y-%m-%d}" if key.revoked_at else f"until {key.expires_at:%Y-%m-%d}"
    used = f"used {key.last_used_at:%Y-%m-%d %H:%M}" if key.last_used_at else "never used"
    return f"{key.prefix}…  {ends}  {used}  {len(rules.held_by_key(key))} rights  {key.name}"
