"""What a role was and is, version by version, and the changes of roles that wait for a second admin."""

from django.db import models
from django.db.models import Q

from access import append_only
from access.change_models import CHANGE_STATES, Asked
from access.ids import uuid7
from config import clock


@append_only.protect
class RoleVersion(models.Model):
    """A role as it was from one change to the next. Insert-only. The first is written down with the first change."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    role = models.ForeignKey("access.Role", on_delete=models.PROTECT, related_name="versions")
    version = models.PositiveIntegerField()
    name = models.CharField(max_length=60)
    holds = models.JSONField(default=list)  # capabilities
    retired = models.BooleanField(default=False)
    restores = models.PositiveIntegerField(null=True)  # the version that it is again
    why = models.UUIDField(null=True)  # a payload; not a foreign key: this app does not know the vault
    asked_by = models.ForeignKey("access.User", on_delete=models.PROTECT, null=True, related_name="+")  # null: the installation
    confirmed_by = models.ForeignKey("access.User", on_delete=models.PROTECT, null=True, related_name="+")
    at = models.DateTimeField(default=clock.now, null=True)  # null: it is not known since when

    workspace_path = "role__workspace"
    view_capability = "audit.view"

    class Meta:
        constraints = [models.UniqueConstraint(fields=["role", "version"], name="role_version_once")]

    def __str__(self) -> str:
        return f"{self.name}, version {self.version}"


class RoleChange(Asked):
    """A change of a role that one admin asked for and another one confirms or refuses. Until then nothing changes."""

    role = models.ForeignKey("access.Role", on_delete=models.PROTECT, null=True, related_name="changes")  # null: a new one
    base = models.PositiveIntegerField()  # the version that it was made from
    name = models.CharField(max_length=60)
    holds = models.JSONField(default=list)
    retired = models.BooleanField(default=False)
    restores = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=CHANGE_STATES), name="role_change_state_known"),
            models.UniqueConstraint(fields=["role"], condition=Q(state="waiting"), name="role_change_waits_once"),
        ]
        indexes = [models.Index(fields=["workspace", "-asked_at"], name="role_changes_newest")]  # what waits, on the page of permissions

    def __str__(self) -> str:
        return f"change of {self.name}, {self.state}"
