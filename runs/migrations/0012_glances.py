"""How far each person had a run before them. Nobody has yet, so nothing is new to anybody."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0011_webhook_places"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Glance",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seq", models.PositiveBigIntegerField()),
                ("at", models.DateTimeField()),
                ("person", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                (
                    "run",
                    models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="glances", to="runs.run"),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("run", "person"), name="glance_once")],
            },
        ),
    ]
