"""What agents tell about their runs: the only way from `POST …/events` into the log.

All of a batch or nothing of it. Each event has the sender's own id; the same id again is the same event, and is answered with the seq
it has, also after the run has ended. Handrail vouches for none of it: the event's actor is the agent.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NoReturn
from uuid import UUID, uuid4

import orjson
from django.db.models import Max

from access import hiding
from access.rules import Actor
from artifacts import vault
from artifacts.models import Artifact, Payload
from artifacts.redaction_policies import About
from runs import log, steps, vocabulary
from runs.engine import budget
from runs.errors import EventReused, InvalidEvent, NotYourEvent, RunEnded, UnknownEventType
from runs.log import Held, Text
from runs.models import Event, Run
from runs.vocabulary import AGENT, ROUTES, ArtifactCreated, Data, ModelCalled, PlanSet

MAX_EVENTS = 1000
MOST = 2**53 - 1  # that is counted of what an agent says it has used
MAX_TEXT = 64 * 1024  # bytes of one text; more is an artifact
SENDER_ID = r"[\x21-\x7e]{1,120}"
# what the server says of an artifact, whatever the sender thinks
OURS = ("artifact", "version", "size")


@dataclass(frozen=True)
class Told:
    """One event as an agent tells it."""

    id: str
    type: str
    data: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, Text] = field(default_factory=dict)
    at: datetime | None = None
    caused_by: int | None = None


@dataclass(frozen=True)
class Accepted:
    """The place of an event in the log; `duplicate` if it had it already."""

    id: str
    seq: int
    duplicate: bool


def accept(run: Run, events: Sequence[Told], *, by: Actor, token: int | None = None) -> list[Accepted]:
    """Append what is new of `events`, in their order, and say where each stands. `token`: of the lease, if the run was claimed.

    Only of a run that an agent outside works on: what a workflow does is told by Handrail, which saw it.
    Raises UnknownEventType, InvalidEvent, NotYourEvent, EventReused or RunEnded; nothing of the batch is written then.
    """
    if not 1 <= len(events) <= MAX_EVENTS:
        raise InvalidEvent(f"One request carries 1 to {MAX_EVENTS} events, not {len(events)}.", limit=MAX_EVENTS)
    checked = [_checked(told, place) for place, told in enumerate(events)]
    _check_twins(events)
    if run.workflow:
        _refuse_workflow()
    sealed = _sealed(run, by, events, checked)
    with log.holding(run.pk) as held:
        steps.fence(held, token)
        batch = _Batch(held, by, _stored(held, by, events), sealed)
        batch.store()
        taken = [batch.accept(told, data) for told, data in zip(events, checked, strict=True)]
        batch.count()
        return taken


def _refuse_workflow() -> NoReturn:
    route = "POST /api/v1/runs/{id}/signals"
    raise NotYourEvent(f"Handrail itself writes the log of a run of a workflow. To change its course: {route}.", route=route)


def check_open(run: Run) -> None:
    """Refuse what would come to nothing: the log of a workflow's run is Handrail's, and that of a run that ended is closed."""
    if run.workflow:
        _refuse_workflow()
    if run.ended_at is not None:
        raise RunEnded


def accepted(run: Run, told_id: str, *, by: Actor) -> Accepted | None:
    """What became of something that was told under this id, if it was."""
    rows = Event.objects.filter(run_month=run.month, run_id=run.pk, sender=_sender(by, told_id))
    seq = rows.values_list("seq", flat=True).first()
    return None if seq is None else Accepted(told_id, seq, duplicate=True)


def keep_artifact(run: Run, told_id: str, data: Mapping[str, Any], payload: Payload, *, by: Actor, token: int | None = None) -> Accepted:
    """artifact.created of a payload that is sealed already: what was too large for one request. The same id again is the same event."""
    check_open(run)
    ours = {"artifact": str(uuid4()), "version": 1, "size": payload.size, "label": payload.label, "media_type": payload.media_type}
    told = Told(told_id, ArtifactCreated.type, data, {})
    known = vocabulary.parse(told.type, {**data, **ours})
    with log.holding(run.pk) as held:
        steps.fence(held, token)
        there = accepted(run, told_id, by=by)
        if there is None:
            vault.store([payload])
            steps.heard(held)
            return Accepted(told_id, _Batch(held, by, {}, {})._append(told, known, {"content": payload}), duplicate=False)
    vault.discard(payload)
    return there


def _checked(told: Told, place: int) -> Data:
    """The event's data, before anything is locked. What is wrong is said with the event's place and id."""
    where = {"event": told.id[:120], "event_type": told.type[:60], "index": place}
    if hiding.detectors.holds(told.id):
        raise InvalidEvent("The id you gave it holds what has to be hidden, and everybody sees ids.", index=place)
    if not re.fullmatch(SENDER_ID, told.id):
        raise InvalidEvent("Each event needs an id of yours: 1 to 120 printable ASCII characters.", **where)
    _check_writer(told, where)
    _check_times(told, where)
    try:
        data = vocabulary.parse(told.type, _with_ours(told))
    except InvalidEvent as error:
        raise InvalidEvent(error.detail, **where) from None
    except UnknownEventType as error:
        raise UnknownEventType(error.detail, **error.extra, **where) from None
    _check_texts(told, data, where)
    return data


def _check_writer(told: Told, where: Mapping[str, Any]) -> None:
    known = vocabulary.TYPES.get(told.type)
    if known is not None and AGENT not in known.writers:
        route = ROUTES[told.type.partition(".")[0]]
        raise NotYourEvent(f"{told.type} is not written by agents. The way to it: {route}.", route=route, **where)


def _check_times(told: Told, where: Mapping[str, Any]) -> None:
    if told.at is None:
        return
    try:
        known = told.at.utcoffset() is not None and told.at.astimezone(UTC)
    except OverflowError:
        known = False
    if not known:
        raise InvalidEvent("`at` is a time with its offset, as 2026-11-26T14:02:11Z.", **where)


def _with_ours(told: Told) -> Mapping[str, Any]:
    if told.type != ArtifactCreated.type:
        return told.data
    if stray := sorted(told.data.keys() & set(OURS)):
        raise InvalidEvent(f"{', '.join(stray)}: Handrail sets this itself.")
    content = told.texts.get("content")
    size = len(_bytes(content)) if content else 0
    as_content = {"label": content.label, "media_type": content.media_type} if content else {}
    return {
        "label": "internal",
        "media_type": "text/plain",
        **as_content,
        **told.data,
        "artifact": str(uuid4()),
        "version": 1,
        "size": size,
    }


def _check_texts(told: Told, data: Data, where: Mapping[str, Any]) -> None:
    for role, text in told.texts.items():
        if not data.roles.fullmatch(role):
            raise InvalidEvent(f"{told.type} carries no text called “{role[:40]}”.", **where)
        if len(_bytes(text)) > MAX_TEXT and not isinstance(data, ArtifactCreated):
            raise InvalidEvent(
                f"The text “{role}” is over {MAX_TEXT} bytes. Keep it as an artifact and cite that.", limit=MAX_TEXT, **where
            )
    if isinstance(data, ArtifactCreated) and "content" not in told.texts:
        raise InvalidEvent("An artifact needs its content.", **where)
    if isinstance(data, PlanSet) and {f"step_{n}" for n in range(1, data.steps + 1)} != told.texts.keys() - {"note"}:
        raise InvalidEvent(f"A plan of {data.steps} steps has the texts step_1 to step_{data.steps}.", **where)


def _check_twins(events: Sequence[Told]) -> None:
    first: dict[str, Told] = {}
    for told in events:
        twin = first.setdefault(told.id, told)
        if (twin.type, twin.data, twin.texts) != (told.type, told.data, told.texts):
            raise EventReused("Two events of this batch have the same id and say different things.", event=told.id)


def _sealed(run: Run, by: Actor, events: Sequence[Told], checked: Sequence[Data]) -> dict[str, dict[str, Payload]]:
    """The texts of what seems new, by id and role. It takes the most time of all, so it comes before the lock."""
    there = _senders(run, by, events)
    new = {told.id: (told, data) for told, data in zip(events, checked, strict=True) if _sender(by, told.id) not in there}
    places = [(told.id, role) for told, _ in new.values() for role in told.texts]
    contents = [_content(data, text) for told, data in new.values() for text in told.texts.values()]
    sealed: dict[str, dict[str, Payload]] = {pk: {} for pk in new}
    for (pk, role), payload in zip(places, vault.sealed(run.workspace_id, contents) if contents else (), strict=True):
        sealed[pk][role] = payload
    return sealed


def _senders(run: Run, by: Actor, events: Sequence[Told]) -> set[str | None]:
    senders = {_sender(by, told.id) for told in events}
    return set(Event.objects.filter(run_month=run.month, run_id=run.pk, sender__in=senders).values_list("sender", flat=True))


def _content(data: Data, text: Text) -> tuple[bytes | str, str, str, About]:
    of = About(data.type, getattr(data, "tool", ""))
    if isinstance(data, ArtifactCreated):  # what the event says of it is what it is kept as
        return text.content, data.label, data.media_type, of
    return text.content, text.label, text.media_type, of


@dataclass(frozen=True)
class _Stored:
    """An event that is in the log already."""

    seq: int
    body: str
    payloads: Mapping[str, Payload]


def _stored(held: Held, by: Actor, events: Sequence[Told]) -> dict[str, _Stored]:
    """Those of the batch that the log has, by sender. Two queries."""
    senders = {_sender(by, told.id) for told in events}
    rows = list(
        Event.objects.filter(run_month=held.row.month, run_id=held.row.pk, sender__in=senders).values_list(
            "sender", "seq", "body", "payloads"
        )
    )
    kept = Payload.objects.select_related("key").in_bulk({UUID(pk) for row in rows for pk in row[3].values()}) if rows else {}
    return {sender: _Stored(seq, body, {role: kept[UUID(pk)] for role, pk in ids.items()}) for sender, seq, body, ids in rows}


@dataclass
class _Batch:
    """A batch on its way into a run whose lock is held."""

    held: Held
    by: Actor
    stored: Mapping[str, _Stored]
    sealed: Mapping[str, Mapping[str, Payload]]
    fresh: dict[str, int] = field(default_factory=dict)
    spent: Counter[str] = field(default_factory=Counter)

    def store(self) -> None:
        """Keep the texts of what is new indeed."""
        new = [texts for pk, texts in self.sealed.items() if _sender(self.by, pk) not in self.stored]
        vault.store([payload for texts in new for payload in texts.values()])

    def count(self) -> None:
        """What its calls of models took, as the agent tells it, counts against the limits of the run. Its steps tell their own time."""
        so_far = budget.used(self.held.row)
        more = {name: min(number, MOST - so_far[name]) for name, number in self.spent.items()}
        if any(more.values()):
            budget.use(self.held, **more)

    def accept(self, told: Told, data: Data) -> Accepted:
        sender = _sender(self.by, told.id)
        if sender in self.stored:
            _check_same(self.stored[sender], told, data)
            return Accepted(told.id, self.stored[sender].seq, duplicate=True)
        if sender in self.fresh:
            return Accepted(told.id, self.fresh[sender], duplicate=True)
        _check_references(self.held, told, data)
        steps.heard(self.held)
        self.fresh[sender] = self._append(told, data, self.sealed[told.id])
        return Accepted(told.id, self.fresh[sender], duplicate=False)

    def _append(self, told: Told, data: Data, texts: Mapping[str, Payload]) -> int:
        artifact = None
        if isinstance(data, ArtifactCreated):
            artifact = self._artifact(data.name, texts["content"])
            data = data.model_copy(update={"artifact": artifact.pk, "version": artifact.version, "size": artifact.payload.size})
        if isinstance(data, ModelCalled):
            self.spent.update(tokens=data.tokens_in + data.tokens_out, cost_micro=data.cost_micro)
        more = {"caused_by": told.caused_by, "sender": _sender(self.by, told.id), "sent_at": told.at}
        return self.held.append(data, actor=self.by, texts=texts, artifact=artifact, **more)

    def _artifact(self, name: str, payload: Payload) -> Artifact:
        run = self.held.row
        newest = Artifact.objects.filter(run_id=run.pk, name=name).aggregate(newest=Max("version"))["newest"] or 0
        return Artifact.objects.create(workspace_id=run.workspace_id, run_id=run.pk, name=name, version=newest + 1, payload=payload)


def _check_references(held: Held, told: Told, data: Data) -> None:
    """What an event cites has happened before it."""
    cited: Iterable[int] = (*getattr(data, "cites", ()), *((told.caused_by,) if told.caused_by is not None else ()))
    wrong = sorted(seq for seq in cited if not 1 <= seq <= held.row.seq)
    if wrong:
        raise InvalidEvent(f"#{wrong[0]} can't be cited: the log is at #{held.row.seq}.", event=told.id, head=held.row.seq)


def _check_same(stored: _Stored, told: Told, data: Data) -> None:
    """An id that comes again with something else in it would lose that without a word; so it is refused."""
    written = orjson.loads(stored.body)
    if written["type"] != told.type or _told_data(written["data"]) != _told_data(data.model_dump(mode="json", exclude_none=True)):
        raise EventReused(f"#{stored.seq} has this id and says something else.", event=told.id, seq=stored.seq)
    if stored.payloads.keys() != told.texts.keys() or not all(_is(stored.payloads[role], text) for role, text in told.texts.items()):
        raise EventReused(f"#{stored.seq} has this id and other text.", event=told.id, seq=stored.seq)


def _told_data(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in OURS}


def _is(payload: Payload, text: Text) -> bool:
    return payload.erased_at is not None or vault.open_bytes(payload) == _bytes(text)


def _sender(by: Actor, given: str) -> str:
    """The agent's id stands in front, so that nobody else's id is ever taken for it."""
    return f"{by.id}:{given}"


def _bytes(text: Text) -> bytes:
    return text.content.encode("utf-8", "surrogatepass") if isinstance(text.content, str) else text.content
