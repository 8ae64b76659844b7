from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0008_looks_and_queue"),
        ("artifacts", "0001_first"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="grant",
            index=models.Index(fields=["outcome", "-executed_at"], name="grant_done"),
        ),
    ]
