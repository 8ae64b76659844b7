"""Large files of an agent's run over HTTP: up in parts, which go on where they broke off, and down in ranges."""

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from ninja import Header, Router, Status
from pydantic import Field, StringConstraints

from access import rules
from access.errors import NotFound
from access.ids import as_uuid
from artifacts import serving, uploading
from artifacts.models import Artifact, Payload, Upload
from runs import intake
from runs.api import EventKey, Strict, Token
from runs.models import Run
from runs.vocabulary import FileName, Label, MediaType

router = Router(tags=["runs"])

Offset = Annotated[int, Header(alias="Upload-Offset", ge=0, le=2**53 - 1)]


class UploadIn(Strict):
    """What will come."""

    name: FileName
    size: Annotated[int, Field(ge=1, le=2**53 - 1)]
    label: Label = "internal"
    media_type: MediaType = "application/octet-stream"
    outside: bool = False


class FinishIn(Strict):
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{64}$")]


@router.post("/runs/{run_id}/uploads", response={200: Any, 201: Any}, summary="Begin an upload in parts")
def begin(request: HttpRequest, run_id: str, body: UploadIn, idempotency_key: EventKey) -> Status:
    """For what is larger than a request may be. It lasts a day. The same Idempotency-Key again is the same upload."""
    run = rules.get(request.actor, Run, run_id, "runs.write")
    intake.check_open(run)
    upload = uploading.begin(
        workspace_id=run.workspace_id, agent_id=run.agent_id, run_id=run.pk, sender=idempotency_key, **body.model_dump()
    )
    return Status(200 if upload.offset or upload.finished_at else 201, _told(upload))


@router.api_operation(["HEAD"], "/uploads/{upload_id}", response=Any, include_in_schema=False)
@router.get("/uploads/{upload_id}", response=Any, summary="Where an upload is")
def offset(request: HttpRequest, upload_id: str, response: HttpResponse) -> dict[str, Any]:
    """`Upload-Offset` and `Upload-Length`, as headers too: go on from there."""
    upload = rules.get(request.actor, Upload, upload_id, "runs.write")
    return _with_headers(response, upload)


@router.patch("/uploads/{upload_id}", response=Any, summary="Send the next part")
def append(request: HttpRequest, upload_id: str, upload_offset: Offset, response: HttpResponse) -> dict[str, Any]:
    """The body is the part, of 1 to 12 MiB, the last of any size. Another offset than the upload's is refused with that one."""
    upload = rules.get(request.actor, Upload, upload_id, "runs.write", related=("key",))
    return _with_headers(response, uploading.append(upload, upload_offset, request.body))


@router.post("/uploads/{upload_id}/finish", response={200: Any, 201: Any}, summary="Make an artifact of what was sent")
def finish(request: HttpRequest, upload_id: str, body: FinishIn, handrail_token: Token = None) -> Status:
    """Only if all of it is there and has this SHA-256. It stands in the log as artifact.created; the same again gives the same."""
    upload = rules.get(request.actor, Upload, upload_id, "runs.write", related=("key",))
    run = rules.get(request.actor, Run, upload.run_id, "runs.write")
    told = {"name": upload.name, "outside": upload.outside}
    key, accepted = f"upload-{upload.pk}", intake.accepted(run, f"upload-{upload.pk}", by=request.actor)

    def keep(payload: Payload) -> None:
        nonlocal accepted
        accepted = intake.keep_artifact(run, key, told, payload, by=request.actor, token=handrail_token)

    if accepted is None:
        try:
            uploading.finish(upload, body.sha256, keep=keep)
        except uploading.UploadOver:
            accepted = intake.accepted(run, key, by=request.actor)  # the same, sent twice at once
            if accepted is None:
                raise
    assert accepted is not None
    return Status(200 if accepted.duplicate else 201, {"id": accepted.id, "seq": accepted.seq, "duplicate": accepted.duplicate})


@router.api_operation(["DELETE"], "/uploads/{upload_id}", response={204: None}, summary="Give an upload up")
def give_up(request: HttpRequest, upload_id: str) -> Status:
    uploading.close(rules.get(request.actor, Upload, upload_id, "runs.write"))
    return Status(204, None)


@router.api_operation(["HEAD"], "/runs/{run_id}/artifacts/{artifact_id}/content", response=Any, include_in_schema=False)
@router.get("/runs/{run_id}/artifacts/{artifact_id}/content", response=Any, summary="Download an artifact")
def content(request: HttpRequest, run_id: str, artifact_id: str) -> HttpResponseBase:
    """The bytes, to the agent whose run it is, for it kept them. `Range` gives a part. People read artifacts on their page."""
    run = rules.get(request.actor, Run, run_id, "runs.write")
    made = Artifact.objects.filter(run_id=run.pk, pk=as_uuid(artifact_id)).select_related("payload__key", "payload__erased_by").first()
    if made is None:
        raise NotFound
    return serving.download(request, made.payload, made.name)


def _with_headers(response: HttpResponse, upload: Upload) -> dict[str, Any]:
    response.headers["Upload-Offset"], response.headers["Upload-Length"] = str(upload.offset), str(upload.size)
    response.headers["Cache-Control"] = "no-store"
    return _told(upload)


def _told(upload: Upload) -> dict[str, Any]:
    parts = {"part_min": uploading.PART_MIN, "part_max": uploading.PART_MAX}
    return {
        "id": upload.pk,
        "offset": upload.offset,
        "size": upload.size,
        "expires_at": upload.expires_at,
        "finished_at": upload.finished_at,
    } | parts
