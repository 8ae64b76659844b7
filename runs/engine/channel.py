"""A run, as its workflow sees it: one verb after another of what a workflow can tell and do.

Each verb looks into the journal first. What was done gives what it gave then; what is missing is done, and written down with its events
in one transaction.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid5

from artifacts import vault
from artifacts.models import Artifact
from config import clock
from runs import log, signals
from runs.engine import agent, asking, awaiting, calls, children, effects, gates, parallel, proposals, reads
from runs.engine.answering import Answers
from runs.engine.gates import Answer, Approved, Attached
from runs.engine.journal import Journal, result_of
from runs.engine.lease import Claim
from runs.engine.outcomes import Parked, Waits
from runs.engine.parallel import Later
from runs.engine.proposals import APPROVAL
from runs.engine.tools import TOOLS, InvalidArguments, Tool
from runs.engine.values import Kept, wrap
from runs.engine.waiting import Patience
from runs.engine.walk import Walk
from runs.log import Held, Text
from runs.models import Event, JournalEntry, Run
from runs.vocabulary import ArtifactCreated, BlockRaised, MilestoneReached, NotePosted, PlanSet, ReportPublished, RunWaiting


@dataclass(frozen=True)
class Performed:
    """An action that was performed, for citing the event that says so."""

    action_id: UUID


class Channel:
    """A run, as its workflow sees it."""

    threads = parallel.AT_ONCE

    def __init__(self, run: Run, held: Claim, journal: Journal | None = None) -> None:
        self.id, self.ref = run.pk, run.ref
        self._done: dict[UUID | None, UUID] = {}  # the action that was answered → the one that happened in the end
        self._walk = Walk(run, held, journal)

    # what it tells ----------------------------------------------------------------------------------------------------------------

    def plan(self, *steps: str, note: str = "") -> None:
        """Record what will be done, in order. The steps are also the headings of the page's timeline."""
        self._walk.plan = list(steps)
        texts = {f"step_{i}": Text(step) for i, step in enumerate(steps, 1)} | ({"note": Text(note)} if note else {})

        def write(run: Held, _: JournalEntry) -> int:
            return run.append(PlanSet(version=run.row.plans + 1, steps=len(steps)), actor=self._walk.agent, texts=texts)

        self._record("plan", [*steps, note], write)

    def note(self, text: str) -> None:
        """Something people may want to read."""
        self._record("note", text, lambda run, _: run.append(NotePosted(), actor=self._walk.agent, texts={"note": Text(text)}))

    def milestone(self, title: str, *, detail: str = "", cites: Sequence[Any] = (), label: str = "internal") -> None:
        """Something that was reached, with the events that show it."""
        texts = {"title": Text(title, label)} | ({"detail": Text(detail, label)} if detail else {})
        self._cite("milestone", [title, detail], MilestoneReached, cites, texts)

    def report(self, title: str, *, body: str = "", cites: Sequence[Any] = (), label: str = "internal") -> None:
        """The final account, citing the log."""
        texts = {"title": Text(title, label)} | ({"body": Text(body, label)} if body else {})
        self._cite("report", [title, body], ReportPublished, cites, texts)

    def artifact(
        self, name: str, content: str | bytes, *, label: str = "internal", media_type: str = "text/plain", outside: bool = False
    ) -> Kept:
        """Keep a piece of work under a name; the same name again is its next version. `outside`: text from outside, not an order."""
        data = content.encode() if isinstance(content, str) else content

        def write(run: Held, _: JournalEntry) -> tuple[int, dict[str, Any]]:
            made, seq = self._keep(run, name, Text(data, label, media_type), outside)
            return seq, {"id": str(made.pk), "name": name, "version": made.version, "media_type": media_type, "seq": seq}

        given = [name, sha256(data).hexdigest(), label, media_type]
        result = self._record("artifact", given, write)
        return Kept(UUID(result["id"]), result["name"], result["version"], result["media_type"], result["seq"])

    def context(self) -> list[str]:
        """What people have added since this was asked last, oldest first. A replay reads the same."""
        result = self._record("context", None, lambda run, _: (run.row.seq, signals.take(run, "context")))
        return list(result)

    # what it does -----------------------------------------------------------------------------------------------------------------

    def step(self, tool: Tool, *args: Any, **kwargs: Any) -> Any:
        """Use a tool. A read runs at once; a write or send asks the gate first, and its result is that of the grant's one use."""
        arguments = self._checked(tool, args, kwargs)
        if tool.effect == "read":
            return reads.read(self._walk, tool, arguments)
        return self.perform(proposals.allowed(self._walk, tool, arguments, plan_title=tool.title))

    def propose(
        self,
        tool: Tool,
        *args: Any,
        attachments: Sequence[Kept] = (),
        reason: str = "",
        answers: Answers | None = None,
        patience: Patience | None = None,
        **kwargs: Any,
    ) -> Answer:
        """Propose an exact action and wait for what becomes of it: Approved, Rejected (with the reason), Expired, Withdrawn or Revised.

        `answers`: how questions about it are answered while it waits. `patience`: how long it is wanted at all; then it is withdrawn.
        """
        made = Artifact.objects.select_related("payload__key").in_bulk([kept.id for kept in attachments])
        files = [Attached(kept.name, kept.media_type, made[kept.id].payload) for kept in attachments]
        arguments = self._checked(tool, args, kwargs)
        more = {"files": files, "reason": reason, "answers": answers, "patience": patience, "revisable": True}
        return proposals.propose(self._walk, tool, arguments, plan_title=APPROVAL, **more)

    def perform(self, answer: Answer) -> Any:
        """Run an approved action, the grant, once. Gives what the tool returned.

        If a person says that it did not happen, its approval is spent: the same is proposed anew, and people decide again.
        """
        if not isinstance(answer, Approved):
            raise Parked("refused", step=None, detail="An action that is not approved can't be performed.")
        asked, outcome = answer.action_id, self.perform_once(answer)
        while not outcome["happened"]:
            again = gates.current().proposed(answer.action_id)
            more = {"files": again.attachments, "reason": again.reason}
            answer = proposals.allowed(self._walk, again.tool, dict(again.arguments), plan_title=APPROVAL, **more)
            outcome = self.perform_once(answer)
        self._done[asked] = answer.action_id
        return wrap(outcome["result"])

    def done(self, answer: Answer) -> Performed:
        """That it was performed, to be cited: what was really sent, where a reviewer's edit replaced what was proposed."""
        if answer.action_id not in self._done:
            raise Parked("refused", step=None, detail="What was not performed can't be cited as done.")
        return Performed(self._done[answer.action_id])

    def perform_once(self, answer: Approved) -> dict[str, Any]:
        """What came of this one grant: {"happened": whether, "result": what the tool returned}."""
        walk = self._walk
        step = walk.journal.next_step("perform")
        entry = walk.journal.find(step)
        if entry is not None and entry.state == "done":
            return result_of(entry)
        plan_step = walk.plan_step(TOOLS[answer.tool].title)
        return effects.perform(walk, step, answer.action_id, plan_step)

    def ask_model(self, prompt: str, **variables: Any) -> Any:
        """Have a model answer a named prompt. The answer is recorded; a replay gives the same one."""
        return calls.ask(self._walk, prompt, variables)

    def agent(self, prompt: str, *, tools: Sequence[Tool], until: agent.Until, turns: int = agent.MAX_TURNS, **variables: Any) -> Any:
        """Let a model choose, turn by turn, which of `tools` it uses, until it says that it is done and `until` agrees; see `agent`."""
        return wrap(agent.agent(self, self._walk, prompt, tools=tools, until=until, turns=turns, **variables))

    def block(self, name: str, detail: str) -> None:
        """Say that something was refused, with what was wanted."""
        data = BlockRaised(block=_as_name(name), reason="unregistered")
        self._record("block", [name, detail], lambda run, _: run.append(data, actor=log.ENGINE, texts={"detail": Text(detail)}))

    def child(self, workflow: str, *, title: str, scope: Mapping[str, Any] | None = None, **arguments: Any) -> Any:
        """Have another workflow do a part of the work, in a run of its own, and wait for it. Its `scope` is this run's, or narrower.

        Gives {"run": id, "ref", "state": succeeded, failed or cancelled, "report": its title and body}.
        """
        return children.child(self._walk, workflow, title, arguments, scope)

    def later(self, does: Tool | Callable[..., Any], *args: Any, **kwargs: Any) -> Later:
        """Something for `parallel`: a tool with its arguments, or a function that is given the run before them."""
        return Later(does, args, kwargs)

    def parallel(self, *branches: Later) -> list[Any]:
        """Do several things at once, and give what each gave, in their order. Each is as durable as it would be by itself.

        If one can't go on, the others are walked as far as they come, and what they did stays done.
        """
        return parallel.together(self._walk, branches, self._in_branch, threads=self.threads)

    def _in_branch(self, walk: Walk) -> "Channel":
        other = copy(self)
        other._walk = walk
        return other

    def ask(self, question: str) -> str:
        """Ask whoever may steer this run, and wait for the answer, in their own words."""
        return asking.ask(self._walk, question)

    def wait_for(
        self, name: str, *, match: Mapping[str, Any] | None = None, timeout: timedelta | None = None, title: str = ""
    ) -> awaiting.Arrived | awaiting.TimedOut:
        """Wait for a webhook of the source `name` with these values in its body: {"type": …, "data.ticket": …}. Arrived, or TimedOut.

        For the name "signal" it waits for what a person adds by the signal `context`; `body.notes` has that. `title`: which step of the
        plan it is, by the same words.
        """
        return awaiting.wait_for(self._walk, name, match or {}, timeout, self._walk.plan_step(title) if title else None)

    def sleep(self, seconds: float) -> None:
        """Wait for a time. The run spends nothing meanwhile, and the time goes on while no worker is there."""
        walk = self._walk
        step = walk.journal.next_step("timer")
        entry = walk.journal.find(step)
        if entry is not None and entry.state == "done":
            return
        if entry is None:
            with walk.hold() as run:
                entry = walk.journal.begin(run, step, kind="timer", given=seconds)
        until = entry.started_at + timedelta(seconds=seconds)
        if until > clock.now():
            raise Waits(RunWaiting(on="timer", until=until), wake_in=(until - clock.now()).total_seconds())
        with walk.hold() as run:
            walk.journal.end(run, entry, None, label="internal", seq=run.row.seq)

    def now(self) -> datetime:
        """The time, journaled."""
        return datetime.fromisoformat(self._record("now", None, lambda run, _: (run.row.seq, log.stamp(clock.now()))))

    def uuid(self) -> UUID:
        """A new id that a replay gives again, and a fork too."""
        return uuid5(self._walk.row.lineage or self.id, self._walk.journal.next_step("uuid"))

    def random(self) -> random.Random:
        """A source of chance that a replay repeats, and a fork too."""
        return random.Random(f"{self._walk.row.lineage or self.id}/{self._walk.journal.next_step('random')}")  # noqa: S311  not for secrets

    # how ---------------------------------------------------------------------------------------------------------------------------

    def _record(self, name: str, given: Any, write: Callable[[Held, JournalEntry], Any]) -> Any:
        """Something that is told once: written with its journal entry in one transaction, read back ever after."""
        walk = self._walk
        step = walk.journal.next_step(name)
        entry = walk.journal.find(step)
        if entry is not None and entry.state == "done":
            return result_of(entry)
        with walk.hold() as run:
            entry = walk.journal.begin(run, step, kind=name, given=given)
            written = write(run, entry)
            seq, result = written if isinstance(written, tuple) else (written, {"seq": written})
            walk.journal.end(run, entry, result, label="internal", seq=seq)
        return result

    def _keep(self, run: Held, name: str, text: Text, outside: bool) -> tuple[Artifact, int]:
        payload = vault.keep(run.row.workspace_id, text.content, label=text.label, media_type=text.media_type)
        made = Artifact.objects.create(
            workspace_id=run.row.workspace_id, run_id=run.row.pk, name=name, version=_next_version(run.row.pk, name), payload=payload
        )
        data = ArtifactCreated(
            artifact=made.pk,
            name=name,
            version=made.version,
            label=text.label,
            media_type=text.media_type,
            size=payload.size,
            outside=outside,
        )
        return made, run.append(data, actor=self._walk.agent, texts={"content": payload}, artifact=made)

    def _checked(self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            return tool.checked(*args, **kwargs)
        except InvalidArguments as error:
            raise Parked("error", step=None, detail=str(error)) from error

    def _cite(
        self, name: str, given: Any, type_: type[MilestoneReached | ReportPublished], cites: Sequence[Any], texts: Mapping[str, Text]
    ) -> None:
        """Something that is told once, with the events that show it."""

        def write(run: Held, _: JournalEntry) -> int:
            return run.append(type_(cites=self._cited(cites)), actor=self._walk.agent, texts=texts)

        self._record(name, given, write)

    def _cited(self, cites: Sequence[Any]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self._seq_of(cited) for cited in cites))

    def _seq_of(self, cited: Any) -> int:
        if isinstance(cited, str):
            return _made_at(self._walk.month, self.id, cited)
        if isinstance(cited, Performed):
            return JournalEntry.objects.values_list("seq", flat=True).get(run_id=self.id, kind="perform", action_id=cited.action_id)
        return cited if isinstance(cited, int) else cited.seq


def _next_version(run_id: UUID, name: str) -> int:
    latest = Artifact.objects.filter(run_id=run_id, name=name).order_by("-version").values_list("version", flat=True).first()
    return (latest or 0) + 1


def _made_at(month: date, run_id: UUID, name: str) -> int:
    """The event that made the newest artifact of this name."""
    latest = Artifact.objects.filter(run_id=run_id, name=name).order_by("-version").values_list("pk", flat=True).first()
    if latest is None:
        raise Parked("error", step=None, detail=f"There is no artifact called {name[:80]} that could be cited.")
    return Event.objects.get(run_month=month, run_id=run_id, artifact_id=latest).seq


def _as_name(text: str) -> str:
    """A text that a model made up, as a name that the log can hold."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-_")[:60] or "unnamed"
