"""A row of each value that was shown to somebody from whom it is hidden otherwise: what, to whom, why, until when."""

from django.db import models
from django.db.models import F, Q

from access.ids import uuid7
from access.models import User, Workspace
from config import clock


class Reason(models.TextChoices):
    """Why somebody needed to see it. Empty: the label asks for none."""

    DECIDE = "decide", "Needed to decide on this action"
    CUSTOMER = "customer", "Customer asked about their data"
    INCIDENT = "incident", "Incident review"
    OTHER = "other", "Other, explained below"


class Reveal(models.Model):
    """It is written before the value leaves, for one person in one session. Over when `until` has come, or `ended_at` is set.

    `place` is where the payload stood when it was asked for; `hidden` says what stood hidden there: kind → how many. A reveal never takes
    away the row: the audit trail has an entry of it as well.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    payload = models.ForeignKey("artifacts.Payload", on_delete=models.PROTECT, related_name="reveals")
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    session = models.CharField(max_length=32)  # Actor.session: a digest
    token = models.UUIDField()  # of the form that was sent: the same again is the same reveal
    label = models.CharField(max_length=10)  # of the payload, then
    place = models.CharField(max_length=160)
    run_id = models.UUIDField()  # not a foreign key: this app does not know runs
    action_id = models.UUIDField(null=True, blank=True)  # the open action that gave the right to; none: a capability did
    reason = models.CharField(max_length=10, choices=Reason.choices, blank=True)
    details = models.ForeignKey("artifacts.Payload", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    hidden = models.JSONField(default=dict)
    at = models.DateTimeField(default=clock.now, editable=False)
    until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    workspace_path = "workspace"
    run_path = "run_id"
    view_capability = "artifacts.view"

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["by", "token"], name="reveal_once"),
            models.CheckConstraint(condition=Q(reason__in=["", *Reason.values]), name="reveal_reason_known"),
            models.CheckConstraint(condition=Q(until__gt=F("at")), name="reveal_ends"),
        ]
        indexes = [
            models.Index(fields=["payload", "-at"], name="reveal_of_payload"),  # “Revealed by” of an artifact
            models.Index(fields=["by", "-at"], name="reveal_of_person"),  # how many somebody had of late
            models.Index(fields=["run_id", "-at"], name="reveal_of_run"),  # who saw what of a run
            models.Index(fields=["workspace", "label", "-at"], name="reveal_of_label"),  # how often, in 30 days
        ]

    def __str__(self) -> str:
        return f"{self.payload_id} to {self.by_id} until {self.until:%H:%M}"
