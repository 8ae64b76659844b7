import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0012_policy_day_zone"), ("artifacts", "0001_first")]

    operations = [
        migrations.AddField(
            model_name="standinggrant",
            name="kept",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="artifacts.payload"),
        ),
    ]
