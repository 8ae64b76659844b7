"""What an action brings with it that is hidden, and who may have it shown: the attachments on its card, its evidence, the open action."""

from dataclasses import replace

from django.urls import reverse

from access.rules import Actor
from approvals import decisions, exact
from approvals.decisions import Yes
from approvals.models import Decision, ProposedAction
from artifacts import reveal
from artifacts.models import Artifact, Payload
from artifacts.rendition import is_cut, plain
from artifacts.revealing import Place
from artifacts.showing import Box, box
from config import clock
from runs.models import Event

# events before a proposal whose texts are what it was made of, and the proposal’s own
EVIDENCE = ("tool.started", "tool.ended", "artifact.created", "model.called", "signal.received", "question.answered", "action.proposed")


def boxes(action: ProposedAction, actor: Actor) -> dict[int, Box]:
    """What of its attachments is hidden on the card of an action, and may be shown, by index. What was revealed with a reason is shown."""
    found = attached(action, actor)
    rows = reveal.live(actor, [at.payload.pk for at in found.values()])
    lasting = {pk: row for pk, row in rows.items() if row.reason}
    return {index: box(actor, at, lasting.get(at.payload.pk), else_hidden=True) for index, at in found.items()}


def attached(action: ProposedAction, actor: Actor) -> dict[int, Place]:
    """The places of all attachments on the card. Names are renditions."""
    if not action.attachments:
        return {}
    payloads = {str(each.pk): each for each in Payload.objects.select_related("key", "erased_by").filter(pk__in=action.attachments)}
    names = [plain(each.get("name", "")) for each in exact.masked(action).get("attachments", ())]
    names += [f"Attachment {i + 1}" for i in range(len(names), len(action.attachments))]
    judged = action.pk if is_open_to(action, actor) else False
    return {
        i: Place(f"action:{action.pk}:{i}", payloads[pk], action.run_id, _back(action), names[i], frame="file", judged=judged)
        for i, pk in enumerate(action.attachments)
        if pk in payloads
    }


def evidence(action: ProposedAction, artifact: Artifact, actor: Actor) -> Place:
    """The place of an artifact of the run as the card of an action lists it."""
    key = f"evidence:{action.pk}:{artifact.pk}"
    at = Place(key, artifact.payload, action.run_id, _back(action), artifact.name, "evidence", artifact.pk)
    return replace(at, judged=action.pk if is_open_to(action, actor) and belongs(action, at) else False)


def hides(payload: Payload) -> bool:
    """Whether its bytes hold what its rendition does not show."""
    return payload.erased_at is None and bool(payload.findings or is_cut(payload.rendition or ""))


def is_open_to(action: ProposedAction, actor: Actor) -> bool:
    """Whether this person has to decide on it: it waits, they may, and have not yet."""
    if action.state != "waiting" or action.expires_at <= clock.now() or not isinstance(decisions.may_decide(action, actor), Yes):
        return False
    return not Decision.objects.filter(action=action, reviewer_id=actor.user_id, round=action.round).exists()


def belongs(action: ProposedAction, at: Place) -> bool:
    """Whether what stands there is part of an action, or of what its run had before it proposed that."""
    if str(at.payload.pk) in action.attachments:
        return True
    before = Event.objects.filter(run_month=action.run.month, run_id=action.run_id, seq__lte=action.proposed_seq, type__in=EVIDENCE)
    if at.artifact_id:
        return before.filter(artifact=at.artifact_id).exists()
    return bool(at.seq) and before.filter(seq=at.seq).exists()


def _back(action: ProposedAction) -> str:
    return reverse("approvals:action", args=(action.pk,))
