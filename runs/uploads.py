"""A message on its way into a run: kept in the vault before anything reads it, and named by a token that only its uploader can use."""

import hashlib
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar

from django.core import signing

from access.errors import BadInput
from access.models import Agent
from access.rules import Actor
from artifacts import messages, redaction, vault
from artifacts.messages import MessagePreview
from artifacts.models import Payload
from runs import starting

MAX_MESSAGE = 10 * 1024 * 1024
MINUTES = 60  # that a token is good for
MEDIA_TYPE = "message/rfc822"
_SALT = "runs.uploads"


class NothingUploaded(BadInput):
    """There is no message in this."""

    what_next: ClassVar[str] = "Choose an .eml file, or paste the message with its From and Subject lines."


class MessageTooLarge(BadInput):
    """This message is too large."""

    status: ClassVar[int] = 413
    what_next: ClassVar[str] = "Save it without its attachments, or send less of it."


class UploadGone(BadInput):
    """This upload is no longer there."""

    what_next: ClassVar[str] = "Nothing was started. Upload the message again."


@dataclass(frozen=True)
class Upload:
    """A stored message, for who uploaded it."""

    token: str
    name: str
    agent: Agent
    workflow: str
    raw: bytes
    preview: MessagePreview

    @property
    def sha256(self) -> str:
        """The digest of the file. It is also the key of the run: the same file starts one run."""
        return hashlib.sha256(self.raw).hexdigest()


def keep(raw: bytes, *, name: str, agent: Agent, workflow: str, by: Actor) -> str:
    """Store a message in the agent's workspace and give its token. NotAMessage, NothingUploaded or MessageTooLarge store nothing."""
    if not raw.strip():
        raise NothingUploaded
    if len(raw) > MAX_MESSAGE:
        raise MessageTooLarge(f"{len(raw):,} bytes; at most {MAX_MESSAGE:,} are taken.", limit=MAX_MESSAGE)
    messages.preview(raw)
    payload = vault.keep(agent.workspace_id, raw, label="personal", media_type=MEDIA_TYPE)
    named = {"payload": str(payload.pk), "by": by.id, "agent": str(agent.pk), "workflow": workflow, "name": name[:120]}
    return signing.dumps(named, salt=_SALT, compress=True)


def load(token: str, *, by: Actor) -> Upload:
    """The message that a token names. UploadGone if the token is not ours, too old or another person's, or the message was erased."""
    named = _read(token)
    if named.get("by") != by.id:
        raise UploadGone
    agent = starting.agents(by).filter(pk=named["agent"]).first()
    if agent is None:
        raise UploadGone
    payload = Payload.objects.select_related("key").filter(pk=named["payload"], workspace_id=agent.workspace_id, erased_at=None).first()
    if payload is None:
        raise UploadGone
    raw = vault.open_bytes(payload)
    return Upload(token, redaction.hide(named["name"]), agent, named["workflow"], raw, _redacted(messages.preview(raw)))


def _redacted(value: Any) -> Any:
    """A preview without what is hidden from everybody. Its uploader sees addresses in it: whom it is from is what they look for."""
    if isinstance(value, str):
        return redaction.hide(value)
    if isinstance(value, tuple):
        return tuple(map(_redacted, value))
    return replace(value, **{each.name: _redacted(getattr(value, each.name)) for each in fields(value)}) if is_dataclass(value) else value


def _read(token: str) -> dict[str, Any]:
    try:
        return signing.loads(token, salt=_SALT, max_age=MINUTES * 60)
    except signing.BadSignature:
        raise UploadGone from None
