"""Exact actions: what is proposed, who decided, the one-use grant, and the policy that said who must be asked."""

from datetime import timedelta

from django.db import models
from django.db.models import Q

from access import append_only
from access.ids import uuid7
from access.models import Agent, User, Workspace
from approvals.group_models import GroupMember, GroupVersion, ReviewerGroup  # noqa: F401  Django looks for models here
from approvals.notifications.models import (  # noqa: F401  Django looks for models here
    Chase,
    Delegation,
    Delivery,
    Escalation,
    EscalationStep,
    Message,
    Notice,
    Preferences,
    Webhook,
)
from artifacts.models import Payload
from config import clock
from runs.models import Run

STATES = ("waiting", "approved", "rejected", "expired", "superseded", "withdrawn", "recalled", "refused")
OPEN = ("waiting", "approved")
LEGS = ("private", "untrusted", "sends")  # of the taint, in the order in which they are kept


class PolicySet(models.Model):
    """One version of a workspace's rules. The newest is in force. Never changed: a save makes the next one."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    version = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)  # of all that its rules say
    why = models.ForeignKey(Payload, on_delete=models.PROTECT, null=True, related_name="+")
    saved_at = models.DateTimeField(default=clock.now, editable=False)
    saved_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    workspace_path = "workspace"
    team_path = ""
    view_capability = "approvals.view"

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "version"], name="policy_set_once")]

    def __str__(self) -> str:
        return f"version {self.version}"


class Policy(models.Model):
    """One rule in one version of the set: what using a tool takes. The first that matches counts; what none matches is refused."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="policies")
    policy_set = models.ForeignKey(
        PolicySet, on_delete=models.PROTECT, null=True, related_name="rules"
    )  # null: from before there were sets
    position = models.PositiveIntegerField(default=0)
    key = models.UUIDField(default=uuid7)  # the same in every version of the rule: what a day's limits count by
    name = models.CharField(max_length=120)
    tool = models.CharField(max_length=60, blank=True)  # empty: every registered tool
    conditions = models.JSONField(default=list)  # as `approvals.conditions` has them; all must hold
    version = models.PositiveIntegerField()
    outcome = models.CharField(max_length=10)  # automatic | reviewers | never
    quorum = models.PositiveIntegerField(default=1)
    group = models.ForeignKey(ReviewerGroup, on_delete=models.PROTECT, null=True, related_name="+")  # null: all who may decide
    expires_after = models.DurationField()
    grant_lasts = models.DurationField()
    recall_delay = models.DurationField(default=timedelta)  # for so long after an approval it can be taken back, and nothing runs
    editor_may_approve = models.BooleanField(default=False)
    plan_first = models.BooleanField(default=False)  # refused in a run that has recorded no plan
    a_day = models.PositiveIntegerField(null=True)  # the most grants under this rule in a day
    a_day_amount = models.CharField(max_length=24, blank=True)  # and the most money, “500 EUR”
    day_zone = models.CharField(max_length=60, default="UTC")  # where its days begin
    created_at = models.DateTimeField(default=clock.now, editable=False)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    workspace_path = "workspace"
    team_path = ""
    view_capability = "approvals.view"

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["policy_set", "position"], name="policy_place_once"),
            models.CheckConstraint(condition=Q(outcome__in=["automatic", "reviewers", "never"]), name="policy_outcome_known"),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    @property
    def needs(self) -> int:
        """How many people approve it, where people do."""
        return max(self.quorum, 1)


class AskedFor(models.Model):
    """A tool that an agent asked for and no rule covered. It was refused each time."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    tool = models.CharField(max_length=60)
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+")  # the first that asked
    times = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    last_run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+")

    workspace_path = "workspace"
    team_path = "last_run__team"
    view_capability = "approvals.view"

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "tool"], name="asked_for_once")]

    def __str__(self) -> str:
        return f"{self.tool}, {self.times} times"


class ProposedAction(models.Model):
    """One exact action. Its canonical bytes are kept in the vault; `digest` is their SHA-256 and names it everywhere."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="actions")
    tool = models.CharField(max_length=60)
    tool_schema = models.PositiveIntegerField()
    effect = models.CharField(max_length=6)  # read | write | send
    card = models.CharField(max_length=20)  # which card draws it: email, generic …
    executor = models.CharField(max_length=10)  # handrail | agent
    digest = models.CharField(max_length=64)
    sameness = models.CharField(max_length=64, blank=True)  # equal for the same thing proposed again in its run, whatever the nonce
    canonical = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+")
    attachments = models.JSONField(default=list)  # payload ids, in the canonical order
    subject = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+")  # “E-mail a reply to Marta Oyelaran”
    reason = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+", null=True)
    step = models.CharField(max_length=200, blank=True)  # the engine's step that proposed it
    key = models.CharField(max_length=200, null=True)  # an agent outside: its idempotency key
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="+")
    judged_on = models.JSONField(default=dict)  # what the rules asked about beside the arguments; empty if proposed before it was kept
    risk = models.PositiveSmallIntegerField()  # 1 low, 2 medium, 3 high
    warnings = models.JSONField(default=list)  # codes, severities and paths found by inspection
    locked = models.BooleanField(default=False)  # a warning locks Approve
    state = models.CharField(max_length=12, default="waiting")
    round = models.PositiveIntegerField(default=1)
    proposed_seq = models.PositiveBigIntegerField()
    proposed_at = models.DateTimeField(default=clock.now)
    expires_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    settled_seq = models.PositiveBigIntegerField(default=0)  # the event that settled it
    closed_why = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+", null=True)  # why it was withdrawn or recalled
    superseded_by = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="supersedes")
    editor = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    claimed_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    claimed_until = models.DateTimeField(null=True)

    workspace_path = "workspace"
    team_path = "run__team"
    agent_path = "run__agent"
    view_capability = "approvals.view"

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "digest"], name="action_once"),
            models.UniqueConstraint(fields=["run", "key"], name="action_key_once"),
            models.CheckConstraint(condition=Q(state__in=STATES), name="action_state_known"),
            models.CheckConstraint(condition=Q(effect__in=["read", "write", "send"]), name="action_effect_known"),
            models.CheckConstraint(condition=Q(executor__in=["handrail", "agent"]), name="action_executor_known"),
        ]
        indexes = [
            # the inbox: what waits, highest risk and least time first; whole, for SQLite takes no partial index for a value that is bound
            models.Index(fields=["workspace", "state", "-risk", "expires_at", "id"], name="action_queue"),
            models.Index(fields=["expires_at"], name="action_expiry", condition=Q(state="waiting")),  # the expiry job
            models.Index(
                fields=["workspace", "-settled_at"], name="action_settled", condition=Q(settled_at__isnull=False)
            ),  # no longer yours
            models.Index(fields=["run", "sameness"], name="action_same"),  # asked at each proposal: is it a repeat?
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.digest[:12]}"

    @property
    def is_tainted(self) -> bool:
        """Whether it sends data out of a run that has read private data and outside text, as the rules saw it. Yes if that was not kept."""
        return len(self.judged_on.get("legs", LEGS)) == len(LEGS)


class Look(models.Model):
    """That one person had all of one exact action before them. Deciding on several at once is held to it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    action = models.ForeignKey(ProposedAction, on_delete=models.PROTECT, related_name="+")
    reviewer = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)
    looked_at = models.DateTimeField(default=clock.now)

    workspace_path = "action__workspace"
    team_path = "action__run__team"
    view_capability = "approvals.view"

    class Meta:
        constraints = [models.UniqueConstraint(fields=["action", "reviewer", "digest"], name="look_once")]

    def __str__(self) -> str:
        return f"{self.digest[:12]} seen by {self.reviewer_id}"


@append_only.protect
class Decision(models.Model):
    """What one reviewer said about one exact digest, what they had seen, and how they were signed in. Insert-only."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    action = models.ForeignKey(ProposedAction, on_delete=models.PROTECT, related_name="decisions")
    reviewer = models.ForeignKey(User, on_delete=models.PROTECT, related_name="decisions")
    round = models.PositiveIntegerField()
    group_version = models.PositiveIntegerField(null=True)  # of the rule's group, as one of which it was made
    verdict = models.CharField(max_length=10)
    digest = models.CharField(max_length=64)
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="+")
    reason = models.ForeignKey(Payload, on_delete=models.PROTECT, null=True, related_name="+")
    seen = models.JSONField(default=dict)
    signed_in = models.CharField(max_length=20)
    seq = models.PositiveBigIntegerField()
    decided_at = models.DateTimeField(default=clock.now)

    workspace_path = "action__workspace"
    team_path = "action__run__team"
    view_capability = "approvals.view"

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["action", "reviewer", "round"], name="decision_once"),
            models.CheckConstraint(condition=Q(verdict__in=["approved", "rejected"]), name="decision_verdict_known"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} by {self.reviewer_id}"


class Grant(models.Model):
    """The right to run one exact action once: granted → delivered → redeemed → executed → verified, or unknown until resolved."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    action = models.OneToOneField(ProposedAction, on_delete=models.PROTECT, related_name="grant")
    digest = models.CharField(max_length=64)
    key = models.UUIDField(null=True)  # its idempotency key outside, if that is another grant's: a run of the same lineage did the same
    granted_at = models.DateTimeField(default=clock.now)
    held_until = models.DateTimeField(null=True)  # until then the approval can be recalled, and nobody redeems it
    expires_at = models.DateTimeField()
    delivered_at = models.DateTimeField(null=True)
    redeemed_at = models.DateTimeField(null=True)
    redeemed_by = models.CharField(max_length=120, blank=True)
    token = models.PositiveBigIntegerField(default=0)  # the fencing token of the redeemer
    holder = models.CharField(max_length=64, blank=True)  # an agent outside: SHA-256 of the word by which it is known again
    report_by = models.DateTimeField(null=True)  # an agent outside: when its silence begins
    executed_at = models.DateTimeField(null=True)
    verified_at = models.DateTimeField(null=True)
    unknown_at = models.DateTimeField(null=True)
    voided_at = models.DateTimeField(null=True)  # cancelled or recalled before it was redeemed
    outcome = models.CharField(max_length=10, default="none")
    receipt = models.ForeignKey(Payload, on_delete=models.PROTECT, null=True, related_name="+")

    workspace_path = "action__workspace"
    team_path = "action__run__team"
    agent_path = "action__run__agent"
    view_capability = "approvals.view"

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(outcome__in=["none", "executed", "failed", "unknown"]), name="grant_outcome_known"),
            models.CheckConstraint(
                condition=Q(redeemed_at__isnull=False) | Q(outcome="none", executed_at=None), name="grant_redeemed_first"
            ),
            models.CheckConstraint(condition=Q(voided_at=None) | Q(redeemed_at=None), name="grant_voided_or_redeemed"),
        ]
        indexes = [
            # what was redeemed and never heard of again
            models.Index(fields=["redeemed_at"], name="grant_in_flight", condition=Q(redeemed_at__isnull=False, outcome="none")),
            # what an agent outside redeemed and should have reported by now
            models.Index(fields=["report_by"], name="grant_unreported", condition=Q(report_by__isnull=False, outcome="none")),
            models.Index(fields=["unknown_at"], name="grant_unknown", condition=Q(outcome="unknown")),  # what a person must say
            models.Index(fields=["outcome", "-executed_at"], name="grant_done"),  # what was done last: to whom was written before
        ]

    def __str__(self) -> str:
        return f"grant {self.id}, {self.outcome}"


class Freeze(models.Model):
    """While it stands nothing of an agent, of a tool or of the whole workspace is granted or redeemed. It is lifted once, or runs out."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    what = models.CharField(max_length=10)  # agent | tool | workspace
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, null=True, related_name="+")
    tool = models.CharField(max_length=60, blank=True)
    reason = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+")
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    since = models.DateTimeField(default=clock.now)
    until = models.DateTimeField(null=True)  # null: until somebody lifts it
    lifted_at = models.DateTimeField(null=True)
    lifted_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    lifted_why = models.ForeignKey(Payload, on_delete=models.PROTECT, null=True, related_name="+")
    let_go_at = models.DateTimeField(null=True)  # when the runs that waited for its end had been let go on

    workspace_path = "workspace"
    team_path = ""
    view_capability = "approvals.view"

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(what="workspace", agent=None, tool="")
                | Q(what="agent", agent__isnull=False, tool="")
                | (Q(what="tool", agent=None) & ~Q(tool="")),
                name="freeze_names_one_thing",
            ),
            models.CheckConstraint(
                condition=Q(lifted_at=None, lifted_by=None, lifted_why=None)
                | Q(lifted_at__isnull=False, lifted_by__isnull=False, lifted_why__isnull=False),
                name="freeze_lifted_whole",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace"], name="freeze_standing", condition=Q(lifted_at=None)),  # asked at each grant and redemption
            models.Index(fields=["since"], name="freeze_not_let_go", condition=Q(let_go_at=None)),  # the job that lets runs go on
        ]

    def __str__(self) -> str:
        return f"freeze of {self.what} {self.tool or self.agent_id or self.workspace_id}"


class StandingGrant(models.Model):
    """Somebody's approval beforehand of one tool's actions whose arguments are alike: so many, for so long."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    tool = models.CharField(max_length=60)
    conditions = models.JSONField(default=list)  # as `approvals.conditions` has them, without what they compare arguments with
    kept = models.ForeignKey(Payload, on_delete=models.PROTECT, null=True, related_name="+")  # all of them; null: from before it was kept
    budget = models.PositiveIntegerField()
    used = models.PositiveIntegerField(default=0)
    made_at = models.DateTimeField(default=clock.now, editable=False)
    made_from = models.ForeignKey(ProposedAction, on_delete=models.PROTECT, null=True, related_name="+")
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    workspace_path = "workspace"
    team_path = ""
    view_capability = "approvals.view"

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(used__lte=models.F("budget")), name="standing_within_budget")]
        indexes = [
            # asked whenever something is proposed that takes one reviewer
            models.Index(fields=["workspace", "tool", "expires_at"], name="standing_open", condition=Q(revoked_at=None)),
        ]

    def __str__(self) -> str:
        return f"standing grant of {self.owner_id}, {self.used} of {self.budget}"


@append_only.protect
class StandingUse(models.Model):
    """One action that a standing grant covered: what a decision would be, had its owner looked at it. Insert-only."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    grant = models.ForeignKey(StandingGrant, on_delete=models.PROTECT, related_name="uses")
    action = models.OneToOneField(ProposedAction, on_delete=models.PROTECT, related_name="covered")
    digest = models.CharField(max_length=64)
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="+")
    number = models.PositiveIntegerField()
    seq = models.PositiveBigIntegerField()
    used_at = models.DateTimeField(default=clock.now)

    workspace_path = "action__workspace"
    team_path = "action__run__team"
    view_capability = "approvals.view"

    class Meta:
        constraints = [models.UniqueConstraint(fields=["grant", "number"], name="standing_use_once")]

    def __str__(self) -> str:
        return f"use {self.number} of {self.grant_id}"
