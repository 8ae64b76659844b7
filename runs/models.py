"""The channel: runs, their append-only log, signals, and the engine's journal and leases."""

from django.db import models
from django.db.models import F, Q

from access import append_only
from access.ids import uuid7
from access.models import Agent, Team, User, Workspace
from artifacts.models import Artifact, Payload
from config import clock
from runs.lifecycle import ENDINGS, State
from runs.webhook_models import (  # noqa: F401  Django looks for models here
    ReceivedWebhook,
    WebhookPlace,
    WebhookSource,
    WebhookWait,
)

STATES = [(state.value, state.value) for state in State]
ENDED = Q(state__in=[state.value for state in ENDINGS.values()])


def this_month() -> object:
    return clock.now().date().replace(day=1)


class Run(models.Model):
    """One agent run. Its row is the head of its log: `seq` and `head_hash` move only under its lock, with the events themselves."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    month = models.DateField(default=this_month, editable=False)  # never changes; the log can be partitioned by it
    ref = models.CharField(max_length=12)  # RN-7Q4K, for people
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="runs")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="runs")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="+", null=True, db_index=False)  # its agent's, when it started
    agent_version = models.CharField(max_length=40)
    workflow = models.CharField(max_length=60, blank=True)  # empty: an agent outside runs it
    workflow_version = models.PositiveIntegerField(default=0)
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    starter_kind = models.CharField(max_length=10)
    starter_id = models.CharField(max_length=40)
    parent = models.ForeignKey("self", on_delete=models.PROTECT, related_name="children", null=True)  # whose work it does a part of
    parent_step = models.CharField(max_length=200, blank=True)  # the parent's step that waits for it
    root = models.ForeignKey("self", on_delete=models.PROTECT, related_name="+", null=True)  # the first of a family; null: it is
    forked_from = models.ForeignKey("self", on_delete=models.PROTECT, related_name="forks", null=True)  # whose journal it took over
    forked_seq = models.PositiveBigIntegerField(default=0)  # up to which event of that run
    lineage = models.UUIDField(null=True)  # the first of the runs that were forked from one another; null: it has no fork and is none
    start_key = models.CharField(max_length=200, null=True)  # the starter's idempotency key
    title = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+")
    summary = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+", null=True)
    input = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+", null=True)
    scope = models.JSONField(default=dict)  # kind of thing → ids that may be touched
    budgets = models.JSONField(default=dict)  # {"tokens": n, "cost_micro": n, "working_ms": n}; absent means no limit
    tokens = models.PositiveBigIntegerField(default=0)
    cost_micro = models.PositiveBigIntegerField(default=0)  # millionths of a euro
    working_ms = models.PositiveBigIntegerField(default=0)
    steps = models.PositiveBigIntegerField(default=0)  # that its workflow has begun, as its budget counts them
    # sums of its log, asked at each proposal
    plans = models.PositiveIntegerField(default=0)
    tools = models.JSONField(default=list)  # the names of those that its workflow has started
    state = models.CharField(max_length=12, choices=STATES, default=State.QUEUED)
    state_since = models.DateTimeField(default=clock.now)
    waiting = models.JSONField(default=dict)  # waiting: {"on": …, "action": id, "until": time}
    handed_to = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", null=True)  # parked: who looks after it
    wake_at = models.DateTimeField(null=True)  # a timer: the sweep queues the run then
    seq = models.PositiveBigIntegerField(default=0)
    head_hash = models.BinaryField(default=bytes(32))
    created_at = models.DateTimeField(default=clock.now, editable=False)
    ended_at = models.DateTimeField(null=True)

    workspace_path = "workspace"
    team_path = "team"
    agent_path = "agent"
    view_capability = "runs.view"

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "ref"], name="run_ref_once"),
            models.UniqueConstraint(fields=["agent", "start_key"], name="run_start_once"),
            models.CheckConstraint(condition=Q(state__in=[state.value for state in State]), name="run_state_known"),
            models.CheckConstraint(condition=(ENDED & Q(ended_at__isnull=False)) | (~ENDED & Q(ended_at=None)), name="run_ended_once"),
        ]
        indexes = [
            models.Index(fields=["workspace", "-created_at"], name="run_newest"),  # the list of runs
            models.Index(fields=["team", "-created_at"], name="run_of_team", condition=Q(team__isnull=False)),  # the same, of a team
            models.Index(fields=["state", "state_since"], name="run_due", condition=Q(state__in=["queued", "running"])),  # the sweep
            models.Index(fields=["parent"], name="run_open_children", condition=Q(parent__isnull=False, ended_at=None)),  # the sweep
            models.Index(fields=["wake_at"], name="run_timers", condition=Q(wake_at__isnull=False)),  # the sweep
            models.Index(fields=["lineage"], name="run_lineage", condition=Q(lineage__isnull=False)),  # who else did the same
        ]

    def __str__(self) -> str:
        return self.ref

    @property
    def called(self) -> str:
        """The rendition of its title; its reference if that was erased."""
        return self.title.rendition if self.title.rendition is not None else f"Run {self.ref}"

    def waits_on(self, on: str) -> bool:
        """Whether what it waits for is this, or this too."""
        return on in (self.waiting.get("on"), *self.waiting.get("also", ()))


@append_only.protect
class Event(models.Model):
    """One line of a run's log. Written by `runs.log` only; the database refuses to change or delete it.

    `body` is RFC 8785 JSON and is never parsed on the read path; `payloads` maps a role to the id of the payload it commits to.
    """

    pk = models.CompositePrimaryKey("run_month", "run_id", "seq")
    run_month = models.DateField()
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="events", db_index=False)
    seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=30)
    body = models.TextField()
    prev_hash = models.BinaryField()
    hash = models.BinaryField()
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="events", null=True)
    payloads = models.JSONField(default=dict)
    sender = models.CharField(max_length=200, null=True)  # the sender's id for it; the same again is the same event

    workspace_path = "run__workspace"
    team_path = "run__team"
    agent_path = "run__agent"
    view_capability = "runs.events"

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run_month", "run"], name="event_one_ending", condition=Q(type__in=list(ENDINGS))),
            models.UniqueConstraint(fields=["run_month", "run", "sender"], name="event_sender_once", condition=Q(sender__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"#{self.seq} {self.type}"


class Signal(models.Model):
    """Somebody asks a run to change course. The row says what became of it: accepted → delivered → applied, or refused with the reason."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="signals")
    kind = models.CharField(max_length=12)
    key = models.CharField(max_length=200)  # the sender's idempotency key
    actor_kind = models.CharField(max_length=10)
    actor_id = models.CharField(max_length=40)
    note = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+", null=True)
    status = models.CharField(max_length=10, default="accepted")
    reason = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    settled_at = models.DateTimeField(null=True)

    workspace_path = "run__workspace"
    team_path = "run__team"
    agent_path = "run__agent"
    view_capability = "runs.view"

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "actor_id", "key"], name="signal_once"),
            models.CheckConstraint(condition=Q(status__in=["accepted", "delivered", "applied", "refused"]), name="signal_status_known"),
        ]

    def __str__(self) -> str:
        return f"{self.kind}, {self.status}"


class Glance(models.Model):
    """How far a person had a run's log before them when they last left its page. Theirs alone, and no part of the log."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="glances", db_index=False)
    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    seq = models.PositiveBigIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "person"], name="glance_once")]

    def __str__(self) -> str:
        return f"#{self.seq}"


class JournalEntry(models.Model):
    """What a step of a run was asked and what came of it. A replayed workflow takes its answers from here."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="journal", db_index=False)
    step = models.CharField(max_length=200)  # branch path / name # occurrence
    kind = models.CharField(max_length=12)
    position = models.PositiveIntegerField()  # order of first start
    state = models.CharField(max_length=10, default="started")
    input_digest = models.CharField(max_length=64)
    edits = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+", null=True)  # of its input, by whoever forked the run
    result = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+", null=True)
    action_id = models.UUIDField(null=True)  # the exact action a write, send or proposal became
    attempts = models.PositiveIntegerField(default=1)
    token = models.PositiveBigIntegerField()  # the fencing token it was last written under
    started_at = models.DateTimeField(default=clock.now)
    ended_at = models.DateTimeField(null=True)
    seq = models.PositiveBigIntegerField(default=0)  # the event to cite for it

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "step"], name="step_once"),
            models.CheckConstraint(condition=Q(state__in=["started", "done"]), name="journal_state_known"),
            models.CheckConstraint(
                condition=Q(state="started", ended_at=None) | Q(state="done", ended_at__isnull=False), name="journal_ended"
            ),
        ]
        indexes = [
            models.Index(fields=["run", "position"], name="journal_in_order"),  # a replay, page by page
            models.Index(fields=["action_id"], name="journal_of_action", condition=Q(action_id__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.step}, {self.state}"


class Lease(models.Model):
    """Which worker may write to a run. A higher token fences out every holder of a lower one.

    Apart from the run's row, so that a heartbeat never waits for a step's transaction.
    """

    run = models.OneToOneField(Run, on_delete=models.PROTECT, primary_key=True, related_name="lease")
    token = models.PositiveBigIntegerField(default=0)
    worker = models.CharField(max_length=120, blank=True)
    pid = models.PositiveIntegerField(default=0)
    until = models.DateTimeField(null=True)  # null: nobody holds it
    called_at = models.DateTimeField(null=True)  # when the sweep last called a worker for it; two sweeps at once call one

    class Meta:
        indexes = [models.Index(F("until"), name="lease_until", condition=Q(until__isnull=False))]  # the sweep

    def __str__(self) -> str:
        return f"{self.worker} until {self.until}"


class AgentStep(models.Model):
    """A step of a run that an agent outside works on, as the agent tells it. Whoever takes the run over reads the results here."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="agent_steps")
    step = models.CharField(max_length=200)  # the agent's key for it: name # occurrence
    position = models.PositiveIntegerField()  # order of first start
    state = models.CharField(max_length=10, default="started")
    given = models.CharField(max_length=64)  # the agent's commitment to its input: SHA-256 in hex
    plan_step = models.PositiveSmallIntegerField(null=True)
    result = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+", null=True)
    attempts = models.PositiveIntegerField(default=1)
    token = models.PositiveBigIntegerField()  # the fencing token under which it was last begun
    holder = models.CharField(max_length=80)
    started_at = models.DateTimeField(default=clock.now)  # the last attempt
    ended_at = models.DateTimeField(null=True)
    seq = models.PositiveBigIntegerField()  # the event to cite for it

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "step"], name="agent_step_once"),
            models.CheckConstraint(condition=Q(state__in=["started", "done", "failed"]), name="agent_step_state_known"),
            models.CheckConstraint(
                condition=Q(state="started", ended_at=None) | (~Q(state="started") & Q(ended_at__isnull=False)), name="agent_step_ended"
            ),
        ]
        indexes = [models.Index(fields=["run", "position"], name="agent_steps_in_order")]

    def __str__(self) -> str:
        return f"{self.step}, {self.state}"
