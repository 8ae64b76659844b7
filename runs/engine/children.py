"""Child runs: another workflow does a part of a run's work, in a log of its own and in no wider scope, and the run waits for it."""

from collections.abc import Mapping
from typing import Any

from artifacts import vault
from artifacts.models import Payload
from runs import log
from runs.engine import budget, effects
from runs.engine.outcomes import Parked, Waits
from runs.engine.values import read_back, wrap
from runs.engine.walk import Walk
from runs.models import Event, JournalEntry, Run
from runs.vocabulary import ChildEnded, ChildStarted, RunWaiting, StepStarted

LOOK_AGAIN = 3600.0  # seconds; its ending wakes the parent before that


def child(walk: Walk, workflow: str, title: str, arguments: Mapping[str, Any], scope: Mapping[str, Any] | None) -> Any:
    """What the child came to: {"run", "ref", "state", "report": {"title", "body"} or None}. Waits until it has ended."""
    step = walk.journal.next_step(f"child.{workflow}")
    entry = walk.journal.find(step)
    if entry is not None and entry.state == "done":
        return read_back(entry)
    if entry is None:
        walk.check_budget()
        entry, made = _begin(walk, step, workflow, title, arguments, scope)
    else:
        made = Run.objects.get(parent_id=walk.id, parent_step=step)
    if made.ended_at is None:
        raise Waits(RunWaiting(on="child", run=made.pk), wake_in=LOOK_AGAIN)
    return _ended(walk, entry, made)


def _begin(
    walk: Walk, step: str, workflow: str, title: str, arguments: Mapping[str, Any], scope: Mapping[str, Any] | None
) -> tuple[JournalEntry, Run]:
    """The child, its journal entry and its events, in one transaction under this worker's token: a run that is overtaken starts none."""
    from runs import starting  # which knows the workflows, whose channel this is a part of

    with walk.hold() as run:
        if wider := effects.beyond_scope(run.row, scope or {}):
            raise Parked("out_of_scope", step=step, detail=f"Its child run would touch {wider}, outside this run's scope.")
        entry = walk.journal.begin(run, step, kind="child", given=[workflow, dict(arguments)])
        made = starting.start_child(
            run.row,
            step=step,
            title=title,
            workflow=workflow,
            arguments=arguments,
            scope=run.row.scope if scope is None else scope,
            budgets=_left(run.row),
        )
        run.append(StepStarted(step=step, kind="child"), actor=walk.agent)
        run.append(ChildStarted(run=made.pk, ref=made.ref, step=step), actor=walk.agent)
    return entry, made


def _left(parent: Run) -> dict[str, int]:
    """What is left of the parent's budgets: its children share them."""
    so_far = budget.used(parent)
    return {name: max(parent.budgets[name] - so_far[name], 1) for name in budget.NAMES if parent.budgets.get(name)}


def _ended(walk: Walk, entry: JournalEntry, made: Run) -> Any:
    result = {"run": str(made.pk), "ref": made.ref, "state": made.state, "report": _report(made)}
    with walk.hold() as run:
        seq = run.append(ChildEnded(run=made.pk, state=made.state, step=entry.step), actor=log.ENGINE)
        walk.journal.end(run, entry, result, label="personal", seq=seq)
        walk.count(run, made.working_ms, made.tokens, made.cost_micro)
        walk.completed(run, entry.step, None, made.working_ms)
    return wrap(result)


def _report(made: Run) -> dict[str, str] | None:
    """The child's last report, in its own words."""
    event = Event.objects.filter(run_month=made.month, run_id=made.pk, type="report.published").order_by("-seq").first()
    if event is None:
        return None
    kept = Payload.objects.select_related("key").filter(pk__in=event.payloads.values())
    payloads = {str(payload.pk): vault.opened(payload) for payload in kept}
    return {role: (payloads.get(pk) or b"").decode() for role, pk in event.payloads.items()}
