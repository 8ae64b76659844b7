import django.db.models.deletion
from django.db import migrations, models

import access.ids
import config.clock


class Migration(migrations.Migration):
    dependencies = [
        ("access", "0003_right_to_freeze"),
        ("artifacts", "0001_first"),
        ("runs", "0004_forks"),
    ]

    operations = [
        migrations.CreateModel(
            name="WebhookSource",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("name", models.SlugField(max_length=60)),
                ("workflow", models.CharField(blank=True, max_length=60)),
                ("old_until", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(default=config.clock.now, editable=False)),
                ("made_at", models.DateTimeField(default=config.clock.now)),
                ("closed_at", models.DateTimeField(null=True)),
                ("agent", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.agent")),
                (
                    "old_secret",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="artifacts.payload"),
                ),
                ("secret", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="artifacts.payload")),
                (
                    "workspace",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="webhook_sources", to="access.workspace"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ReceivedWebhook",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("delivery", models.CharField(max_length=80)),
                ("digest", models.CharField(max_length=64)),
                ("state", models.CharField(default="received", max_length=10)),
                ("why", models.CharField(blank=True, max_length=20)),
                ("received_at", models.DateTimeField(default=config.clock.now, editable=False)),
                ("tried_at", models.DateTimeField(null=True)),
                ("settled_at", models.DateTimeField(null=True)),
                ("body", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="artifacts.payload")),
                ("run", models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="webhooks", to="runs.run")),
                (
                    "source",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="webhooks", to="runs.webhooksource"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="WebhookWait",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("step", models.CharField(max_length=200)),
                ("match", models.JSONField(default=dict)),
                ("since", models.DateTimeField()),
                ("seq", models.PositiveBigIntegerField(default=0)),
                ("opened_at", models.DateTimeField(default=config.clock.now)),
                ("closed_at", models.DateTimeField(null=True)),
                ("run", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="webhook_waits", to="runs.run")),
                ("source", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="waits", to="runs.webhooksource")),
                (
                    "webhook",
                    models.OneToOneField(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="wait", to="runs.receivedwebhook"
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="webhooksource",
            constraint=models.UniqueConstraint(fields=("workspace", "name"), name="webhook_source_once"),
        ),
        migrations.AddIndex(
            model_name="receivedwebhook",
            index=models.Index(fields=["source", "digest"], name="webhook_content"),
        ),
        migrations.AddIndex(
            model_name="receivedwebhook",
            index=models.Index(
                condition=models.Q(("state__in", ["received", "dead"])), fields=["state", "received_at"], name="webhook_open"
            ),
        ),
        migrations.AddConstraint(
            model_name="receivedwebhook",
            constraint=models.UniqueConstraint(fields=("source", "delivery"), name="webhook_once"),
        ),
        migrations.AddConstraint(
            model_name="receivedwebhook",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["received", "applied", "repeated", "dead", "discarded"])), name="webhook_state_known"
            ),
        ),
        migrations.AddIndex(
            model_name="webhookwait",
            index=models.Index(condition=models.Q(("closed_at", None)), fields=["source", "opened_at"], name="webhook_wait_open"),
        ),
        migrations.AddConstraint(
            model_name="webhookwait",
            constraint=models.UniqueConstraint(fields=("run", "step"), name="webhook_wait_once"),
        ),
        migrations.AddConstraint(
            model_name="webhookwait",
            constraint=models.CheckConstraint(
                condition=models.Q(("webhook", None), ("closed_at__isnull", False), _connector="OR"), name="webhook_wait_closed"
            ),
        ),
    ]
