"""Tools that agents asked for and no rule covers. Each was refused; an admin sees here that they were asked for, and by whom."""

from django.db.models import F

from access.models import Workspace
from approvals.models import AskedFor
from config import clock
from runs.models import Run

LONGEST = 60  # characters of a name
KEPT = 200  # names in a workspace: an agent that makes up names all day fills no table


def note(run: Run, tool: str) -> None:
    """Count that this run asked for it. In the caller's transaction, under the run's lock."""
    now, tool = clock.now(), tool[:LONGEST]
    asked = {"times": F("times") + 1, "last_at": now, "last_run": run}
    if AskedFor.objects.filter(workspace_id=run.workspace_id, tool=tool).update(**asked):
        return
    Workspace.objects.select_for_update(no_key=True).get(pk=run.workspace_id)  # of two runs with a new name each, one counts first
    if AskedFor.objects.filter(workspace_id=run.workspace_id).count() < KEPT:
        first = AskedFor(workspace_id=run.workspace_id, tool=tool, first_at=now, last_at=now, last_run=run, agent=run.agent)
        # another run may be first with the same name: then this one time is not counted
        AskedFor.objects.bulk_create([first], ignore_conflicts=True)
