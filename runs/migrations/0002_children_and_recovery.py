import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0001_first"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="handed_to",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name="run",
            name="parent",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="children", to="runs.run"),
        ),
        migrations.AddField(model_name="run", name="parent_step", field=models.CharField(blank=True, max_length=200)),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("ended_at", None), ("parent__isnull", False)), fields=["parent"], name="run_open_children"
            ),
        ),
    ]
