"""The audit trail becomes a chain: a seal an entry, and how far the sealer has come."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("access", "0003_right_to_freeze")]

    operations = [
        migrations.CreateModel(
            name="AuditSeal",
            fields=[
                ("number", models.PositiveBigIntegerField(primary_key=True, serialize=False)),
                ("entry", models.UUIDField(unique=True)),
                ("hash", models.CharField(max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name="Sealer",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("number", models.PositiveBigIntegerField(default=0)),
                ("hash", models.CharField(default="0" * 64, max_length=64)),
                ("floor", models.UUIDField(blank=True, null=True)),
                ("looked_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={"constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="sealer_once")]},
        ),
    ]
