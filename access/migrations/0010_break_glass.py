"""Rights that somebody takes for a while, and that another admin reviews afterwards."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q

import access.ids
import config.clock

PERSON = {"on_delete": django.db.models.deletion.PROTECT, "related_name": "+", "to": settings.AUTH_USER_MODEL}


class Migration(migrations.Migration):
    dependencies = [("access", "0009_keys")]

    operations = [
        migrations.CreateModel(
            name="BreakGlass",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("taken", models.JSONField(default=list)),
                ("why", models.UUIDField()),
                ("signed_in", models.CharField(max_length=20)),
                ("since", models.DateTimeField(default=config.clock.now)),
                ("until", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("reviewed_at", models.DateTimeField(blank=True, null=True)),
                ("review", models.UUIDField(blank=True, null=True)),
                ("ended_by", models.ForeignKey(blank=True, null=True, **PERSON)),
                ("reviewed_by", models.ForeignKey(blank=True, null=True, **PERSON)),
                ("user", models.ForeignKey(**PERSON)),
                (
                    "membership",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="glasses", to="access.membership"
                    ),
                ),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.workspace")),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=~Q(reviewed_by=F("user")), name="glass_reviewed_by_another"),
                    models.CheckConstraint(
                        condition=Q(reviewed_at=None, reviewed_by=None, review=None)
                        | Q(reviewed_at__isnull=False, reviewed_by__isnull=False, review__isnull=False),
                        name="glass_review_whole",
                    ),
                ],
                "indexes": [models.Index(fields=["workspace", "-since"], name="glass_unreviewed", condition=Q(reviewed_at=None))],
            },
        ),
    ]
