"""Payloads that were erased say why. Who administers may erase: roles that were made before there was such a right get it."""

from typing import Any

from django.db import migrations, models

RIGHT, HOLDER = "payloads.erase", "access.manage"


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
    dependencies = [("artifacts", "0003_reveals"), ("access", "0001_first")]

    operations = [
        migrations.AddField("payload", "erased_why", models.CharField(blank=True, db_default="", default="", max_length=12)),
        migrations.RunPython(give, take),
    ]
