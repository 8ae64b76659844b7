"""Reviewer groups: some of those who may decide, under a name. A rule of the policy asks so many of them, and nobody else counts."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from access import append_only
from access.ids import uuid7
from access.models import User, Workspace
from artifacts.models import Payload
from config import clock


class ReviewerGroup(models.Model):
    """A group as it is now. It is never deleted: rules of old versions name it, and so do the actions that were judged by them."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=60)
    version = models.PositiveIntegerField(default=1)  # the newest of `versions`
    closed_at = models.DateTimeField(null=True)  # out of use since then: nobody decides for it

    workspace_path = "workspace"
    team_path = ""
    view_capability = "approvals.view"

    class Meta:
        constraints = [models.UniqueConstraint("workspace", Lower("name"), name="group_name_once")]

    def __str__(self) -> str:
        return self.name


class GroupMember(models.Model):
    """Somebody who is in a group now, since this version of it without a break; its being closed is one."""

    group = models.ForeignKey(ReviewerGroup, on_delete=models.CASCADE, related_name="members")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    since = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "user"], name="group_member_once")]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.group_id}"


@append_only.protect
class GroupVersion(models.Model):
    """What a group was from one save to the next, who saved that and why. Insert-only."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    group = models.ForeignKey(ReviewerGroup, on_delete=models.PROTECT, related_name="versions")
    version = models.PositiveIntegerField()
    name = models.CharField(max_length=60)
    members = models.JSONField(default=list)  # ids of people
    closed = models.BooleanField(default=False)
    why = models.ForeignKey(Payload, on_delete=models.PROTECT, null=True, related_name="+")
    saved_at = models.DateTimeField(default=clock.now, editable=False)
    saved_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    workspace_path = "group__workspace"
    team_path = ""
    view_capability = "approvals.view"

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["group", "version"], name="group_version_once"),
            models.CheckConstraint(condition=Q(version__gte=1), name="group_version_counts"),
        ]

    def __str__(self) -> str:
        return f"{self.name}, version {self.version}"
