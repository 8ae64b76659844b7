"""Keys have a last use, a successor and a scope, and provisioner keys make agents."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import access.ids
import config.clock


class Migration(migrations.Migration):
    dependencies = [("access", "0008_people")]

    operations = [
        migrations.AlterField("auditentry", "actor_kind", models.CharField(max_length=12)),
        migrations.AddField("agent", "provisioner", models.UUIDField(editable=False, null=True)),
        migrations.AddField("agentkey", "last_used_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("agentkey", "asked", models.UUIDField(blank=True, null=True, unique=True)),
        migrations.AddField("agentkey", "workflows", models.JSONField(default=list)),
        migrations.AddField("agentkey", "tools", models.JSONField(default=list)),
        migrations.AddField(
            "agentkey",
            "successor",
            models.OneToOneField(
                blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="predecessor", to="access.agentkey"
            ),
        ),
        migrations.CreateModel(
            name="ProvisionerKey",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=60)),
                ("prefix", models.CharField(max_length=16)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("capabilities", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(default=config.clock.now, editable=False)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("asked", models.UUIDField(blank=True, null=True, unique=True)),
                ("line", models.UUIDField(default=access.ids.uuid7)),
                ("owner", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                (
                    "successor",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="predecessor",
                        to="access.provisionerkey",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="provisioner_keys", to="access.workspace"),
                ),
            ],
            options={"abstract": False},
        ),
    ]
