"""What the logs of some runs tell the list of runs, read at once for all of them."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson
from django.db.models import F, Q

from artifacts import vault
from runs.engine import ledger
from runs.models import Event, Run
from runs.story.course import PARKED, cancelled_words, failed_words

RECENT_STEPS = 200  # events from the end in which the current step of a run is looked for
HEARD = (
    *("action.proposed", "action.decided", "action.expired", "effect.done", "effect.undone"),
    *("plan.set", "run.failed", "run.parked", "run.cancelled", "run.compensating"),
)


@dataclass
class Heard:
    """What the log of one run tells the list."""

    done: int = 0
    found: int = 0  # of these, what the run before this fork had done
    undone: int = 0
    steps: int = 0
    step: int = 0
    step_title: str = ""
    why: str = ""
    undoing: bool = False  # what it did outside is being undone, or was at its end
    asked: str = ""  # the payload of what it asked for last, then its rendition
    refused: str = ""  # what it asked for last was not allowed: a reviewer rejected it, or nobody decided in time
    titles: dict[str, str] = field(default_factory=dict)
    grants: set[str] | None = None  # of a fork: its own


def heard_of(runs: list[Run]) -> dict[UUID, Heard]:
    """Effects, current step and reason of each, from one read of their logs, one of what was undone later and one of the texts."""
    heard: dict[UUID, Heard] = defaultdict(Heard, {run.pk: Heard(grants=set()) for run in runs if run.forked_from_id})
    if not runs:
        return heard
    step = Q(type="step.started", seq__gt=F("run__seq") - RECENT_STEPS)
    told = Q(type__in=HEARD) | Q(type="action.granted", run__forked_from__isnull=False)
    rows = Event.objects.filter(told | step, run_month__in={run.month for run in runs}, run_id__in=[run.pk for run in runs])
    for run_id, kind, body, payloads in rows.order_by("run_id", "seq").values_list("run_id", "type", "body", "payloads"):
        _hear(heard[run_id], kind, orjson.loads(body)["data"], payloads)
    for run_id, undone in ledger.counted_undone_after(runs).items():
        heard[run_id].undone += undone
    titles = {run_id: each.titles.get(f"step_{each.step}") for run_id, each in heard.items()}
    texts = vault.shown(UUID(pk) for pk in (*titles.values(), *(each.asked for each in heard.values())) if pk)
    for run_id, pk in titles.items():
        each = heard[run_id]
        each.step_title = texts[UUID(pk)].text if pk else ""
        each.asked = texts[UUID(each.asked)].text if each.asked else ""
    return heard


def _hear(heard: Heard, kind: str, data: Mapping[str, Any], payloads: dict[str, str]) -> None:
    match kind:
        case "action.proposed":
            heard.asked, heard.refused = payloads.get("subject", ""), ""
        case "action.granted" if heard.grants is not None:
            heard.grants.add(data["grant"])
        case "effect.done":
            heard.done += 1
            heard.found += heard.grants is not None and bool(data.get("action")) and data["key"] not in heard.grants
        case "effect.undone":
            heard.undone += 1
        case "action.decided":
            heard.refused = "a reviewer rejected it" if data["verdict"] == "rejected" else ""
        case "action.expired":
            heard.refused = "nobody decided in time"
        case "plan.set":
            heard.steps, heard.titles = data["steps"], payloads
        case "step.started":
            heard.step = data.get("plan_step") or heard.step
        case "run.failed":
            why = failed_words(data["reason"], undoing=heard.undoing)
            heard.why = why[:1].upper() + why[1:]
        case "run.compensating":
            heard.undoing = True
        case "run.parked":
            heard.undoing = False
            heard.why = PARKED.get(data["reason"], data["reason"])
        case "run.cancelled":
            heard.why = cancelled_words(data.get("done", 0), data.get("undone", 0), data.get("withdrawn", 0))
