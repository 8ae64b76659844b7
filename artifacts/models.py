"""The vault: payloads (bytes with a label, each under its own key) and artifacts (named, versioned payloads of a run)."""

from django.db import models
from django.db.models import Q

from access.ids import uuid7
from access.models import User, Workspace
from artifacts.policy_models import RedactionPolicy  # noqa: F401  and here
from artifacts.reveal_models import Reason, Reveal  # noqa: F401  Django looks for models here
from artifacts.upload_models import Upload  # noqa: F401  and here
from config import clock


class Label(models.TextChoices):
    """How sensitive bytes are. Unlabelled does not exist."""

    PUBLIC = "public", "Public"
    INTERNAL = "internal", "Internal"
    PERSONAL = "personal", "Personal data"
    SECRET = "secret", "Secret"


class WorkspaceKey(models.Model):
    """The key that wraps the data keys of a workspace's payloads; itself wrapped by the master key from the environment."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="vault_keys")
    version = models.PositiveIntegerField()
    wrapped = models.BinaryField()
    created_at = models.DateTimeField(default=clock.now, editable=False)

    retired_at = models.DateTimeField(null=True, editable=False)  # a newer version came, and nothing is wrapped under this one any more

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "version"], name="workspace_key_once")]

    def __str__(self) -> str:
        return f"key {self.version} of {self.workspace_id}"


class Payload(models.Model):
    """Bytes, one row per use. Erasing destroys salt, key, bytes and rendition; the row and its commitment stay as a tombstone."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    label = models.CharField(max_length=10, choices=Label.choices)
    media_type = models.CharField(max_length=120)
    about = models.CharField(max_length=120, blank=True)  # type of its event and tool, with a blank between: what redaction policies go by
    size = models.PositiveBigIntegerField()
    commitment = models.CharField(max_length=64)  # SHA-256(salt ‖ bytes), hex; stands in the event's body
    key = models.ForeignKey(WorkspaceKey, on_delete=models.PROTECT, related_name="+")
    wrapped = models.BinaryField(null=True)  # salt ‖ data key, under the workspace key
    content = models.BinaryField(null=True)  # the bytes, under the data key; null if they lie in a file
    stored = models.CharField(max_length=120, null=True, editable=False)  # that file's name in the storage `payloads`
    rendition = models.TextField(null=True)  # redacted; the only form that leaves the vault without a recorded reveal
    findings = models.JSONField(default=dict)  # kind → how many were hidden
    rules = models.PositiveBigIntegerField(default=0, db_default=0)  # the version of the rules that the rendition was made under
    created_at = models.DateTimeField(default=clock.now, editable=False)
    erased_at = models.DateTimeField(null=True, blank=True)
    erased_by = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    erased_why = models.CharField(max_length=12, blank=True, default="", db_default="")  # of runs.erasing.REASONS

    workspace_path = "workspace"
    view_capability = "artifacts.view"

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(label__in=Label.values), name="payload_label_known"),
            models.CheckConstraint(
                condition=Q(erased_at=None, wrapped__isnull=False, content__isnull=False, stored=None, rendition__isnull=False)
                | Q(erased_at=None, wrapped__isnull=False, content=None, stored__isnull=False, rendition__isnull=False)
                | Q(erased_at__isnull=False, wrapped=None, content=None, stored=None, rendition=None),
                name="payload_whole_or_erased",
            ),
            models.UniqueConstraint(fields=["stored"], name="payload_stored_once", condition=Q(stored__isnull=False)),
        ]
        indexes = [models.Index(fields=["workspace", "rules"], name="payload_rules")]  # the job that makes renditions anew

    def __str__(self) -> str:
        return f"{self.size} bytes of {self.media_type}, {self.label}"


class Artifact(models.Model):
    """A named, versioned piece of a run's work. Evidence only if an event names it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    run_id = models.UUIDField()  # not a foreign key: this app does not know runs
    name = models.CharField(max_length=120)
    version = models.PositiveIntegerField()
    payload = models.ForeignKey(Payload, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=clock.now, editable=False)

    workspace_path = "workspace"
    run_path = "run_id"
    view_capability = "artifacts.view"

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run_id", "name", "version"], name="artifact_version_once")]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"
