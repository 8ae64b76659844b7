"""Webhooks that nobody has taken are found by what stands where in them. Of those that are there nothing is known: they are looked at."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("artifacts", "0008_redaction_policies"),
        ("runs", "0010_teams"),
    ]

    operations = [
        migrations.AddField(
            model_name="receivedwebhook",
            name="all_places",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="webhooksource",
            name="places_key",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="artifacts.payload"),
        ),
        migrations.CreateModel(
            name="WebhookPlace",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("token", models.CharField(max_length=22)),
                (
                    "webhook",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="kept_places", to="runs.receivedwebhook"),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["token", "webhook"], name="webhook_place")],
            },
        ),
    ]
