"""What a workflow is written in.

    @workflow("support-triage", version=3)
    def support_triage(run: Channel, ticket_id: str) -> None:
        ticket = run.step(read_ticket, ticket_id)
        answer = run.propose(send_email, to=[ticket.sender], …)
        run.perform(answer)

The function is run again from its start after every wait and every crash; each call on `run` that was already made gives what it gave
then. So between those calls a workflow uses no clock, no chance and no outside: `run.now()`, `run.uuid()` and `run.random()` are there.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.engine.answering import Answers
from runs.engine.channel import APPROVAL, Channel, Kept, Record
from runs.engine.waiting import Patience
from runs.errors import UnknownWorkflow

__all__ = ["APPROVAL", "Answers", "Channel", "Intake", "Kept", "Patience", "Record", "Workflow", "load", "named", "workflow"]


@dataclass(frozen=True)
class Intake:
    """What a message that came in becomes: the workflow's arguments, the run's title and what the run may touch."""

    arguments: Mapping[str, Any]
    title: str
    scope: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Workflow:
    name: str
    version: int
    function: Callable[..., Any]
    title: str
    plan: tuple[str, ...]  # what it will do, for who starts it; the run records its own
    may_not: str
    intake: Callable[[bytes, str], Intake] | None  # takes a message and an idempotency key; asks the outside


WORKFLOWS: dict[str, Workflow] = {}


def workflow(
    name: str,
    *,
    version: int,
    title: str = "",
    plan: Sequence[str] = (),
    may_not: str = "",
    intake: Callable[[bytes, str], Intake] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function as a workflow."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        WORKFLOWS[name] = Workflow(name, version, function, title or name, tuple(plan), may_not, intake)
        return function

    return declare


def load(modules: Sequence[str]) -> None:
    """Import the modules that declare workflows and tools."""
    for module in modules:
        importlib.import_module(module)


def named(name: str) -> Workflow:
    if name not in WORKFLOWS:
        raise UnknownWorkflow(f"“{name[:60]}” is not loaded.", workflows=sorted(WORKFLOWS))
    return WORKFLOWS[name]
