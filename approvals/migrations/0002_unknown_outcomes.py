from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0001_first")]

    operations = [
        migrations.AddIndex(
            model_name="grant",
            index=models.Index(condition=models.Q(("outcome", "unknown")), fields=["unknown_at"], name="grant_unknown"),
        ),
    ]
