"""Refusals of somebody known are entries of the audit trail: who asked for what, and which right was missing.

Whoever is refused the same thing again within a minute adds to a count, not to the trail; so does who asks for very many different things.
A refusal is written down after the transaction of what was refused is gone, in one of its own. If it can't be, the answer stays the same.
"""

import hashlib
import json
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F
from django.http import HttpRequest, HttpResponse

from access import audit
from access.audit_models import RefusalTally
from access.errors import DatabaseTrouble, Forbidden, NotFound, Refusal, heard
from access.rows import only
from access.rules import Actor
from config import clock

MINUTE = timedelta(minutes=1)  # within it, what is refused alike is one entry
DIFFERENT = 20  # things that one actor may be refused in a minute before they are counted together
KNOWN_AS = {  # models → what the trail calls them
    "proposedaction": "action",
    "reviewergroup": "group",
    "agentkey": "agent_key",
    "standinggrant": "standing_grant",
    "webhooksource": "webhook_source",
    "receivedwebhook": "webhook",
    "escalationstep": "escalation",
}

WRITTEN_BY_THEMSELVES = {"reveal-refused"}

logger = logging.getLogger(__name__)


class WrittenDown:
    """Middleware: the refusal that became the answer to this request, as an error or within a page, is written down."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        told: list[Refusal] = []
        token = heard.set(told)
        try:
            response = self.get_response(request)
        finally:
            heard.reset(token)
        refusal = next((each for each in reversed(told) if each.status == response.status_code), None)
        if refusal is not None and (refusal.subject or refusal.extra.get("capability") or request.method not in ("GET", "HEAD")):
            note(request.actor, refusal, at=request.resolver_match.view_name if request.resolver_match else "")
        return response


def note(actor: Actor, refusal: Refusal, *, at: str = "") -> None:
    """Write down that `actor` was refused. `at`: the name of the page or stream. Nothing if nobody is known, or no right is missing."""
    if not actor.is_known or not isinstance(refusal, Forbidden | NotFound) or refusal.kind in WRITTEN_BY_THEMSELVES:
        return
    kind, pk = refusal.subject or ("", "")
    told = {"right": refusal.needed or str(refusal.extra.get("capability", "")), "why": refusal.kind, "at": at}
    given = (actor, (KNOWN_AS.get(kind, kind), pk[:40]), told, refusal.workspace)
    try:
        try:
            with transaction.atomic():
                _note(*given)
        except IntegrityError:  # the same, refused twice at one moment: one of them is the entry, the other adds to its count
            with transaction.atomic():
                _note(*given)
    except DatabaseTrouble:
        logger.exception("a refusal could not be written down")


def _note(actor: Actor, subject: tuple[str, str], told: dict[str, Any], where: UUID | None) -> None:
    now = clock.now()
    if RefusalTally.objects.filter(actor_id=actor.id, since__gt=now - MINUTE).count() >= DIFFERENT:
        subject, told = ("", ""), {"right": "", "why": "many", "at": ""}
    workspace = where or actor.home
    if workspace is not None and (glass := actor.glass.get(workspace)) is not None:
        told = told | {"glass": str(glass.id)}  # kept with what is counted: who settles it holds none
    key = hashlib.sha256(json.dumps([actor.kind, actor.id, subject, told], sort_keys=True).encode()).hexdigest()
    tally = only(RefusalTally.objects.select_for_update().filter(key=key))
    if tally is not None and tally.since > now - MINUTE:
        RefusalTally.objects.filter(key=key).update(more=F("more") + 1)
        return
    of = {"workspace_id": workspace, "actor_kind": actor.kind, "actor_id": actor.id, "subject_kind": subject[0], "subject_id": subject[1]}
    if tally is None:
        RefusalTally.objects.create(key=key, told=told, since=now, **of)
    else:
        RefusalTally.objects.filter(key=key).update(workspace=workspace, since=now, more=0)
    _write(actor, workspace, subject, told, times=1 + (tally.more if tally else 0))


def settle() -> None:
    """What was counted and comes no more gets its entry; called by the sealer's beat. Two at once write it once."""
    for tally in RefusalTally.objects.filter(since__lte=clock.now() - MINUTE)[:500]:
        with transaction.atomic():
            gone, _ = RefusalTally.objects.filter(key=tally.key, since=tally.since, more=tally.more).delete()
            if gone and tally.more:
                actor = Actor(tally.actor_kind, tally.actor_id)
                _write(actor, tally.workspace_id, (tally.subject_kind, tally.subject_id), tally.told, times=tally.more)


def _write(actor: Actor, workspace: UUID | None, subject: tuple[str, str], told: dict[str, Any], *, times: int) -> None:
    audit.record(actor, "refused", workspace_id=workspace, subject=subject if subject[0] else None, times=times, **told)
