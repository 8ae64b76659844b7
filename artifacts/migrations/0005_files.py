"""Large payloads lie in files: a row names its file instead of holding the bytes. Going back needs that no row does."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("artifacts", "0004_erasure")]

    operations = [
        migrations.AddField("payload", "stored", models.CharField(editable=False, max_length=120, null=True)),
        migrations.RemoveConstraint("payload", "payload_whole_or_erased"),
        migrations.AddConstraint(
            "payload",
            models.CheckConstraint(
                condition=Q(erased_at=None, wrapped__isnull=False, content__isnull=False, stored=None, rendition__isnull=False)
                | Q(erased_at=None, wrapped__isnull=False, content=None, stored__isnull=False, rendition__isnull=False)
                | Q(erased_at__isnull=False, wrapped=None, content=None, stored=None, rendition=None),
                name="payload_whole_or_erased",
            ),
        ),
        migrations.AddConstraint(
            "payload", models.UniqueConstraint(fields=["stored"], name="payload_stored_once", condition=Q(stored__isnull=False))
        ),
    ]
