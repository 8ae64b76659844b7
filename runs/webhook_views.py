"""What people choose for a webhook that led nowhere."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from access import rules
from access.errors import BadInput
from runs import webhooks
from runs.models import ReceivedWebhook


@require_POST
def resolve(request: HttpRequest, webhook_id: UUID) -> HttpResponse:
    webhook = rules.get(request.actor, ReceivedWebhook, webhook_id, "runs.recover", related=("source",))
    choice = request.POST.get("choice", "")
    if choice not in ("apply", "discard"):
        raise BadInput("This is not a choice that the page offers. Nothing was changed.")
    try:
        state = webhooks.resolve(webhook, choice, by=request.actor)
    except webhooks.LetterSettled as refusal:
        messages.error(request, f"{refusal.title} {refusal.what_next}")
        return redirect("runs:recovery")
    if state == "dead":
        messages.error(request, "Still nobody waits for it, or it still can’t be applied. It stays here.")
    else:
        messages.success(request, "Discarded. No run gets it." if state == "discarded" else "Applied. The run that wanted it has it.")
    return redirect("runs:recovery")
