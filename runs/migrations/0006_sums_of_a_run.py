import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0005_webhooks_in")]

    operations = [
        migrations.AddField(model_name="run", name="steps", field=models.PositiveBigIntegerField(default=0)),
        migrations.AddField(model_name="run", name="plans", field=models.PositiveIntegerField(default=0)),
        migrations.AddField(model_name="run", name="tools", field=models.JSONField(default=list)),
        migrations.AddField(
            model_name="run",
            name="root",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.run"),
        ),
        migrations.AlterField(
            model_name="journalentry",
            name="run",
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="journal", to="runs.run"),
        ),
        migrations.AddIndex(model_name="journalentry", index=models.Index(fields=["run", "position"], name="journal_in_order")),
        migrations.AddIndex(
            model_name="journalentry",
            index=models.Index(condition=models.Q(("action_id__isnull", False)), fields=["action_id"], name="journal_of_action"),
        ),
    ]
