import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import access.ids
import config.clock


class Migration(migrations.Migration):
    dependencies = [
        ("access", "0001_first"),
        ("approvals", "0010_standing_grants"),
        ("artifacts", "0001_first"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ReviewerGroup",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=60)),
                ("version", models.PositiveIntegerField(default=1)),
                ("closed_at", models.DateTimeField(null=True)),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.workspace")),
            ],
        ),
        migrations.CreateModel(
            name="GroupMember",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("since", models.PositiveIntegerField()),
                (
                    "group",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="members", to="approvals.reviewergroup"),
                ),
                (
                    "user",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
            ],
        ),
        migrations.CreateModel(
            name="GroupVersion",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("version", models.PositiveIntegerField()),
                ("name", models.CharField(max_length=60)),
                ("members", models.JSONField(default=list)),
                ("closed", models.BooleanField(default=False)),
                ("saved_at", models.DateTimeField(default=config.clock.now, editable=False)),
                (
                    "group",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="versions", to="approvals.reviewergroup"),
                ),
                (
                    "saved_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "why",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="artifacts.payload"),
                ),
            ],
        ),
        migrations.AddField(
            model_name="policy",
            name="group",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="approvals.reviewergroup"),
        ),
        migrations.AddField(model_name="decision", name="group_version", field=models.PositiveIntegerField(null=True)),
        migrations.AddConstraint(
            model_name="reviewergroup",
            constraint=models.UniqueConstraint(
                models.F("workspace"), django.db.models.functions.text.Lower("name"), name="group_name_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="groupmember", constraint=models.UniqueConstraint(fields=("group", "user"), name="group_member_once")
        ),
        migrations.AddConstraint(
            model_name="groupversion", constraint=models.UniqueConstraint(fields=("group", "version"), name="group_version_once")
        ),
        migrations.AddConstraint(
            model_name="groupversion",
            constraint=models.CheckConstraint(condition=models.Q(("version__gte", 1)), name="group_version_counts"),
        ),
    ]
