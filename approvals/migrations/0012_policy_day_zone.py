from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0011_reviewer_groups")]

    operations = [
        migrations.AddField(model_name="policy", name="day_zone", field=models.CharField(default="UTC", max_length=60)),
    ]
