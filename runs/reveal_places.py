"""What of a run’s log somebody may want to see: a text of an event, as the raw log has it."""

from collections.abc import Sequence

from django.urls import reverse

from access import rules
from access.errors import NotFound
from access.rows import only
from access.rules import Actor
from artifacts.models import Payload
from artifacts.revealing import Place
from runs.models import Event, Run


def of_event(actor: Actor, parts: Sequence[str]) -> Place:
    """`event:RUN:SEQ:ROLE`."""
    run_id, seq, role = [*parts, "", "", ""][:3]
    run = rules.get(actor, Run, run_id, "runs.events")
    if not (seq.isascii() and seq.isdigit() and len(seq) < 16 and rules.can(actor, "artifacts.view", run.workspace_id, run.team_id)):
        raise NotFound
    payloads = only(Event.objects.filter(run_month=run.month, run_id=run.pk, seq=int(seq)).values_list("payloads", flat=True)) or {}
    payload = only(Payload.objects.select_related("key", "erased_by").filter(pk=payloads.get(role)))
    if payload is None:
        raise NotFound
    back = reverse("runs:event", args=(run.pk, int(seq)))
    return Place(f"event:{run.pk}:{int(seq)}:{role}", payload, run.pk, back, f"“{role}” of #{int(seq):,}", frame="log", seq=int(seq))
