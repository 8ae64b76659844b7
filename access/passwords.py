"""Choosing a password. Whoever does is signed out everywhere else."""

from django.contrib.auth import password_validation, update_session_auth_hash
from django.contrib.auth.hashers import make_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest

from access import audit, lockout, open_sessions, rules
from access.errors import BadInput
from access.models import User


class WrongPassword(BadInput):
    """That is not your password."""

    what_next = "Nothing was changed."


class TooManyWrong(BadInput):
    """Too many wrong answers."""

    status = 429


class WeakPassword(BadInput):
    """This password is too easy to guess."""

    what_next = "Your password is as it was."


def change(request: HttpRequest, *, old: str, new: str) -> int:
    """Another password for who is signed in, who knows the one of now. How many other sessions ended with it."""
    user = request.user
    check(request, user, old)
    weak = trouble(new, user)
    if weak:
        raise WeakPassword(weak)
    with transaction.atomic():
        put(user, new)
        update_session_auth_hash(request, user)
        open_sessions.moved(request)
        ended = open_sessions.end_others(user, request)
        actor = rules.person(user.pk)
        audit.record(actor, "password_changed", workspace_id=actor.home, subject=("user", user.pk), ended=ended)
    return ended


def check(request: HttpRequest, user: User, password: str) -> None:
    """WrongPassword, or TooManyWrong, unless it is this person's; wrong answers are counted, apart from those at the door."""
    check_not_locked(request, user)
    if not user.check_password(password):
        count_wrong(request, user)
        raise WrongPassword


def check_not_locked(request: HttpRequest, user: User) -> None:
    if (until := lockout.tries(request, _counted_as(user)).until) is not None:
        raise TooManyWrong(until=until)


def _counted_as(user: User) -> str:
    """Who is signed in waits for their own wrong answers, and not for those that somebody else gives at the door in their name."""
    return f"signed in as {user.pk}"


def count_wrong(request: HttpRequest, user: User) -> None:
    """One more wrong answer. TooManyWrong if it was the last for now."""
    lockout.failed(request, _counted_as(user))
    until = lockout.tries(request, _counted_as(user)).until
    if until is not None:
        actor = rules.person(user.pk)
        audit.record(actor, "sign_in_locked", workspace_id=actor.home, subject=("user", user.pk), until=until.isoformat(timespec="seconds"))
        raise TooManyWrong(until=until)


def trouble(new: str, user: User) -> str:
    """What is wrong with a new password, in words; empty if nothing is."""
    try:
        password_validation.validate_password(new, user)
    except ValidationError as error:
        return " ".join(error.messages)
    return ""


def put(user: User, new: str) -> None:
    """The row alone; who calls it ends what the old one opened."""
    user.password = make_password(new)
    User.objects.filter(pk=user.pk).update(password=user.password)
