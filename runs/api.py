"""The channel over HTTP. Each operation finds what the actor may reach, and calls one verb of the domain."""

import base64
import binascii
import re
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from django.http import HttpRequest, HttpResponse
from ninja import Body, Header, Query, Router, Status
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, StringConstraints, Tag

from access import characters, rules
from access.api import afresh, known_for_awhile
from access.errors import BadInput, Forbidden
from access.ids import as_uuid
from access.models import Agent, User
from access.rules import Actor
from runs import endings, evidence, hub, intake, query, questions, reading, recovery, signals, starting, stream, updates
from runs.endings import Report
from runs.engine import resuming, undoing
from runs.errors import UnknownEventType
from runs.intake import MAX_EVENTS, Told
from runs.log import Text
from runs.models import Event, Run
from runs.stream import Page
from runs.vocabulary import TYPES, Cites, Fit, Label, MediaType, SignalKind

router = Router(tags=["runs"])

# an event's id, an idempotency key: what goes through every log and header unchanged
Key = Annotated[str, Fit, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]
# of a run that was claimed: the fencing token of its lease, with every write
Token = Annotated[int | None, Header(alias="Handrail-Token", ge=1, le=2**53 - 1)]
EventKey = Annotated[str, Fit, Header(alias="Idempotency-Key", pattern=f"^{intake.SENDER_ID}$")]


def _seen(text: str) -> str:
    if not characters.seen_length(text):
        raise ValueError("has nothing in it that can be seen")
    return text


Title = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True), AfterValidator(_seen)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Note = Annotated[str, StringConstraints(max_length=4000)]


# read like those of streams: a number in other clothes (`+5`, `5.0`, `1_0`) is no cursor
Cursor = Annotated[int, Query(ge=0, le=10**15), BeforeValidator(lambda given: stream.cursor(str(given)))]
Wait = Annotated[int, Query(ge=0, le=30, description="seconds to wait if there is nothing new")]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Budgets(Strict):
    tokens: Annotated[int, Field(ge=1, le=2**53 - 1)] | None = None
    cost_micro: Annotated[int, Field(ge=1, le=2**53 - 1)] | None = None
    working_ms: Annotated[int, Field(ge=1, le=2**53 - 1)] | None = None
    steps: Annotated[int, Field(ge=1, le=2**53 - 1)] | None = None


class StartIn(Strict):
    title: Title
    agent_version: Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@/+-]*$"), Fit]
    workflow: Annotated[str, StringConstraints(max_length=60)] | None = None
    arguments: dict[str, Any] = {}
    scope: Annotated[dict[Id, Annotated[list[Id], Field(max_length=50)]], Field(max_length=10)] = {}
    budgets: Budgets | None = None
    note: Note = ""
    agent: Annotated[str, StringConstraints(max_length=60)] | None = Field(None, description="for people: the name of the agent")


class TextIn(Strict):
    """What somebody wrote: as text, or as bytes in base64."""

    text: str | None = None
    base64: str | None = None
    label: Label = "internal"
    media_type: MediaType = "text/plain"


class EventIn(Strict):
    """One event. `id` is the sender's; the same id again is the same event."""

    id: Annotated[str, StringConstraints(pattern=f"^{intake.SENDER_ID}$"), Fit]
    type: Annotated[str, StringConstraints(max_length=60)]
    data: dict[str, Any] = {}
    texts: Annotated[dict[str, str | TextIn], Field(max_length=110)] = {}
    at: datetime | None = None
    caused_by: Annotated[int, Field(ge=1)] | None = None


OneOrMany = Annotated[
    Annotated[EventIn, Tag("one")] | Annotated[list[EventIn], Tag("many"), Field(min_length=1, max_length=MAX_EVENTS)],
    Discriminator(lambda given: "many" if isinstance(given, list) else "one"),
]


class SignalIn(Strict):
    kind: SignalKind
    note: Note = ""


class ReportIn(Strict):
    title: Title
    body: Annotated[str, StringConstraints(max_length=20_000)] = ""
    cites: Cites = ()


class EndingIn(Strict):
    outcome: Literal["succeeded", "failed"]
    report: ReportIn | None = None
    detail: Note = ""


class UpdateIn(Strict):
    budgets: Budgets
    note: Note = ""


class AnswerIn(Strict):
    question: UUID
    text: Annotated[str, StringConstraints(min_length=1, max_length=questions.MAX_ANSWER)]


class UndoIn(Strict):
    """`effect`: the event that tells of it, the seq of an `effect.done`. Whoever decides on it reads the `reason`."""

    effect: Annotated[int, Field(ge=1, le=2**53 - 1)]
    reason: Annotated[str, StringConstraints(min_length=1, max_length=undoing.MAX_REASON)]


class RecoveryIn(Strict):
    """What a person chooses for a stuck run. `parked`: the event at which it got stuck; `to`: of hand_over, the id of a person.

    `step`: of retry, an earlier step that is done anew, one of the `steps` that GET names; else it goes on where it got stuck.
    """

    choice: recovery.Choice
    parked: Annotated[int, Field(ge=1)]
    note: Note = ""
    to: Annotated[str, StringConstraints(max_length=40)] | None = None
    step: Annotated[str, StringConstraints(max_length=200)] | None = None


# runs -----------------------------------------------------------------------------------------------------------------------------


@router.post("/runs", response={201: Any}, summary="Start a run")
def start(request: HttpRequest, body: StartIn, idempotency_key: Key) -> Status:
    """An agent outside starts a run it works on itself, or one of a loaded `workflow`. The same key again gives the same run."""
    actor: Actor = request.actor
    agent = _agent(actor, body.agent)
    rules.check_scope(actor, workflow=body.workflow or "")
    run = starting.start(
        agent=agent,
        owner=agent.owner,
        by=actor,
        title=body.title,
        agent_version=body.agent_version,
        workflow=body.workflow,
        arguments=body.arguments,
        scope=body.scope,
        budgets=body.budgets.model_dump(exclude_none=True) if body.budgets else None,
        note=body.note,
        key=idempotency_key,
    )
    return Status(201, _one(actor, run.pk))


@router.get("/runs", response=Any, summary="List runs, newest first")
def runs(request: HttpRequest, state: str = "", limit: Annotated[int, Query(ge=1, le=200)] = 50, before: str = "") -> dict[str, Any]:
    """`state`: one or more, with commas between. `before`: the `next` of the page before."""
    rules.require(request.actor, "runs.view")
    rows = query.in_states(rules.visible(request.actor, Run, "runs.view"), state)
    found = list(query.before(rows, before).select_related(*query.RELATED).order_by("-created_at", "-pk")[: limit + 1])
    return {"runs": query.told(found[:limit]), "next": query.place(found[limit - 1]) if len(found) > limit else None}


@router.get("/runs/{run_id}", response=Any, summary="Ask a run how it stands")
def run(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """State, what it waits for, summary, budgets, head of the log and ending."""
    return _one(request.actor, run_id)


# events ---------------------------------------------------------------------------------------------------------------------------


@router.post("/runs/{run_id}/events", response={200: Any, 201: Any}, summary="Tell what happened")
def tell(request: HttpRequest, run_id: str, events: Annotated[OneOrMany, Body()], handrail_token: Token = None) -> Status:
    """One event or a list of up to 1000, all or none. Each is answered with its seq; a duplicate with the seq it has."""
    run = rules.get(request.actor, Run, run_id, "runs.write")
    given = events if isinstance(events, list) else [events]
    accepted = intake.accept(run, [_as_told(event) for event in given], by=request.actor, token=handrail_token)
    body = {"accepted": [{"id": one.id, "seq": one.seq, "duplicate": one.duplicate} for one in accepted]}
    return Status(200 if all(one.duplicate for one in accepted) else 201, body)


@router.get("/runs/{run_id}/events", response=Any, auth=known_for_awhile, summary="Read the log from a cursor")
async def events(
    request: HttpRequest,
    run_id: str,
    after: Cursor = 0,
    limit: Annotated[int, Query(ge=1, le=stream.MAX_PAGE)] = stream.MAX_PAGE,
    types: str = "",
    wait: Wait = 0,
) -> HttpResponse:
    """Events with seq > `after`. Go on from `cursor`. With `wait`, an empty page is held back until something comes."""
    until = time.monotonic() + wait
    actor, run, page = await hub.in_thread(_page)(request, run_id, after, limit, _types(types))
    while not page.seqs and not page.ended and time.monotonic() < until:
        if await hub.grown(run.pk, beyond=page.head, actor=actor, seconds=until - time.monotonic()):
            actor, run, page = await hub.in_thread(_page)(request, run_id, page.head, limit, _types(types))
    return _as_page(page)


@router.post("/runs/{run_id}/artifacts", response={200: Any, 201: Any}, summary="Keep an artifact")
def keep(
    request: HttpRequest,
    run_id: str,
    name: Annotated[str, Query(max_length=120)],
    idempotency_key: EventKey,
    label: Annotated[Label, Query()] = "internal",
    outside: bool = False,
    handrail_token: Token = None,
) -> Status:
    """The body is the content, of up to 12 MiB, and Content-Type its media type. It stands in the log as artifact.created."""
    run = rules.get(request.actor, Run, run_id, "runs.write")
    content = Text(request.body, label=label, media_type=request.content_type or "application/octet-stream")
    told = Told(idempotency_key, "artifact.created", {"name": name, "outside": outside}, {"content": content})
    [accepted] = intake.accept(run, [told], by=request.actor, token=handrail_token)
    return Status(200 if accepted.duplicate else 201, {"id": accepted.id, "seq": accepted.seq, "duplicate": accepted.duplicate})


@router.get("/runs/{run_id}/artifacts", response=Any, summary="List artifacts")
def artifacts(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """Each with the event that made it."""
    run = rules.get(request.actor, Run, run_id, "artifacts.view")
    made = Event.objects.filter(run_month=run.month, run_id=run.pk, artifact__isnull=False).order_by("seq")
    return {
        "artifacts": [
            _artifact(event)
            for event in made.select_related("artifact__payload__erased_by").defer(
                "body", "artifact__payload__content", "artifact__payload__rendition"
            )
        ]
    }


@router.get("/runs/{run_id}/evidence", response=Any, summary="Ask the seven questions")
def answers(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """Answered from the log alone, each with the events that say so: pass, fail, not_yet or not_asked. A pipeline can gate on them."""
    run = rules.get(request.actor, Run, run_id, "runs.view")
    found = reading.answers(run)
    return {"run": run.pk, "head": run.seq, "summary": evidence.summary(found), "answers": [evidence.as_json(one) for one in found]}


# steering -------------------------------------------------------------------------------------------------------------------------


@router.post("/runs/{run_id}/signals", response=Any, summary="Ask a run to change course")
def signal(request: HttpRequest, run_id: str, body: SignalIn, idempotency_key: Key) -> dict[str, Any]:
    """What became of it stands in `status` (accepted, delivered, applied, refused) and `reason`; `ending` says which ending won."""
    run = rules.get(request.actor, Run, run_id, "runs.steer")
    sent = signals.send(run, kind=body.kind, key=idempotency_key, by=request.actor, note=body.note)
    told = {"id": sent.pk, "kind": sent.kind, "status": sent.status, "reason": sent.reason or None}
    return told | {"created_at": sent.created_at, "settled_at": sent.settled_at, "ending": signals.ending_of(run.pk)}


@router.post("/runs/{run_id}/updates", response=Any, summary="Change a run, and get the result")
def update(request: HttpRequest, run_id: str, body: UpdateIn) -> dict[str, Any]:
    """For people. `budgets` are the limits from now on; a run that waits for a bigger one goes on if it is big enough."""
    run = rules.get(request.actor, Run, run_id, "runs.steer")
    updates.set_budgets(run, body.budgets.model_dump(exclude_none=True), by=request.actor, note=body.note)
    return _one(request.actor, run.pk)


@router.post("/runs/{run_id}/answers", response=Any, summary="Answer what a run asks")
def answer(request: HttpRequest, run_id: str, body: AnswerIn) -> dict[str, Any]:
    """Once: who comes second is told that it waits for something else, or nothing. For people."""
    run = rules.get(request.actor, Run, run_id, "runs.steer")
    return {"seq": questions.answer(run, body.question, body.text, by=request.actor)}


@router.get("/runs/{run_id}/recovery", response=Any, summary="How a stuck run can go on")
def recoverable(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """Where and why it is stuck, and what can be chosen. `parked` is null of a run that is not stuck."""
    run = rules.get(request.actor, Run, run_id, "runs.recover")
    return _recovery(run)


@router.post("/runs/{run_id}/recovery", response=Any, summary="Choose how a stuck run goes on")
def recover(request: HttpRequest, run_id: str, body: RecoveryIn) -> dict[str, Any]:
    """Once for each time it got stuck: who comes later is told what stands. For people alone."""
    run = rules.get(request.actor, Run, run_id, "runs.recover")
    to = User.objects.filter(pk=as_uuid(body.to)).first() if body.to else None
    recovery.choose(run, body.choice, at=body.parked, by=request.actor, note=body.note, to=to, step=body.step or "")
    run.refresh_from_db()
    return _recovery(run)


@router.post("/runs/{run_id}/undos", response=Any, summary="Undo one thing that a run did outside")
def undo(request: HttpRequest, run_id: str, body: UndoIn) -> dict[str, Any]:
    """After the run has ended, by a run of its own, which this gives; asked for again while that goes on, it is the same. For people."""
    run = rules.get(request.actor, Run, run_id, "runs.recover", related=("agent", "owner"))
    started = undoing.undo(run, body.effect, by=request.actor, reason=body.reason)
    return {"run": started.pk, "ref": started.ref, "state": started.state, "undoes": {"run": run.pk, "effect": body.effect}}


def _recovery(run: Run) -> dict[str, Any]:
    now = recovery.standing(run)
    told: dict[str, Any] = {"run": run.pk, "state": run.state, "parked": None, "choices": []}
    if now is None:
        return told
    where, undoable = now.where, len(now.undoable)
    stuck = {"seq": where.seq, "reason": where.reason, "step": where.step or None, "at": where.at}
    return told | {
        "parked": stuck,
        "choices": list(now.choices),
        "steps": resuming.steps(resuming.rows([run.pk])[run.pk]),
        "undoable": undoable,
        "in_flight": now.in_flight,
        "handed_to": run.handed_to_id,
    }


@router.post("/runs/{run_id}/ending", response=Any, summary="End a run that an agent outside worked on")
def end(request: HttpRequest, run_id: str, body: EndingIn, handrail_token: Token = None) -> dict[str, Any]:
    """Success is a claim that cites the log. The same outcome again is answered with the ending that stands."""
    run = rules.get(request.actor, Run, run_id, "runs.write")
    report = Report(**body.report.model_dump()) if body.report else None
    return {"ending": endings.end(run, body.outcome, by=request.actor, report=report, detail=body.detail, token=handrail_token)}


# what they need -------------------------------------------------------------------------------------------------------------------


def _agent(actor: Actor, name: str | None) -> Agent:
    """The agent that will work: the one that asks, or the one a person names."""
    workspace_id = rules.require(actor, "runs.start")
    itself = Agent.objects.select_related("owner").filter(workspace_id=workspace_id, pk=actor.id)
    if actor.kind == "agent":
        if name not in (None, actor.name):
            raise Forbidden("An agent starts its own runs only.")
        return itself.get()
    agents = starting.agents(actor).select_related("owner").filter(workspace_id=workspace_id)
    found = agents.filter(name=name).first() if name else None
    if found is None:
        raise BadInput("`agent` names one of the workspace's agents.", known=sorted(agents.values_list("name", flat=True)))
    return found


def _one(actor: Actor, run_id: str | UUID) -> dict[str, Any]:
    return query.told([rules.get(actor, Run, run_id, "runs.view", related=query.RELATED)])[0]


def _types(given: str) -> list[str]:
    types = [each for each in given.split(",") if each]
    if unknown := [each for each in types if each not in TYPES]:
        raise UnknownEventType(f"“{unknown[0][:60]}” is not an event type.", types=sorted(TYPES))
    return types


def _page(request: HttpRequest, run_id: str, after: int, limit: int, types: Iterable[str]) -> tuple[Actor, Run, Page]:
    """A page of the log, if whoever asks may read it now."""
    actor = afresh(request)
    run = rules.get(actor, Run, run_id, "runs.events")
    return actor, run, stream.read(run.pk, after=after, limit=limit, types=types)


def _as_page(page: Page) -> HttpResponse:
    """The stored lines, spliced."""
    where = orjson.dumps({"cursor": page.cursor, "head": page.head, "ended": page.ended and page.cursor == page.head})
    return HttpResponse(b'{"events":[%b],%b' % (b",".join(page.lines), where[1:]), content_type="application/json")


def _as_told(event: EventIn) -> Told:
    texts = {role: Text(given) if isinstance(given, str) else _as_text(role, given) for role, given in event.texts.items()}
    return Told(event.id, event.type, event.data, texts, event.at, event.caused_by)


def _as_text(role: str, given: TextIn) -> Text:
    if (given.text is None) == (given.base64 is None):
        raise BadInput(f"“{role[:40]}” has either text or base64.")
    if given.text is not None:
        return Text(given.text, label=given.label, media_type=given.media_type)
    try:
        content = base64.b64decode(re.sub(r"\s", "", given.base64 or ""), validate=True)
    except (binascii.Error, ValueError):
        raise BadInput(f"“{role[:40]}” is not base64.") from None
    return Text(content, label=given.label, media_type=given.media_type)


def _artifact(event: Event) -> dict[str, Any]:
    made, payload = event.artifact, event.artifact.payload
    kept = {"label": payload.label, "media_type": payload.media_type, "size": payload.size, "commitment": payload.commitment}
    gone = {"erased_at": payload.erased_at, "erased_by": payload.erased_by.name if payload.erased_by else None}
    return {"id": made.pk, "name": made.name, "version": made.version, "seq": event.seq, **gone, **kept}
