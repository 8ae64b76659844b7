"""How people get in: where somebody is signed in."""

from django.db import models

from access.ids import uuid7
from config import clock


class OpenSession(models.Model):
    """A person is signed in somewhere. Gone when it ends; that it began and ended stands in the audit trail."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey("access.User", on_delete=models.CASCADE, related_name="open_sessions")
    key = models.CharField(max_length=40, unique=True)  # of Django's session, so that it can be ended
    how = models.CharField(max_length=20)  # password | passkey | password+totp | password+recovery | sso | demo
    user_agent = models.CharField(max_length=300, blank=True)
    address = models.GenericIPAddressField(null=True)
    began_at = models.DateTimeField(default=clock.now, editable=False)
    used_at = models.DateTimeField(default=clock.now)

    def __str__(self) -> str:
        return f"{self.user}, {self.how}"
