"""Keys of programs: of agents, and of what sets agents up."""

from django.conf import settings
from django.db import models

from access.ids import uuid7
from config import clock


class Key(models.Model):
    """A credential. Only its SHA-256 is kept; the key itself is shown once, when it is made."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=60)
    prefix = models.CharField(max_length=16)  # the first characters, so that a person can tell keys apart
    digest = models.CharField(max_length=64, unique=True)
    capabilities = models.JSONField(default=list)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)  # to the minute
    asked = models.UUIDField(null=True, blank=True, unique=True)  # the form that it was asked for with: sent twice, it makes one key
    successor = models.OneToOneField("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="predecessor")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})"


class AgentKey(Key):
    """A credential of one agent, for all that agents may do or a part of it."""

    agent = models.ForeignKey("access.Agent", on_delete=models.CASCADE, related_name="keys")
    workflows = models.JSONField(default=list)  # of which it may start runs; empty: of any
    tools = models.JSONField(default=list)  # with which it may propose actions and redeem them; empty: with any

    workspace_path = "agent__workspace"
    provisioner_path = "agent__provisioner"


class ProvisionerKey(Key):
    """A credential of a workspace, not of an agent: it makes agents and their keys, for pipelines and infrastructure code. Nothing else."""

    workspace = models.ForeignKey("access.Workspace", on_delete=models.CASCADE, related_name="provisioner_keys")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")  # answers for what it makes
    line = models.UUIDField(default=uuid7)  # the same for a key and those that it was rotated into: they manage the same agents

    workspace_path = "workspace"
