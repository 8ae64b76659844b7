"""Fills a database with a small cast and prints who they are as JSON. Run as a program, in the environment of the server it is for."""

# ruff: noqa: E402  the apps must be ready before the models are imported
import json
import os
import sys
from datetime import timedelta
from functools import cache

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.sessions.models import Session
from django.test import Client

from access import keys
from access.models import Agent, AgentKey, Membership, Role, User, Workspace
from access.rules import ROLES, SYSTEM
from config import clock


def workspace(slug: str) -> Workspace:
    made = Workspace.objects.create(slug=slug, name=slug.title())
    for name, capabilities in ROLES.items():
        Role.objects.create(workspace=made, name=name, capabilities=list(capabilities))
    return made


def person(name: str, where: Workspace, role: str) -> dict[str, str]:
    user = User.objects.create_user(f"{name}@{where.slug}.example", name=name.title())
    User.objects.filter(pk=user.pk).update(password=password())
    user.refresh_from_db()
    Membership.objects.create(workspace=where, user=user, role=where.roles.get(name=role))
    browser = Client()
    browser.force_login(user)
    return {"id": str(user.pk), "cookie": f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"}


@cache
def password() -> str:
    """Of everybody, hashed once: that is slow on purpose."""
    return make_password("a long pass phrase")


def agent(name: str, where: Workspace, owner: dict[str, str]) -> dict[str, str]:
    made = Agent.objects.create(workspace=where, name=name, owner_id=owner["id"])
    key, token = keys.make(made, name="test", by=SYSTEM)
    return {"id": str(made.pk), "token": token, "key": str(key.pk)}


def cast(slug: str) -> dict[str, dict[str, str]]:
    where = workspace(slug)
    people = {"priya": "operator", "otto": "operator", "riley": "reviewer", "morgan": "manager"}
    told = {name: person(name, where, role) for name, role in people.items()}
    return told | {"agent": agent("triage", where, told["priya"]), "colleague": agent("notes", where, told["priya"])}


def made(how: str) -> dict[str, str]:
    """Somebody new of our workspace, whose rights will be withdrawn."""
    ours = Workspace.objects.get(slug="ours")
    if how in ("revoked", "expired"):
        key, token = keys.make(Agent.objects.get(workspace=ours, name="triage"), name=how, by=SYSTEM)
        return {"key": str(key.pk), "token": token}
    return person(how, ours, "reviewer")


def withdraw(how: str, who: dict[str, str]) -> None:
    now = clock.now()
    match how:
        case "revoked":
            changed = AgentKey.objects.filter(pk=who["key"]).update(revoked_at=now)
        case "expired":
            changed = AgentKey.objects.filter(pk=who["key"]).update(expires_at=now - timedelta(seconds=1))
        case "deactivated":
            changed = User.objects.filter(pk=who["id"]).update(is_active=False)
        case "signed_out":
            changed, _ = Session.objects.filter(pk=who["cookie"].partition("=")[2]).delete()
        case "role":
            changed, _ = Membership.objects.filter(user_id=who["id"]).delete()
    assert changed == 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["cast"]:
            print(json.dumps({"ours": cast("ours"), "theirs": cast("theirs")}))
        case ["made", *every]:
            print(json.dumps({how: made(how) for how in every}))
        case ["withdraw", given]:
            print(json.dumps([withdraw(how, who) for how, who in json.loads(given).items()]))
