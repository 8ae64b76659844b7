"""Rules get an order, conditions, limits, and a version of the whole set. The rules that are in force become version 1 of their workspace's.

Taken back, each tool has a rule of its own again: the first that names it, if that one asks nothing more. A tool that a rule with conditions
is about has none then, and is refused until somebody writes one.
"""

from itertools import groupby

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import access.ids
import config.clock


def into_sets(apps, schema_editor):
    Policy, PolicySet = apps.get_model("approvals", "Policy"), apps.get_model("approvals", "PolicySet")
    rows = list(Policy.objects.order_by("workspace_id", "tool", "-version"))
    for workspace_id, of_workspace in groupby(rows, key=lambda row: row.workspace_id):
        first = PolicySet.objects.create(workspace_id=workspace_id, version=1, digest="")
        for place, (_, versions) in enumerate(groupby(of_workspace, key=lambda row: row.tool), 1):
            newest, *older = versions
            key = newest.key
            Policy.objects.filter(pk=newest.pk).update(policy_set=first, position=place)
            Policy.objects.filter(pk__in=[row.pk for row in older]).update(key=key)
    settle(schema_editor)


def out_of_sets(apps, schema_editor):
    Policy, PolicySet = apps.get_model("approvals", "Policy"), apps.get_model("approvals", "PolicySet")
    for workspace_id in set(PolicySet.objects.values_list("workspace_id", flat=True)):
        newest = PolicySet.objects.filter(workspace_id=workspace_id).order_by("-version")[0]
        current = list(Policy.objects.filter(policy_set=newest))
        asks = {rule.tool for rule in current if rule.conditions or not rule.tool}
        # what is in force last; within a version the first of a tool last, for the last is what counts from now on
        rows = sorted(
            Policy.objects.filter(workspace_id=workspace_id).select_related("policy_set"),
            key=lambda row: (row.policy_set.version if row.policy_set else 0, -row.position, row.version),
        )
        dropped = {row.tool for row in rows} - {rule.tool for rule in current}
        counts = {}
        for row in rows:
            tool = "" if "" in asks or row.tool in asks | dropped else row.tool
            counts[tool] = counts.get(tool, 0) + 1
            Policy.objects.filter(pk=row.pk).update(tool=tool, version=counts[tool])
    settle(schema_editor)


def settle(schema_editor):
    """Look at the foreign keys now: PostgreSQL alters no table that has them still to look at."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def own_keys(apps, schema_editor):
    Policy = apps.get_model("approvals", "Policy")
    for pk in Policy.objects.values_list("pk", flat=True):
        Policy.objects.filter(pk=pk).update(key=access.ids.uuid7())


class Migration(migrations.Migration):
    dependencies = [
        ("access", "0001_first"),
        ("artifacts", "0001_first"),
        ("runs", "0001_first"),
        ("approvals", "0005_agents_outside"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PolicySet",
            fields=[
                ("id", models.UUIDField(default=access.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("version", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("saved_at", models.DateTimeField(default=config.clock.now, editable=False)),
                (
                    "saved_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "why",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="artifacts.payload"),
                ),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.workspace")),
            ],
        ),
        migrations.AddConstraint(
            model_name="policyset", constraint=models.UniqueConstraint(fields=("workspace", "version"), name="policy_set_once")
        ),
        migrations.CreateModel(
            name="AskedFor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tool", models.CharField(max_length=60)),
                ("times", models.PositiveIntegerField(default=1)),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("agent", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.agent")),
                ("last_run", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.run")),
                ("workspace", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="access.workspace")),
            ],
        ),
        migrations.AddConstraint(
            model_name="askedfor", constraint=models.UniqueConstraint(fields=("workspace", "tool"), name="asked_for_once")
        ),
        migrations.AddField(
            model_name="policy",
            name="policy_set",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="rules", to="approvals.policyset"),
        ),
        migrations.AddField(model_name="policy", name="position", field=models.PositiveIntegerField(default=0)),
        migrations.AddField(model_name="policy", name="key", field=models.UUIDField(default=access.ids.uuid7)),
        migrations.AddField(model_name="policy", name="conditions", field=models.JSONField(default=list)),
        migrations.AddField(model_name="policy", name="plan_first", field=models.BooleanField(default=False)),
        migrations.AddField(model_name="policy", name="a_day", field=models.PositiveIntegerField(null=True)),
        migrations.AddField(
            model_name="policy",
            name="a_day_amount",
            field=models.CharField(blank=True, default="", max_length=24),
            preserve_default=False,
        ),
        migrations.AlterField(model_name="policy", name="tool", field=models.CharField(blank=True, max_length=60)),
        migrations.AddField(model_name="proposedaction", name="judged_on", field=models.JSONField(default=dict)),
        # one rule's default is not another's: every row was given the same key
        migrations.RunPython(own_keys, migrations.RunPython.noop),
        # taken back the other way round: the versions of a tool are told apart before the constraint is there again
        migrations.RemoveConstraint(model_name="policy", name="policy_version_once"),
        migrations.RunPython(into_sets, out_of_sets),
        migrations.AddConstraint(
            model_name="policy", constraint=models.UniqueConstraint(fields=("policy_set", "position"), name="policy_place_once")
        ),
    ]
