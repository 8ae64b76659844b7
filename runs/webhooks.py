"""Webhooks that come in: verified, stored before they are acknowledged, and applied once.

    receive (one transaction, then 2xx) → apply: feed the run that waits for it, or start one → applied
                                        → nobody wants it: a run that begins to wait takes it; after a while it is a dead letter

The sender's id makes the same webhook one; so does its content, for a day. What goes wrong after it was stored is ours to mend: the sweep
applies what a lost process left, and a person chooses for what can't be applied.
"""

import hashlib
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Literal
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, OuterRef, Q, Subquery, Sum

from access import audit, hiding
from access.errors import BadInput, DatabaseTrouble, Refusal
from access.ids import as_uuid
from access.models import Agent, Workspace
from access.rows import only
from access.rules import Actor
from artifacts import vault
from artifacts.models import Payload
from config import clock
from runs import log, standard_webhooks, starting, webhook_places, webhook_rate
from runs.engine import workflow as workflows
from runs.engine.workflow import Intake
from runs.lifecycle import UNDOING, State
from runs.log import Held
from runs.standard_webhooks import NotVerified
from runs.vocabulary import RunQueued, WebhookReceived
from runs.webhook_models import ReceivedWebhook, WebhookSource, WebhookWait
from runs.webhook_places import fits

MAX_BODY = 256 * 1024  # bytes
TWIN = timedelta(hours=24)  # so long the same content again is the same webhook, whatever id it has
LEFT = timedelta(seconds=2)  # stored, and nobody applied it: its process was lost
UNMATCHED = timedelta(minutes=15)  # so long it is kept for a run that begins to wait, before people are told
NAME = re.compile(r"(?!signal$)[A-Za-z0-9][A-Za-z0-9_-]{0,59}")  # a workflow that waits for "signal" waits for people
BATCH = 100
OPEN = ("received", "dead")
Choice = Literal["apply", "discard"]
logger = logging.getLogger(__name__)


class WebhookTooLarge(BadInput):
    """This webhook is too large."""

    status: ClassVar[int] = 413
    what_next: ClassVar[str] = "Nothing was kept. Send ids, and let the run read the rest."


class WebhookReused(Refusal):
    """This webhook-id was used for another webhook."""

    what_next: ClassVar[str] = "Nothing was kept. Each webhook has an id of its own, which only stays the same when it is sent again."


class SourceExists(Refusal):
    """There is a webhook source of this name."""


class LetterSettled(Refusal):
    """Somebody has chosen already, or it was applied."""

    what_next: ClassVar[str] = "Nothing was changed."


@dataclass(frozen=True)
class Received:
    """A webhook that is stored. `again`: it was stored before, by its id or its content."""

    webhook: ReceivedWebhook
    again: bool


# sources ----------------------------------------------------------------------------------------------------------------------------


def make_source(agent: Agent, name: str, *, workflow: str = "", by: Actor) -> tuple[WebhookSource, str]:
    """Somebody who may send webhooks from now on, and the secret, which is shown this once. `workflow`: whose runs they start.

    BadInput, UnknownWorkflow or SourceExists.
    """
    if not NAME.fullmatch(name) or hiding.detectors.holds(name):
        raise BadInput("A name has up to 60 letters, digits, - and _, and begins with a letter or digit; “signal” is taken.")
    if workflow and workflows.named(workflow).webhook is None:
        raise BadInput(f"{workflow} is not started by webhooks.")
    with transaction.atomic(durable=True):
        Workspace.objects.select_for_update(no_key=True).get(pk=agent.workspace_id)  # of two at once the second is told
        if WebhookSource.objects.filter(workspace_id=agent.workspace_id, name=name).exists():
            raise SourceExists(f"{name} is there already. Give it a new secret instead, or take another name.")
        secret = standard_webhooks.new_secret()
        kept = vault.keep(agent.workspace_id, secret, label="secret")
        its = {"secret": kept, "places_key": webhook_places.new_key(agent.workspace_id)}
        made = WebhookSource.objects.create(workspace_id=agent.workspace_id, name=name, agent=agent, workflow=workflow, **its)
        audit.record(by, "webhook_source_made", workspace_id=agent.workspace_id, subject=("webhook_source", made.pk))
    return made, secret


def rotate(source: WebhookSource, *, by: Actor) -> str:
    """A new secret, shown this once. The old one holds too for a day, so that no webhook is lost while the sender changes."""
    with transaction.atomic(durable=True):
        source = WebhookSource.objects.select_for_update(no_key=True).get(pk=source.pk)
        secret = standard_webhooks.new_secret()
        kept = vault.keep(source.workspace_id, secret, label="secret")
        WebhookSource.objects.filter(pk=source.pk).update(**standard_webhooks.rotated(source, kept.pk, clock.now()))
        audit.record(by, "webhook_source_rotated", workspace_id=source.workspace_id, subject=("webhook_source", source.pk))
    return secret


def close_source(source: WebhookSource, *, by: Actor) -> None:
    """Take nothing from it any more. Runs that wait for it are stuck, with that said."""
    with transaction.atomic(durable=True):
        if WebhookSource.objects.filter(pk=source.pk, closed_at=None).update(closed_at=clock.now()):
            audit.record(by, "webhook_source_closed", workspace_id=source.workspace_id, subject=("webhook_source", source.pk))
    _let_go_closed()


def _let_go_closed() -> None:
    """Have the runs look once more that wait for sources which were closed. They find their wait closed."""
    waits = WebhookWait.objects.filter(source__closed_at__isnull=False, closed_at=None, run__ended_at=None)
    for pk, run_id in list(waits.values_list("pk", "run_id")[:BATCH]):
        with log.holding(run_id) as held:
            if WebhookWait.objects.filter(pk=pk, closed_at=None).update(closed_at=clock.now()) and held.row.state == State.WAITING:
                held.move(State.QUEUED, RunQueued(reason="webhook"))


def listed(workspace_id: UUID) -> list[WebhookSource]:
    """All sources, those that are open first, each with `address`, when it sent last (`last_at`), and how many came in the last day
    (`came`) and how often those did (`times`). One query."""
    newest = ReceivedWebhook.objects.filter(source=OuterRef("pk")).order_by("-received_at").values("received_at")[:1]
    lately = Q(webhooks__received_at__gt=clock.now() - TWIN) & ~Q(webhooks__state="repeated")
    counts = {"came": Count("webhooks", filter=lately), "times": Sum("webhooks__times", filter=lately)}
    rows = WebhookSource.objects.filter(workspace_id=workspace_id).select_related("agent").annotate(last_at=Subquery(newest), **counts)
    found = sorted(rows, key=lambda each: (each.closed_at is not None, each.name))
    for each in found:
        each.address = address(each)
    return found


def startable() -> list[tuple[str, str]]:
    """The workflows that webhooks can start: name, title."""
    return sorted((known.name, known.title) for known in workflows.WORKFLOWS.values() if known.webhook is not None)


def address(source: WebhookSource) -> str:
    """Where its webhooks are posted to."""
    return f"{settings.HANDRAIL_URL}/api/v1/webhooks/{source.pk}"


# coming in --------------------------------------------------------------------------------------------------------------------------


def receive(source_id: str, given: Mapping[str, str], body: bytes) -> Received:
    """Verify and store a webhook. Whatever is stored is applied, sooner or later, once. `given`: the request's headers.

    NotVerified, WebhookTooLarge, WebhookReused or TooManyWebhooks; nothing is kept then. What was stored before is never too many.
    """
    if len(body) > MAX_BODY:
        raise WebhookTooLarge(f"{len(body)} bytes; at most {MAX_BODY} are read.", limit=MAX_BODY)
    pk = as_uuid(source_id)
    source = only(WebhookSource.objects.filter(pk=pk, closed_at=None)) if pk else None
    if source is None:
        raise NotVerified
    told = standard_webhooks.headers(given)
    standard_webhooks.verify(told, body, _secrets(source), now=clock.now())
    digest = hashlib.sha256(body).hexdigest()
    if there := _there(source, told.id, digest):
        return there
    webhook_rate.check(source.pk)  # before anything is sealed, which takes time and may write a file; and once more under the lock
    [sealed] = vault.sealed(source.workspace_id, [(body, "personal", "application/json")])
    try:
        received = _store(source, told.id, digest, body, sealed)
    except Refusal:
        vault.discard(sealed)
        raise
    if received.webhook.body_id != sealed.pk:
        vault.discard(sealed)
    return received


def _secrets(source: WebhookSource) -> list[str]:
    ids = standard_webhooks.holding(source, clock.now())
    return [vault.open_bytes(payload).decode() for payload in Payload.objects.select_related("key").filter(pk__in=ids)]


def _there(source: WebhookSource, delivery: str, digest: str) -> Received | None:
    """What is stored by this id, counted once more; None if nothing is. WebhookReused."""
    first = only(ReceivedWebhook.objects.filter(source=source, delivery=delivery))
    if first is None:
        return None
    if first.digest != digest:
        raise WebhookReused
    _count_again(first)
    return Received(first, again=True)


def _store(source: WebhookSource, delivery: str, digest: str, content: bytes, body: Payload) -> Received:
    """One of several that come at once is stored: the source's lock has them come one after another."""
    with transaction.atomic(durable=True):
        source = WebhookSource.objects.select_for_update(no_key=True).get(pk=source.pk)
        if there := _there(source, delivery, digest):
            return there
        webhook_rate.check(source.pk)
        lately = ReceivedWebhook.objects.filter(source=source, digest=digest, received_at__gt=clock.now() - TWIN).exclude(state="repeated")
        twin = lately.order_by("received_at").first()
        if twin is not None:
            _count_again(twin)
        vault.store([body])
        its = {"source": source, "delivery": delivery, "digest": digest, "body": body}
        if twin is not None:
            settled = {"state": "repeated", "run_id": twin.run_id, "settled_at": clock.now()}
            return Received(ReceivedWebhook.objects.create(**its, **settled), again=True)
        places = webhook_places.of(_places_key(source), webhook_places.parsed(content))
        made = ReceivedWebhook.objects.create(**its, all_places=places.all_there)
        webhook_places.keep(made, places)
    return Received(made, again=False)


def _places_key(source: WebhookSource) -> bytes:
    """Under the source's lock: one from before there were such keys gets its own."""
    if source.places_key_id is None:
        source.places_key = webhook_places.new_key(source.workspace_id)
        WebhookSource.objects.filter(pk=source.pk).update(places_key=source.places_key)
    return webhook_places.key_of(source)


def _count_again(webhook: ReceivedWebhook) -> None:
    ReceivedWebhook.objects.filter(pk=webhook.pk).update(times=F("times") + 1)


# applying ---------------------------------------------------------------------------------------------------------------------------


def apply(webhook_id: UUID, *, late: bool = False) -> str:
    """Give it to whom it is for; gives its state then. Twice at once does no harm. What fails for good is a dead letter.

    `late`: a person wants it applied, to a run too that began after it came.
    """
    webhook = ReceivedWebhook.objects.select_related("source__agent__owner", "body__key").get(pk=webhook_id)
    if webhook.state not in OPEN:
        return webhook.state
    try:
        body = _read(webhook)
        if body is None:
            return _dead(webhook, "invalid")
        if _feed(webhook, body, late) or _start(webhook, body):
            return "applied"
    except _Missed:  # somebody else has given it to a run meanwhile
        return _state(webhook)
    except DatabaseTrouble:  # the sweep comes again
        raise
    except Exception as error:  # the source's own workflow may do anything
        logger.exception("webhook not applied", extra={"webhook": str(webhook.pk), "error": type(error).__name__})
        return _dead(webhook, "failed")
    ReceivedWebhook.objects.filter(pk=webhook.pk).update(tried_at=clock.now())  # from now on who begins to wait looks for it
    return _state(webhook)


def _state(webhook: ReceivedWebhook) -> str:
    return ReceivedWebhook.objects.values_list("state", flat=True).get(pk=webhook.pk)


def apply_soon(webhook_id: UUID) -> bool:
    """The same at once, by who has just stored it. False if it could not be tried: the sweep does it."""
    try:
        apply(webhook_id)
    except (DatabaseTrouble, Refusal) as error:
        logger.warning("webhook not applied yet", extra={"webhook": str(webhook_id), "error": type(error).__name__})
        return False
    return True


def apply_due() -> int:
    """Apply what was stored and left, and make dead letters of what nobody came for. Two sweeps at once do no harm."""
    now = clock.now()
    left = ReceivedWebhook.objects.filter(
        Q(tried_at=None, received_at__lte=now - LEFT) | Q(received_at__lte=now - UNMATCHED), state="received"
    )
    due = list(left.order_by("received_at").values_list("pk", "received_at")[:BATCH])
    for pk, at in due:
        if apply_soon(pk) and at <= now - UNMATCHED:
            ReceivedWebhook.objects.filter(pk=pk, state="received").update(state="dead", why="unmatched")
    _let_go_closed()
    return len(due)


def _read(webhook: ReceivedWebhook) -> dict[str, Any] | None:
    content = vault.opened(webhook.body)
    return webhook_places.parsed(content) if content is not None else None


def _dead(webhook: ReceivedWebhook, why: str) -> str:
    ReceivedWebhook.objects.filter(pk=webhook.pk, state__in=OPEN).update(state="dead", why=why)
    return _state(webhook)


def _feed(webhook: ReceivedWebhook, body: Mapping[str, Any], late: bool) -> bool:
    """Give it to the run that has waited longest for one like it."""
    waits = WebhookWait.objects.filter(source=webhook.source, closed_at=None, run__ended_at=None).exclude(run__state__in=UNDOING)
    waits = waits if late else waits.filter(since__lte=webhook.received_at)
    for wait in waits.order_by("opened_at", "pk").iterator():
        if not fits(wait.match, body):
            continue
        with log.holding(wait.run_id) as held:
            if held.row.ended_at is not None or held.row.state in UNDOING or not take(held, wait, webhook):
                continue
            if held.row.state == State.WAITING and held.row.waits_on("webhook"):
                held.move(State.QUEUED, RunQueued(reason="webhook"))
        return True
    return False


def _start(webhook: ReceivedWebhook, body: Mapping[str, Any]) -> bool:
    """Start a run with it, if its source starts any and the workflow wants this one."""
    wanted = _intake(webhook.source, body)
    if wanted is None:
        return False
    agent = webhook.source.agent

    def begins(held: Held) -> None:
        if not _applied(webhook, held.row.pk):
            raise _Missed
        _tell(held, webhook)

    starting.start(
        agent=agent,
        owner=agent.owner,
        by=log.ENGINE,
        title=wanted.title,
        workflow=webhook.source.workflow,
        arguments=wanted.arguments,
        scope=wanted.scope,
        key=f"webhook:{webhook.pk}",  # whoever applies it as well gets the same run
        more=begins,
    )
    return True


def _intake(source: WebhookSource, body: Mapping[str, Any]) -> Intake | None:
    known = workflows.named(source.workflow) if source.workflow and source.agent.owner.is_active else None
    return known.webhook(body) if known is not None and known.webhook is not None else None


# runs that wait ---------------------------------------------------------------------------------------------------------------------


def open_wait(held: Held, source: WebhookSource, step: str, match: Mapping[str, Any]) -> WebhookWait:
    """From now on a webhook like this goes to this step of the run. In the caller's transaction, under the run's lock."""
    return WebhookWait.objects.create(run=held.row, step=step, source=source, match=dict(match), since=held.row.created_at)


def take(held: Held, wait: WebhookWait, webhook: ReceivedWebhook) -> bool:
    """Give this webhook to this wait, if both are still to be had. In the caller's transaction, under the run's lock."""
    try:
        with transaction.atomic():
            mine = WebhookWait.objects.filter(pk=wait.pk, webhook=None, closed_at=None)
            if mine.update(webhook=webhook, closed_at=clock.now()) != 1 or not _applied(webhook, held.row.pk):
                raise _Missed
    except _Missed:
        return False
    WebhookWait.objects.filter(pk=wait.pk).update(seq=_tell(held, webhook))
    return True


class _Missed(Exception):
    """Somebody else was faster."""


def take_stored(held: Held, wait: WebhookWait) -> bool:
    """Give the wait what came before it, since the run began, and nobody else wanted. In the caller's transaction."""
    stored = ReceivedWebhook.objects.filter(source_id=wait.source_id, state__in=OPEN, received_at__gte=wait.since).exclude(why="invalid")
    for webhook in webhook_places.candidates(wait.source, wait.match, stored.select_related("source", "body__key")):
        body = _read(webhook)
        if body is not None and fits(wait.match, body) and take(held, wait, webhook):
            return True
    return False


def fed(held: Held, step: str) -> bool:
    """Whether a step that waits has its webhook by now, or takes one that came meanwhile. In the caller's transaction."""
    wait = only(WebhookWait.objects.filter(run_id=held.row.pk, step=step))
    return wait is not None and (wait.webhook_id is not None or (wait.closed_at is None and take_stored(held, wait)))


def never(held: Held, step: str) -> bool:
    """Whether what a step waits for can't come any more, for its source was closed. In the caller's transaction."""
    return WebhookWait.objects.filter(run_id=held.row.pk, step=step, webhook=None, source__closed_at__isnull=False).exists()


def close(wait: WebhookWait) -> bool:
    """Its time is over. False if a webhook came first. In the caller's transaction, under the run's lock."""
    return WebhookWait.objects.filter(pk=wait.pk, webhook=None, closed_at=None).update(closed_at=clock.now()) == 1


def body_of(webhook: ReceivedWebhook) -> dict[str, Any]:
    """What it said; empty where that was erased."""
    return _read(webhook) or {}


def _applied(webhook: ReceivedWebhook, run_id: UUID) -> bool:
    mine = ReceivedWebhook.objects.filter(pk=webhook.pk, state__in=OPEN)
    if mine.update(state="applied", run_id=run_id, settled_at=clock.now(), why="") != 1:
        return False
    webhook_places.forget(webhook.pk)
    return True


def _tell(held: Held, webhook: ReceivedWebhook) -> int:
    told = WebhookReceived(source=webhook.source.name, delivery=webhook.delivery)
    return held.append(told, actor=log.ENGINE, texts={"body": webhook.body})


# dead letters -----------------------------------------------------------------------------------------------------------------------


def resolve(webhook: ReceivedWebhook, choice: Choice, *, by: Actor) -> str:
    """What a person chooses for a dead letter; gives its state then. LetterSettled if it is none any more."""
    workspace_id = webhook.source.workspace_id
    if choice == "discard":
        with transaction.atomic(durable=True):
            gone = ReceivedWebhook.objects.filter(pk=webhook.pk, state="dead").update(state="discarded", settled_at=clock.now())
            if gone != 1:
                raise LetterSettled
            webhook_places.forget(webhook.pk)
            audit.record(by, "webhook_discarded", workspace_id=workspace_id, subject=("webhook", webhook.pk))
        return "discarded"
    with transaction.atomic(durable=True):
        if ReceivedWebhook.objects.filter(pk=webhook.pk, state="dead").update(state="received", why="", tried_at=None) != 1:
            raise LetterSettled
        audit.record(by, "webhook_applied_again", workspace_id=workspace_id, subject=("webhook", webhook.pk))
    state = apply(webhook.pk, late=True)
    return _dead(webhook, "unmatched") if state == "received" else state
