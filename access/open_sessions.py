"""Where a person is signed in: one row a session, listed on their account page, ended there or by an admin.

Ending one deletes Django's own row, so that its cookie is nobody's from then on, and makes the person's open streams look again.
"""

import logging
import time
from importlib import import_module
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import transaction
from django.http import HttpRequest

from access import addresses, audit, devices, rules, standing
from access.errors import DatabaseTrouble
from access.models import User
from access.people_models import OpenSession
from config import clock

MARK = "open_session"  # under which a session knows its own row
EVERY = 60.0  # seconds between two notes that a session is in use

_noted: dict[str, float] = {}

logger = logging.getLogger(__name__)


def opened(request: HttpRequest, user: User, *, how: str) -> None:
    """The session that has just begun. Those of this person that have run out meanwhile are forgotten."""
    _living(user)
    row = OpenSession.objects.create(
        user=user,
        key=request.session.session_key,
        how=how,
        user_agent=request.headers.get("User-Agent", "")[:300],
        address=addresses.of(request) or None,
    )
    request.session[MARK] = str(row.pk)


def used(request: HttpRequest) -> None:
    """Note that a session is in use, at most once a minute and process; nothing if nobody asked for the session. What was asked for is
    done already: it stays so if this can't be noted."""
    session = getattr(request, "session", None)
    mark = session.get(MARK) if session is not None and session.accessed else None
    if mark is None or time.monotonic() - _noted.get(mark, -EVERY) < EVERY:
        return
    if len(_noted) > 10_000:
        _noted.clear()
    try:
        OpenSession.objects.filter(pk=mark).update(used_at=clock.now(), address=addresses.of(request) or None)
    except DatabaseTrouble:
        logger.warning("the last use of a session could not be noted")
    else:
        _noted[mark] = time.monotonic()


def of(user: User, request: HttpRequest) -> list[OpenSession]:
    """This one first, then the last used. Each has `.words`, and `.is_this`."""
    rows = sorted(_living(user), key=lambda row: row.used_at, reverse=True)
    for row in rows:
        row.words = devices.words(row.user_agent)
        row.is_this = str(row.pk) == request.session.get(MARK)
    return sorted(rows, key=lambda row: not row.is_this)


def end(user: User, pk: UUID) -> bool:
    """A person ends one session of their own. False if it is not there any more."""
    with transaction.atomic():
        ended = _end(user, list(OpenSession.objects.filter(user=user, pk=pk))) == 1
        if ended:
            _written(user, "session_ended", ("session", pk))
    return ended


def end_other_ones(user: User, request: HttpRequest) -> int:
    """A person ends all of their own but this one; how many there were."""
    with transaction.atomic():
        ended = end_others(user, request)
        _written(user, "sessions_ended", ("user", user.pk), ended=ended)
    return ended


def end_others(user: User, request: HttpRequest) -> int:
    """All but this one end, for what the caller writes down; how many there were."""
    return _end(user, list(OpenSession.objects.filter(user=user).exclude(pk=request.session.get(MARK))))


def end_all(user: User) -> int:
    return _end(user, list(OpenSession.objects.filter(user=user)))


def forget(request: HttpRequest) -> None:
    """The session of this request ends by itself: somebody signed out."""
    OpenSession.objects.filter(pk=request.session.get(MARK)).delete()


def moved(request: HttpRequest) -> None:
    """Its key is another now."""
    OpenSession.objects.filter(pk=request.session.get(MARK)).update(key=request.session.session_key)


def tidy() -> None:
    """Forget what has run out, of everybody."""
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
    OpenSession.objects.exclude(key__in=Session.objects.values("session_key")).delete()


def _end(user: User, rows: list[OpenSession]) -> int:
    with transaction.atomic():
        Session.objects.filter(session_key__in=[row.key for row in rows]).delete()
        OpenSession.objects.filter(pk__in=[row.pk for row in rows]).delete()
        standing.raise_versions(User.objects.filter(pk=user.pk))
    return len(rows)


def _written(user: User, verb: str, subject: tuple[str, object], **data: Any) -> None:
    actor = rules.person(user.pk)
    audit.record(actor, verb, workspace_id=actor.home, subject=subject, **data)


def _living(user: User) -> list[OpenSession]:
    rows = list(OpenSession.objects.filter(user=user))
    keys = [row.key for row in rows]
    living = set(Session.objects.filter(session_key__in=keys, expire_date__gt=clock.now()).values_list("session_key", flat=True))
    OpenSession.objects.filter(pk__in=[row.pk for row in rows if row.key not in living]).delete()
    return [row for row in rows if row.key in living]
