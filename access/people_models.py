"""How people get in: where somebody is signed in, who they are at the provider of single sign-on, invitations, links for a new password."""

import secrets

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from access.ids import uuid7
from config import clock


class OpenSession(models.Model):
    """A person is signed in somewhere. Gone when it ends; that it began and ended stands in the audit trail."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey("access.User", on_delete=models.CASCADE, related_name="open_sessions")
    key = models.CharField(max_length=40, unique=True)  # of Django's session, so that it can be ended
    how = models.CharField(max_length=20)  # password | passkey | password+totp | password+recovery | password+passkey | sso | demo
    user_agent = models.CharField(max_length=300, blank=True)
    address = models.GenericIPAddressField(null=True)
    began_at = models.DateTimeField(default=clock.now, editable=False)
    used_at = models.DateTimeField(default=clock.now)

    def __str__(self) -> str:
        return f"{self.user}, {self.how}"


class SsoIdentity(models.Model):
    """Who somebody is at a provider of single sign-on."""

    user = models.ForeignKey("access.User", on_delete=models.CASCADE, related_name="sso_identities")
    issuer = models.CharField(max_length=200)
    subject = models.CharField(max_length=255)
    linked_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="sso_subject_once"),
            models.UniqueConstraint(fields=["issuer", "user"], name="sso_person_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user} at {self.issuer}"


def nonce() -> str:
    return secrets.token_urlsafe(24)


class Link(models.Model):
    """A link that opens once and until a time. It is the signed nonce: who reads this table alone can't make one."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    nonce = models.CharField(max_length=43, default=nonce, unique=True)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    # sending it by mail
    by_mail = models.BooleanField(default=True)
    next_at = models.DateTimeField(default=clock.now)
    tries = models.PositiveSmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True


class Invitation(Link):
    """Somebody may come in with a role; `used_at` is when they did."""

    workspace = models.ForeignKey("access.Workspace", on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField()
    role = models.ForeignKey("access.Role", on_delete=models.PROTECT, related_name="+")
    invited_by = models.ForeignKey("access.User", on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey("access.User", on_delete=models.CASCADE, null=True, related_name="+")  # who came
    withdrawn_at = models.DateTimeField(null=True)

    workspace_path = "workspace"

    class Meta:
        constraints = [
            # one that is open for an address in a workspace: sending it again changes it
            models.UniqueConstraint("workspace", Lower("email"), condition=Q(used_at=None, withdrawn_at=None), name="invitation_open_once"),
        ]

    def __str__(self) -> str:
        return f"{self.email} to {self.workspace}"


class PasswordLink(Link):
    """Somebody may choose a new password. Without a user it is of an address that nobody has, and is never sent."""

    user = models.ForeignKey("access.User", on_delete=models.CASCADE, null=True, related_name="+")
    made_by = models.ForeignKey("access.User", on_delete=models.CASCADE, null=True, related_name="+")  # an admin, if not they themselves

    def __str__(self) -> str:
        return f"a new password for {self.user}"
