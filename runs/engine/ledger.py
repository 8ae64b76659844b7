"""What a run did outside, as its log has it, and what of that was undone."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

import orjson

from artifacts.models import Payload
from runs import log
from runs.log import Held, Text
from runs.models import Event, Run
from runs.vocabulary import EffectDone, EffectUndone

TOLD = ("effect.done", "effect.undone")


BRANCH = re.compile(r"undo-([0-9]+)/")  # how a step begins that undoes the effect which that event tells of


@dataclass(frozen=True)
class Effect:
    """One thing that was done outside. `key` is its idempotency key, the id of its grant; `seq` the event that says so."""

    key: str
    tool: str
    seq: int
    can_undo: bool
    action: UUID | None
    undone: bool = False

    @property
    def branch(self) -> str:
        """Where the steps of its undoing stand in the journal."""
        return f"undo-{self.seq}/"


def effects(run: Run | Held) -> list[Effect]:
    """All that the run did outside, in order. Of a held run also what this transaction has told so far."""
    row = run.row if isinstance(run, Held) else run
    found: dict[str, Effect] = {}
    kept = Event.objects.filter(run_month=row.month, run_id=row.pk, type__in=TOLD).order_by("seq").values_list("seq", "body")
    told_now = run.appended() if isinstance(run, Held) else ()
    for seq, body in (*kept, *((seq, body) for seq, type_, body in told_now if type_ in TOLD)):
        event = orjson.loads(body)
        data = event["data"]
        if event["type"] == "effect.undone":
            if data["key"] in found:
                found[data["key"]] = replace(found[data["key"]], undone=True)
        else:
            action = UUID(data["action"]) if "action" in data else None
            found[data["key"]] = Effect(data["key"], data["tool"], seq, data["can_undo"], action)
    return list(found.values())


def is_undo(step: str) -> bool:
    """Whether a step undoes something."""
    return BRANCH.match(step) is not None


def tell(
    run: Held,
    *,
    tool: str,
    key: str,
    can_undo: bool,
    action: UUID,
    step: str | None,
    texts: Mapping[str, Text | Payload],
    caused_by: int | None = None,
) -> int:
    """Write into the log that it happened: something was done outside, or undone if the step stands in the branch of an undoing."""
    branch = BRANCH.match(step or "")
    seq = int(branch[1]) if branch else None
    if undone := _undone_by(run, seq):
        return run.append(EffectUndone(key=undone), actor=log.ENGINE, caused_by=seq)
    done = EffectDone(tool=tool, key=key, can_undo=can_undo, action=action, step=step)
    return run.append(done, actor=log.ENGINE, texts=texts, caused_by=caused_by)


def _undone_by(run: Held, seq: int | None) -> str | None:
    """The key of the effect that the event `seq` tells of."""
    told = Event.objects.filter(run_month=run.row.month, run_id=run.row.pk, seq=seq, type="effect.done") if seq else None
    body = told.values_list("body", flat=True).first() if told is not None else None
    return str(orjson.loads(body)["data"]["key"]) if body else None
