from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0015_kept_keys")]

    operations = [
        migrations.AddField(
            model_name="proposedaction",
            name="sameness",
            field=models.CharField(blank=True, default="", max_length=64),
            preserve_default=False,
        ),
        migrations.AddIndex(model_name="proposedaction", index=models.Index(fields=["run", "sameness"], name="action_same")),
    ]
