"""Where webhooks come in. Nobody is signed in here: the signature says who sent it."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from runs import webhooks

router = Router(tags=["webhooks"])


@router.post("/webhooks/{source_id}", auth=None, response={200: Any, 201: Any}, summary="Send a webhook")
def receive(request: HttpRequest, source_id: str) -> Status:
    """Signed as https://www.standardwebhooks.com says. 2xx once it is stored; the same again, by its id or its content, is 200."""
    length = request.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > webhooks.MAX_BODY:
        raise webhooks.WebhookTooLarge(f"{length} bytes; at most {webhooks.MAX_BODY} are read.", limit=webhooks.MAX_BODY)
    came = webhooks.receive(source_id, request.headers, request.body)
    if not came.again:
        webhooks.apply_soon(came.webhook.pk)
    return Status(200 if came.again else 201, {"id": came.webhook.pk, "duplicate": came.again})
