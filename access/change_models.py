"""What one admin asked for and another one confirms or refuses."""

from django.db import models
from django.db.models import Q

from access.ids import uuid7
from config import clock

# overtaken: when it was to be confirmed, something else had changed, and it could not be done any more
CHANGE_STATES = ("waiting", "confirmed", "refused", "withdrawn", "lapsed", "overtaken")


class Asked(models.Model):
    """What every such change has. Until it is confirmed nothing changes."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey("access.Workspace", on_delete=models.PROTECT, related_name="+")
    why = models.UUIDField(null=True)  # a payload; not a foreign key: this app does not know the vault
    asked_by = models.ForeignKey("access.User", on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField(default=clock.now)
    signed_in = models.CharField(max_length=20)  # how who asked was
    lapses_at = models.DateTimeField()
    state = models.CharField(max_length=10, default="waiting")
    settled_by = models.ForeignKey("access.User", on_delete=models.PROTECT, null=True, related_name="+")
    settled_at = models.DateTimeField(null=True)
    answer = models.UUIDField(null=True)  # a payload: why it was refused

    workspace_path = "workspace"
    view_capability = "audit.view"

    class Meta:
        abstract = True


class AskedChange(Asked):
    """A change of something else than a role, by its kind (access/second_admin.py): a policy, what is hidden, who holds which role."""

    kind = models.CharField(max_length=24)
    subject = models.CharField(max_length=80, blank=True)  # what of that kind it is about, where there are several: an id
    base = models.PositiveIntegerField(default=0)  # the version that it was made from
    wanted = models.JSONField(default=dict)  # what it should be, as its kind has it

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=CHANGE_STATES), name="asked_change_state_known"),
            models.UniqueConstraint(fields=["workspace", "kind", "subject"], condition=Q(state="waiting"), name="asked_change_waits_once"),
        ]
        indexes = [models.Index(fields=["workspace", "-asked_at"], name="asked_changes_newest")]  # what waits, on the page of permissions

    def __str__(self) -> str:
        return f"{self.kind}, {self.state}"
