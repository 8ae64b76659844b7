"""A row of each redaction policy: what of which texts is hidden beside what the detectors find, since when, and until when."""

from django.db import models
from django.db.models import Q

from access.ids import uuid7
from access.models import User, Workspace
from config import clock


class RedactionPolicy(models.Model):
    """Never changed but by being withdrawn. `number` is the version of the workspace's policies that it began, `withdrawn_in` the one that
    its withdrawal began; in force are those without. `kind`: as what it hides; empty: it shows what an earlier one hides."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    number = models.PositiveIntegerField()
    event = models.CharField(max_length=60, default="*")  # the types of events, * and ? stand for others
    tool = models.CharField(max_length=60, default="*")  # and the tools
    path = models.CharField(max_length=200)  # JSONPath, RFC 9535
    kind = models.CharField(max_length=12, blank=True)
    why = models.UUIDField()  # a payload
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField(default=clock.now, editable=False)
    withdrawn_in = models.PositiveIntegerField(null=True)
    withdrawn_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    withdrawn_at = models.DateTimeField(null=True)
    withdrawn_why = models.UUIDField(null=True)

    workspace_path = "workspace"

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "number"], name="redaction_policy_number_once"),
            models.CheckConstraint(
                condition=Q(withdrawn_in=None, withdrawn_at=None, withdrawn_by=None)
                | Q(withdrawn_in__isnull=False, withdrawn_at__isnull=False, withdrawn_by__isnull=False),
                name="redaction_policy_withdrawn_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.path} of {self.event}/{self.tool} is {self.kind or 'shown'}"
