"""What an action brings with it, for who may decide on it to look at: a page of a file as a picture, the HTML of a message in a frame.

Nothing here decides or records anything, and nothing that somebody else wrote comes before a browser as it is: a file is drawn anew, and
HTML is framed where it can neither run nor load.
"""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from access import rules
from access.errors import Forbidden, NotFound
from approvals import decisions, exact, presenting, previews
from approvals.cards import email
from approvals.decisions import No
from approvals.models import ProposedAction
from artifacts import preview, vault
from artifacts.models import Artifact, Label

SANDBOXED = {"Content-Security-Policy": "sandbox; default-src 'none'", "X-Content-Type-Options": "nosniff"}
MAX_PAGE = 10_000


@never_cache
@vary_on_headers("HX-Request")
@require_safe
def look(request: HttpRequest, action_id: UUID, index: int) -> HttpResponse:
    """A page of an attachment as a picture, or why there is none: for htmx the part of the card, else a page of its own."""
    action = _readable(request, action_id)
    drawn = _drawn(action, index, _page(request.GET.get("page", "1")))
    shown = {"action": action, "index": index, "drawn": drawn if isinstance(drawn, preview.Picture) else None}
    context = shown | {"why": "" if isinstance(drawn, preview.Picture) else drawn.why, "room": "inbox"}
    if request.headers.get("HX-Request") == "true":
        return render(request, "approvals/_drawn.html", context)
    subject, _ = presenting.words(action, full=True)
    return render(request, "approvals/drawn.html", context | {"subject": subject} | _named(request, action, index))


@never_cache
@require_safe
def cards(request: HttpRequest, artifact_id: UUID) -> HttpResponse:
    """A part of an artifact's page, of what has no text to redact: the picture that a card draws of it, or which cards carry it."""
    artifact = rules.get(request.actor, Artifact, artifact_id, "artifacts.view")
    payload = str(artifact.payload_id)
    actions = rules.visible(request.actor, ProposedAction, "approvals.view").filter(run_id=artifact.run_id).order_by("-proposed_seq")
    found = [action for action in actions.select_related("run") if payload in action.attachments]
    open_to = next((each for each in found if not isinstance(decisions.may_read(each, request.actor), No)), None)
    index = open_to.attachments.index(payload) if open_to else 0
    return render(request, "approvals/_cards.html", {"found": found, "open_to": open_to, "index": index})


@never_cache
@require_safe
def picture(request: HttpRequest, action_id: UUID, index: int, page: int) -> HttpResponse:
    """The PNG that Handrail drew of a page."""
    drawn = _drawn(_readable(request, action_id), index, page)
    if not isinstance(drawn, preview.Picture):
        raise NotFound
    return HttpResponse(drawn.png, content_type="image/png", headers=SANDBOXED)


@never_cache
@require_safe
@xframe_options_sameorigin
def letter(request: HttpRequest, action_id: UUID) -> HttpResponse:
    """The HTML of an e-mail, to be framed by the page of its action. Its policy lets nothing run and nothing be loaded."""
    what = exact.whole(_readable(request, action_id))
    name = email.html_name(what.arguments)
    if not name:
        raise NotFound
    framed = preview.letter(what.arguments[name])
    return HttpResponse(framed.document, headers=SANDBOXED | {"Content-Security-Policy": framed.policy})


def _readable(request: HttpRequest, action_id: UUID) -> ProposedAction:
    """The action, for who may read it exactly. Forbidden says why not."""
    action = presenting.find(request.actor, action_id)
    may = decisions.may_read(action, request.actor)
    if isinstance(may, No):
        raise Forbidden(may.why)
    return action


def _named(request: HttpRequest, action: ProposedAction, index: int) -> dict[str, object]:
    """What the page of its own says of the file: its name, and its artifact if the run still shows one of it."""
    found = exact.attachment(action, index)
    if found is None:
        raise NotFound
    file, payload = found
    artifacts = rules.visible(request.actor, Artifact, "artifacts.view").filter(run_id=action.run_id, payload_id=payload.pk)
    return {"name": file.name, "artifact": artifacts.select_related("payload").order_by("created_at").first()}


def _drawn(action: ProposedAction, index: int, page: int) -> preview.Picture | preview.NotDrawn:
    found = exact.attachment(action, index)
    if found is None:
        raise NotFound
    _, payload = found
    if payload.label == Label.SECRET:
        return preview.NotDrawn("secret", "Secret: not shown here.")
    content = vault.opened(payload)
    if content is None:
        return preview.NotDrawn("unreadable", "Its stored bytes can’t be read. This can’t be approved.")
    return previews.picture(content, page) if 1 <= page <= MAX_PAGE else preview.NotDrawn("no_page", "It has no such page.")


def _page(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
