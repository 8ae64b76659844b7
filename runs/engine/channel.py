"""A run, as its workflow sees it: one verb after another of what a workflow can tell and do.

Each verb looks into the journal first. What was done gives what it gave then; what is missing is done, and written down with its events
in one transaction.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid5

import orjson

from access.rules import Actor
from artifacts import vault
from artifacts.models import Artifact
from config import clock
from runs import log
from runs.engine import effects, gates, looking, models, points, waiting
from runs.engine.answering import Answers, answer_open
from runs.engine.gates import Answer, Approved, Attached, Proposal
from runs.engine.journal import Journal, digest, result_of
from runs.engine.lease import Claim
from runs.engine.outcomes import Parked, Waits
from runs.engine.retry import Again, decide
from runs.engine.tools import TOOLS, Call, InvalidArguments, Tool, ToolError
from runs.engine.waiting import Patience
from runs.log import Held, Text
from runs.models import JournalEntry, Run
from runs.vocabulary import (
    ArtifactCreated,
    BlockRaised,
    CheckpointSaved,
    MilestoneReached,
    NotePosted,
    PlanSet,
    ReportPublished,
    RunWaiting,
    StepCompleted,
    StepFailed,
    StepRetrying,
    StepStarted,
    ToolEnded,
    ToolStarted,
)

MODEL_DEADLINE = 120.0  # seconds
APPROVAL = "Get approval"  # the plan's step in which a proposal waits


class Record(dict[str, Any]):
    """A JSON object whose values can be read as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(frozen=True)
class Kept:
    """An artifact of this run."""

    id: UUID
    name: str
    version: int
    media_type: str
    seq: int  # the event that made it


class Channel:
    """A run, as its workflow sees it."""

    def __init__(self, run: Run, held: Claim) -> None:
        self.id, self.ref = run.pk, run.ref
        self._lease = held
        self._journal = Journal(run.pk, held.token)
        self._agent = Actor("agent", str(run.agent_id), run.agent.name)
        self._plan: list[str] = []

    # what it tells ----------------------------------------------------------------------------------------------------------------

    def plan(self, *steps: str, note: str = "") -> None:
        """Record what will be done, in order. The steps are also the headings of the page's timeline."""
        self._plan = list(steps)
        texts = {f"step_{i}": Text(step) for i, step in enumerate(steps, 1)} | ({"note": Text(note)} if note else {})
        version = sum(1 for entry in self._journal.done() if entry.kind == "plan") + 1
        self._record(
            "plan", [*steps, note], lambda run, _: run.append(PlanSet(version=version, steps=len(steps)), actor=self._agent, texts=texts)
        )

    def note(self, text: str) -> None:
        """Something people may want to read."""
        self._record("note", text, lambda run, _: run.append(NotePosted(), actor=self._agent, texts={"note": Text(text)}))

    def milestone(self, title: str, *, detail: str = "", cites: Sequence[Any] = (), label: str = "internal") -> None:
        """Something that was reached, with the events that show it."""
        texts = {"title": Text(title, label)} | ({"detail": Text(detail, label)} if detail else {})
        data = MilestoneReached(cites=self._cited(cites))
        self._record("milestone", [title, detail], lambda run, _: run.append(data, actor=self._agent, texts=texts))

    def report(self, title: str, *, body: str = "", cites: Sequence[Any] = (), label: str = "internal") -> None:
        """The final account, citing the log."""
        texts = {"title": Text(title, label)} | ({"body": Text(body, label)} if body else {})
        data = ReportPublished(cites=self._cited(cites))
        self._record("report", [title, body], lambda run, _: run.append(data, actor=self._agent, texts=texts))

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

    # what it does -----------------------------------------------------------------------------------------------------------------

    def step(self, tool: Tool, *args: Any, **kwargs: Any) -> Any:
        """Use a tool. A read runs at once; a write or send asks the gate first, and its result is that of the grant's one use."""
        arguments = self._checked(tool, args, kwargs)
        if tool.effect == "read":
            return self._read(tool, arguments)
        answer = self._propose(tool, arguments, files=(), reason="", plan_title=tool.title)
        if not isinstance(answer, Approved):
            raise Parked("refused", step=None, detail=f"{tool.title}: {type(answer).__name__.lower()}.")
        return self.perform(answer)

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
        """Propose an exact action and wait for what becomes of it: Approved, Rejected (with the reason), Expired or Withdrawn.

        `answers`: how questions about it are answered while it waits. `patience`: how long it is wanted at all; then it is withdrawn.
        """
        made = Artifact.objects.select_related("payload__key").in_bulk([kept.id for kept in attachments])
        files = [Attached(kept.name, kept.media_type, made[kept.id].payload) for kept in attachments]
        arguments = self._checked(tool, args, kwargs)
        return self._propose(tool, arguments, files=files, reason=reason, plan_title=APPROVAL, answers=answers, patience=patience)

    def perform(self, answer: Answer) -> Any:
        """Run an approved action, the grant, once. Gives what the tool returned.

        If a person says that it did not happen, its approval is spent: the same is proposed anew, and people decide again.
        """
        if not isinstance(answer, Approved):
            raise Parked("refused", step=None, detail="An action that is not approved can't be performed.")
        outcome = self._perform(answer)
        while not outcome["happened"]:
            again = gates.current().proposed(answer.action_id)
            answer = self._propose(again.tool, dict(again.arguments), files=again.attachments, reason=again.reason, plan_title=APPROVAL)
            if not isinstance(answer, Approved):
                raise Parked("refused", step=None, detail=f"{again.tool.title}: proposed anew, and {type(answer).__name__.lower()}.")
            outcome = self._perform(answer)
        return _wrap(outcome["result"])

    def _perform(self, answer: Approved) -> dict[str, Any]:
        step = self._journal.next_step("perform")
        entry = self._journal.find(step)
        if entry is not None and entry.state == "done":
            return result_of(entry)
        plan_step = self._plan_step(TOOLS[answer.tool].title)
        return effects.perform(self._lease, self._journal, self._agent, step, answer.action_id, plan_step, len(self._plan))

    def ask_model(self, prompt: str, **variables: Any) -> Any:
        """Have a model answer a named prompt. The answer is recorded; a replay gives the same one."""
        step = self._journal.next_step(f"model.{prompt}")
        entry = self._journal.find(step)
        if entry is not None and entry.state == "done":
            return _read_back(entry)
        plan_step, given = self._plan_step(models.named(prompt).title), [prompt, variables]
        with self._hold() as run:
            entry = self._journal.begin(step, kind="model", given=given)
            run.append(StepStarted(step=step, kind="model", plan_step=plan_step, attempt=entry.attempts), actor=self._agent)
        begun = time.monotonic()
        with self._lease.calling(MODEL_DEADLINE):
            completion = models.ask(prompt, variables)
        ms = effects.ms_since(begun)
        points.reached("model-answered")
        with self._hold() as run:
            texts = {"input": _json_text(variables, "secret"), "output": _json_text(dict(completion.values), "personal")}
            seq = run.append(completion.told(prompt, ms=ms, step=step), actor=self._agent, texts=texts)
            self._journal.end(run, entry, dict(completion.values), label="personal", seq=seq)
            self._count(run, ms, completion.tokens_in + completion.tokens_out, completion.cost_micro)
            self._completed(run, step, plan_step, ms)
        return _wrap(dict(completion.values))

    def now(self) -> datetime:
        """The time, journaled."""
        return datetime.fromisoformat(self._record("now", None, lambda run, _: (run.row.seq, log.stamp(clock.now()))))

    def uuid(self) -> UUID:
        """A new id that a replay gives again."""
        return uuid5(self.id, self._journal.next_step("uuid"))

    def random(self) -> random.Random:
        """A source of chance that a replay repeats."""
        return random.Random(f"{self.id}/{self._journal.next_step('random')}")  # noqa: S311  not for secrets

    # how ---------------------------------------------------------------------------------------------------------------------------

    def _read(self, tool: Tool, arguments: dict[str, Any]) -> Any:
        step = self._journal.next_step(tool.name)
        entry = self._journal.find(step)
        if entry is not None and entry.state == "done":
            return _read_back(entry)
        plan_step = self._plan_step(tool.title)
        with self._hold() as run:
            entry = self._journal.begin(step, kind="step", given=arguments)
            effects.check_scope(run, tool, arguments, step)
            run.append(StepStarted(step=step, kind="tool", plan_step=plan_step, attempt=entry.attempts), actor=self._agent)
            started = ToolStarted(tool=tool.name, tool_schema=tool.schema_version, effect=tool.effect, step=step)
            run.append(started, actor=self._agent, texts={"arguments": _json_text(arguments, tool.label)})
        call = Call(self.id, step, key=f"{self.ref}-{step}", deadline=tool.deadline, last_check=lambda: None)
        begun = time.monotonic()
        try:
            with self._lease.calling(tool.deadline + 5):
                result = tool(call, arguments)
        except ToolError as error:
            self._failed(tool, entry, step, error, effects.ms_since(begun))
        ms = effects.ms_since(begun)
        with self._hold() as run:
            ended = ToolEnded(tool=tool.name, outcome="ok", ms=ms, step=step)
            seq = run.append(ended, actor=self._agent, texts={"result": _json_text(result, tool.label)})
            self._journal.end(run, entry, result, label=tool.label, seq=seq)
            self._count(run, ms)
            self._completed(run, step, plan_step, ms)
        return _wrap(result)

    def _failed(self, tool: Tool, entry: JournalEntry, step: str, error: ToolError, ms: int) -> None:
        """Record a read's failure; then wait to try again, or park the run."""
        verdict = decide(tool.retry, attempt=entry.attempts, retryable=error.retryable)
        detail = Text(str(error) or (type(error).__doc__ or ""), tool.label)
        with self._hold() as run:
            ended = ToolEnded(tool=tool.name, outcome="error", ms=ms, step=step, error=error.kind)
            run.append(ended, actor=self._agent)
            run.append(StepFailed(step=step, attempt=entry.attempts, error=error.kind), actor=self._agent, texts={"detail": detail})
            self._count(run, ms)
            if isinstance(verdict, Again):
                wait = int(verdict.wait * 1000)
                run.append(StepRetrying(step=step, attempt=entry.attempts + 1, wait_ms=wait), actor=log.ENGINE)
        if isinstance(verdict, Again):
            raise Waits(RunWaiting(on="retry"), wake_in=verdict.wait)
        raise Parked("retries_exhausted", step=step, detail=f"{tool.title}: {error}")

    def _propose(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        *,
        files: Sequence[Attached],
        reason: str,
        plan_title: str,
        answers: Answers | None = None,
        patience: Patience | None = None,
    ) -> Answer:
        step = self._journal.next_step(f"propose.{tool.name}")
        entry = self._journal.find(step)
        nonce = str(uuid5(self.id, step))
        complete = tool.prepare(arguments, nonce) if tool.prepare else arguments
        given = [tool.name, complete, [str(file.payload.pk) for file in files]]
        if entry is not None and entry.input_digest != digest(given):
            raise Parked(
                "code_changed",
                step=step,
                detail=f"The code changed at {step}: it now proposes another action than the one that was recorded.",
            )
        if entry is not None and entry.state == "done":
            return _answer_of(entry)
        if entry is None or entry.action_id is None:
            found = looking.look(tool, complete, run_id=self.id, step=step, calling=self._lease.calling(looking.MAX_SECONDS + 5))
            entry = self._put_up(Proposal(tool, complete, step, nonce, files, reason, found), given, plan_title)
        return self._answered(entry, step, plan_title, answers, patience)

    def _put_up(self, proposal: Proposal, given: Any, plan_title: str) -> JournalEntry:
        """Make the proposal known, with its journal entry, in one transaction."""
        tool, step = proposal.tool, proposal.step
        refused: gates.Refused | None = None
        with self._hold() as run:
            entry = self._journal.begin(step, kind="propose", given=given)
            effects.check_scope(run, tool, proposal.arguments, step)
            run.append(StepStarted(step=step, kind="propose", plan_step=self._plan_step(plan_title)), actor=self._agent)
            answer = gates.current().propose(run, proposal)
            if isinstance(answer, gates.Frozen):  # raised in here, so that nothing of this attempt is written or counted
                raise Waits(RunWaiting(on="unfreezing", tool=answer.tool, until=answer.until))
            if isinstance(answer, gates.Refused):
                refused = answer
                texts = {"detail": Text(answer.detail), "arguments": _json_text(proposal.arguments, tool.label)}
                run.append(BlockRaised(block=tool.name, reason=answer.reason), actor=log.ENGINE, texts=texts)
            else:
                self._journal.became(entry, answer.action_id)
        if refused is not None:
            raise Parked("refused", step=step, detail=refused.detail)
        return entry

    def _answered(self, entry: JournalEntry, step: str, plan_title: str, answers: Answers | None, patience: Patience | None) -> Answer:
        """What became of a proposal, journaled once it is settled; until then the run answers what is asked, and waits."""
        answer = gates.current().answer(entry.action_id)
        if isinstance(answer, gates.Waiting):
            answer_open(self._lease, self._agent, answer.action_id, answers)
            answer = waiting.withdrawn(self._lease, self._agent, entry, answer, patience)
        if isinstance(answer, gates.Waiting | gates.Recallable):
            raise waiting.for_answer(entry, answer, patience)
        with self._hold() as run:
            if answer.approved:
                gates.current().deliver(run, answer.action_id)
            self._journal.end(run, entry, _as_json(answer), label="internal", seq=answer.seq)
            self._allowed(run, step, plan_title)
        return answer

    def _record(self, name: str, given: Any, write: Callable[[Held, JournalEntry], Any]) -> Any:
        """Something that is told once: written with its journal entry in one transaction, read back ever after."""
        step = self._journal.next_step(name)
        entry = self._journal.find(step)
        if entry is not None and entry.state == "done":
            return result_of(entry)
        with self._hold() as run:
            entry = self._journal.begin(step, kind=name, given=given)
            written = write(run, entry)
            seq, result = written if isinstance(written, tuple) else (written, {"seq": written})
            self._journal.end(run, entry, result, label="internal", seq=seq)
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
        return made, run.append(data, actor=self._agent, texts={"content": payload}, artifact=made)

    def _allowed(self, run: Held, step: str, plan_title: str) -> None:
        """A proposal is settled. A tool's own step of the plan is done when it was performed, not when it was allowed."""
        at = self._plan_step(plan_title)
        if plan_title == APPROVAL:
            self._completed(run, step, at, 0)
        else:
            self._completed(run, step, None, 0, done=max((at or 1) - 1, 0))

    def _completed(self, run: Held, step: str, plan_step: int | None, ms: int, *, done: int | None = None) -> None:
        run.append(StepCompleted(step=step, plan_step=plan_step, ms=ms), actor=self._agent)
        done = (plan_step or 0) if done is None else done
        run.append(CheckpointSaved(after=step, done=done, left=max(len(self._plan) - done, 0)), actor=log.ENGINE)

    def _count(self, run: Held, ms: int, tokens: int = 0, cost_micro: int = 0) -> None:
        row = run.row
        run.change(working_ms=row.working_ms + ms, tokens=row.tokens + tokens, cost_micro=row.cost_micro + cost_micro)

    def _checked(self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            return tool.checked(*args, **kwargs)
        except InvalidArguments as error:
            raise Parked("error", step=None, detail=str(error)) from error

    def _plan_step(self, title: str) -> int | None:
        """Which step of the plan this is, counted from 1: the one with the same words."""
        return next((i for i, step in enumerate(self._plan, 1) if step.casefold() == title.casefold()), None)

    def _cited(self, cites: Sequence[Any]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self._seq_of(cited) for cited in cites))

    def _seq_of(self, cited: Any) -> int:
        if isinstance(cited, str):
            return max(entry.seq for entry in self._journal.done() if entry.kind == "artifact" and result_of(entry)["name"] == cited)
        return cited if isinstance(cited, int) else cited.seq

    def _hold(self) -> Any:
        return effects.hold(self._lease)


def _next_version(run_id: UUID, name: str) -> int:
    return Artifact.objects.filter(run_id=run_id, name=name).count() + 1


def _as_json(answer: Answer) -> dict[str, Any]:
    return {
        "word": type(answer).__name__,
        "tool": answer.tool,
        "action": str(answer.action_id),
        "seq": answer.seq,
        "reason": getattr(answer, "reason", ""),
    }


def _answer_of(entry: JournalEntry) -> Answer:
    kept = result_of(entry)
    settled = UUID(kept["action"]), kept["tool"], kept["seq"]
    if kept["word"] == "Rejected":
        return gates.Rejected(*settled, kept["reason"])
    return {"Approved": gates.Approved, "Expired": gates.Expired, "Withdrawn": gates.Withdrawn}[kept["word"]](*settled)


def _read_back(entry: JournalEntry) -> Any:
    return _wrap(result_of(entry))


def _wrap(value: Any) -> Any:
    return (
        Record({k: _wrap(v) for k, v in value.items()})
        if isinstance(value, dict)
        else [_wrap(v) for v in value]
        if isinstance(value, list)
        else value
    )


def _json_text(value: Any, label: str) -> Text:
    return Text(orjson.dumps(value), label, "application/json")
