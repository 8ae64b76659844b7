"""The outbox: what is to be told is written in the transaction of what it tells. `listen` hears every event before it is committed."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import orjson

from access.models import AskedChange, BreakGlass, RoleChange
from access.rows import only
from approvals.models import ProposedAction
from approvals.notifications.models import Delegation, Notice
from runs.lifecycle import ENDINGS
from runs.log import ENGINE, Held
from runs.models import Event

WAITING = {"answer": "asks", "budget": "budget"}  # what a run waits for → the notice of it
OF_ACTIONS = ("action.proposed", "action.escalated", "action.delegated", "action.unknown")
OF_RUNS = ("question.answered", "block.raised", "run.parked", "run.stalled", "run.waiting", "deadletter.resolved")
TOLD = frozenset({*OF_ACTIONS, *OF_RUNS, *ENDINGS})


def listen(run: Held) -> None:
    """Write a notice for each event that asks something of somebody. Last in the order of locks; a run's other events cost nothing."""
    told = [(seq, type_, orjson.loads(body)) for seq, type_, body in run.appended() if type_ in TOLD]
    ours = [each for each in told if each[1] != "block.raised" or each[2]["actor"]["kind"] == ENGINE.kind]  # an agent's blocks alarm nobody
    notices = [notice for seq, type_, body in ours for notice in _notices(run, seq, type_, body)]
    if notices:
        Notice.objects.bulk_create(notices, ignore_conflicts=True)


def remind(run: Held, action: ProposedAction) -> bool:
    """Say once that an action runs out soon. In the caller's transaction. False if it was said already."""
    key = f"soon:{action.pk}"
    if Notice.objects.filter(key=key).exists():
        return False
    Notice.objects.bulk_create([_of_action(run, action, "soon", key)], ignore_conflicts=True)
    return True


def delegated(delegation: Delegation) -> None:
    """Tell somebody that they decide for another. In the caller's transaction."""
    key = f"delegation:{delegation.pk}"
    Notice.objects.create(
        workspace_id=delegation.workspace_id,
        delegation=delegation,
        kind="delegated",
        to_id=delegation.to_id,
        key=key,
        until=delegation.ends_at,
    )


def glass_broken(glass: BreakGlass) -> None:
    """Tell everybody who answers for access that somebody took rights. In the caller's transaction."""
    Notice.objects.create(workspace_id=glass.workspace_id, kind="glass", key=f"glass:{glass.pk}", until=glass.until)


def change_asked(change: RoleChange | AskedChange) -> None:
    """Tell those who could confirm a change that it waits for them. In the caller's transaction."""
    Notice.objects.create(
        workspace_id=change.workspace_id, kind="confirm", key=f"change:{change.pk}", change=change.pk, until=change.lapses_at
    )


def _notices(run: Held, seq: int, type_: str, body: Mapping[str, Any]) -> Iterable[Notice]:
    key, data = f"{run.row.pk}:{seq}", body["data"]
    if type_ in ENDINGS:
        yield _of_run(run, "ended", key)
    elif type_ in ("run.parked", "run.stalled"):
        yield _of_run(run, "stuck", key)
    elif type_ == "run.waiting":
        if kind := WAITING.get(data["on"]):
            yield _of_run(run, kind, key)
    elif type_ == "deadletter.resolved":
        if data.get("to", body["actor"]["id"]) != body["actor"]["id"]:  # who takes it themselves knows
            yield _of_run(run, "handed", key, to=data["to"])
    elif type_ == "block.raised":
        if data["reason"] == "digest_mismatch":  # one alarm an action, however often it is tried
            yield Notice(
                workspace_id=run.row.workspace_id, run=run.row, action_id=data.get("action"), kind="alarm", key=f"alarm:{data['block']}"
            )
    elif type_ == "question.answered":
        yield from _answered(run, data["question"], key)
    else:
        action = only(ProposedAction.objects.filter(pk=data["action"]))
        if action is not None and not (type_ == "action.proposed" and action.state != "waiting"):
            kind = {"action.proposed": "waits"}.get(type_, type_.removeprefix("action."))
            yield _of_action(run, action, kind, key, to=data.get("to"))


def _answered(run: Held, question: str, key: str) -> Iterable[Notice]:
    rows = Event.objects.filter(run_month=run.row.month, run_id=run.row.pk, type="question.asked").order_by("-seq")
    for text in rows.values_list("body", flat=True)[:50]:
        body = orjson.loads(text)
        if body["data"]["question"] == question and body["actor"]["kind"] == "human":
            action = only(ProposedAction.objects.filter(pk=body["data"].get("action")))
            if action is not None:
                yield _of_action(run, action, "answered", key, to=body["actor"]["id"])
            return


def _of_run(run: Held, kind: str, key: str, to: str | None = None) -> Notice:
    return Notice(workspace_id=run.row.workspace_id, run=run.row, kind=kind, key=key, to_id=to)


def _of_action(run: Held, action: ProposedAction, kind: str, key: str, to: str | UUID | None = None) -> Notice:
    until = None if kind == "unknown" else action.expires_at
    return Notice(workspace_id=action.workspace_id, run=run.row, action=action, kind=kind, key=key, to_id=to, until=until)
