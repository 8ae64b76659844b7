"""Invitations: an admin names an address and a role; whoever opens the link comes in with a password, a passkey or single sign-on."""

import hashlib
from datetime import timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.urls import reverse

from access import audit, characters, hiding, links, passwords, roles, rules, second_admin, sessions, standing
from access.change_models import AskedChange
from access.errors import BadInput, NotFound, Refusal
from access.models import Membership, Role, User
from access.people_models import Invitation, nonce
from access.rules import Actor
from access.second_admin import Kind, Part
from config import clock

LASTS = timedelta(days=7)
MAX_NAME = 120


class AlreadyIn(Refusal):
    """They are here already."""

    what_next = "Nobody was invited. Search for them among the people; a role is changed on their page."


class AlreadyInvited(Refusal):
    """They have been invited already."""

    what_next = "Nobody was invited twice. Send the invitation again, or withdraw it first."


class InvitationOver(Refusal):
    """This invitation opens nothing any more."""

    status = 410
    what_next = "It was used, withdrawn or is too old. Ask who invited you for another."


def invite(workspace_id: UUID, *, email: str, role: Role, by: Actor, by_mail: bool) -> Invitation:
    """Let somebody come in. With `by_mail` a worker sends the link; else whoever made it hands it over."""
    email = email.strip().lower()
    if Membership.objects.filter(workspace_id=workspace_id, user__email=characters.as_kept(email)).exists():
        raise AlreadyIn
    try:
        with transaction.atomic():
            _lapse(workspace_id, email)
            made = Invitation.objects.create(
                workspace_id=workspace_id,
                email=email,
                role=role,
                invited_by_id=by.user_id,
                by_mail=by_mail,
                expires_at=clock.now() + LASTS,
            )
            audit.record(by, "invited", workspace_id=workspace_id, subject=("invitation", made.pk), role=role.name)
    except IntegrityError:
        raise AlreadyInvited from None
    return made


def ask(workspace_id: UUID, *, email: str, role: Role, by: Actor, by_mail: bool, why: str) -> Invitation | AskedChange:
    """Invite somebody. With a right that is grave it waits for a second admin, where the workspace asks for one, and needs a reason."""
    email = email.strip().lower()
    if not second_admin.GRAVE & set(rules.held_by(role)) or not second_admin.is_needed(workspace_id, INVITED):
        return invite(workspace_id, email=email, role=role, by=by, by_mail=by_mail)
    if Membership.objects.filter(workspace_id=workspace_id, user__email=characters.as_kept(email)).exists():
        raise AlreadyIn
    wanted = {"email": email, "role": role.pk, "version": role.version, "by_mail": by_mail}
    subject = hashlib.sha256(email.encode()).hexdigest()  # one for an address; the audit trail has no address
    return second_admin.ask(workspace_id, INVITED, subject=subject, wanted=wanted, by=by, why=why)


def _invited(change: AskedChange, by: Actor) -> str:
    role = Role.objects.filter(pk=change.wanted["role"], version=change.wanted["version"], retired_at=None).first()
    if role is None:
        raise InvitationOver("What the role may do is another by now.")
    email, by_mail = change.wanted["email"], change.wanted["by_mail"]
    invite(change.workspace_id, email=email, role=role, by=rules.person(change.asked_by_id), by_mail=by_mail)
    return f"{email} is invited. " + ("The link is on its way." if by_mail else "To have the link, send the invitation again on People.")


def _parts(change: AskedChange) -> list[Part]:
    role = Role.objects.values_list("name", flat=True).filter(pk=change.wanted["role"]).first() or ""
    return [Part(f"Invitation of {change.wanted['email']}", "", f"as {role}")]


INVITED = "invited"
second_admin.register(INVITED, Kind("access.manage", "who is invited", _parts, _invited, lambda change: reverse("access:people")))


def again(invitation: Invitation, *, by: Actor, by_mail: bool) -> Invitation:
    """Another link for the same address, from whoever sends it now; the one before opens nothing from now on."""
    fresh = {"nonce": nonce(), "expires_at": clock.now() + LASTS, "next_at": clock.now(), "tries": 0, "sent_at": None, "by_mail": by_mail}
    fresh |= {"invited_by_id": by.user_id}
    with transaction.atomic():
        # one admin does not stand in for the two who agreed on it
        grave = second_admin.GRAVE & set(rules.held_by(invitation.role))
        if invitation.role.retired_at or (grave and not _stands(invitation)):
            raise InvitationOver("Its role, or who made it, is gone. Withdraw it, and invite them anew.")
        if Invitation.objects.filter(pk=invitation.pk, used_at=None, withdrawn_at=None).update(**fresh) != 1:
            raise InvitationOver
        audit.record(by, "invitation_sent_again", workspace_id=invitation.workspace_id, subject=("invitation", invitation.pk))
    invitation.refresh_from_db()
    return invitation


def withdraw(invitation: Invitation, *, by: Actor) -> bool:
    """False if there was nothing to withdraw any more."""
    with transaction.atomic():
        open_still = Invitation.objects.filter(pk=invitation.pk, used_at=None, withdrawn_at=None)
        done = open_still.update(withdrawn_at=clock.now()) == 1
        if done:
            audit.record(by, "invitation_withdrawn", workspace_id=invitation.workspace_id, subject=("invitation", invitation.pk))
    return done


def find(token: str) -> Invitation:
    """The open invitation of a link. InvitationOver if it opens nothing."""
    found = links.find(Invitation, token)
    if found is None or not _stands(found):
        raise InvitationOver
    return found


def accept(request: HttpRequest, invitation: Invitation, *, name: str, password: str) -> User:
    """Come in as somebody new, with a password. WeakPassword if it is one; they are signed in afterwards."""
    person, name = User(email=invitation.email, name=name), fit_name(name)
    if weak := passwords.trouble(password, person):
        raise passwords.WeakPassword(weak)
    with transaction.atomic():
        user = _new(invitation, password, name)
        sessions.begin(request, user, how=sessions.PASSWORD)
    return user


def accept_as(invitation: Invitation, user: User) -> None:
    """Somebody who has an account with that address, and is signed in, joins this workspace too."""
    if user.email.lower() != invitation.email.lower():
        raise NotFound
    with transaction.atomic():
        _join(invitation, user)


def accept_by_address(email: str, name: str) -> User | None:
    """Somebody new, whose address the provider of single sign-on has verified, and who was invited; None if they were not."""
    now = clock.now()
    open_now = Invitation.objects.filter(email=characters.as_kept(email), used_at=None, withdrawn_at=None, expires_at__gt=now)
    invitation = next((each for each in open_now.select_related("role").order_by("created_at")[:100] if _stands(each)), None)
    if invitation is None:
        return None
    try:
        name = fit_name(name)
    except BadInput:  # what is called so at the provider is called by their address here
        name = ""
    with transaction.atomic():
        return _new(invitation, None, name)


def fit_name(name: str) -> str:
    """What a person is called, if everybody can see it. BadInput says what is wrong with it."""
    name = " ".join(name.split())
    if not characters.seen_length(name):
        raise BadInput("Say what you are called: your name stands beside what you decide.")
    if trouble := hiding.unfit(name, MAX_NAME, whose="Your", another="name"):
        raise BadInput(trouble)
    return name


def _new(invitation: Invitation, password: str | None, name: str) -> User:
    """Somebody new who joins by it, in the caller's transaction. InvitationOver if the same person came in at the same moment."""
    try:
        with transaction.atomic():
            user = User.objects.create_user(invitation.email, password, name=name)
    except IntegrityError:
        raise InvitationOver from None
    _join(invitation, user)
    return user


def _stands(invitation: Invitation) -> bool:
    """Who made it may still, and its role is there: who was let go leaves no door open behind them."""
    may = invitation.invited_by_id is None or rules.can(rules.person(invitation.invited_by_id), "access.manage", invitation.workspace_id)
    return may and invitation.withdrawn_at is None and invitation.role.retired_at is None


def _join(invitation: Invitation, user: User) -> None:
    """Use it up and become a member, in the caller's transaction."""
    roles.hold(invitation.workspace_id)  # nobody retires its role meanwhile
    if not links.use(invitation) or not _stands(Invitation.objects.select_related("role").get(pk=invitation.pk)):
        raise InvitationOver
    Invitation.objects.filter(pk=invitation.pk).update(user=user)
    Membership.objects.create(workspace_id=invitation.workspace_id, user=user, role_id=invitation.role_id)
    standing.raise_versions(User.objects.filter(pk=user.pk))
    actor = rules.person(user.pk)
    audit.record(actor, "invitation_accepted", workspace_id=invitation.workspace_id, subject=("invitation", invitation.pk))


def _lapse(workspace_id: UUID, email: str) -> None:
    """One that is too old makes room for another."""
    old = Invitation.objects.filter(workspace_id=workspace_id, email=characters.as_kept(email), used_at=None, withdrawn_at=None)
    old.filter(expires_at__lte=clock.now()).update(withdrawn_at=clock.now())
