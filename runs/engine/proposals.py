"""Proposing an exact action, and waiting for what becomes of it. Whatever is settled is journaled, and a replay gets the same answer."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson

from runs import log, signals
from runs.engine import effects, gates, looking, points, waiting
from runs.engine.answering import Answers, answer_open
from runs.engine.gates import Answer, Attached, Proposal
from runs.engine.journal import digest, edited, result_of
from runs.engine.outcomes import Parked, Waits
from runs.engine.tools import Tool
from runs.engine.values import json_text
from runs.engine.waiting import Patience
from runs.engine.walk import Walk
from runs.log import Held, Text
from runs.models import Event, JournalEntry
from runs.vocabulary import BlockRaised, RunWaiting, StepStarted

APPROVAL = "Get approval"  # the plan's step in which a proposal waits


def propose(
    walk: Walk,
    tool: Tool,
    arguments: dict[str, Any],
    *,
    files: Sequence[Attached],
    reason: str,
    plan_title: str,
    answers: Answers | None = None,
    patience: Patience | None = None,
    revisable: bool = False,
) -> Answer:
    """What became of an exact action that is proposed here, or was before. Waits until it is settled.

    `plan_title`: the step of the plan in which it waits. `revisable`: the workflow plans anew if somebody asks for it meanwhile.
    """
    step = walk.journal.next_step(f"propose.{tool.name}")
    entry = walk.journal.find(step)
    arguments = edited(entry, arguments)
    nonce = walk.nonce(step, tool, arguments, files)
    complete = tool.prepare(arguments, nonce) if tool.prepare else arguments
    given = [tool.name, complete, [str(file.payload.pk) for file in files]]
    if entry is not None and entry.attempts and entry.input_digest != digest(given):
        raise Parked(
            "code_changed",
            step=step,
            detail=f"The code changed at {step}: it now proposes another action than the one that was recorded.",
        )
    if entry is not None and entry.state == "done":
        return _answer_of(entry)
    if entry is None or entry.action_id is None:
        walk.check_budget()
        found = looking.look(tool, complete, run_id=walk.id, step=step, calling=walk.lease.calling(looking.MAX_SECONDS + 5))
        entry, settled = _put_up(walk, Proposal(tool, complete, step, nonce, files, reason, found), given, plan_title, revisable)
        if settled is not None:
            return settled
    return _answered(walk, entry, plan_title, answers, patience, revisable)


def allowed(
    walk: Walk, tool: Tool, arguments: dict[str, Any], *, plan_title: str, files: Sequence[Attached] = (), reason: str = ""
) -> gates.Approved:
    """The approval of something without which the workflow can't go on. Parks the run if it is not given.

    What nobody decided on in time is proposed anew once somebody has the run tried again; what was refused is not.
    """
    while True:
        answer = propose(walk, tool, arguments, files=files, reason=reason, plan_title=plan_title)
        if isinstance(answer, gates.Approved):
            return answer
        lapsed = isinstance(answer, gates.Expired)
        if not lapsed or not _tried_again(walk, since=answer.seq):
            why = "nobody decided in time" if lapsed else type(answer).__name__.lower()
            raise Parked("expired" if lapsed else "refused", step=None, detail=f"{tool.title}: {why}.")


def _tried_again(walk: Walk, *, since: int) -> bool:
    later = Event.objects.filter(run_month=walk.month, run_id=walk.id, type="deadletter.resolved", seq__gt=since)
    return any(orjson.loads(body)["data"]["choice"] == "retry" for body in later.values_list("body", flat=True))


def _put_up(walk: Walk, proposal: Proposal, given: Any, plan_title: str, revisable: bool) -> tuple[JournalEntry, Answer | None]:
    """Make the proposal known, with its journal entry, in one transaction; or not, if somebody asked for another plan before.

    With the answer, if nobody has to be waited for.
    """
    tool, step = proposal.tool, proposal.step
    refused, settled = None, None
    with walk.hold() as run:
        entry = walk.journal.begin(run, step, kind="propose", given=given)
        if notes := signals.take(run, "revise") if revisable else []:
            revised = gates.Revised(None, tool.name, run.row.seq, "\n\n".join(notes))
            walk.journal.end(run, entry, _as_json(revised), label="internal", seq=revised.seq)
            return entry, revised
        effects.check_scope(run.row, tool, proposal.arguments, step)
        run.append(StepStarted(step=step, kind="propose", plan_step=walk.plan_step(plan_title)), actor=walk.agent)
        answer = gates.current().propose(run, proposal)
        if isinstance(answer, gates.Frozen):  # raised in here, so that nothing of this attempt is written or counted
            raise Waits(RunWaiting(on="unfreezing", tool=answer.tool, until=answer.until))
        if isinstance(answer, gates.Refused):
            refused = answer
            texts = {"detail": Text(answer.detail), "arguments": json_text(proposal.arguments, tool.label)}
            run.append(BlockRaised(block=tool.name, reason=answer.reason), actor=log.ENGINE, texts=texts)
        else:
            walk.journal.became(run, entry, answer.action_id)
            settled = answer if isinstance(answer, gates.Approved) else None
            if settled is not None:
                _settle(walk, run, entry, settled, plan_title)
    if refused is not None:
        raise Parked("refused", step=step, detail=refused.detail)
    points.reached(f"proposed-{tool.name}", walk.id)
    return entry, settled


def _answered(
    walk: Walk, entry: JournalEntry, plan_title: str, answers: Answers | None, patience: Patience | None, revisable: bool
) -> Answer:
    """What became of a proposal, journaled once it is settled; until then the run answers what is asked, and waits."""
    answer = gates.current().answer(entry.action_id)
    if isinstance(answer, gates.Waiting):
        answer_open(walk.lease, walk.agent, answer.action_id, answers)
        answer = waiting.withdrawn(walk.lease, walk.agent, entry, answer, patience)
    with walk.hold() as run:
        if revisable and isinstance(answer, gates.Waiting | gates.Withdrawn):
            answer = _revised(walk, run, answer)
        if not isinstance(answer, gates.Waiting | gates.Recallable):
            _settle(walk, run, entry, answer, plan_title)
            return answer
    raise waiting.for_answer(entry, answer, patience, revisable=revisable)


def _settle(walk: Walk, run: Held, entry: JournalEntry, answer: Answer, plan_title: str) -> None:
    """Write down what became of a proposal: it is final."""
    if answer.approved:
        gates.current().deliver(run, answer.action_id)
    walk.journal.end(run, entry, _as_json(answer), label="internal", seq=answer.seq)
    _allowed(walk, run, entry.step, plan_title)


def _revised(walk: Walk, run: Held, answer: Answer) -> Answer:
    """Whoever asked for another plan had the action withdrawn; of a run that was paused it is withdrawn now."""
    notes = signals.take(run, "revise")
    if not notes:
        return answer
    note = "\n\n".join(notes)
    if isinstance(answer, gates.Waiting):
        answer = gates.current().withdraw(run, answer.action_id, by=walk.agent, reason=note)
    return gates.Revised(answer.action_id, answer.tool, run.row.seq, note)


def _allowed(walk: Walk, run: Held, step: str, plan_title: str) -> None:
    """A proposal is settled. A tool's own step of the plan is done when it was performed, not when it was allowed."""
    at = walk.plan_step(plan_title)
    if plan_title == APPROVAL:
        walk.completed(run, step, at, 0)
    else:
        walk.completed(run, step, None, 0, done=max((at or 1) - 1, 0))


def _as_json(answer: Answer) -> dict[str, Any]:
    return {
        "word": type(answer).__name__,
        "tool": answer.tool,
        "action": str(answer.action_id) if answer.action_id else None,
        "seq": answer.seq,
        "reason": answer.note if isinstance(answer, gates.Revised) else getattr(answer, "reason", ""),
    }


def _answer_of(entry: JournalEntry) -> Answer:
    kept = result_of(entry)
    if kept["word"] == "Revised":
        return gates.Revised(UUID(kept["action"]) if kept["action"] else None, kept["tool"], kept["seq"], kept["reason"])
    settled = UUID(kept["action"]), kept["tool"], kept["seq"]
    if kept["word"] == "Rejected":
        return gates.Rejected(*settled, kept["reason"])
    return {"Approved": gates.Approved, "Expired": gates.Expired, "Withdrawn": gates.Withdrawn}[kept["word"]](*settled)
