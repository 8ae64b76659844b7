"""Renditions carry the version of the rules that they were made under: 0 is from before that was kept."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("artifacts", "0006_uploads")]

    operations = [
        migrations.AddField("payload", "rules", models.PositiveBigIntegerField(db_default=0, default=0)),
        migrations.AddIndex("payload", models.Index(fields=["workspace", "rules"], name="payload_rules")),
    ]
