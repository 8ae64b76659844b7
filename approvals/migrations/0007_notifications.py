import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import access.ids
import config.clock


class Migration(migrations.Migration):
    dependencies = [
        ("access", "0001_first"),
        ("approvals", "0006_policy_sets"),
        ("artifacts", "0001_first"),
        ("runs", "0001_first"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Chase",
            fields=[
                (
                    "workspace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="access.workspace",
                    ),
                ),
                ("remind_before", models.DurationField()),
            ],
        ),
        migrations.CreateModel(
            name="Preferences",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("channels", models.JSONField(default=dict)),
                ("quiet_from", models.TimeField(null=True)),
                ("quiet_to", models.TimeField(null=True)),
                ("quiet_weekends", models.BooleanField(default=False)),
                ("time_zone", models.CharField(default="UTC", max_length=60)),
                ("lets_through", models.BooleanField(default=True)),
            ],
        ),
        migrations.CreateModel(
            name="Delegation",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(default=config.clock.now)),
                ("giver", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("to", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.workspace")),
            ],
        ),
        migrations.CreateModel(
            name="Escalation",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("at", models.DateTimeField(default=config.clock.now)),
                ("seq", models.PositiveBigIntegerField()),
                (
                    "action",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="escalations", to="approvals.proposedaction"
                    ),
                ),
                ("to", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                (
                    "via",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="approvals.delegation"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="EscalationStep",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("after", models.DurationField()),
                ("to", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="access.workspace")),
            ],
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("channel", models.CharField(max_length=8)),
                ("state", models.CharField(default="waiting", max_length=8)),
                ("test", models.BooleanField(default=False)),
                ("count", models.PositiveIntegerField(default=1)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("token", models.PositiveBigIntegerField(default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                ("next_at", models.DateTimeField(default=config.clock.now)),
                ("created_at", models.DateTimeField(default=config.clock.now)),
                ("settled_at", models.DateTimeField(null=True)),
                ("trouble", models.CharField(blank=True, max_length=20)),
                ("user", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.workspace")),
            ],
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=12)),
                ("key", models.CharField(max_length=160)),
                ("until", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(default=config.clock.now)),
                ("spread_at", models.DateTimeField(null=True)),
                (
                    "action",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="approvals.proposedaction"
                    ),
                ),
                (
                    "delegation",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="approvals.delegation"),
                ),
                ("run", models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.run")),
                (
                    "to",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.workspace")),
            ],
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("channel", models.CharField(max_length=8)),
                ("due_at", models.DateTimeField()),
                ("held", models.BooleanField(default=False)),
                ("user", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                (
                    "message",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="deliveries", to="approvals.message"
                    ),
                ),
                (
                    "notice",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="deliveries", to="approvals.notice"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Webhook",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("url", models.CharField(max_length=500)),
                ("old_until", models.DateTimeField(null=True)),
                ("made_at", models.DateTimeField(default=config.clock.now)),
                (
                    "old_secret",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="artifacts.payload"),
                ),
                ("secret", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="artifacts.payload")),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.workspace")),
            ],
        ),
        migrations.AddIndex(
            model_name="delegation",
            index=models.Index(condition=models.Q(("ended_at", None)), fields=["workspace", "ends_at"], name="delegation_open"),
        ),
        migrations.AddConstraint(
            model_name="delegation",
            constraint=models.CheckConstraint(condition=models.Q(("ends_at__gt", models.F("starts_at"))), name="delegation_forward"),
        ),
        migrations.AddConstraint(
            model_name="delegation",
            constraint=models.CheckConstraint(condition=models.Q(("giver", models.F("to")), _negated=True), name="delegation_to_another"),
        ),
        migrations.AddConstraint(
            model_name="escalation",
            constraint=models.UniqueConstraint(fields=("action", "to"), name="escalation_once"),
        ),
        migrations.AddConstraint(
            model_name="escalationstep",
            constraint=models.UniqueConstraint(fields=("workspace", "to"), name="escalation_step_once"),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(condition=models.Q(("state", "waiting")), fields=["next_at"], name="message_due"),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(condition=models.Q(("state", "dead")), fields=["workspace", "-settled_at"], name="message_dead"),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(fields=["user", "-created_at"], name="message_newest"),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["waiting", "sent", "dropped", "dead"])), name="message_state_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.CheckConstraint(condition=models.Q(("channel__in", ("mail", "webhook"))), name="message_channel_known"),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(condition=models.Q(("spread_at", None)), fields=["created_at"], name="notice_unspread"),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.UniqueConstraint(fields=("key",), name="notice_once"),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ("waits", "soon", "escalated", "delegated", "unknown", "answered", "ended", "alarm"))),
                name="notice_kind_known",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(condition=models.Q(("message", None)), fields=["due_at"], name="delivery_due"),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(fields=("notice", "user", "channel"), name="delivery_once"),
        ),
    ]
