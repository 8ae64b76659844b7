"""Who is at the other end of a stream that stays open, asked again while it does."""

from collections.abc import Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user

from access import keys
from access.rules import Actor, authenticate


def actor_of(scope: Mapping[str, Any]) -> Actor:
    """The actor of a stream's scope, as things stand now: a key that was revoked, a session that was signed out or a password that
    was changed since the stream was opened gives nobody."""
    session = import_module(settings.SESSION_ENGINE).SessionStore(_session_key(scope))
    actor = authenticate({"headers": scope.get("headers", ()), "user": get_user(SimpleNamespace(session=session)), "session": session})
    keys.used(actor)
    return actor


def _session_key(scope: Mapping[str, Any]) -> str | None:
    session = scope.get("session")
    return session.session_key if session is not None else None
