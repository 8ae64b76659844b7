"""The team of a run: its agent’s when it started. There are none yet, so that every run is of none."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("access", "0011_teams"),
        ("artifacts", "0008_redaction_policies"),
        ("runs", "0009_how_often_webhooks_came"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="team",
            field=models.ForeignKey(
                db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.team"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=models.Q(("team__isnull", False)), fields=["team", "-created_at"], name="run_of_team"),
        ),
    ]
