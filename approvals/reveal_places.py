"""What of an action somebody may want to see, and who may because they decide on it: its attachments, and what the run had before it."""

from collections.abc import Sequence
from uuid import UUID

from django.urls import reverse

from access import rules
from access.errors import NotFound
from access.rules import Actor
from approvals import decisions, exact, presenting
from approvals.decisions import Yes
from approvals.models import Decision, ProposedAction
from artifacts.models import Payload
from artifacts.rendition import plain
from artifacts.revealing import Place
from config import clock
from runs.models import Event

# events before a proposal whose texts are what it was made of, and the proposal’s own
EVIDENCE = ("tool.started", "tool.ended", "artifact.created", "model.called", "signal.received", "question.answered", "action.proposed")


def of_attachment(actor: Actor, parts: Sequence[str]) -> Place:
    """`action:ID:INDEX`."""
    action_id, index = [*parts, "", ""][:2]
    action = presenting.find(actor, action_id)  # type: ignore[arg-type]  what is no id is not found
    if not (index.isascii() and index.isdigit() and len(index) < 6 and int(index) < len(action.attachments)):
        raise NotFound
    return at_attachment(action, int(index))


def at_attachment(action: ProposedAction, index: int) -> Place:
    """The place of an attachment on its action’s card."""
    payload = Payload.objects.select_related("key", "erased_by").get(pk=action.attachments[index])
    named = [each.get("name", "") for each in exact.masked(action).get("attachments", ())]
    name = plain(named[index]) if index < len(named) and named[index] else f"Attachment {index + 1}"
    back = reverse("approvals:action", args=(action.pk,))
    return Place(f"action:{action.pk}:{index}", payload, action.run_id, back, name, frame="file")


def judged(actor: Actor, at: Place) -> UUID | None:
    """The action that this person may decide on now and that this belongs to: the right to reveal it lasts as long."""
    open_now = rules.visible(actor, ProposedAction, "approvals.decide").filter(
        run_id=at.run_id, state="waiting", expires_at__gt=clock.now()
    )
    for action in open_now.select_related(*presenting.RELATED).order_by("proposed_at"):
        if _belongs(action, at) and isinstance(decisions.may_decide(action, actor), Yes) and not _has_decided(action, actor):
            return action.pk
    return None


def _belongs(action: ProposedAction, at: Place) -> bool:
    if str(at.payload.pk) in action.attachments:
        return True
    before = Event.objects.filter(run_month=action.run.month, run_id=action.run_id, seq__lte=action.proposed_seq, type__in=EVIDENCE)
    if at.artifact_id:
        return before.filter(artifact=at.artifact_id).exists()
    return bool(at.seq) and before.filter(seq=at.seq).exists()


def _has_decided(action: ProposedAction, actor: Actor) -> bool:
    return Decision.objects.filter(action=action, reviewer_id=actor.user_id, round=action.round).exists()
