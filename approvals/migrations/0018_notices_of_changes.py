"""Who could confirm a change is told that it waits."""

from typing import Any

from django.db import migrations, models

BEFORE = ("waits", "soon", "escalated", "delegated", "unknown", "answered", "ended", "alarm", "stuck", "handed", "asks", "budget", "glass")
NEW = ("confirm",)


def forget(apps: Any, schema: Any) -> None:
    """On the way back: what the code of before has no words for."""
    apps.get_model("approvals", "Delivery").objects.filter(notice__kind__in=NEW).delete()
    apps.get_model("approvals", "Notice").objects.filter(kind__in=NEW).delete()


class Migration(migrations.Migration):
    dependencies = [("approvals", "0017_notices_of_break_glass")]

    operations = [
        migrations.AddField("notice", "change", models.UUIDField(null=True)),
        migrations.RemoveConstraint(model_name="notice", name="notice_kind_known"),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(condition=models.Q(kind__in=(*BEFORE, *NEW)), name="notice_kind_known"),
        ),
        migrations.RunPython(migrations.RunPython.noop, forget),
    ]
