import datetime

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_unknown_outcomes")]

    operations = [
        migrations.AddField(model_name="policy", name="recall_delay", field=models.DurationField(default=datetime.timedelta)),
    ]
