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
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from runs.engine.answering import Answers
from runs.engine.awaiting import Arrived, TimedOut
from runs.engine.channel import Channel
from runs.engine.gates import Answer, Revised
from runs.engine.proposals import APPROVAL
from runs.engine.values import Kept, Record
from runs.engine.waiting import Patience
from runs.errors import UnknownWorkflow

__all__ = [
    "APPROVAL",
    "Answer",
    "Answers",
    "Arrived",
    "Channel",
    "Intake",
    "Kept",
    "Link",
    "Patience",
    "Record",
    "Revised",
    "TimedOut",
    "Workflow",
    "load",
    "named",
    "reads",
    "workflow",
]


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Intake:
    """What a message that came in becomes: the workflow's arguments, the run's title and what the run may touch."""

    arguments: Mapping[str, Any]
    title: str
    scope: Mapping[str, Sequence[str]]


class Link(NamedTuple):
    """A page of the outside. `words`: what one does there."""

    words: str
    address: str


@dataclass(frozen=True)
class Workflow:
    """A version of a workflow as its code declares it by `@workflow`."""

    name: str
    version: int
    function: Callable[..., Any]
    title: str
    plan: tuple[str, ...]  # what it will do, for who starts it; the run records its own
    may_not: str
    intake: Callable[[bytes, str], Intake] | None  # takes a message and an idempotency key; asks the outside
    webhook: Callable[[Mapping[str, Any]], Intake | None] | None = None  # what a webhook becomes; None: it is not for this workflow
    asks: tuple[str, ...] = ()  # the prompts that its function asks, whose titles are steps of its plan
    reads: frozenset[str] = frozenset()  # of the signals `context` and `revise`, those that its function asks for
    steps: int | None = None  # how many a run of it may take, from the command line; None: `triage` has a limit of its own
    where: Callable[[Mapping[str, Any]], Link | None] | None = None  # by what it waits for: where a person has that sent


WORKFLOWS: dict[str, Workflow] = {}  # the newest version of each, with which new runs start
VERSIONS: dict[tuple[str, int], Workflow] = {}  # all that are loaded: a run goes on with the version that it started with


def workflow(
    name: str,
    *,
    version: int,
    title: str = "",
    plan: Sequence[str] = (),
    may_not: str = "",
    intake: Callable[[bytes, str], Intake] | None = None,
    webhook: Callable[[Mapping[str, Any]], Intake | None] | None = None,
    reads: Collection[str] = (),
    asks: Sequence[str] = (),
    steps: int | None = None,
    where: Callable[[Mapping[str, Any]], Link | None] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function as a workflow. `webhook`: what a source's webhook becomes that starts runs of it; None leaves it for others.

    `plan`: the titles of what it does, in order; `asks`: the prompts that it asks for that, where others have prompts of the same title.

    `reads`: "context" if it calls `run.context()`, "revise" if it plans anew when it is `Revised`. `steps`: how many a run that is started
    from the command line may take: of what takes few, many are a sign of something. `where`: given the `match` of a webhook that it waits
    for, the page on which a person has that sent, to which the page of the run links; None if there is none.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        more = {"asks": tuple(asks), "reads": frozenset(reads), "steps": steps, "where": where}
        made = Workflow(name, version, function, title or name, tuple(plan), may_not, intake, webhook, **more)
        VERSIONS[name, version] = made
        if name not in WORKFLOWS or WORKFLOWS[name].version <= version:
            WORKFLOWS[name] = made
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


def loaded(name: str, version: int) -> Workflow | None:
    """This very version of a workflow; None if it is not loaded here."""
    return VERSIONS.get((name, version))


def link(known: Workflow, match: Mapping[str, Any]) -> Link | None:
    """Where a person has a webhook sent that such a run waits for: a web address, for anything else is no page."""
    try:
        found = known.where(match) if known.where else None
        return found if found and found.address.lower().startswith(("https://", "http://")) else None
    except Exception:  # it is somebody's own code, and no page breaks by that
        logger.exception("where raised", extra={"workflow": known.name})
        return None


def reads(name: str, version: int) -> frozenset[str]:
    """The signals with a note that a workflow asks for; none of one that is not loaded here."""
    known = loaded(name, version)
    return known.reads if known else frozenset()
