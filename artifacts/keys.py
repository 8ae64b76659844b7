"""The keys of workspaces: made, sealed under the master key, rotated. What they wrap is the vault's.

A rotation is a new version. It seals from then on (in other processes within `REMEMBERED` seconds); a job wraps the data keys of older
payloads anew (`artifacts.rotation`), and what still refers to an old version is all that is left to do: there is no other state to lose.
"""

import time
from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache, partial
from typing import ClassVar
from uuid import UUID

from cryptography.exceptions import InvalidTag
from django.conf import settings
from django.db import IntegrityError, router, transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from access import audit
from access.errors import Refusal
from access.models import Workspace
from access.rules import Actor
from artifacts.models import Payload, Upload, WorkspaceKey
from artifacts.sealing import new_key, seal, unseal
from config import clock

REMEMBERED = 5.0  # seconds, for which a process goes on sealing under a version that has a newer one
# for so long after nothing referred to it any more: longer than any process remembers a key, or any transaction goes on
GRACE = timedelta(minutes=10)
_KEPT = 1000


class RotatedMeanwhile(Refusal):
    """Somebody else rotated this key at the same moment."""

    what_next: ClassVar[str] = "There is one new version, theirs. Rotate again only if another one is wanted."


# opening --------------------------------------------------------------------------------------------------------------------------


def unwrap(key: WorkspaceKey) -> bytes:
    return _unwrapped(bytes(key.wrapped), key.workspace_id)


@lru_cache(maxsize=256)
def _unwrapped(wrapped: bytes, workspace_id: UUID) -> bytes:
    """Under the master key, or one that it came after."""
    for master in (_master(), *settings.HANDRAIL_VAULT_KEY_OLD):
        try:
            return unseal(master, wrapped, workspace_id.bytes)
        except InvalidTag:
            continue
    raise InvalidTag


def _master() -> bytes:
    return settings.HANDRAIL_VAULT_KEY


# which one seals --------------------------------------------------------------------------------------------------------------------


def current(workspace_id: UUID) -> WorkspaceKey:
    """The newest key. It is looked for again after some seconds; one whose transaction may yet be taken back is not remembered."""
    read_at, known = _keys.get(workspace_id, (0.0, None))
    if known is not None and time.monotonic() - read_at < REMEMBERED:
        return known
    newest = WorkspaceKey.objects.filter(workspace_id=workspace_id).order_by("-version").first()
    if newest is None:
        return _first(workspace_id)
    transaction.on_commit(partial(_remember, newest, time.monotonic()))  # at once, if no transaction is open
    return newest


def _remember(key: WorkspaceKey, read_at: float) -> None:
    if len(_keys) > _KEPT:
        _keys.clear()
    _keys[key.workspace_id] = read_at, key


_keys: dict[UUID, tuple[float, WorkspaceKey]] = {}


def _first(workspace_id: UUID) -> WorkspaceKey:
    try:
        with transaction.atomic():
            return _made(workspace_id, 1)
    except IntegrityError:  # somebody else was faster
        return WorkspaceKey.objects.get(workspace_id=workspace_id, version=1)


def _made(workspace_id: UUID, version: int) -> WorkspaceKey:
    wrapped = seal(_master(), new_key(), workspace_id.bytes)
    return WorkspaceKey.objects.create(workspace_id=workspace_id, version=version, wrapped=wrapped)


# rotating ---------------------------------------------------------------------------------------------------------------------------


def rotate(workspace: Workspace, *, by: Actor) -> WorkspaceKey:
    """A new version, which seals from now on. RotatedMeanwhile if another one came first."""
    newest = WorkspaceKey.objects.filter(workspace=workspace).aggregate(newest=Max("version"))["newest"] or 0
    try:
        with transaction.atomic():
            made = _made(workspace.pk, newest + 1)
            _record(by, "vault_key_rotated", made)
    except IntegrityError:
        raise RotatedMeanwhile from None
    _keys.pop(workspace.pk, None)
    return made


def outdated(workspace_id: UUID | None = None) -> QuerySet[WorkspaceKey]:
    """Versions that have a newer one, of one workspace or of all."""
    newer = WorkspaceKey.objects.filter(workspace_id=OuterRef("workspace_id"), version__gt=OuterRef("version"))
    found = WorkspaceKey.objects.filter(Exists(newer)).order_by("workspace_id", "version")
    return found.filter(workspace_id=workspace_id) if workspace_id else found


def retire(workspace_id: UUID | None = None, *, by: Actor) -> int:
    """Say of old versions that nothing refers to them any more."""
    return sum(_retire(key, by) for key in outdated(workspace_id).filter(retired_at=None))


def _retire(key: WorkspaceKey, by: Actor) -> bool:
    with transaction.atomic():
        if not WorkspaceKey.objects.filter(_unused(), pk=key.pk, retired_at=None).update(retired_at=clock.now()):
            return False
        _record(by, "vault_key_retired", key)
    return True


def needed_again(keys: Iterable[int]) -> None:
    """Something was wrapped under these, by a process that had not heard of the newer one. In the caller's transaction."""
    WorkspaceKey.objects.filter(pk__in=set(keys), retired_at__isnull=False).update(retired_at=None)


def destroy(workspace_id: UUID | None = None, *, by: Actor) -> int:
    """Delete the versions that were retired a while ago, if still nothing refers to them."""
    due = outdated(workspace_id).filter(retired_at__lt=clock.now() - GRACE)
    return sum(_destroy(key, by) for key in due)


def _destroy(key: WorkspaceKey, by: Actor) -> bool:
    rows = WorkspaceKey.objects.filter(_unused(), pk=key.pk, retired_at__lt=clock.now() - GRACE)
    try:
        # the row itself goes: if a payload sealed under it is committed at this moment, the foreign key refuses one of the two
        with transaction.atomic():
            if not rows._raw_delete(router.db_for_write(WorkspaceKey)):
                return False
            _record(by, "vault_key_destroyed", key)
    except IntegrityError:
        return False
    return True


def _unused() -> Q:
    mine = OuterRef("pk")
    return ~Q(Exists(Payload.objects.filter(key=mine))) & ~Q(Exists(Upload.objects.filter(key=mine)))


def _record(by: Actor, verb: str, key: WorkspaceKey) -> None:
    audit.record(by, verb, workspace_id=key.workspace_id, subject=("vault_key", key.version), version=key.version)


def rewrap_master(*, by: Actor) -> tuple[int, list[WorkspaceKey]]:
    """Seal every workspace's keys under the master key that is set now. How many that were, and those that open under none."""
    moved, closed = 0, []
    for key in WorkspaceKey.objects.order_by("pk").iterator():
        sealed = bytes(key.wrapped)
        if _opens(_master(), key):
            continue
        try:
            fresh = seal(_master(), unwrap(key), key.workspace_id.bytes)
        except InvalidTag:
            closed.append(key)
            continue
        with transaction.atomic():  # of two at once the second finds nothing to change: both seal the same key
            if WorkspaceKey.objects.filter(pk=key.pk, wrapped=sealed).update(wrapped=fresh):
                _record(by, "vault_key_resealed", key)
                moved += 1
    return moved, closed


def _opens(master: bytes, key: WorkspaceKey) -> bool:
    try:
        unseal(master, bytes(key.wrapped), key.workspace_id.bytes)
    except InvalidTag:
        return False
    return True
