"""Roles have versions, and changes of them that wait for a second admin."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

import access.ids
import config.clock

PERSON = {"null": True, "on_delete": django.db.models.deletion.PROTECT, "related_name": "+", "to": settings.AUTH_USER_MODEL}


class Migration(migrations.Migration):
    dependencies = [("access", "0004_seals")]

    operations = [
        migrations.AddField("workspace", "second_admin", models.BooleanField(null=True)),
        migrations.AddField("role", "version", models.PositiveIntegerField(default=1)),
        migrations.AddField("role", "retired_at", models.DateTimeField(blank=True, null=True)),
        migrations.CreateModel(
            name="RoleVersion",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("version", models.PositiveIntegerField()),
                ("name", models.CharField(max_length=60)),
                ("holds", models.JSONField(default=list)),
                ("retired", models.BooleanField(default=False)),
                ("restores", models.PositiveIntegerField(null=True)),
                ("why", models.UUIDField(null=True)),
                ("at", models.DateTimeField(default=config.clock.now, null=True)),
                ("asked_by", models.ForeignKey(**PERSON)),
                ("confirmed_by", models.ForeignKey(**PERSON)),
                (
                    "role",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="versions", to="access.role"),
                ),
            ],
            options={"constraints": [models.UniqueConstraint(fields=["role", "version"], name="role_version_once")]},
        ),
        migrations.CreateModel(
            name="RoleChange",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("base", models.PositiveIntegerField()),
                ("name", models.CharField(max_length=60)),
                ("holds", models.JSONField(default=list)),
                ("retired", models.BooleanField(default=False)),
                ("restores", models.PositiveIntegerField(null=True)),
                ("why", models.UUIDField(null=True)),
                ("asked_at", models.DateTimeField(default=config.clock.now)),
                ("signed_in", models.CharField(max_length=20)),
                ("lapses_at", models.DateTimeField()),
                ("state", models.CharField(default="waiting", max_length=10)),
                ("settled_at", models.DateTimeField(null=True)),
                ("asked_by", models.ForeignKey(**PERSON | {"null": False})),
                (
                    "role",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="changes", to="access.role"),
                ),
                ("settled_by", models.ForeignKey(**PERSON)),
                (
                    "workspace",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.workspace"),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["workspace", "-asked_at"], name="role_changes_newest")],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(state__in=("waiting", "confirmed", "refused", "withdrawn", "lapsed", "overtaken")),
                        name="role_change_state_known",
                    ),
                    models.UniqueConstraint(condition=Q(state="waiting"), fields=("role",), name="role_change_waits_once"),
                ],
            },
        ),
    ]
