from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0004_freeze_and_recall")]

    operations = [
        migrations.AddField(model_name="proposedaction", name="key", field=models.CharField(max_length=200, null=True)),
        migrations.AddConstraint(
            model_name="proposedaction", constraint=models.UniqueConstraint(fields=("run", "key"), name="action_key_once")
        ),
        migrations.AddField(
            model_name="grant", name="holder", field=models.CharField(blank=True, default="", max_length=64), preserve_default=False
        ),
        migrations.AddField(model_name="grant", name="report_by", field=models.DateTimeField(null=True)),
        migrations.AddIndex(
            model_name="grant",
            index=models.Index(
                condition=models.Q(("outcome", "none"), ("report_by__isnull", False)), fields=["report_by"], name="grant_unreported"
            ),
        ),
    ]
