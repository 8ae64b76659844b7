import django.db.models.deletion
from django.db import migrations, models

import config.clock


class Migration(migrations.Migration):
    dependencies = [
        ("artifacts", "0001_first"),
        ("runs", "0002_children_and_recovery"),
    ]

    operations = [
        migrations.CreateModel(
            name="AgentStep",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("step", models.CharField(max_length=200)),
                ("position", models.PositiveIntegerField()),
                ("state", models.CharField(default="started", max_length=10)),
                ("given", models.CharField(max_length=64)),
                ("plan_step", models.PositiveSmallIntegerField(null=True)),
                ("attempts", models.PositiveIntegerField(default=1)),
                ("token", models.PositiveBigIntegerField()),
                ("holder", models.CharField(max_length=80)),
                ("started_at", models.DateTimeField(default=config.clock.now)),
                ("ended_at", models.DateTimeField(null=True)),
                ("seq", models.PositiveBigIntegerField()),
                (
                    "result",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="artifacts.payload"),
                ),
                ("run", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="agent_steps", to="runs.run")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("run", "step"), name="agent_step_once"),
                    models.CheckConstraint(condition=models.Q(("state__in", ["started", "done", "failed"])), name="agent_step_state_known"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at", None), ("state", "started")),
                            models.Q(models.Q(("state", "started"), _negated=True), ("ended_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="agent_step_ended",
                    ),
                ],
            },
        ),
    ]
