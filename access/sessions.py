"""Who is signed in, and how. Each of these leaves an entry in the audit trail."""

from uuid import UUID

from django.contrib.auth import authenticate, login, logout
from django.http import HttpRequest

from access import audit, rules
from access.models import Membership, User
from access.rules import NOBODY, Actor

PASSWORD = "password"  # noqa: S105  the word for how, not a secret
DEMO = "demo"
BACKEND = "django.contrib.auth.backends.ModelBackend"


def by_password(request: HttpRequest, *, email: str, password: str) -> bool:
    """Sign in the person with this e-mail and password. False when they don't match; the entry then names the account, if there is one."""
    user = authenticate(request, email=email, password=password)
    if user is None:
        refused(email)
        return False
    begin(request, user, how=PASSWORD)
    return True


def begin(request: HttpRequest, user: User, *, how: str) -> None:
    """A fresh session for this person, which remembers how they came in: it is kept with every decision."""
    login(request, user, backend=BACKEND)
    request.session["signed_in"] = how
    actor = rules.person(user.pk, signed_in=how)
    audit.record(actor, "signed_in", workspace_id=_workspace(actor), how=how)


def end(request: HttpRequest) -> None:
    """Forget the session. Nothing happens if there was none."""
    actor = request.actor
    if actor.kind != "human":
        return
    audit.record(actor, "signed_out", workspace_id=_workspace(actor))
    logout(request)


def refused(email: str) -> None:
    user = User.objects.filter(email__iexact=email).first()
    member = Membership.objects.filter(user=user).first() if user else None
    audit.record(
        NOBODY,
        "sign_in_refused",
        workspace_id=member.workspace_id if member else None,
        subject=("user", user.pk) if user else None,
        active=bool(user and user.is_active),
    )


def _workspace(actor: Actor) -> UUID | None:
    return next(iter(actor.grants), None)
