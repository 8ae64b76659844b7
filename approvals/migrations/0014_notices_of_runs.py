"""Who can help a run that is stuck, asks something or has used up a limit is told so."""

from typing import Any

from django.db import migrations, models

BEFORE = ("waits", "soon", "escalated", "delegated", "unknown", "answered", "ended", "alarm")
NEW = ("stuck", "handed", "asks", "budget")


def forget(apps: Any, schema: Any) -> None:
    """On the way back: what the code of before has no words for."""
    apps.get_model("approvals", "Delivery").objects.filter(notice__kind__in=NEW).delete()
    apps.get_model("approvals", "Notice").objects.filter(kind__in=NEW).delete()


class Migration(migrations.Migration):
    dependencies = [("approvals", "0013_standing_values_in_the_vault")]

    operations = [
        migrations.RemoveConstraint(model_name="notice", name="notice_kind_known"),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(condition=models.Q(kind__in=(*BEFORE, *NEW)), name="notice_kind_known"),
        ),
        migrations.RunPython(migrations.RunPython.noop, forget),
    ]
