"""“Forgot it”: a link to choose a new password. What is answered, and how long it takes, is the same for an address that nobody has."""

from datetime import timedelta

from django.db import transaction
from django.http import HttpRequest

from access import addresses, audit, links, lockout, open_sessions, passwords, people, rules
from access.errors import Refusal
from access.models import Membership, User
from access.people_models import PasswordLink
from access.rules import NOBODY, Actor
from config import clock

LASTS, LASTS_FROM_ADMIN = timedelta(hours=1), timedelta(days=1)
MOST_AN_HOUR = 3  # for one person; more would only fill their mailbox


class LinkOver(Refusal):
    """This link opens nothing any more."""

    status = 410
    what_next = "Your password is as it was. Ask for another link on the sign-in page."


class TooManyLinks(Refusal):
    """Very many links were asked for from here."""

    status = 429
    what_next = "No link was sent. Wait a quarter of an hour, or ask an admin of your workspace for one."


def count(request: HttpRequest) -> None:
    """One more that is asked for, by whom nobody knows: an address that asks for very many waits, as for wrong answers at the door."""
    name = f"links from {addresses.home(request)}"
    if lockout.tries_of_address(request, name).until is not None:
        raise TooManyLinks
    lockout.failed(request, name)


def ask(email: str) -> None:
    """Whoever it is: a row is written, and a worker sends what is to be sent."""
    user = User.objects.by_email(email).filter(is_active=True).first()
    lately = PasswordLink.objects.filter(user=user, created_at__gt=clock.now() - timedelta(hours=1)).count()
    where = rules.home_of(user.pk if user else None)
    sent_to = user if user and lately < MOST_AN_HOUR else None
    with transaction.atomic():
        PasswordLink.objects.create(user=sent_to, expires_at=clock.now() + LASTS)
        subject = ("user", user.pk) if user else None
        audit.record(NOBODY, "password_link_asked", workspace_id=where, subject=subject, known=user is not None)


def make(member: Membership, *, by: Actor, by_mail: bool) -> PasswordLink:
    """One that an admin lets somebody have."""
    with transaction.atomic():
        made = PasswordLink.objects.create(
            user_id=member.user_id, made_by_id=by.user_id, by_mail=by_mail, expires_at=clock.now() + LASTS_FROM_ADMIN
        )
        audit.record(by, "password_link_made", workspace_id=member.workspace_id, subject=("user", member.user_id))
    return made


def find(token: str) -> PasswordLink:
    """LinkOver if it opens nothing."""
    found = links.find(PasswordLink, token)
    if found is None or found.user is None or not found.user.is_active or not _stands(found):
        raise LinkOver
    return found


def choose(link: PasswordLink, *, password: str) -> None:
    """The new password. Every session that the old one opened ends, and other links open nothing. Nobody is signed in by it."""
    user = link.user
    if weak := passwords.trouble(password, user):
        raise passwords.WeakPassword(weak)
    with transaction.atomic():
        if not links.use(link) or not _stands(link):
            raise LinkOver
        PasswordLink.objects.filter(user=user, used_at=None).update(used_at=clock.now())
        passwords.put(user, password)
        ended = open_sessions.end_all(user)
        actor = rules.person(user.pk)
        audit.record(
            actor, "password_chosen", workspace_id=actor.home, subject=("user", user.pk), ended=ended, by_admin=link.made_by_id is not None
        )


def _stands(link: PasswordLink) -> bool:
    """Whether the admin who made it, if one did, could make it still: wherever it lets this person in."""
    return link.made_by_id is None or people.is_wholly_ours(link.user_id, rules.person(link.made_by_id))
