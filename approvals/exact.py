"""The exact action behind a proposal: built once, kept as its canonical bytes, read back from them."""

import hashlib
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import orjson
from cryptography.exceptions import InvalidTag

from approvals import canonical
from approvals.canonical import Attachment, CanonicalAction
from approvals.errors import Unreadable
from approvals.models import ProposedAction
from artifacts import vault
from artifacts.models import Payload
from artifacts.vault import Erased
from runs.engine.gates import Proposal

NOT_KEPT = ""  # the sameness of what was proposed before it was kept


def build(proposal: Proposal) -> CanonicalAction:
    """The canonical action of what the engine wants to do."""
    tool = proposal.tool
    return CanonicalAction(
        tool=tool.name,
        tool_schema=tool.schema_version,
        arguments=proposal.arguments,
        attachments=tuple(Attachment(a.name, a.media_type, a.payload.size, a.payload.commitment) for a in proposal.attachments),
        recipients=tuple(tool.recipients(proposal.arguments)),
        target=tool.target,
        credential=tool.credential,
        executor=tool.executor,
        nonce=proposal.nonce,
    )


def read(action: ProposedAction) -> CanonicalAction:
    """The action in full. Only for who may decide on it, and for running it."""
    return canonical.parse(stored_bytes(action))


def whole(action: ProposedAction) -> CanonicalAction:
    """The action in full, if its bytes are those of its digest. Raises Unreadable, which says why it can't be approved."""
    try:
        stored = stored_bytes(action)
        what = canonical.parse(stored)
    except Erased as gone:
        raise Unreadable(f"{gone.detail} The action can no longer be read or run.") from None
    except (InvalidTag, canonical.NotCanonical):
        raise Unreadable("The stored bytes of this action can’t be read. It can’t be approved.") from None
    if hashlib.sha256(stored).hexdigest() != action.digest or len(what.attachments) != len(action.attachments):
        raise Unreadable("The stored bytes of this action are not those of its digest. It can’t be approved.")
    return what


def check_attachments(action: ProposedAction, what: CanonicalAction) -> None:
    """Raise Unreadable unless each attached file can be opened and has the bytes that the action names."""
    kept = {str(payload.pk): payload for payload in Payload.objects.select_related("key").filter(pk__in=action.attachments)}
    for named, pk in zip(what.attachments, action.attachments, strict=True):
        if not _is_file(kept.get(pk), named):
            raise Unreadable(f"The stored bytes of the attachment “{named.name}” are not those that were proposed. It can’t be approved.")


def _is_file(payload: Payload | None, named: Attachment) -> bool:
    if payload is None:
        return False
    try:
        salt, content = vault.opening(payload)
    except (Erased, InvalidTag):
        return False
    return len(content) == named.size and vault.commit(salt, content) == named.commitment


def stored_bytes(action: ProposedAction) -> bytes:
    return vault.open_bytes(Payload.objects.select_related("key").get(pk=action.canonical_id))


def masked(action: ProposedAction, *, to_draw: bool = False) -> Mapping[str, Any]:
    """The action as anybody sees it who may see the run: the redacted rendition of its canonical JSON, as values.

    Of one that was erased there is nothing; Unreadable if it is `to_draw`, for an empty card would say that it had no arguments.
    """
    shown = vault.shown([action.canonical_id])[action.canonical_id]
    if shown.erased_at and to_draw:
        raise Unreadable(f"{shown.text}. The action can no longer be read or run.")
    try:
        return orjson.loads("{}" if shown.erased_at else shown.text or "{}")
    except orjson.JSONDecodeError:  # cut off at the rendition's size
        return {"tool": action.tool, "arguments": {}, "recipients": [], "attachments": []}


def attachment(action: ProposedAction, index: int) -> tuple[Attachment, Payload] | None:
    """One attached file: how the action names it, and its payload."""
    if not 0 <= index < len(action.attachments):
        return None
    payload = Payload.objects.select_related("key").get(pk=action.attachments[index])
    return read(action).attachments[index], payload


def sameness(action: CanonicalAction, run_id: UUID) -> str:
    """A digest that is equal for the same thing proposed twice in a run: the nonce, and whatever was made of it, is left out."""
    text = canonical.canonical_bytes(action)
    return hashlib.sha256(run_id.bytes + text.replace(action.nonce.encode(), b"")).hexdigest()
