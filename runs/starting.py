"""Starting a run. The only maker of runs."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from access import audit, characters, rules
from access.ids import reference
from access.models import Agent, User
from access.rows import only
from access.rules import Actor
from artifacts import vault
from artifacts.redaction import beginning
from runs import log
from runs.engine import workflow as workflows
from runs.engine.workflow import Intake
from runs.errors import NoReference, StartReused, UnknownWorkflow
from runs.lifecycle import State
from runs.log import Held, Text
from runs.models import Lease, Run
from runs.vocabulary import RunCreated, RunStarted

MAX_TITLE = 200  # characters
LENGTHS = (4, 4, 5, 5, 6, 7, 8, 9)  # of the references that are tried in turn: the shortest that is free is the best for people
SCOPE_LABEL = "personal"  # it names customers by their addresses
DEFAULT_BUDGETS = {"tokens": 400_000, "cost_micro": 5_000_000, "working_ms": 2 * 3600 * 1000}


@dataclass(frozen=True)
class WorkflowInfo:
    """A loaded workflow, for who wants to start one."""

    name: str
    version: int
    title: str
    takes_message: bool
    plan: tuple[str, ...]
    may_not: str
    asks: tuple[str, ...] = ()


def workflow_infos() -> list[WorkflowInfo]:
    loaded = workflows.WORKFLOWS.values()
    return [WorkflowInfo(w.name, w.version, w.title, w.intake is not None, w.plan, w.may_not, w.asks) for w in loaded]


def agents(actor: Actor) -> QuerySet[Agent]:
    """Those of which this person may start runs: where they see those of their own teams alone, of the agents of these."""
    found = rules.visible(actor, Agent, "runs.start")
    return found.filter(rules.within(actor, Agent, "runs.view")) if actor.narrowed("runs.view") else found


def intake(workflow: str, message: bytes, key: str) -> Intake:
    """What a message becomes for this workflow. Asks the outside, so never inside a transaction. MessageRefused, or IntakeFailed."""
    known = workflows.named(workflow)
    if known.intake is None:
        raise UnknownWorkflow(f"{workflow} takes no messages.")
    return known.intake(message, key)


def start_from_message(
    *,
    agent: Agent,
    owner: User,
    by: Actor,
    workflow: str,
    message: bytes,
    budgets: Mapping[str, int] | None = None,
    note: str = "",
    again: bool = False,
) -> Run:
    """A run for a message, wherever it came in: the same bytes are filed once and give the run that they started.

    `again` starts another run for them. Raises what `intake` and `start` raise.
    """
    key = f"message:{hashlib.sha256(message).hexdigest()}"
    before = agent.runs.filter(start_key__startswith=key).count() if again else 0
    taken = intake(workflow, message, key)
    return start(
        agent=agent,
        owner=owner,
        by=by,
        title=taken.title,
        workflow=workflow,
        arguments=taken.arguments,
        scope=taken.scope,
        budgets=budgets,
        note=note,
        key=key if not before else f"{key}-{before + 1}",
    )


def start(
    *,
    agent: Agent,
    owner: User,
    by: Actor,
    title: str,
    agent_version: str = "",
    workflow: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    scope: Mapping[str, Any] | None = None,
    budgets: Mapping[str, int] | None = None,
    note: str = "",
    key: str | None = None,
    more: Callable[[Held], None] | None = None,
) -> Run:
    """A new run, queued for a worker; or running at once if an agent outside works on it (`workflow` is None).

    The same `key` again gives the run that it started. StartReused if it was started with another input. `more` writes what belongs to
    its beginning, in the same transaction; what it raises leaves nothing begun.
    """
    known = workflows.named(workflow) if workflow else None
    given = orjson.dumps(dict(arguments or {}), option=orjson.OPT_SORT_KEYS)
    if key is not None and (earlier := _earlier(agent, key, workflow, given)):
        return earlier
    for length in LENGTHS:
        try:
            with transaction.atomic(durable=True):
                return _create(
                    ref=reference(length),
                    agent=agent,
                    owner=owner,
                    by=by,
                    title=title,
                    agent_version=agent_version or str(known.version if known else "unknown"),
                    known=known,
                    given=given,
                    scope=dict(scope or {}),
                    budgets=dict(budgets or DEFAULT_BUDGETS),
                    note=note,
                    key=key,
                    more=more,
                    team=_team_of(agent),
                )
        except IntegrityError as error:
            if key is not None and (earlier := _earlier(agent, key, workflow, given)):
                return earlier
            if not _is_clash(error):
                raise
    raise NoReference


def _team_of(agent: Agent) -> UUID | None:
    """Its team as it is and stays until this is committed: whoever moves the agent with its runs waits, and takes this one along."""
    return Agent.objects.select_for_update(no_key=True).values_list("team", flat=True).get(pk=agent.pk)


def start_child(
    parent: Run,
    *,
    step: str,
    title: str,
    workflow: str,
    arguments: Mapping[str, Any],
    scope: Mapping[str, Any],
    budgets: Mapping[str, int],
    by: Actor | None = None,
    note: str = "",
) -> Run:
    """A run that does a part of another's work, started as that was, or by `by`. In the caller's transaction, under the parent's lock."""
    known = workflows.named(workflow)
    agent = Agent.objects.select_related("owner").get(pk=parent.agent_id)
    for length in LENGTHS:
        try:
            with transaction.atomic():
                return _create(
                    ref=reference(length),
                    agent=agent,
                    owner=parent.owner,
                    by=by or Actor(parent.starter_kind, parent.starter_id),
                    title=title,
                    agent_version=str(known.version),
                    known=known,
                    given=orjson.dumps(dict(arguments), option=orjson.OPT_SORT_KEYS),
                    scope=dict(scope),
                    budgets=dict(budgets),
                    note=note,
                    parent=parent,
                    parent_step=step,
                    team=parent.team_id,
                )
        except IntegrityError as error:
            if not _is_clash(error):
                raise
    raise NoReference


def start_fork(
    parent: Run, *, title: str, given: bytes, version: int, budgets: Mapping[str, int], by: Actor, key: str, more: Callable[[Held], None]
) -> Run:
    """A run that goes on from a point of another. In the caller's transaction, under that run's lock.

    It belongs to whom that belongs, also to the same team, and may touch no more.
    `more` writes what it takes over into its log, right after its first event.
    """
    known = workflows.loaded(parent.workflow, version)
    agent = Agent.objects.select_related("owner").get(pk=parent.agent_id)
    for length in LENGTHS:
        try:
            with transaction.atomic():
                return _create(
                    ref=reference(length),
                    agent=agent,
                    owner=parent.owner,
                    by=by,
                    title=title,
                    agent_version=parent.agent_version if version == parent.workflow_version else str(version),
                    known=known,
                    given=given,
                    scope=dict(parent.scope),
                    budgets=dict(budgets),
                    note="",
                    key=key,
                    more=more,
                    team=parent.team_id,
                )
        except IntegrityError as error:
            if not _is_clash(error):
                raise
    raise NoReference


def _create(
    *,
    ref: str,
    agent: Agent,
    owner: User,
    by: Actor,
    title: str,
    agent_version: str,
    known: workflows.Workflow | None,
    given: bytes,
    scope: dict[str, Any],
    budgets: dict[str, int],
    note: str,
    team: UUID | None,
    key: str | None = None,
    parent: Run | None = None,
    parent_step: str = "",
    more: Callable[[Held], None] | None = None,
) -> Run:
    called = beginning(title, MAX_TITLE) if characters.seen_length(title) else f"Run {ref}"  # a workflow may take it from what came in
    titled = vault.keep(agent.workspace_id, called, label="internal")
    asked = vault.keep(agent.workspace_id, given, label="personal", media_type="application/json")
    held = log.create(
        Run(
            ref=ref,
            workspace_id=agent.workspace_id,
            agent=agent,
            team_id=team,
            agent_version=agent_version,
            workflow=known.name if known else "",
            workflow_version=known.version if known else 0,
            owner=owner,
            starter_kind=by.kind,
            starter_id=by.id,
            start_key=key,
            **_family(parent, parent_step),
            title=titled,
            input=asked,
            scope=scope,
            budgets=budgets,
        )
    )
    run = held.row
    Lease.objects.create(run=run)
    texts: dict[str, Any] = {"title": titled, "input": asked, "scope": Text(orjson.dumps(scope), SCOPE_LABEL, "application/json")}
    held.append(_told(run), actor=by, texts=texts | ({"note": Text(note)} if note else {}))
    if more:
        more(held)
    if known:
        held.change(state=State.QUEUED.value)
    else:
        held.move(State.RUNNING, RunStarted(worker=f"agent/{agent.name}", token=0))
    log.finish(held)
    audit.record(by, "run_started", workspace_id=run.workspace_id, subject=("run", run.pk))
    return run


def _family(parent: Run | None, step: str) -> dict[str, Any]:
    return {"parent": parent, "parent_step": step, "root": parent.root or parent} if parent else {}


def _told(run: Run) -> RunCreated:
    return RunCreated(
        ref=run.ref,
        agent=run.agent_id,
        agent_version=run.agent_version,
        owner=run.owner_id,
        workflow=run.workflow or None,
        workflow_version=run.workflow_version,
        parent=run.parent_id,
    )


def _earlier(agent: Agent, key: str, workflow: str | None, given: bytes) -> Run | None:
    run = only(Run.objects.select_related("input__key").filter(agent=agent, start_key=key))
    if run is None:
        return None
    if run.workflow != (workflow or "") or (run.input is not None and vault.open_bytes(run.input) != given):
        raise StartReused(f"It started {run.ref}, with another input.", run=str(run.pk))
    return run


def _is_clash(error: IntegrityError) -> bool:
    """Whether `run_ref_once` refused the reference. PostgreSQL names the constraint, SQLite its columns."""
    return "run_ref_once" in str(error) or "runs_run.ref" in str(error)
