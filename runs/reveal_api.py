"""Revealing over HTTP: for people, in their session; and who saw what of a run."""

from typing import Annotated, Any
from uuid import UUID, uuid4

import orjson
from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import BaseModel, ConfigDict, StringConstraints

from access import rules
from access.errors import BadInput, Forbidden, NotFound
from access.ids import as_uuid
from artifacts import reveal, revealing
from artifacts.models import Artifact, Payload, Reveal
from artifacts.rendition import plain
from artifacts.revealing import Place
from runs.models import Run

router = Router(tags=["reveals"])


class PeopleReveal(Forbidden):
    """Only a person who is signed in reveals what is hidden."""

    what_next = "Nothing was shown. What an agent may know, its tools give it."


class RevealIn(BaseModel):
    """`place`: where the payload stands, `event:RUN:SEQ:ROLE`, `action:ID:INDEX` or `artifact:ID`; an artifact’s is found without. `token`:
    the same again is the same reveal."""

    model_config = ConfigDict(extra="forbid")

    place: Annotated[str, StringConstraints(max_length=160)] = ""
    reason: Annotated[str, StringConstraints(max_length=10)] = ""
    details: Annotated[str, StringConstraints(max_length=4000)] = ""
    token: UUID | None = None


@router.post("/payloads/{payload_id}/reveals", response={201: Any}, summary="Reveal what is hidden, to yourself, on record")
def make(request: HttpRequest, payload_id: str, asked: RevealIn) -> HttpResponse:
    """What is revealed is in the answer and nowhere else: `text`, with marks where something stays hidden. Pages are drawn on the pages."""
    if request.actor.kind != "human":
        raise PeopleReveal
    at = _place(request, payload_id, asked.place)
    row = reveal.make(request.actor, at, token=asked.token or uuid4(), reason=asked.reason, details=asked.details)
    shown = reveal.read(reveal.showing(request.actor, row))
    told = {"kind": shown.kind, "text": shown.text if shown.kind == "text" else None, "left": shown.left}
    body = orjson.dumps(_as_json(row) | told, default=str)
    return HttpResponse(body, status=201, content_type="application/json", headers={"Cache-Control": "no-store"})


@router.get("/runs/{run_id}/reveals", response=Any, summary="Who saw what of a run")
def of_run(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """The newest first, 200 at most."""
    run = rules.get(request.actor, Run, run_id, "audit.view")
    return {"reveals": [_as_json(row) | {"by": row.by.name} for row in reveal.of_run(run.pk)]}


def _place(request: HttpRequest, payload_id: str, key: str) -> Place:
    """A payload by itself is of no team: who sees the runs of their own teams alone finds it by where it stands."""
    if not request.actor.narrowed("artifacts.view"):
        rules.get(request.actor, Payload, payload_id, "artifacts.view")
    if not key:
        of = rules.visible(request.actor, Artifact, "artifacts.view").filter(payload=as_uuid(payload_id))
        artifact = of.order_by("created_at").first()
        if artifact is None:
            raise BadInput("Say where it stands: place.", at="place")
        key = f"artifact:{artifact.pk}"
    at = revealing.place(request.actor, key)
    if at.payload.pk != as_uuid(payload_id):
        raise NotFound
    return at


def _as_json(row: Reveal) -> dict[str, Any]:
    """A reveal, without what it shows. Details are a rendition."""
    return {
        "id": row.pk,
        "payload": row.payload_id,
        "label": row.label,
        "hidden": row.hidden,
        "reason": row.reason,
        "details": plain(row.details.rendition or "") if row.details else "",
        "action": row.action_id,
        "at": row.at,
        "until": row.until,
        "ended_at": row.ended_at,
    }
