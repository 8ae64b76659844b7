"""What was told long ago is found in the order in which it is forgotten."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0018_notices_of_changes")]

    operations = [
        migrations.AddIndex(
            model_name="message",
            index=models.Index(condition=models.Q(("settled_at__isnull", False)), fields=["settled_at"], name="message_settled"),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(condition=models.Q(("spread_at__isnull", False)), fields=["created_at"], name="notice_spread"),
        ),
    ]
