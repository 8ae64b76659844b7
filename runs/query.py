"""How runs stand, as JSON; and a list of them that is walked page by page while new ones come."""

import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
from django.db.models import Q, QuerySet

from access.errors import BadInput
from artifacts import vault
from artifacts.redaction import plain, redact
from runs import lifecycle
from runs.errors import BadCursor
from runs.lifecycle import State
from runs.models import Run
from runs.starting import SCOPE_LABEL

RELATED = ("agent", "owner")


def told(found: Sequence[Run]) -> list[dict[str, Any]]:
    """Each run's state, what it waits for, budgets, head of the log, ending. `found` has RELATED selected. One query."""
    texts = vault.shown(pk for run in found for pk in (run.title_id, run.summary_id) if pk)
    return [_as_run(run, texts) for run in found]


def _as_run(run: Run, texts: dict[UUID, vault.Shown]) -> dict[str, Any]:
    path = f"/api/v1/runs/{run.pk}"
    return {
        "id": run.pk,
        "ref": run.ref,
        "title": _words(texts.get(run.title_id)),
        "agent": {"id": run.agent_id, "name": run.agent.name, "version": run.agent_version},
        "owner": {"id": run.owner_id, "name": run.owner.name},
        "workflow": {"name": run.workflow, "version": run.workflow_version} if run.workflow else None,
        "scope": _scope(run),
        "state": run.state,
        "state_since": run.state_since,
        "waiting": run.waiting or None,
        "summary": _words(texts.get(run.summary_id)) if run.summary_id else None,
        "budgets": run.budgets,
        "used": {"tokens": run.tokens, "cost_micro": run.cost_micro, "working_ms": run.working_ms},
        "head": run.seq,
        "created_at": run.created_at,
        "ending": {"state": run.state, "seq": run.seq, "at": run.ended_at} if lifecycle.ended(run.state) else None,
        "links": {
            "page": f"/runs/{run.pk}",
            "events": f"{path}/events",
            "stream": f"{path}/stream",
            "socket": f"/ws/runs/{run.pk}",
        },
    }


def _scope(run: Run) -> Any:
    """What it may touch, with the same things hidden as where the log and the page show it; None if it can't be shown at all."""
    try:
        return orjson.loads(plain(redact(orjson.dumps(run.scope), media_type="application/json", label=SCOPE_LABEL).text))
    except orjson.JSONDecodeError:  # cut off, or hidden wholly
        return None


def _words(shown: vault.Shown | None) -> str:
    return plain(shown.text) if shown else ""


def in_states(rows: QuerySet[Run], given: str) -> QuerySet[Run]:
    """Those in one of the states of a list with commas. BadInput if one of them is none."""
    states = [state for state in given.split(",") if state]
    if unknown := [state for state in states if state not in set(State)]:
        raise BadInput(f"“{unknown[0][:40]}” is not a state.", states=[state.value for state in State])
    return rows.filter(state__in=states) if states else rows


def before(rows: QuerySet[Run], given: str) -> QuerySet[Run]:
    """Those that come after the `place` where a page ended. BadCursor if it is none."""
    if not given:
        return rows
    try:
        at, pk = base64.urlsafe_b64decode(given.encode()).decode().split("_")
        when, last = datetime.fromisoformat(at).astimezone(UTC), UUID(pk)
    except (ValueError, OverflowError, binascii.Error):
        raise BadCursor("`before` is the `next` of an earlier page, unchanged.") from None
    return rows.filter(Q(created_at__lt=when) | Q(created_at=when, pk__lt=last))


def place(run: Run) -> str:
    """Where a page of the list ends. Opaque, and stays right while new runs come."""
    return base64.urlsafe_b64encode(f"{run.created_at.isoformat()}_{run.pk}".encode()).decode()
