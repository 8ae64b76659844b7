"""Where on an action’s card something hidden stands, by its key, and who may see it because they decide on the action."""

from collections.abc import Sequence
from uuid import UUID

from access import rules
from access.errors import NotFound
from access.rules import Actor
from approvals import opening, presenting
from approvals.models import ProposedAction
from artifacts.models import Artifact
from artifacts.revealing import Place


def of_attachment(actor: Actor, parts: Sequence[str]) -> Place:
    """`action:ID:INDEX`."""
    action_id, index = [*parts, "", ""][:2]
    found = opening.attached(presenting.find(actor, action_id), actor)  # type: ignore[arg-type]  what is no id is not found
    if not (index.isascii() and index.isdigit() and len(index) < 6 and int(index) in found):
        raise NotFound
    return found[int(index)]


def of_evidence(actor: Actor, parts: Sequence[str]) -> Place:
    """`evidence:ID:ARTIFACT`."""
    action_id, artifact_id = [*parts, "", ""][:2]
    action = presenting.find(actor, action_id)  # type: ignore[arg-type]
    artifact = rules.get(actor, Artifact, artifact_id, "artifacts.view", related=("payload", "payload__key", "payload__erased_by"))
    if artifact.run_id != action.run_id:
        raise NotFound
    return opening.evidence(action, artifact, actor)


def judged(actor: Actor, at: Place) -> UUID | None:
    """The action that this person may decide on now and that this belongs to: the right to reveal it lasts as long."""
    waiting = rules.visible(actor, ProposedAction, "approvals.decide").filter(run_id=at.run_id, state="waiting")
    for action in waiting.select_related(*presenting.RELATED).order_by("proposed_at"):
        if opening.belongs(action, at) and opening.is_open_to(action, actor):
            return action.pk
    return None
