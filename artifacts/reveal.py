"""Revealing: what is hidden is shown to one person, in one session, for a time, and it is written down before the value leaves.

What is shown is another rendition, in which secrets, prompts and local paths are hidden still; never the bytes as they are. The right to
it is asked again at each look. A reveal is an entry of the audit trail and a row of its own, never an event: a run's log may have ended.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal
from uuid import UUID

from django.db import transaction

from access import audit, characters, rules
from access.errors import BadInput, Forbidden, NotFound, Refusal
from access.models import User
from access.rules import Actor
from artifacts import detectors, preview, redaction_policies, revealing, vault
from artifacts.charsets import decode
from artifacts.models import Label, Payload, Reason, Reveal
from artifacts.redaction import Policy, redact
from artifacts.rendition import is_cut
from artifacts.revealing import NEVER, May, MayNot, Place
from artifacts.vault import Erased
from config import clock

MIN_DETAILS, MAX_DETAILS = 10, 1000  # characters
LOOKED_THROUGH = 2 * 1024 * 1024  # bytes
WINDOW, AT_MOST = timedelta(minutes=10), 20  # reveals of one person: nobody reads so much, a script does


class RevealRefused(Forbidden):
    """This can’t be revealed to you."""

    what_next: ClassVar[str] = "Nothing was shown. That you asked stands in the access log."


class NothingToReveal(Refusal):
    """Nothing is hidden here that could be revealed."""


class RevealReasonNeeded(BadInput):
    """A reveal of personal data needs a reason."""

    what_next: ClassVar[str] = "Nothing was shown. Say why in at least 10 characters, and send it again."


class TooManyReveals(Refusal):
    """You revealed very much in a short time."""

    status: ClassVar[int] = 429
    what_next: ClassVar[str] = "Nothing was shown. Wait some minutes; what you need to go through in bulk, ask an admin about."


class RevealOver(Refusal):
    """The time of this reveal is over."""

    status: ClassVar[int] = 410
    what_next: ClassVar[str] = "It is hidden again. Ask for it anew if you still need it."


@dataclass(frozen=True)
class Revealed:
    """What is shown: marked text as of a rendition (`text`), pages that are drawn (`picture`), or nothing but a file (`file`)."""

    kind: Literal["text", "picture", "file"]
    text: str = ""
    left: int = 0  # places that stay hidden

    @property
    def is_whole(self) -> bool:
        """Whether the text leaves out nothing."""
        return not is_cut(self.text)


def make(actor: Actor, at: Place, *, token: UUID, reason: str = "", details: str = "") -> Reveal:
    """Write down that this person sees what is hidden there, from now on. The same `token` again, or one that is live, is the same reveal.

    RevealRefused, NothingToReveal, Erased, RevealReasonNeeded, TooManyReveals, RevealOver. Each but a missing reason is audited.
    """
    try:
        with transaction.atomic():
            return _made(actor, at, token, reason, details)
    except RevealReasonNeeded:
        raise
    except Refusal as refusal:
        told = {"why": refusal.kind, "label": at.payload.label, "run": str(at.run_id), "place": at.frame}
        audit.record(actor, "reveal_refused", workspace_id=at.payload.workspace_id, subject=("payload", at.payload.pk), **told)
        raise


def _made(actor: Actor, at: Place, token: UUID, reason: str, details: str) -> Reveal:
    # one after the other for each person: the same form twice, and how many there were, are looked at under this lock
    User.objects.select_for_update(no_key=True).get(pk=actor.user_id)
    given = _checked(actor, at)
    first = Reveal.objects.filter(by=actor.user_id, token=token).first()
    if first is not None and not (is_live(first) and first.session == actor.session and first.payload_id == at.payload.pk):
        raise RevealOver
    again = first or live(actor, [at.payload.pk]).get(at.payload.pk)
    if again is not None:
        return again
    if given.needs_reason:
        _check_reason(reason, details)
    now = clock.now()
    if Reveal.objects.filter(by=actor.user_id, at__gt=now - WINDOW).count() >= AT_MOST:
        raise TooManyReveals(f"{AT_MOST} in {WINDOW.seconds // 60} minutes is the most.")
    kept = vault.keep(at.payload.workspace_id, details.strip(), label=Label.INTERNAL) if given.needs_reason else None
    row = Reveal.objects.create(
        workspace_id=at.payload.workspace_id,
        payload=at.payload,
        by_id=actor.user_id,
        session=actor.session,
        token=token,
        label=at.payload.label,
        place=at.key,
        run_id=at.run_id,
        action_id=given.action,
        reason=reason if given.needs_reason else "",
        details=kept,
        hidden=at.hidden,
        at=now,
        until=now + given.lasts,
    )
    _record(actor, row, at)
    return row


def _checked(actor: Actor, at: Place) -> May:
    found = revealing.may(actor, at)
    if isinstance(found, May):
        return found
    if found.word == "erased":
        raise Erased
    raise NothingToReveal(found.why) if found.word == "nothing" else RevealRefused(found.why)


def _check_reason(reason: str, details: str) -> None:
    if reason not in Reason.values:
        raise RevealReasonNeeded("Choose a reason.", at="reason")
    seen, most = characters.seen_length(details), len(details.strip())
    if seen < MIN_DETAILS or most > MAX_DETAILS:
        raise RevealReasonNeeded(f"The details have {min(seen, most)} characters; they need {MIN_DETAILS} to {MAX_DETAILS}.", at="details")


def _record(actor: Actor, row: Reveal, at: Place) -> None:
    told = {
        "label": row.label,
        "reveal": str(row.pk),
        "run": str(row.run_id),
        "place": at.frame,
        "hidden": row.hidden,
        "reason": row.reason,
        "details": str(row.details_id or ""),
        "until": row.until.isoformat(),
        "action": str(row.action_id or ""),
        "how": actor.signed_in,
    }
    audit.record(actor, "revealed", workspace_id=row.workspace_id, subject=("payload", row.payload_id), **told)


# while it lasts ---------------------------------------------------------------------------------------------------------------------


def is_live(row: Reveal) -> bool:
    return row.ended_at is None and row.until > clock.now()


def live(actor: Actor, payloads: Collection[UUID]) -> dict[UUID, Reveal]:
    """What is shown to this person in this session right now, by payload. One query."""
    if not actor.session or not payloads:
        return {}
    mine = Reveal.objects.filter(by=actor.user_id, session=actor.session, ended_at=None, until__gt=clock.now())
    return {row.payload_id: row for row in mine.filter(payload__in=payloads).order_by("at")}


def find(actor: Actor, pk: object) -> Reveal:
    """A reveal of one's own, of this session. NotFound of anybody else's."""
    row = rules.get(actor, Reveal, pk, "artifacts.view")
    if row.by_id != actor.user_id or not actor.session or row.session != actor.session:
        raise NotFound
    return row


def showing(actor: Actor, row: Reveal) -> Place:
    """The place of a reveal that lasts still, for who may see it still: else RevealOver, which says why. Asked before each look."""
    if not is_live(row):
        raise RevealOver
    at = revealing.place(actor, row.place)
    found = revealing.may(actor, at)
    if at.payload.pk != row.payload_id:
        raise RevealOver("Something else stands there now.")
    if isinstance(found, MayNot):
        raise Erased if found.word == "erased" else RevealOver(f"What gave you the right is over. {found.why}")
    return at


def end(actor: Actor, row: Reveal) -> None:
    """Hide it again before its time. Nothing happens if it is over."""
    told = {"reveal": str(row.pk), "label": row.label}
    with transaction.atomic():
        if Reveal.objects.filter(pk=row.pk, ended_at=None, until__gt=clock.now()).update(ended_at=clock.now()) == 1:
            audit.record(actor, "reveal_ended", workspace_id=row.workspace_id, subject=("payload", row.payload_id), **told)


# what is shown ----------------------------------------------------------------------------------------------------------------------


def read(at: Place) -> Revealed:
    """The revealed rendition of what stands there. The caller has asked `showing`. Erased, if the bytes are gone or can't be read;
    RevealRefused, if its rendition hides more as secret than would be hidden now."""
    if at.payload.size > vault.MAX_BYTES:
        return Revealed("file")
    content = vault.opened(at.payload)
    if content is None:
        raise Erased("Its stored bytes can’t be read.")
    if at.is_file:
        return Revealed("picture" if preview.kind_of(content) else "file")
    text, hidden = _rendition(at.payload, content)
    left = sum(hidden.values())
    if not is_cut(text) and left < sum(count for kind, count in at.payload.findings.items() if kind in NEVER):
        raise RevealRefused("Earlier rules hid something in it as a secret, a prompt or a path. What was hidden so is never shown.")
    return Revealed("text", text, left)


def _rendition(payload: Payload, content: bytes) -> tuple[str, Mapping[str, int]]:
    policy = _Open(kinds={payload.label: frozenset()}, rules=redaction_policies.never(payload))
    made = redact(content, media_type=payload.media_type, label=payload.label, policy=policy, about=payload.about)
    return made.text, made.findings


class _Open(Policy):
    """Hides only what nobody may see."""

    def hides(self, label: str) -> frozenset[str]:
        return NEVER


def picture(at: Place, page: int, *, inked: bool = False) -> preview.Picture | preview.NotDrawn:
    """One page of it, drawn anew; not one whose text holds what must stay hidden. Of what is no text nothing can be told."""
    content = vault.opened(at.payload)
    kind = preview.kind_of(content) if content is not None else ""
    if not at.is_file or content is None or not kind:
        raise NotFound
    drawn = preview.picture(content, kind, page, inked=inked)
    if isinstance(drawn, preview.Picture) and detectors.find(drawn.text, kinds=NEVER):
        return preview.NotDrawn("hidden", preview.WHY["hidden"])
    return drawn


def take(actor: Actor, row: Reveal, at: Place) -> bool:
    """Whether the file itself may be taken: as far as can be told nothing in it must stay hidden. For who decides on sending it: it is
    written down, whatever they get."""
    told = {"reveal": str(row.pk), "label": row.label, "run": str(row.run_id)}
    audit.record(actor, "downloaded", workspace_id=row.workspace_id, subject=("payload", row.payload_id), **told)
    shown = read(at)
    return not shown.left and (shown.is_whole or _is_clean(at.payload, vault.open_bytes(at.payload)))


def _is_clean(payload: Payload, content: bytes) -> bool:
    """Whether nothing in a text that is longer than what is shown of it must stay hidden. What is too long to be looked through is not,
    nor is what a policy may name something in."""
    if any(rule.kind and rule.covers(payload.about) for rule in redaction_policies.never(payload)):
        return False
    return len(content) <= LOOKED_THROUGH and not detectors.find(decode(content, "").text, kinds=NEVER)


def of_run(run_id: UUID) -> list[Reveal]:
    """Who saw what of a run, the newest first."""
    return list(Reveal.objects.filter(run_id=run_id).select_related("by", "details").order_by("-at")[:200])


def of_event(run_id: UUID, seq: int) -> list[Reveal]:
    """To whom the texts of an event were shown, the newest first."""
    rows = Reveal.objects.filter(run_id=run_id, place__startswith=f"event:{run_id}:{seq}:")
    return list(rows.select_related("by", "details").order_by("-at")[:20])


def of_payload(payload_id: UUID) -> list[Reveal]:
    """To whom a payload was shown, the newest first."""
    return list(Reveal.objects.filter(payload=payload_id).select_related("by", "details").order_by("-at")[:20])
