import django.db.models.deletion
import orjson
from django.db import migrations, models

STEPS = ("step", "model", "propose", "perform")


def sum_up(apps, schema_editor):
    """What the rows of runs that are there would have counted."""
    Run, Event, JournalEntry = (apps.get_model("runs", name) for name in ("Run", "Event", "JournalEntry"))
    for run in Run.objects.order_by("pk").iterator():  # a parent comes before its children
        told = Event.objects.filter(run_month=run.month, run_id=run.pk)
        started = told.filter(type="tool.started").order_by("seq").values_list("body", flat=True) if run.workflow else ()
        sums = {
            "steps": JournalEntry.objects.filter(run_id=run.pk, kind__in=STEPS).count(),
            "plans": told.filter(type="plan.set").count(),
            "tools": list(dict.fromkeys(orjson.loads(body)["data"]["tool"] for body in started)),
        }
        if run.parent_id is not None:
            root = Run.objects.values_list("root_id", flat=True).get(pk=run.parent_id)
            sums["root_id"] = root or run.parent_id
        Run.objects.filter(pk=run.pk).update(**sums)


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
        migrations.RunPython(sum_up, migrations.RunPython.noop),
    ]
