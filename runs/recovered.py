"""What was chosen lately for runs that were stuck. A fixed number of queries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from access import naming, rules
from access.models import AuditEntry
from access.rules import Actor
from artifacts import vault
from config import clock
from runs.lifecycle import State
from runs.models import Event, Run

LATELY = timedelta(hours=24)
RECENT = 10
CHOSE: Mapping[str, tuple[str, str]] = {  # choice → its colour, and its word once it was made
    "retry": ("done", "Retried"),
    "compensate": ("undone", "Undoing"),
    "hand_over": ("paused", "Handed over"),
    "give_up": ("cancelled", "Given up"),
}


@dataclass(frozen=True)
class Recovered:
    """What somebody chose lately."""

    run: Run
    choice: str
    by: str
    at: datetime
    to: str
    why: str = ""  # in their words, a rendition

    @property
    def shade(self) -> str:
        return CHOSE.get(self.choice, ("", ""))[0]

    @property
    def word(self) -> str:
        """What was chosen; of an undoing that is over, that it was undone."""
        if self.choice == "compensate" and self.run.ended_at:
            return "Undone"
        return CHOSE.get(self.choice, ("", self.choice))[1]

    @property
    def goes_on(self) -> bool:
        """Whether where the run is by now says more than what was chosen: a choice that ended it does not, nor does that it went well."""
        return self.run.state != State.SUCCEEDED and (self.choice == "retry" or not self.run.ended_at)

    @property
    def now(self) -> str:
        """Where the run is by now, where that is not what its state is called anyway."""
        return "Stuck again" if self.run.state == State.PARKED else ""


def lately(actor: Actor) -> list[Recovered]:
    """The last choices of a day where this person may recover runs, of each run the last."""
    entries = AuditEntry.objects.filter(workspace_id__in=actor.somewhere("runs.recover"), verb="recovered", at__gt=clock.now() - LATELY)
    entries = entries.exclude(data__choice="hand_over")  # it is stuck still, and says on its card who looks after it
    latest = list(entries.order_by("-at")[:RECENT])
    runs = rules.visible(actor, Run, "runs.view").select_related("title").in_bulk([entry.subject_id for entry in latest])
    ids = {entry.actor_id for entry in latest} | {entry.data.get("to", "") for entry in latest}
    names = naming.people(ids)
    found = [(entry, runs.get(UUID(entry.subject_id))) for entry in latest]
    newest = {run.pk: (entry, run) for entry, run in reversed(found) if run is not None}  # of one run what was chosen last
    why = _why(runs.values())
    return [told(entry, run, names, why) for entry, run in sorted(newest.values(), key=lambda each: each[0].at, reverse=True)]


def _why(runs: Iterable[Run]) -> dict[UUID, str]:
    """Why somebody chose last how each of these runs goes on. Two queries."""
    rows = {run.pk: run.month for run in runs}
    chosen = Event.objects.filter(run_month__in=set(rows.values()), run_id__in=rows, type="deadletter.resolved")
    chosen = chosen.exclude(body__contains='"choice":"hand_over"').order_by("seq")
    notes = {run: payloads.get("note") for run, payloads in chosen.values_list("run_id", "payloads")}
    texts = vault.shown(UUID(pk) for pk in notes.values() if pk)
    return {run: texts[UUID(pk)].text for run, pk in notes.items() if pk and UUID(pk) in texts}


def told(entry: AuditEntry, run: Run, names: Mapping[str, str], why: Mapping[UUID, str]) -> Recovered:
    """What one entry of the audit says of a run. `names`: of people, by their ids; `why`: of runs."""
    return Recovered(
        run,
        entry.data["choice"],
        names.get(entry.actor_id, "Somebody"),
        entry.at,
        names.get(entry.data.get("to", ""), ""),
        why.get(run.pk, ""),
    )
