"""Who looks after runs, or after who may do what, may freeze: roles that were made before there was such a right get it."""

from typing import Any

from django.db import migrations

RIGHT, HOLDERS = "approvals.freeze", {"runs.recover", "access.manage"}


def give(apps: Any, _: Any) -> None:
    for role in apps.get_model("access", "Role").objects.all():
        if HOLDERS & set(role.capabilities) and RIGHT not in role.capabilities:
            role.capabilities = [*role.capabilities, RIGHT]
            role.save(update_fields=["capabilities"])


def take(apps: Any, _: Any) -> None:
    for role in apps.get_model("access", "Role").objects.all():
        role.capabilities = [each for each in role.capabilities if each != RIGHT]
        role.save(update_fields=["capabilities"])


class Migration(migrations.Migration):
    dependencies = [("access", "0002_policies_manage")]

    operations = [migrations.RunPython(give, take)]
