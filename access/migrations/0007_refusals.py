"""Refusals that are alike are counted, and told with the next entry of the audit trail."""

import django.db.models.deletion
from django.db import migrations, models

import config.clock


class Migration(migrations.Migration):
    dependencies = [("access", "0006_open_sessions")]

    operations = [
        migrations.CreateModel(
            name="RefusalTally",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("actor_kind", models.CharField(max_length=12)),
                ("actor_id", models.CharField(max_length=40)),
                ("subject_kind", models.CharField(blank=True, max_length=40)),
                ("subject_id", models.CharField(blank=True, max_length=40)),
                ("told", models.JSONField(default=dict)),
                ("since", models.DateTimeField(default=config.clock.now)),
                ("more", models.PositiveIntegerField(default=0)),
                (
                    "workspace",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="access.workspace"),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["actor_id", "since"], name="tally_of_actor"),
                    models.Index(fields=["since"], name="tally_at_rest"),
                ]
            },
        ),
    ]
