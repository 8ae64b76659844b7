"""Who is signed in, and how. Each of these leaves an entry in the audit trail; `begin` is the one way in."""

from typing import NamedTuple
from uuid import UUID

from django.contrib.auth import authenticate, login, logout
from django.db import transaction
from django.http import HttpRequest

from access import audit, lockout, open_sessions, rules
from access.lockout import Tries
from access.models import User
from access.rules import NOBODY, Actor
from config import clock

PASSWORD = "password"  # noqa: S105  the word for how, not a secret
DEMO = "demo"
BACKEND = "django.contrib.auth.backends.ModelBackend"


class SignedIn(NamedTuple):
    user: User


class Refused(NamedTuple):
    """Wrong, or not to be tried now."""

    tries: Tries


def by_password(request: HttpRequest, *, email: str, password: str) -> SignedIn | Refused:
    """Sign in the person with this e-mail and password. What it says and how long it takes are the same whether there is such a person."""
    tries = lockout.tries(request, email)
    if tries.until is not None:
        return Refused(tries)
    user = authenticate(request, email=email, password=password)
    if user is None:
        return refused(request, email)
    begin(request, user, how=PASSWORD)
    return SignedIn(user)


def begin(request: HttpRequest, user: User, *, how: str) -> None:
    """A fresh session for this person, which remembers how they came in: it is kept with every decision."""
    with transaction.atomic():
        open_sessions.forget(request)  # whoever was signed in here before
        login(request, user, backend=BACKEND)
        if not request.session.session_key:
            request.session.create()
        request.session["signed_in"] = how
        request.session["signed_in_at"] = clock.now().isoformat()
        open_sessions.opened(request, user, how=how)
        actor = rules.person(user.pk, signed_in=how)
        audit.record(actor, "signed_in", workspace_id=_workspace(actor), how=how)


def end(request: HttpRequest) -> None:
    """Forget the session. Nothing happens if there was none."""
    actor = request.actor
    if actor.kind != "human":
        return
    audit.record(actor, "signed_out", workspace_id=_workspace(actor))
    open_sessions.forget(request)
    logout(request)


def refused(request: HttpRequest, email: str) -> Refused:
    """Write down a wrong answer that was counted, and that it was the last for now. One query whoever it is about."""
    people = User.objects.filter(email__iexact=email).order_by("memberships__pk")
    found = list(people.values_list("pk", "memberships__workspace_id", "is_active")[:1])
    user_id, workspace_id, active = found[0] if found else (None, None, False)
    about = {"workspace_id": workspace_id, "subject": ("user", user_id) if user_id else None}
    audit.record(NOBODY, "sign_in_refused", **about, active=active)
    tries = lockout.tries(request, email)
    if tries.until is not None:
        audit.record(NOBODY, "sign_in_locked", **about, until=tries.until.isoformat(timespec="seconds"))
    return Refused(tries)


def _workspace(actor: Actor) -> UUID | None:
    return next(iter(actor.grants), None)
