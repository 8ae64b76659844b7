"""Redaction policies, and what each payload belongs to. Who administers may change them: roles from before there was such a right get it."""

from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import access.ids
import config.clock

RIGHT, HOLDER = "redaction.manage", "access.manage"


def give(apps: Any, _: Any) -> None:
    for role in apps.get_model("access", "Role").objects.all():
        if HOLDER in role.capabilities and RIGHT not in role.capabilities:
            role.capabilities = [*role.capabilities, RIGHT]
            role.save(update_fields=["capabilities"])


def take(apps: Any, _: Any) -> None:
    for role in apps.get_model("access", "Role").objects.all():
        if RIGHT in role.capabilities:
            role.capabilities = [each for each in role.capabilities if each != RIGHT]
            role.save(update_fields=["capabilities"])


class Migration(migrations.Migration):
    dependencies = [("artifacts", "0007_rules"), ("access", "0001_first")]

    operations = [
        migrations.AddField("payload", "about", models.CharField(blank=True, default="", max_length=120), preserve_default=False),
        migrations.CreateModel(
            name="RedactionPolicy",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("event", models.CharField(default="*", max_length=60)),
                ("tool", models.CharField(default="*", max_length=60)),
                ("path", models.CharField(max_length=200)),
                ("kind", models.CharField(blank=True, max_length=12)),
                ("why", models.UUIDField()),
                ("made_at", models.DateTimeField(default=config.clock.now, editable=False)),
                ("withdrawn_in", models.PositiveIntegerField(null=True)),
                ("withdrawn_at", models.DateTimeField(null=True)),
                ("withdrawn_why", models.UUIDField(null=True)),
                ("made_by", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                (
                    "withdrawn_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.workspace")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=["workspace", "number"], name="redaction_policy_number_once"),
                    models.CheckConstraint(
                        condition=models.Q(withdrawn_at=None, withdrawn_by=None, withdrawn_in=None)
                        | models.Q(withdrawn_at__isnull=False, withdrawn_by__isnull=False, withdrawn_in__isnull=False),
                        name="redaction_policy_withdrawn_whole",
                    ),
                ],
            },
        ),
        migrations.RunPython(give, take),
    ]
