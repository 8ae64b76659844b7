"""Uploads in parts: what came so far, until it is finished or runs out."""

from django.db import models
from django.db.models import F, Q

from access.ids import uuid7
from access.models import Agent, Workspace
from config import clock


class Upload(models.Model):
    """A large file of an agent's run on its way in. `parts` lie in the storage `payloads`, sealed under a data key of the upload's own."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+")
    run_id = models.UUIDField()  # not a foreign key: this app does not know runs
    sender = models.CharField(max_length=120)  # the agent's idempotency key; the same again is the same upload
    name = models.CharField(max_length=120)
    label = models.CharField(max_length=10)
    media_type = models.CharField(max_length=120)
    outside = models.BooleanField(default=False)
    size = models.PositiveBigIntegerField()  # bytes that there will be
    offset = models.PositiveBigIntegerField(default=0)  # bytes that there are
    parts = models.JSONField(default=list)  # [name, bytes], in order
    key = models.ForeignKey("artifacts.WorkspaceKey", on_delete=models.PROTECT, related_name="+")
    wrapped = models.BinaryField(null=True)  # the data key, under the workspace key; gone when it is finished
    created_at = models.DateTimeField(default=clock.now, editable=False)
    expires_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    workspace_path = "workspace"
    agent_path = "agent"
    view_capability = "runs.write"

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run_id", "sender"], name="upload_once"),
            models.CheckConstraint(condition=Q(offset__lte=F("size")), name="upload_within_size"),
            models.CheckConstraint(
                condition=Q(finished_at=None, wrapped__isnull=False) | Q(finished_at__isnull=False, wrapped=None),
                name="upload_open_or_finished",
            ),
        ]
        indexes = [models.Index(fields=["expires_at"], name="upload_expiry")]  # the job that removes them

    def __str__(self) -> str:
        return f"{self.offset} of {self.size} bytes of {self.name}"
