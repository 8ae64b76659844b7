"""Webhooks that come in: who may send them, what came, and which run waits for one."""

from django.db import models
from django.db.models import Q

from access.ids import uuid7
from access.models import Agent, Workspace
from artifacts.models import Payload
from config import clock

STATES = ["received", "applied", "repeated", "dead", "discarded"]


class WebhookSource(models.Model):
    """Somebody outside who may send webhooks, signed with a secret of its own. They feed runs that wait, or start runs of `workflow`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="webhook_sources")
    name = models.SlugField(max_length=60)  # by which a workflow waits for it
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+")  # whose runs it starts
    workflow = models.CharField(max_length=60, blank=True)
    secret = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+")
    old_secret = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+", null=True)  # holds too, until old_until
    old_until = models.DateTimeField(null=True)
    places_key = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+", null=True)  # of the hashes in WebhookPlace
    created_at = models.DateTimeField(default=clock.now, editable=False)
    made_at = models.DateTimeField(default=clock.now)  # the secret
    closed_at = models.DateTimeField(null=True)

    workspace_path = "workspace"
    view_capability = "access.manage"

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="webhook_source_once")]

    def __str__(self) -> str:
        return self.name


class ReceivedWebhook(models.Model):
    """One webhook, stored before it was acknowledged.

    received: verified, and nobody wanted it yet · applied: a run was fed or started with it · repeated: the same content as another's ·
    dead: nobody came for it, or it could not be applied; an operator must choose · discarded: somebody did.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    source = models.ForeignKey(WebhookSource, on_delete=models.PROTECT, related_name="webhooks")
    delivery = models.CharField(max_length=80)  # the sender's id for it
    digest = models.CharField(max_length=64)  # SHA-256 of the body
    body = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+")
    state = models.CharField(max_length=10, default="received")
    why = models.CharField(max_length=20, blank=True)  # dead: unmatched invalid failed
    run = models.ForeignKey("runs.Run", on_delete=models.PROTECT, related_name="webhooks", null=True)
    times = models.PositiveIntegerField(default=1)  # how often it came; all but the first changed nothing
    received_at = models.DateTimeField(default=clock.now, editable=False)
    tried_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    all_places = models.BooleanField(default=False, db_default=False)  # its WebhookPlaces tell all that somebody could wait for

    workspace_path = "source__workspace"
    team_path = "source__agent__team"
    view_capability = "runs.recover"

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "delivery"], name="webhook_once"),
            models.CheckConstraint(condition=Q(state__in=STATES), name="webhook_state_known"),
        ]
        indexes = [
            models.Index(fields=["source", "digest"], name="webhook_content"),  # the same content again
            models.Index(fields=["source", "-received_at"], name="webhook_newest"),  # when a source sent last
            models.Index(fields=["state", "received_at"], name="webhook_open", condition=Q(state__in=["received", "dead"])),  # the sweep
        ]

    def __str__(self) -> str:
        return f"{self.delivery}, {self.state}"


class WebhookPlace(models.Model):
    """That a webhook nobody has taken yet has some value in some place: a hash under its source's key (`runs.webhook_places`)."""

    webhook = models.ForeignKey(ReceivedWebhook, on_delete=models.CASCADE, related_name="kept_places")
    token = models.CharField(max_length=22)

    class Meta:
        indexes = [models.Index(fields=["token", "webhook"], name="webhook_place")]  # who begins to wait

    def __str__(self) -> str:
        return f"{self.token} of {self.webhook_id}"


class WebhookWait(models.Model):
    """A run waits, or waited, for a webhook: of this source, with these values in its body."""

    run = models.ForeignKey("runs.Run", on_delete=models.PROTECT, related_name="webhook_waits")
    step = models.CharField(max_length=200)
    source = models.ForeignKey(WebhookSource, on_delete=models.PROTECT, related_name="waits")
    match = models.JSONField(default=dict)  # place in the body, as `data.ticket` → value
    since = models.DateTimeField()  # a webhook that came before is no answer: when the run was created
    webhook = models.OneToOneField(ReceivedWebhook, on_delete=models.PROTECT, related_name="wait", null=True)
    seq = models.PositiveBigIntegerField(default=0)  # the event that tells of the webhook
    opened_at = models.DateTimeField(default=clock.now)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "step"], name="webhook_wait_once"),
            models.CheckConstraint(condition=Q(webhook=None) | Q(closed_at__isnull=False), name="webhook_wait_closed"),
        ]
        indexes = [models.Index(fields=["source", "opened_at"], name="webhook_wait_open", condition=Q(closed_at=None))]  # what comes in

    def __str__(self) -> str:
        return f"{self.step} for {self.source_id}"
