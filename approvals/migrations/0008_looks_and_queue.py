import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import access.ids
import config.clock


class Migration(migrations.Migration):
    dependencies = [
        ("access", "0001_first"),
        ("approvals", "0007_notifications"),
        ("artifacts", "0001_first"),
        ("runs", "0001_first"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Look",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("digest", models.CharField(max_length=64)),
                ("looked_at", models.DateTimeField(default=config.clock.now)),
            ],
        ),
        migrations.RemoveIndex(
            model_name="proposedaction",
            name="action_inbox",
        ),
        migrations.AddIndex(
            model_name="proposedaction",
            index=models.Index(fields=["workspace", "state", "-risk", "expires_at", "id"], name="action_queue"),
        ),
        migrations.AddField(
            model_name="look",
            name="action",
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="approvals.proposedaction"),
        ),
        migrations.AddField(
            model_name="look",
            name="reviewer",
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddConstraint(
            model_name="look",
            constraint=models.UniqueConstraint(fields=("action", "reviewer", "digest"), name="look_once"),
        ),
    ]
