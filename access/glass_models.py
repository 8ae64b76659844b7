"""Rights that somebody took by break-glass: for a while, with a reason, told to everybody who answers for it, and reviewed afterwards."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from access.ids import uuid7
from config import clock


class BreakGlass(models.Model):
    """It ends by the clock at `until`, or when somebody ends it. `access.rules` reads it; nothing has to happen for it to be over."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey("access.Workspace", on_delete=models.PROTECT, related_name="+")
    membership = models.ForeignKey("access.Membership", on_delete=models.SET_NULL, null=True, related_name="glasses")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    taken = models.JSONField(default=list)  # capabilities
    why = models.UUIDField()  # a payload; not a foreign key: this app does not know the vault
    signed_in = models.CharField(max_length=20)
    since = models.DateTimeField(default=clock.now)
    until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)  # early
    ended_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    reviewed_at = models.DateTimeField(null=True, blank=True)
    reviewed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    review = models.UUIDField(null=True, blank=True)  # what the reviewer found; a payload

    workspace_path = "workspace"

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(reviewed_by=F("user")), name="glass_reviewed_by_another"),
            models.CheckConstraint(
                condition=Q(reviewed_at=None, reviewed_by=None, review=None)
                | Q(reviewed_at__isnull=False, reviewed_by__isnull=False, review__isnull=False),
                name="glass_review_whole",
            ),
        ]
        indexes = [models.Index(fields=["workspace", "-since"], name="glass_unreviewed", condition=Q(reviewed_at=None))]  # the access log

    def __str__(self) -> str:
        return f"break-glass of {self.user_id} until {self.until}"
