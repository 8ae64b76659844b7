"""What is to be told and what became of it, each person's wishes, who decides for whom, and to whom an action goes when nobody answers."""

from django.db import models
from django.db.models import F, Q

from access.ids import uuid7
from access.models import User, Workspace
from artifacts.models import Payload
from config import clock
from runs.models import Run

KINDS = (
    "waits",
    "soon",
    "escalated",
    "delegated",
    "unknown",
    "answered",
    "ended",
    "alarm",
    "stuck",
    "handed",
    "asks",
    "budget",
    "glass",
    "confirm",
)
CHANNELS = ("mail", "webhook")


class Notice(models.Model):
    """One thing to tell, written in the transaction of what it tells. `to` is empty where it concerns everybody who may act on it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, null=True, related_name="+")
    action = models.ForeignKey("approvals.ProposedAction", on_delete=models.PROTECT, null=True, related_name="+")
    delegation = models.ForeignKey("approvals.Delegation", on_delete=models.PROTECT, null=True, related_name="+")
    change = models.UUIDField(null=True)  # one that waits for a second admin, of either kind (access/second_admin.py)
    kind = models.CharField(max_length=12)
    to = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    key = models.CharField(max_length=160)  # of what it tells: the same thing is told once
    until = models.DateTimeField(null=True)  # when it is too late
    created_at = models.DateTimeField(default=clock.now)
    spread_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["key"], name="notice_once"),
            models.CheckConstraint(condition=Q(kind__in=KINDS), name="notice_kind_known"),
        ]
        indexes = [
            models.Index(fields=["created_at"], name="notice_unspread", condition=Q(spread_at=None)),  # the sender
            models.Index(fields=["created_at"], name="notice_spread", condition=Q(spread_at__isnull=False)),  # what is forgotten
        ]

    def __str__(self) -> str:
        return self.key


class Message(models.Model):
    """One or more notices on their way to one person by one channel. `id` goes along, so that a repeat can be told from something new."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    channel = models.CharField(max_length=8)
    state = models.CharField(max_length=8, default="waiting")  # waiting | sent | dropped (nothing left to tell) | dead
    test = models.BooleanField(default=False)
    count = models.PositiveIntegerField(default=1)
    attempts = models.PositiveIntegerField(default=0)
    token = models.PositiveBigIntegerField(default=0)  # the fencing token of who sends it
    lease_until = models.DateTimeField(null=True)
    next_at = models.DateTimeField(default=clock.now)
    created_at = models.DateTimeField(default=clock.now)
    settled_at = models.DateTimeField(null=True)
    trouble = models.CharField(max_length=20, blank=True)  # a word of ours, never what the other side said

    workspace_path = "workspace"
    view_capability = "runs.recover"

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=["waiting", "sent", "dropped", "dead"]), name="message_state_known"),
            models.CheckConstraint(condition=Q(channel__in=CHANNELS), name="message_channel_known"),
        ]
        indexes = [
            models.Index(fields=["next_at"], name="message_due", condition=Q(state="waiting")),  # the sender
            models.Index(fields=["workspace", "-settled_at"], name="message_dead", condition=Q(state="dead")),  # for operators
            models.Index(fields=["settled_at"], name="message_settled", condition=Q(settled_at__isnull=False)),  # what is forgotten
            models.Index(fields=["user", "-created_at"], name="message_newest"),  # a person's history
        ]

    def __str__(self) -> str:
        return f"message {self.id}, {self.state}"


class Delivery(models.Model):
    """One notice for one person by one channel: waits until it is due, then is packed into a message."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    notice = models.ForeignKey(Notice, on_delete=models.PROTECT, related_name="deliveries")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    channel = models.CharField(max_length=8)
    due_at = models.DateTimeField()
    held = models.BooleanField(default=False)  # until the person's quiet hours are over
    message = models.ForeignKey(Message, on_delete=models.PROTECT, null=True, related_name="deliveries")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["notice", "user", "channel"], name="delivery_once")]
        indexes = [models.Index(fields=["due_at"], name="delivery_due", condition=Q(message=None))]  # the sender

    def __str__(self) -> str:
        return f"{self.notice_id} by {self.channel}"


class Preferences(models.Model):
    """What one person wants to be told, by which channel and when. Who has no row has the defaults."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, primary_key=True, related_name="+")
    channels = models.JSONField(default=dict)  # kind → channels
    quiet_from = models.TimeField(null=True)
    quiet_to = models.TimeField(null=True)
    quiet_weekends = models.BooleanField(default=False)  # all of Saturday and Sunday
    time_zone = models.CharField(max_length=60, default="UTC")
    lets_through = models.BooleanField(default=True)  # high risk, and what would be too late after the quiet hours

    def __str__(self) -> str:
        return f"preferences of {self.user_id}"


class Webhook(models.Model):
    """Where one person's notifications are posted, and the secret that signs them. The secret lies in the vault."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, primary_key=True, related_name="+")
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    url = models.CharField(max_length=500)
    secret = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+")
    old_secret = models.ForeignKey(Payload, on_delete=models.PROTECT, null=True, related_name="+")
    old_until = models.DateTimeField(null=True)  # both sign until then
    made_at = models.DateTimeField(default=clock.now)

    def __str__(self) -> str:
        return f"webhook of {self.user_id}"


class Delegation(models.Model):
    """`giver` is away, and `to` decides in their stead. It ends by itself, or earlier by the giver."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    giver = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    to = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)  # taken back
    created_at = models.DateTimeField(default=clock.now)

    workspace_path = "workspace"
    team_path = ""
    view_capability = "approvals.view"

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(ends_at__gt=F("starts_at")), name="delegation_forward"),
            models.CheckConstraint(condition=~Q(giver=F("to")), name="delegation_to_another"),
        ]
        indexes = [models.Index(fields=["workspace", "ends_at"], name="delegation_open", condition=Q(ended_at=None))]

    def __str__(self) -> str:
        return f"{self.to_id} for {self.giver_id}"


class Chase(models.Model):
    """What a workspace does about an action that nobody decides on: remind so long before it expires."""

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, primary_key=True, related_name="+")
    remind_before = models.DurationField()

    def __str__(self) -> str:
        return f"reminders of {self.workspace_id}"


class EscalationStep(models.Model):
    """So long after it was proposed, an action that is still undecided goes to this person."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    after = models.DurationField()
    to = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")

    workspace_path = "workspace"

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "to"], name="escalation_step_once")]

    def __str__(self) -> str:
        return f"after {self.after} to {self.to_id}"


class Escalation(models.Model):
    """An action went to this person, because nobody answered."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    action = models.ForeignKey("approvals.ProposedAction", on_delete=models.PROTECT, related_name="escalations")
    to = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=clock.now)
    seq = models.PositiveBigIntegerField()
    via = models.ForeignKey(Delegation, on_delete=models.PROTECT, null=True, related_name="+")  # `to` is away: who decides for them has it

    class Meta:
        constraints = [models.UniqueConstraint(fields=["action", "to"], name="escalation_once")]

    def __str__(self) -> str:
        return f"{self.action_id} to {self.to_id}"
