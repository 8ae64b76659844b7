import orjson
from django.db import migrations

STEPS = ("step", "model", "propose", "perform")


def sum_up(apps, schema_editor):
    """What the rows of runs that are there would have counted. Each in a statement of its own, so that nobody waits for the whole."""
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
    atomic = False
    dependencies = [("runs", "0007_in_order")]

    operations = [migrations.RunPython(sum_up, migrations.RunPython.noop)]
