"""Teams: people and agents of a workspace, and what was changed about them. There are none yet, so that no right changes."""

import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import access.ids
import config.clock


class Migration(migrations.Migration):
    dependencies = [
        ("access", "0010_break_glass"),
    ]

    operations = [
        migrations.CreateModel(
            name="Team",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=60)),
                ("made_at", models.DateTimeField(default=config.clock.now, editable=False)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="teams", to="access.workspace")),
            ],
        ),
        migrations.AddField(
            model_name="agent",
            name="team",
            field=models.ForeignKey(
                blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="agents", to="access.team"
            ),
        ),
        migrations.CreateModel(
            name="TeamChange",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("what", models.CharField(max_length=12)),
                ("name", models.CharField(max_length=60)),
                ("runs", models.PositiveIntegerField(default=0)),
                ("why", models.UUIDField(null=True)),
                ("at", models.DateTimeField(default=config.clock.now, editable=False)),
                ("agent", models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.agent")),
                (
                    "by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("team", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="changes", to="access.team")),
                (
                    "user",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TeamMember",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("added_at", models.DateTimeField(default=config.clock.now, editable=False)),
                (
                    "added_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "membership",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="in_teams", to="access.membership"),
                ),
                ("team", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="members", to="access.team")),
            ],
        ),
        migrations.AddConstraint(
            model_name="team",
            constraint=models.UniqueConstraint(
                models.F("workspace"),
                django.db.models.functions.text.Lower("name"),
                condition=models.Q(("deleted_at", None)),
                name="team_name_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="teamchange",
            constraint=models.CheckConstraint(
                condition=models.Q(("what__in", ("made", "renamed", "joined", "left", "agent_joined", "agent_left", "deleted"))),
                name="team_change_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="teammember",
            constraint=models.UniqueConstraint(fields=("team", "membership"), name="team_member_once"),
        ),
    ]
