"""A log of `tests.runs.lines` played into the database, by the one writer: for tests of pages over logs of any shape."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from access.models import User
from access.rules import Actor
from artifacts import vault
from artifacts.models import Artifact
from config import clock
from runs import lifecycle, log, vocabulary
from runs.lifecycle import State
from runs.log import Text
from runs.models import Lease, Run
from runs.story.wire import moment
from tests.cast import Cast
from tests.runs import lines
from tests.runs.lines import Log

STATES = {
    "run.created": State.QUEUED,
    "run.started": State.RUNNING,
    "run.resumed": State.RUNNING,
    "run.waiting": State.WAITING,
    "run.queued": State.QUEUED,
    "run.parked": State.PARKED,
    "run.paused": State.PAUSED,
    "run.cancelling": State.CANCELLING,
    **lifecycle.ENDINGS,
}


def play(cast: Cast, told: Log, *, ref: str = "RN-7Q4K", owner: User | None = None, title: str = "", **fields: Any) -> Run:
    """A run whose log says what `told` says, owned by Priya unless told otherwise. The people of the log become those of the cast.

    Its last event was just now, the earlier ones as long before that as in `told`.
    """
    owner = owner or cast.priya
    ids = {lines.OWNER: str(owner.pk), lines.RILEY: str(cast.riley.pk), lines.AGENT: str(cast.agent.pk)}
    moved = clock.now() - told.at
    with pytest.MonkeyPatch.context() as patch, transaction.atomic():
        patch.setattr(clock, "now", lambda: lines.START + moved)
        titled = vault.keep(cast.workspace.pk, title or _title(told), label="internal")
        held = log.create(_run(cast, owner, titled, ref, {"created_at": clock.now(), **fields}))
        Lease.objects.create(run=held.row)
        for line in told.lines:
            at = moment(line["body"]["at"])
            patch.setattr(clock, "now", lambda at=at: at + moved)
            _append(held, line, _moved(ids, line, moved), titled)
        log.finish(held)
    return Run.objects.get(pk=held.row.pk)


def _moved(ids: Mapping[str, str], line: dict[str, Any], by: timedelta) -> dict[str, str]:
    """What to read for the ids and times of a line."""
    times = {value: at for value in line["body"]["data"].values() if (at := moment(value))}
    return dict(ids) | {value: lines.stamp(at + by) for value, at in times.items()}


def _title(told: Log) -> str:
    first = told.lines[0]["texts"].get("title", {}) if told.lines else {}
    return first.get("text", "A run")


def _run(cast: Cast, owner: User, titled: Any, ref: str, fields: Mapping[str, Any]) -> Run:
    usual = {
        "agent_version": "3.2.1",
        "workflow": "support-triage",
        "workflow_version": 3,
        "budgets": {"tokens": 400_000, "cost_micro": 5_000_000, "working_ms": 7_200_000},
        "tokens": 184_000,
        "cost_micro": 1_920_000,
        "working_ms": 660_000,
    }
    starter = {"starter_kind": "human", "starter_id": str(owner.pk)}
    return Run(ref=ref, workspace=cast.workspace, agent=cast.agent, owner=owner, title=titled, **starter, **(usual | dict(fields)))


def _append(held: log.Held, line: dict[str, Any], ids: Mapping[str, str], titled: Any) -> None:
    body = line["body"]
    actor = Actor(body["actor"]["kind"], ids.get(body["actor"]["id"], body["actor"]["id"]))
    given = {name: ids.get(value, value) if isinstance(value, str) else value for name, value in body["data"].items()}
    texts: dict[str, Any] = {role: Text(text["text"], text["label"], text["media_type"]) for role, text in line["texts"].items()}
    artifact = None
    if body["type"] == "artifact.created":
        payload = vault.keep(held.row.workspace_id, texts["content"].content, label=given["label"], media_type=given["media_type"])
        artifact = Artifact.objects.create(
            workspace_id=held.row.workspace_id,
            run_id=held.row.pk,
            name=given["name"],
            version=given["version"],
            payload=payload,
        )
        texts["content"], given["artifact"] = payload, str(artifact.pk)
    if body["type"] == "run.created":
        texts["title"] = titled
    data = vocabulary.parse(body["type"], given)
    state = STATES.get(body["type"])
    if state is None or body["type"] == "run.created":
        held.append(data, actor=actor, texts=texts, artifact=artifact)
        return
    waiting = {name: given[name] for name in ("on", "action", "until") if name in given} if state == State.WAITING else None
    held.move(state, data, actor=actor, texts=texts, waiting=waiting)
