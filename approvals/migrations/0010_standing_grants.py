import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import access.ids
import config.clock


class Migration(migrations.Migration):
    dependencies = [
        ("access", "0001_first"),
        ("approvals", "0009_grants_done"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="StandingGrant",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("tool", models.CharField(max_length=60)),
                ("conditions", models.JSONField(default=list)),
                ("budget", models.PositiveIntegerField()),
                ("used", models.PositiveIntegerField(default=0)),
                ("made_at", models.DateTimeField(default=config.clock.now, editable=False)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(null=True)),
                (
                    "made_from",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="approvals.proposedaction"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
                (
                    "revoked_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.workspace")),
            ],
        ),
        migrations.CreateModel(
            name="StandingUse",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("digest", models.CharField(max_length=64)),
                ("number", models.PositiveIntegerField()),
                ("seq", models.PositiveBigIntegerField()),
                ("used_at", models.DateTimeField(default=config.clock.now)),
                (
                    "action",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="covered", to="approvals.proposedaction"
                    ),
                ),
                (
                    "grant",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="uses", to="approvals.standinggrant"),
                ),
                ("policy", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="approvals.policy")),
            ],
        ),
        migrations.AddConstraint(
            model_name="standinggrant",
            constraint=models.CheckConstraint(condition=models.Q(("used__lte", models.F("budget"))), name="standing_within_budget"),
        ),
        migrations.AddIndex(
            model_name="standinggrant",
            index=models.Index(condition=models.Q(("revoked_at", None)), fields=["workspace", "tool", "expires_at"], name="standing_open"),
        ),
        migrations.AddConstraint(
            model_name="standinguse", constraint=models.UniqueConstraint(fields=("grant", "number"), name="standing_use_once")
        ),
    ]
