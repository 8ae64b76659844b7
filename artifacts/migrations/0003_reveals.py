"""What is hidden may be revealed, for a time: a row of each. Who looks after runs, or reads the audit trail without administering, may
reveal internal values from now on; nobody gets personal data by this."""

from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import access.ids
import config.clock

RIGHTS = ("reveal.internal", "reveal.personal")


def give(apps: Any, _: Any) -> None:
    for role in apps.get_model("access", "Role").objects.all():
        held = set(role.capabilities)
        reads = "audit.view" in held and "access.manage" not in held
        if RIGHTS[0] not in held and "artifacts.view" in held and (reads or "runs.recover" in held):
            role.capabilities = [*role.capabilities, RIGHTS[0]]
            role.save(update_fields=["capabilities"])


def take(apps: Any, _: Any) -> None:
    for role in apps.get_model("access", "Role").objects.all():
        if set(RIGHTS) & set(role.capabilities):
            role.capabilities = [each for each in role.capabilities if each not in RIGHTS]
            role.save(update_fields=["capabilities"])


class Migration(migrations.Migration):
    dependencies = [
        ("access", "0003_right_to_freeze"),
        ("artifacts", "0002_key_rotation"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(give, take),
        migrations.CreateModel(
            name="Reveal",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("session", models.CharField(max_length=32)),
                ("token", models.UUIDField()),
                ("label", models.CharField(max_length=10)),
                ("place", models.CharField(max_length=160)),
                ("run_id", models.UUIDField()),
                ("action_id", models.UUIDField(blank=True, null=True)),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("decide", "Needed to decide on this action"),
                            ("customer", "Customer asked about their data"),
                            ("incident", "Incident review"),
                            ("other", "Other, explained below"),
                        ],
                        max_length=10,
                    ),
                ),
                ("hidden", models.JSONField(default=dict)),
                ("at", models.DateTimeField(default=config.clock.now, editable=False)),
                ("until", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("by", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                (
                    "details",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="artifacts.payload"
                    ),
                ),
                ("payload", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="reveals", to="artifacts.payload")),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.workspace")),
            ],
            options={
                "indexes": [
                    models.Index(fields=["payload", "-at"], name="reveal_of_payload"),
                    models.Index(fields=["by", "-at"], name="reveal_of_person"),
                    models.Index(fields=["run_id", "-at"], name="reveal_of_run"),
                    models.Index(fields=["workspace", "label", "-at"], name="reveal_of_label"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("by", "token"), name="reveal_once"),
                    models.CheckConstraint(
                        condition=models.Q(("reason__in", ["", "decide", "customer", "incident", "other"])), name="reveal_reason_known"
                    ),
                    models.CheckConstraint(condition=models.Q(("until__gt", models.F("at"))), name="reveal_ends"),
                ],
            },
        ),
    ]
