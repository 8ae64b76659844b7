"""Where people are signed in, listed so that it can be ended."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import access.ids
import config.clock


class Migration(migrations.Migration):
    dependencies = [("access", "0005_roles_in_versions")]

    operations = [
        migrations.CreateModel(
            name="OpenSession",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("key", models.CharField(max_length=40, unique=True)),
                ("how", models.CharField(max_length=20)),
                ("user_agent", models.CharField(blank=True, max_length=300)),
                ("address", models.GenericIPAddressField(null=True)),
                ("began_at", models.DateTimeField(default=config.clock.now, editable=False)),
                ("used_at", models.DateTimeField(default=config.clock.now)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="open_sessions", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
    ]
