"""Who there is: people, workspaces, roles (named sets of capabilities), agents and their keys, and the audit trail."""

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models.functions import Lower

from access import append_only, characters
from access.audit_models import AuditSeal, RefusalTally, Sealer  # noqa: F401  Django looks for models here
from access.change_models import AskedChange  # noqa: F401  Django looks for models here
from access.glass_models import BreakGlass  # noqa: F401  Django looks for models here
from access.ids import uuid7
from access.key_models import AgentKey, ProvisionerKey  # noqa: F401  Django looks for models here
from access.people_models import Invitation, OpenSession, PasswordLink, SsoIdentity  # noqa: F401  Django looks for models here
from access.role_models import RoleChange, RoleVersion  # noqa: F401  Django looks for models here
from access.team_models import Team, TeamChange, TeamMember  # noqa: F401  Django looks for models here
from config import clock


class UserManager(BaseUserManager["User"]):
    def by_email(self, email: str) -> models.QuerySet["User"]:
        """Whoever has this address: one at most."""
        return self.filter(email=characters.as_kept(email))

    def create_user(self, email: str, password: str | None = None, *, name: str = "") -> "User":
        user = self.model(email=self.normalize_email(email).lower(), name=name or email.split("@")[0])
        user.set_password(password)
        user.save(using=self._db)
        return user


class User(AbstractBaseUser):
    """A person. What they may do stands in their memberships, nowhere else: there is no superuser."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.EmailField()
    name = models.CharField(max_length=120)
    is_active = models.BooleanField(default=True)
    access_version = models.PositiveBigIntegerField(default=1)  # raised by every change of rights; open sockets compare it
    created_at = models.DateTimeField(default=clock.now, editable=False)

    USERNAME_FIELD = "email"
    objects = UserManager()

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="user_email_once")]

    def __str__(self) -> str:
        return self.name


class Workspace(models.Model):
    """Nothing crosses workspaces."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    mail_domains = models.JSONField(default=list)  # addresses at these domains are inside
    second_admin = models.BooleanField(null=True)  # whether a change of roles takes one; null: as soon as there are two
    created_at = models.DateTimeField(default=clock.now, editable=False)

    workspace_path = "id"

    def __str__(self) -> str:
        return self.name


class Role(models.Model):
    """A named set of capabilities in one workspace; one that ends in “:team” counts in the person's own teams alone.

    access/roles.py changes it, and keeps every version.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="roles")
    name = models.CharField(max_length=60)
    capabilities = models.JSONField(default=list)
    version = models.PositiveIntegerField(default=1)
    retired_at = models.DateTimeField(null=True, blank=True)  # nobody holds it, and nobody is given it

    workspace_path = "workspace"
    view_capability = "audit.view"

    class Meta:
        constraints = [models.UniqueConstraint("workspace", Lower("name"), name="role_name_once")]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person holds one role in a workspace; deactivated means it grants nothing."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.ForeignKey(Role, on_delete=models.PROTECT, related_name="memberships")
    deactivated_at = models.DateTimeField(null=True, blank=True)

    workspace_path = "workspace"

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "user"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} as {self.role} in {self.workspace}"


class Agent(models.Model):
    """A program that works in runs. Its owner answers for it, and so never approves what it proposes."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="agents")
    name = models.SlugField(max_length=60)
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="agents")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, null=True, blank=True, related_name="agents")  # whose runs start as the team's
    provisioner = models.UUIDField(null=True, editable=False)  # the line of keys that made it, and that alone of all may make its keys
    created_at = models.DateTimeField(default=clock.now, editable=False)

    workspace_path = "workspace"
    team_path = "team"
    provisioner_path = "provisioner"

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="agent_name_once")]

    def __str__(self) -> str:
        return self.name


@append_only.protect
class AuditEntry(models.Model):
    """What somebody did or was refused. Append-only: the database refuses UPDATE and DELETE."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, null=True, related_name="+")
    at = models.DateTimeField(default=clock.now, editable=False)
    actor_kind = models.CharField(max_length=12)
    actor_id = models.CharField(max_length=40, blank=True)
    verb = models.CharField(max_length=40)  # signed_in, sign_in_refused, key_created, run_started …
    subject_kind = models.CharField(max_length=40, blank=True)
    subject_id = models.CharField(max_length=40, blank=True)
    data = models.JSONField(default=dict)  # ids, numbers and words of ours; never text that somebody typed

    workspace_path = "workspace"

    class Meta:
        indexes = [models.Index(fields=["workspace", "-at"], name="audit_newest")]  # the access log, newest first

    def __str__(self) -> str:
        return f"{self.verb} by {self.actor_kind} {self.actor_id}"
