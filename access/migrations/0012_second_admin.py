"""Changes of other things than roles that wait for a second admin, and why a change was refused."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

import access.ids
import config.clock

STATES = ("waiting", "confirmed", "refused", "withdrawn", "lapsed", "overtaken")


class Migration(migrations.Migration):
    dependencies = [("access", "0011_teams")]

    operations = [
        migrations.AddField("rolechange", "answer", models.UUIDField(null=True)),
        migrations.CreateModel(
            name="AskedChange",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("why", models.UUIDField(null=True)),
                ("asked_at", models.DateTimeField(default=config.clock.now)),
                ("signed_in", models.CharField(max_length=20)),
                ("lapses_at", models.DateTimeField()),
                ("state", models.CharField(default="waiting", max_length=10)),
                ("settled_at", models.DateTimeField(null=True)),
                ("answer", models.UUIDField(null=True)),
                ("kind", models.CharField(max_length=24)),
                ("subject", models.CharField(blank=True, max_length=80)),
                ("base", models.PositiveIntegerField(default=0)),
                ("wanted", models.JSONField(default=dict)),
                (
                    "asked_by",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
                (
                    "settled_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.workspace")),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=Q(state__in=STATES), name="asked_change_state_known"),
                    models.UniqueConstraint(
                        fields=["workspace", "kind", "subject"], condition=Q(state="waiting"), name="asked_change_waits_once"
                    ),
                ],
                "indexes": [models.Index(fields=["workspace", "-asked_at"], name="asked_changes_newest")],
            },
        ),
    ]
