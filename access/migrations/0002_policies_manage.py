"""Who may manage people and keys may change policies too: before there was a right for it, setting up the installation was the only way."""

from django.db import migrations


def give(apps, schema_editor):
    for role in apps.get_model("access", "Role").objects.all():
        if "access.manage" in role.capabilities and "policies.manage" not in role.capabilities:
            role.capabilities = [*role.capabilities, "policies.manage"]
            role.save(update_fields=["capabilities"])


def take(apps, schema_editor):
    for role in apps.get_model("access", "Role").objects.all():
        if "policies.manage" in role.capabilities:
            role.capabilities = [held for held in role.capabilities if held != "policies.manage"]
            role.save(update_fields=["capabilities"])


class Migration(migrations.Migration):
    dependencies = [("access", "0001_first")]

    operations = [migrations.RunPython(give, take)]
