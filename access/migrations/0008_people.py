"""Who people are at the provider of single sign-on; invitations and links for a new password, which open once."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Lower

import access.ids
import access.people_models
import config.clock

PERSON = {"related_name": "+", "to": settings.AUTH_USER_MODEL}
GONE, KEPT = django.db.models.deletion.CASCADE, django.db.models.deletion.PROTECT
LINK = (
    ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
    ("nonce", models.CharField(default=access.people_models.nonce, max_length=43, unique=True)),
    ("created_at", models.DateTimeField(default=config.clock.now, editable=False)),
    ("expires_at", models.DateTimeField()),
    ("used_at", models.DateTimeField(null=True)),
    ("by_mail", models.BooleanField(default=True)),
    ("next_at", models.DateTimeField(default=config.clock.now)),
    ("tries", models.PositiveSmallIntegerField(default=0)),
    ("sent_at", models.DateTimeField(null=True)),
)


class Migration(migrations.Migration):
    dependencies = [("access", "0007_refusals")]

    operations = [
        migrations.CreateModel(
            name="PasswordLink",
            fields=[
                *LINK,
                ("made_by", models.ForeignKey(null=True, on_delete=GONE, **PERSON)),
                ("user", models.ForeignKey(null=True, on_delete=GONE, **PERSON)),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                *LINK,
                ("email", models.EmailField(max_length=254)),
                ("withdrawn_at", models.DateTimeField(null=True)),
                ("invited_by", models.ForeignKey(on_delete=KEPT, **PERSON)),
                ("role", models.ForeignKey(on_delete=KEPT, related_name="+", to="access.role")),
                ("user", models.ForeignKey(null=True, on_delete=GONE, **PERSON)),
                ("workspace", models.ForeignKey(on_delete=GONE, related_name="invitations", to="access.workspace")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        F("workspace"), Lower("email"), condition=Q(used_at=None, withdrawn_at=None), name="invitation_open_once"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="SsoIdentity",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("issuer", models.CharField(max_length=200)),
                ("subject", models.CharField(max_length=255)),
                ("linked_at", models.DateTimeField(default=config.clock.now, editable=False)),
                ("user", models.ForeignKey(on_delete=GONE, related_name="sso_identities", to=settings.AUTH_USER_MODEL)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("issuer", "subject"), name="sso_subject_once"),
                    models.UniqueConstraint(fields=("issuer", "user"), name="sso_person_once"),
                ]
            },
        ),
    ]
