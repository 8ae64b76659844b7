"""Who is signed in, and how. Each of these leaves an entry in the audit trail; `begin` is the one way in."""

from datetime import datetime, timedelta
from typing import NamedTuple

from django.contrib.auth import authenticate, login, logout
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest

from access import addresses, audit, lockout, open_sessions, rules, second_factors, step_up
from access.lockout import Tries
from access.models import User
from access.rows import only
from access.rules import NOBODY
from access.second_factors import WrongPasskey
from config import clock

PASSWORD = "password"  # noqa: S105  the word for how, not a secret
PASSKEY = "passkey"
SSO = "sso"
DEMO = "demo"
HALF, HALF_LASTS = "half_in", timedelta(minutes=10)
BACKEND = "django.contrib.auth.backends.ModelBackend"


class SignedIn(NamedTuple):
    user: User


class Half(NamedTuple):
    """The password was right, and something else is wanted."""

    user: User


class Refused(NamedTuple):
    """Wrong, or not to be tried now."""

    tries: Tries


def by_password(request: HttpRequest, *, email: str, password: str) -> SignedIn | Half | Refused:
    """Sign in the person with this e-mail and password. What it says and how long it takes are the same whether there is such a person."""
    tries = lockout.tries(request, email)
    if tries.until is not None:
        return Refused(tries)
    user = authenticate(request, email=email, password=password)
    if user is None:
        return refused(request, email)
    if second_factors.held(user).any:
        request.session[HALF] = {"user": str(user.pk), "at": clock.now().isoformat()}
        return Half(user)
    begin(request, user, how=PASSWORD)
    return SignedIn(user)


def half(request: HttpRequest) -> User | None:
    """Who gave the right password in this session within ten minutes, and something else is wanted of."""
    mark = request.session.get(HALF) or {}
    if not mark or clock.now() - datetime.fromisoformat(mark["at"]) > HALF_LASTS:
        return None
    return only(User.objects.filter(pk=mark["user"], is_active=True))


def by_code(request: HttpRequest, user: User, *, code: str) -> SignedIn | Refused:
    """The second step after a password: a code of an app, or a recovery code."""
    tries = lockout.tries(request, user.email)
    if tries.until is not None:
        return Refused(tries)
    kind = second_factors.check_code(user, code)
    if not kind:
        lockout.failed(request, user.email)
        return refused(request, user.email)
    begin(request, user, how=f"{PASSWORD}+{kind}")
    return SignedIn(user)


def by_passkey(request: HttpRequest, *, said: str, after: User | None = None) -> SignedIn | Refused:
    """Sign in by a passkey alone: it shows that somebody has the device and can unlock it. Wrong ones count for the address.

    `after`: who gave their password before; it must be theirs then.
    """
    name = f"passkey from {addresses.home(request)}"
    tries = lockout.tries_of_address(request, name)
    if tries.until is not None:
        return Refused(tries)
    try:
        user = second_factors.by_passkey(said)
    except WrongPasskey:
        user = None
    if user is None or not user.is_active or (after is not None and user != after):
        lockout.failed(request, name)
        about = after or user
        return refused(request, about.email if about else "", now=lockout.tries_of_address(request, name))
    begin(request, user, how=PASSKEY if after is None else f"{PASSWORD}+{PASSKEY}")
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
        request.session.pop(HALF, None)
        if how != DEMO:  # a click shows nothing
            step_up.shown(request, how=how)
        open_sessions.opened(request, user, how=how)
        actor = rules.person(user.pk, signed_in=how)
        audit.record(actor, "signed_in", workspace_id=actor.home, how=how)


def end(request: HttpRequest) -> None:
    """Forget the session. Nothing happens if there was none."""
    actor = request.actor
    if actor.kind != "human":
        return
    with transaction.atomic():
        audit.record(actor, "signed_out", workspace_id=actor.home)
        open_sessions.forget(request)
        logout(request)


def refused(request: HttpRequest, email: str, *, now: Tries | None = None) -> Refused:
    """Write down a wrong answer that was counted, and that it was the last for now. One query whoever it is about."""
    people = User.objects.by_email(email).order_by(F("memberships__deactivated_at").asc(nulls_first=True), "memberships__pk")
    found = list(people.values_list("pk", "memberships__workspace_id", "is_active")[:1])
    user_id, workspace_id, active = found[0] if found else (None, None, False)
    about = {"workspace_id": workspace_id, "subject": ("user", user_id) if user_id else None}
    audit.record(NOBODY, "sign_in_refused", **about, active=active)
    tries = now or lockout.tries(request, email)
    if tries.until is not None:
        audit.record(NOBODY, "sign_in_locked", **about, until=tries.until.isoformat(timespec="seconds"))
    return Refused(tries)
