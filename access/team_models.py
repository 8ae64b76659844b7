"""Teams of a workspace: who is in one, whose agents work for it, and what was changed about it."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from access import append_only
from access.ids import uuid7
from config import clock

TEAM_CHANGES = ("made", "renamed", "joined", "left", "agent_joined", "agent_left", "deleted")


class Team(models.Model):
    """People of a workspace who look after the same runs: those of the team's agents. access/teams.py changes it, and says why."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey("access.Workspace", on_delete=models.PROTECT, related_name="teams")
    name = models.CharField(max_length=60)
    made_at = models.DateTimeField(default=clock.now, editable=False)
    deleted_at = models.DateTimeField(
        null=True, blank=True
    )  # nobody is in it; its runs stay its own, so that nobody else's eyes fall on them

    workspace_path = "workspace"
    view_capability = "audit.view"

    class Meta:
        constraints = [models.UniqueConstraint("workspace", Lower("name"), condition=Q(deleted_at=None), name="team_name_once")]

    def __str__(self) -> str:
        return self.name


class TeamMember(models.Model):
    """A person in a team, by their membership of its workspace. Who leaves loses the row; that they were in it stands in the changes."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="members")
    membership = models.ForeignKey("access.Membership", on_delete=models.CASCADE, related_name="in_teams")
    added_by = models.ForeignKey("access.User", on_delete=models.PROTECT, null=True, related_name="+")  # null: the installation
    added_at = models.DateTimeField(default=clock.now, editable=False)

    workspace_path = "team__workspace"

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "membership"], name="team_member_once")]

    def __str__(self) -> str:
        return f"{self.membership_id} in {self.team_id}"


@append_only.protect
class TeamChange(models.Model):
    """What somebody changed about a team, and why. Insert-only."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="changes")
    what = models.CharField(max_length=12)
    name = models.CharField(max_length=60)  # the team's, from then on
    user = models.ForeignKey("access.User", on_delete=models.PROTECT, null=True, related_name="+")  # who came or left
    agent = models.ForeignKey("access.Agent", on_delete=models.PROTECT, null=True, related_name="+")
    runs = models.PositiveIntegerField(default=0)  # how many went with the agent
    why = models.UUIDField(null=True)  # a payload; null: the installation
    by = models.ForeignKey("access.User", on_delete=models.PROTECT, null=True, related_name="+")
    at = models.DateTimeField(default=clock.now, editable=False)

    workspace_path = "team__workspace"
    view_capability = "audit.view"

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(what__in=TEAM_CHANGES), name="team_change_known")]

    def __str__(self) -> str:
        return f"{self.what} {self.name}"
