"""The closed vocabulary of the log: for each type its strict data, the payloads it may carry, who may write it, and its sentence.

A type's data holds ids, numbers, enums and names of ours only. Whatever somebody wrote is a payload under a named role.
A new type, field or role is a decision record.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from access import hiding
from runs.errors import InvalidEvent, UnknownEventType

# what names of ours are made of: each is seen by everybody who sees the run, so none of them may hold what has to be hidden
Fit = AfterValidator(hiding.fit)
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,79}$"), Fit]
Step = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_./-]{1,190}#[0-9]{1,7}$"), Fit]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$"), Fit]
MediaType = Annotated[str, StringConstraints(pattern=r"^[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60}$"), Fit]
Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
Seq = Annotated[int, Field(ge=1, le=2**53 - 1)]
Cites = Annotated[tuple[Seq, ...], Field(max_length=200)]
Label = Literal["public", "internal", "personal", "secret"]
Effect = Literal["read", "write", "send"]
SignalKind = Literal["cancel", "pause", "resume", "revise", "context"]
Trouble = Literal["timeout", "refused", "unavailable", "invalid", "not_found", "out_of_scope", "limit", "error"]

Stuck = Literal[
    "code_changed",
    "retries_exhausted",
    "error",
    "refused",
    "expired",
    "out_of_scope",
    "workflow_missing",
    "silent",
    "undo_failed",
    "agent_stopped",
]

AGENT, ENGINE, PEOPLE = "agent", "engine", "people"
LOOK_UP = "look-up:"  # a tool.ended of Handrail's own whose call is this and a grant's id tells what looking up its outcome gave
TYPES: dict[str, type["Data"]] = {}
# where an agent goes with what `POST events` does not take
ROUTES: Mapping[str, str] = {
    "run": "POST /api/v1/runs, POST /api/v1/runs/{id}/ending or POST /api/v1/runs/{id}/signals",
    "step": "POST /api/v1/runs/{id}/steps, under the run's lease",
    "action": "POST /api/v1/runs/{id}/actions, and for people POST /api/v1/actions/{id}/decisions",
    "signal": "POST /api/v1/runs/{id}/signals",
    "question": "POST /api/v1/actions/{id}/answers",
    "effect": "POST /api/v1/actions/{id}/outcome",
    "budget": "nobody: budgets are counted by Handrail",
    "deadletter": "nobody: dead letters are kept by Handrail",
    "child": "POST /api/v1/runs; a workflow starts runs of its own by `run.child`",
    "webhook": "nobody: webhooks are received by Handrail",
}


class Data(BaseModel):
    """The data of one event. Frozen, and nothing unknown passes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    type: ClassVar[str]
    writers: ClassVar[frozenset[str]]
    roles: ClassVar[re.Pattern[str]]
    sentence: ClassVar[str]

    def __init_subclass__(cls, **_: Any) -> None:
        super().__init_subclass__()

    @classmethod
    def __pydantic_init_subclass__(cls, *, type: str, by: tuple[str, ...], says: str, roles: str = "", **_: Any) -> None:
        cls.type, cls.writers, cls.sentence = type, frozenset(by), says
        cls.roles = re.compile(roles or r"(?!)")
        TYPES[type] = cls


def parse(type_: str, data: bytes | Mapping[str, Any]) -> Data:
    """The data of an event of `type_`, checked. UnknownEventType or InvalidEvent, which name what is wrong."""
    known = TYPES.get(type_)
    if known is None:
        raise UnknownEventType(f"“{type_[:60]}” is not an event type.", types=sorted(TYPES))
    try:
        return known.model_validate_json(data if isinstance(data, bytes) else orjson.dumps(data))
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, e['loc'])) or 'data'}: {e['msg']}" for e in error.errors(include_url=False, include_input=False)]
        raise InvalidEvent("; ".join(wrong)[:2000], type=type_) from None
    except orjson.JSONEncodeError:
        raise InvalidEvent("The data is not JSON.", type=type_) from None


def sentence(type_: str, data: Mapping[str, Any], actor: str) -> str:
    """The human sentence of an event: its closed template, the data and the actor's name as it is now. Plain text."""
    words = {key: str(value).replace("_", " ") if isinstance(value, str) else value for key, value in data.items()}
    return TYPES[type_].sentence.format_map(_Words(words, actor=actor))


class _Words(dict[str, Any]):
    """Template parameters; what an older event lacks reads as a dash."""

    def __missing__(self, key: str) -> str:
        return "–"


# run ------------------------------------------------------------------------------------------------------------------------------


class RunCreated(Data, type="run.created", by=(ENGINE,), says="{actor} started the run", roles=r"title|scope|input|note"):
    ref: Name
    agent: UUID
    agent_version: Name
    owner: UUID
    workflow: Name | None = None
    workflow_version: Count = 0
    parent: UUID | None = None  # the run whose work it does a part of


class RunStarted(Data, type="run.started", by=(ENGINE,), says="A worker took up the run"):
    worker: Name
    token: Count


class RunResumed(Data, type="run.resumed", by=(ENGINE,), says="A worker went on with the run"):
    reason: Literal["claimed", "lease_expired", "decision", "heard", "signal"]  # the last three of a run that an agent outside works on
    worker: Name
    token: Count


class RunQueued(Data, type="run.queued", by=(ENGINE,), says="Ready to go on: {reason}"):
    reason: Literal["decision", "answer", "timer", "signal", "budget", "outcome", "recovered", "yielded", "unfrozen", "child", "webhook"]


On = Literal["decision", "answer", "budget", "timer", "webhook", "signal", "outcome", "retry", "unfreezing", "child"]


class RunWaiting(Data, type="run.waiting", by=(ENGINE,), says="Waiting for {on}"):
    on: On
    also: tuple[On, ...] | None = None  # in other branches; whichever comes first wakes the run
    action: UUID | None = None
    run: UUID | None = None  # child: the run it waits for
    question: UUID | None = None  # answer: to what
    revisable: Literal[True] | None = None  # decision: whoever asks for another plan has it withdrawn
    tool: Name | None = None  # unfreezing: what it would use
    source: Name | None = None  # webhook: whose
    step: Step | None = None  # webhook, signal: the step that waits
    until: datetime | None = None
    needs: Count = 0


class RunPaused(Data, type="run.paused", by=(ENGINE,), says="{actor} paused the run"):
    signal: UUID


class RunStalled(Data, type="run.stalled", by=(ENGINE,), says="The agent went silent"):
    since: datetime


class RunCancelRequested(Data, type="run.cancel_requested", by=(ENGINE,), says="{actor} asked to cancel the run", roles=r"reason"):
    signal: UUID


class RunCancelling(Data, type="run.cancelling", by=(ENGINE,), says="Cancelling: {in_flight} still in flight"):
    in_flight: Count


class RunCompensating(Data, type="run.compensating", by=(ENGINE,), says="Undoing {effects} effects"):
    effects: Count


class RunParked(Data, type="run.parked", by=(ENGINE,), says="Stuck: {reason}", roles=r"detail"):
    reason: Stuck
    step: Step | None = None


class RunSucceeded(Data, type="run.succeeded", by=(ENGINE,), says="Done"):
    report: Seq | None = None


class RunFailed(Data, type="run.failed", by=(ENGINE,), says="Failed: {reason}", roles=r"detail"):
    reason: Literal["error", "refused", "given_up", "agent"]
    step: Step | None = None


class RunCancelled(Data, type="run.cancelled", by=(ENGINE,), says="Cancelled"):
    signal: UUID
    done: Count = 0  # effects that had happened and stay
    undone: Count = 0
    withdrawn: Count = 0  # actions that were waiting or approved and now never run


class RunForked(Data, type="run.forked", by=(ENGINE,), says="{actor} forked it from {ref}, after its #{seq}", roles=r"input|note"):
    """What the parent had completed up to `seq` was taken over, and is cited by this event. `input`: what was changed of it."""

    parent: UUID
    ref: Name
    seq: Seq
    step: Step | None = None  # the step that is done anew; without one the run goes on after `seq`
    taken: Count = 0  # completed steps that were taken over
    plan_steps: Annotated[tuple[Count, ...], Field(max_length=99)] = ()  # the steps of the plan that these had completed


class ChildStarted(Data, type="child.started", by=(ENGINE,), says="Started a run of its own, {ref}"):
    run: UUID
    ref: Name
    step: Step


class ChildEnded(Data, type="child.ended", by=(ENGINE,), says="The run it had started ended: {state}"):
    run: UUID
    state: Literal["succeeded", "failed", "cancelled"]
    step: Step


# plan and progress ------------------------------------------------------------------------------------------------------------------


class PlanSet(Data, type="plan.set", by=(AGENT, ENGINE), says="Plan recorded: {steps} steps", roles=r"step_[1-9][0-9]?|note"):
    version: Annotated[int, Field(ge=1, le=10_000)]
    steps: Annotated[int, Field(ge=1, le=99)]


class MilestoneReached(Data, type="milestone.reached", by=(AGENT, ENGINE), says="Milestone reached", roles=r"title|detail"):
    cites: Cites = ()


class CheckpointSaved(Data, type="checkpoint.saved", by=(AGENT, ENGINE), says="Checkpoint", roles=r"done|left"):
    after: Step | None = None
    done: Count = 0
    left: Count = 0


class NotePosted(Data, type="note.posted", by=(AGENT, ENGINE), says="{actor} noted", roles=r"note"):
    pass


class ReportPublished(Data, type="report.published", by=(AGENT, ENGINE), says="Report published", roles=r"title|body"):
    cites: Cites = ()


class ArtifactCreated(Data, type="artifact.created", by=(AGENT, ENGINE), says="{name}, version {version}", roles=r"content"):
    artifact: UUID
    name: FileName
    version: Annotated[int, Field(ge=1, le=2**31 - 1)]  # as the column
    label: Label
    media_type: MediaType
    size: Count
    outside: bool = False  # text from outside: not an order


# steps, tools, models -----------------------------------------------------------------------------------------------------------------


class StepStarted(Data, type="step.started", by=(ENGINE,), says="Started {step}"):
    step: Step
    kind: Literal["tool", "model", "propose", "perform", "agent", "child", "parallel", "wait"]
    plan_step: Count | None = None  # counts from 1
    attempt: Count = 1
    told: bool | None = None  # by an agent outside: Handrail did not see it
    given: Digest | None = None  # told: the agent's commitment to its input


class StepCompleted(Data, type="step.completed", by=(ENGINE,), says="Completed {step}", roles=r"result"):
    step: Step
    plan_step: Count | None = None
    ms: Count
    told: bool | None = None


class StepFailed(Data, type="step.failed", by=(ENGINE,), says="Attempt {attempt} of {step} failed: {error}", roles=r"detail"):
    step: Step
    attempt: Count
    error: Trouble
    told: bool | None = None


class StepRetrying(Data, type="step.retrying", by=(ENGINE,), says="Trying {step} again, attempt {attempt}"):
    step: Step
    attempt: Count
    wait_ms: Count


class ToolStarted(Data, type="tool.started", by=(AGENT, ENGINE), says="{tool} started", roles=r"arguments"):
    tool: Name
    tool_schema: Count = 1
    effect: Effect = "read"
    call: Name | None = None  # the sender's id of the call
    step: Step | None = None


class ToolEnded(Data, type="tool.ended", by=(AGENT, ENGINE), says="{tool} ended: {outcome}", roles=r"result|detail"):
    tool: Name
    outcome: Literal["ok", "error", "unknown"]
    ms: Count = 0
    call: Name | None = None
    step: Step | None = None
    error: Trouble | None = None


class ModelCalled(Data, type="model.called", by=(AGENT, ENGINE), says="{model} answered {prompt}", roles=r"input|sent|output"):
    model: Name
    version: Name | None = None  # what the model calls itself
    scripted: bool = False
    prompt: Name
    prompt_version: Name
    prompt_digest: Digest | None = None  # of the prompt's file
    tools: Annotated[tuple[Name, ...], Field(max_length=64)] | None = None  # that it could choose from, each as name@schema-version
    endpoint: Name | None = None
    key: Count | None = None  # which of the endpoint's keys, counted from 1
    step: Step | None = None
    tokens_in: Count = 0
    tokens_out: Count = 0
    estimated: bool | None = None  # the endpoint did not say how many tokens
    cost_micro: Count = 0
    cost_unknown: bool | None = None  # its price is not known, or its answer was lost
    ms: Count = 0
    finish: Literal["stop", "length", "tool", "error"] = "stop"
    error: Trouble | None = None  # it gave no answer that could be used
    left_out: Count | None = None  # results of earlier turns that were left out to fit
    shortened: Count | None = None  # texts that were cut to fit


class ModelSwitched(Data, type="model.switched", by=(AGENT, ENGINE), says="Went on with {to} instead of {was}: {reason}"):
    was: Name
    to: Name
    reason: Trouble
    endpoint: Name | None = None  # of the one that it goes on with
    was_key: Count | None = None  # the same model, with another key
    key: Count | None = None
    step: Step | None = None


# actions ------------------------------------------------------------------------------------------------------------------------------


class ActionProposed(Data, type="action.proposed", by=(ENGINE,), says="Proposed {tool}", roles=r"subject|reason|canonical|looked"):
    action: UUID
    digest: Digest
    tool: Name
    tool_schema: Count
    effect: Effect
    executor: Literal["handrail", "agent"]
    policy: UUID
    policy_version: Count
    needs: Count
    until: datetime
    recipients: Count = 0
    attachments: Count = 0
    step: Step | None = None


class ActionSuperseded(Data, type="action.superseded", by=(ENGINE,), says="Replaced by a newer action"):
    action: UUID
    by: UUID


class ActionWithdrawn(Data, type="action.withdrawn", by=(ENGINE,), says="Withdrawn: {reason}", roles=r"reason"):
    action: UUID
    reason: Literal["agent", "cancelled", "ended", "revised"]


class ActionEscalated(Data, type="action.escalated", by=(ENGINE,), says="Escalated"):
    action: UUID
    to: UUID


class ActionDelegated(Data, type="action.delegated", by=(PEOPLE,), says="{actor} handed it over"):
    action: UUID
    to: UUID


class ActionDecided(Data, type="action.decided", by=(PEOPLE,), says="{actor} {verdict} exactly this", roles=r"reason"):
    action: UUID
    digest: Digest
    decision: UUID
    verdict: Literal["approved", "rejected"]
    round: Count


class ActionCovered(Data, type="action.covered", by=(ENGINE,), says="Approved by a standing grant, its use {number}"):
    action: UUID
    digest: Digest
    standing: UUID
    owner: UUID
    number: Count


class ActionRecalled(Data, type="action.recalled", by=(PEOPLE,), says="{actor} recalled the approval", roles=r"reason"):
    action: UUID


class ActionExpired(Data, type="action.expired", by=(ENGINE,), says="Nobody decided in time; nothing was done"):
    action: UUID


class ActionGranted(Data, type="action.granted", by=(ENGINE,), says="Granted, good for one use"):
    action: UUID
    grant: UUID
    digest: Digest
    automatic: bool = False
    until: datetime


class ActionDelivered(Data, type="action.delivered", by=(ENGINE,), says="The answer reached the run"):
    action: UUID


class ActionRedeemed(Data, type="action.redeemed", by=(ENGINE,), says="Redeemed, its one use"):
    action: UUID
    grant: UUID
    digest: Digest
    token: Count
    worker: Name


class ActionExecuted(Data, type="action.executed", by=(ENGINE,), says="Executed", roles=r"receipt"):
    action: UUID
    grant: UUID
    digest: Digest
    ok: bool = True
    found: bool = False  # not seen happening; found by look-up


class ActionVerified(Data, type="action.verified", by=(ENGINE,), says="What ran is what was approved"):
    action: UUID
    grant: UUID
    digest: Digest
    how: Literal["digest", "look_up"]


class ActionUnknown(Data, type="action.unknown", by=(ENGINE,), says="Outcome unknown: {reason}"):
    action: UUID
    grant: UUID
    reason: Literal["worker_lost", "deadline", "dropped", "silent"]


class ActionResolved(Data, type="action.resolved", by=(PEOPLE,), says="{actor}: {outcome}", roles=r"note|reference"):
    action: UUID
    grant: UUID
    outcome: Literal["happened", "did_not_happen", "look_again"]


# people, trouble, effects -------------------------------------------------------------------------------------------------------------


class SignalReceived(Data, type="signal.received", by=(PEOPLE,), says="{actor} sent a signal: {kind}", roles=r"note"):
    signal: UUID
    kind: SignalKind


class SignalApplied(Data, type="signal.applied", by=(ENGINE,), says="Signal applied: {kind}"):
    signal: UUID
    kind: SignalKind


class SignalRefused(Data, type="signal.refused", by=(ENGINE,), says="Signal refused: {reason}"):
    signal: UUID
    kind: SignalKind
    # not_yet: only in logs from before every run took every signal
    reason: Literal["not_yet", "not_in_this_state", "invalid", "not_supported", "too_many", "never_read"]


class QuestionAsked(Data, type="question.asked", by=(ENGINE, PEOPLE), says="{actor} asked", roles=r"question"):
    question: UUID
    action: UUID | None = None


class QuestionAnswered(Data, type="question.answered", by=(ENGINE, PEOPLE), says="{actor} answered", roles=r"answer"):
    question: UUID
    cites: Cites = ()


class BlockRaised(Data, type="block.raised", by=(AGENT, ENGINE), says="Blocked: {reason}", roles=r"detail|arguments"):
    block: Name
    reason: Literal["decision", "answer", "access", "unregistered", "never", "out_of_scope", "frozen", "digest_mismatch", "other"]
    action: UUID | None = None


class BlockCleared(Data, type="block.cleared", by=(AGENT, ENGINE), says="No longer blocked"):
    block: Name


class BudgetWarned(Data, type="budget.warned", by=(ENGINE,), says="{used} of {limit} {budget} used"):
    budget: Literal["tokens", "cost_micro", "working_ms", "steps"]
    used: Count
    limit: Count


class BudgetExceeded(Data, type="budget.exceeded", by=(ENGINE,), says="Over the limit of {limit} {budget}"):
    budget: Literal["tokens", "cost_micro", "working_ms", "steps"]
    used: Count
    limit: Count


class BudgetChanged(Data, type="budget.changed", by=(PEOPLE,), says="{actor} set the limits of the run", roles=r"note"):
    """The limits from now on; what is left out has none."""

    tokens: Count | None = None
    cost_micro: Count | None = None
    working_ms: Count | None = None
    steps: Count | None = None


class DeadLetterEntered(Data, type="deadletter.entered", by=(ENGINE,), says="Failed for good: {reason}", roles=r"detail"):
    letter: UUID
    reason: Trouble


class DeadLetterResolved(Data, type="deadletter.resolved", by=(PEOPLE,), says="{actor} chose: {choice}", roles=r"note"):
    letter: UUID
    choice: Literal["retry", "compensate", "hand_over", "give_up"]
    to: UUID | None = None  # hand_over: to whom
    step: Step | None = None  # retry: from this earlier step, which is done anew


class WebhookReceived(Data, type="webhook.received", by=(ENGINE,), says="Webhook from {source}", roles=r"body"):
    source: Name
    delivery: Name


class EffectDone(Data, type="effect.done", by=(ENGINE,), says="Done outside", roles=r"subject"):
    tool: Name
    key: Name
    can_undo: bool
    action: UUID | None = None
    step: Step | None = None


class EffectUndone(Data, type="effect.undone", by=(ENGINE,), says="Undone"):
    key: Name


class EffectUndoFailed(Data, type="effect.undo_failed", by=(ENGINE,), says="Could not be undone: {reason}"):
    key: Name
    reason: Trouble
