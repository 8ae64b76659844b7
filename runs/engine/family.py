"""The family of a run: whose child it is, and all of their children. What one of them has read, each of them has."""

from django.db.models import Q

from runs.models import Run


def tools_used(run: Run) -> set[str]:
    """The names of the tools that a run, or another of its family, has started. Each run's row has its own, so that no log is read.

    A fork has those of the family that it was forked from on its own row.
    """
    root = run.root_id or run.pk
    all_of_them = Run.objects.filter(Q(pk=root) | Q(root=root)).exclude(tools=[])
    return set(run.tools).union(*all_of_them.values_list("tools", flat=True))
